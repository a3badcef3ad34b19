"""The manifest of a run: commands, machine, inputs, outcome, and the sha256 of every file of the run.

- ``make`` makes it. It contains no secrets and nothing of the process environment: secrets in the command lines of
  steps are masked before they are stored (``run.secrets``).
- ``hashes`` and ``data_hashes`` have the sha256 of the files of a run and of the declared input files of a workflow.
- ``own_files`` are those of the perfflow that runs, and ``changed_files`` those that a measured program rewrote.
- ``environment_differences`` compares the environments of two runs: machine, versions and settings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.machine.facts import IDENTITY
from perfflow.model.result import Result
from perfflow.model.version import VERSION
from perfflow.store.run_folder import RECEIPT, json_lines
from perfflow.tools.regular_files import opened

SCHEMA = "perfflow.receipt/1"
SEAL = "seal"


def make(result: Result, folder: Path, versions: Mapping[str, str], chain: str = "", own: str = "") -> dict[str, Any]:
    """Return the manifest of a finished run.

    chain: the last hash of the chain of its events; own: that of perfflow's own files, '' if they were not hashed.
    """
    return _sealed(
        {
            "schema": SCHEMA,
            **_outcome(result),
            "versions": {"perfflow": VERSION, **versions},
            **({"own_files": own} if own else {}),
            "machine": result.machine,
            **({"nodes": [node.model_dump(mode="json") for node in result.nodes]} if result.nodes else {}),
            "trees": result.trees,
            "steps": [{"id": step.id, "tool": step.tool, "argv": step.argv} for step in result.steps],
            "data": result.data or {},
            **({"chain": chain} if chain else {}),
            # The receipt cannot contain its own hash.
            "files": {name: digest for name, digest in hashes(folder) if name != RECEIPT},
        }
    )


def renewed(receipt: Mapping[str, Any], result: Result, folder: Path, rewritten: Iterable[str]) -> dict[str, Any]:
    """Return the receipt of a run that was judged again, possibly by another version. Its samples are unchanged."""
    files = receipt["files"] | {name: sha256(folder / name) for name in rewritten}
    return _sealed({**receipt, **_outcome(result), "files": files})


def seal(receipt: Mapping[str, Any]) -> str:
    """Return the hash of a receipt without its seal, which detects accidental changes of the receipt itself."""
    parts = ((name, value) for name, value in receipt.items() if name != SEAL)
    return hashlib.sha256("".join(json_lines(parts)).encode("utf-8", "backslashreplace")).hexdigest()


def _sealed(receipt: dict[str, Any]) -> dict[str, Any]:
    return receipt | {SEAL: seal(receipt)}


def _outcome(result: Result) -> dict[str, Any]:
    return {
        "run": result.run.model_dump(mode="json"),
        "verdict": result.verdict,
        "gate": result.gate and result.gate.model_dump(mode="json"),
    }


_EMPTY = hashlib.sha256().hexdigest()
"""Hash of empty files, which are not opened: most steps write nothing to one of their two streams."""


def hashes(folder: Path) -> Iterable[tuple[str, str]]:
    """Yield every file below a folder with its hash, in the order of paths, folder by folder."""
    # Sort the separator before any other character.
    for name, size in sorted(_files(folder), key=lambda file: file[0].replace(os.sep, "\0")):
        yield name, sha256(folder / name) if size else _EMPTY


def names(folder: Path) -> set[str]:
    """Return the names of all files below a folder, relative to it."""
    return {name for name, _ in _files(folder)}


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the names of all files below a folder, relative to it, and their sizes, in no order.

    Links to folders are not followed. Links to files outside the folder are skipped.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(f"{folder}{os.sep}{prefix}") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{prefix}{entry.name}{os.sep}")
                elif entry.is_file() and not (entry.is_symlink() and _leads_out(entry.path, folder)):
                    yield prefix + entry.name, entry.stat().st_size


def _leads_out(path: str, folder: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def data_hashes(root: Path, globs: Iterable[str]) -> dict[str, str]:
    """Return the hashes of the declared input files (``data``), with paths relative to the tree if they are in it."""
    paths = sorted({path for glob in globs for path in _matching(root, glob) if path.is_file()})
    return {str(path.relative_to(root) if path.is_relative_to(root) else path): sha256(path) for path in paths}


def unmatched(root: Path, globs: Iterable[str]) -> list[str]:
    """Return the globs under ``data`` that match no file."""
    return [glob for glob in globs if not any(path.is_file() for path in _matching(root, glob))]


def _matching(root: Path, glob: str) -> Iterable[Path]:
    start = Path(glob).anchor
    pattern = glob[len(start) :] if start else glob
    return Path(start or root).glob(pattern) if pattern else ()


def sha256(path: Path) -> str:
    """Return the sha256 of a regular file in hexadecimal. A file of size 0, also in /proc, counts as empty."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() if os.fstat(stream.fileno()).st_size else _EMPTY


_JITTERING = ("load", "noise", "identity")
"""Facts that differ on every run, or that only summarize other facts."""


@dataclass(frozen=True)
class MachineDifference:
    """A fact with both values as text; ``decisive`` if it identifies another machine."""

    fact: str
    before: str
    now: str
    decisive: bool


def environment_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[MachineDifference]:
    """Yield the facts of two manifests (``machine``, ``versions``) that differ. Facts of only one are skipped."""
    for part in ("machine", "versions"):
        first, second = before.get(part) or {}, now.get(part) or {}
        for name in first:
            if name in second and name not in _JITTERING and first[name] != second[name]:
                decisive = part == "machine" and name in IDENTITY
                fact = name if part == "machine" else f"version of {name}"
                yield MachineDifference(fact, _text(first[name]), _text(second[name]), decisive)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
