"""The files of the perfflow that runs, so that a run can tell whether a program that it measured rewrote them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from perfflow.store.receipts.manifest import sha256

PACKAGE = Path(__file__).resolve().parents[2]
_CACHE = "__pycache__"


def own_files(package: Path = PACKAGE) -> dict[str, str]:
    """Return the sha256 of each file of perfflow's package, by path relative to it, with those of compiled modules.

    A compiled module that is older than its source is left out: Python may replace it at any time.
    """
    found = {}
    for path in package.rglob("*"):
        # Another perfflow may compile a module now, which replaces a temporary file.
        with suppress(OSError):
            if path.is_file() and not _is_stale(path):
                found[str(path.relative_to(package))] = sha256(path)
    return found


def changed_files(before: Mapping[str, str], package: Path = PACKAGE) -> list[str]:
    """Return the paths of files that were changed, removed or added since ``own_files`` returned ``before``.

    Modules that were compiled since then do not count.
    """
    now = own_files(package)
    added = [name for name in now if name not in before and _CACHE not in Path(name).parts]
    return sorted([*added, *(name for name, digest in before.items() if now.get(name) != digest)])


def hash_of(files: Mapping[str, str]) -> str:
    """Return the sha256 of a line ``SHA256  PATH`` for each file, sorted by path. Compiled modules do not count."""
    lines = (f"{digest}  {name}\n" for name, digest in sorted(files.items()) if _CACHE not in Path(name).parts)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _is_stale(path: Path) -> bool:
    """Return whether a file is a compiled module that is older than its source."""
    if path.parent.name != _CACHE:
        return False
    source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
    return source.is_file() and source.stat().st_mtime_ns > path.stat().st_mtime_ns
