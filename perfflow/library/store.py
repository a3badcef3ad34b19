"""Stores fetched items in the user's cache, in folders named by checksum, and records which items were shown."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfflow.library import lock_file
from perfflow.library.lock_file import Pin
from perfflow.library.references import Reference
from perfflow.model.errors import UserError
from perfflow.workflow.readable import Readable

VENDORED = Path("workflows", "vendor")
"""Folder for copies of items in a project."""


def cached(pin: Pin) -> Path:
    """Return the folder of an item in the cache, which may be missing. Its files have their paths in the repository."""
    from platformdirs import user_cache_path

    return user_cache_path("perfflow") / "library" / pin.sha256


def vendored(root: Path, reference: Reference) -> Path:
    """Return the folder for copied files of a repository in a project."""
    return root / VENDORED / reference.folder


def sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file by path."""
    return {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}


def changed(folder: Path, pin: Pin) -> Iterator[str]:
    """Yield the differences from the lock: files that are missing, changed, or behind a link out of the folder."""
    readable = Readable.of(folder)
    for name, sha256 in sorted(pin.files.items()):
        try:
            raw = readable.bytes_of(folder / name)
        except (OSError, ValueError):
            yield f"{name} is missing or cannot be read"
            continue
        except UserError:
            yield f"{name} is a link that leads out of its folder"
            continue
        found = hashlib.sha256(raw).hexdigest()
        if found != sha256:
            yield f"{name} was changed: its sha256 is {found[:12]}…, but {sha256[:12]}… in {lock_file.NAME}"


def files_in(folder: Path, pin: Pin) -> dict[str, bytes]:
    """Return the files of an item that matches the lock. Raises UserError if one cannot be read."""
    readable = Readable.of(folder)
    try:
        return {name: readable.bytes_of(folder / name) for name in pin.files}
    except OSError as error:
        raise UserError.of(f"{error.filename}: {error.strerror}") from error


def keep(pin: Pin, files: Mapping[str, bytes]) -> None:
    """Write an item into the cache, replacing a damaged one. Raises UserError if it cannot be written."""
    folder = cached(pin)
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        write_into(fresh, files, fresh)
        if folder.is_dir():
            shutil.rmtree(folder)
        fresh.rename(folder)
    except OSError as error:
        raise UserError.of(f"{folder} cannot be written: {error.strerror}", "set XDG_CACHE_HOME to a folder") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def write_into(folder: Path, files: Mapping[str, bytes], within: Path) -> None:
    """Write files below a folder. Raises OSError, also if a link leads out of ``within``."""
    for name, raw in files.items():
        path = folder / name
        _require_within(path, within)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(raw)


def remove(path: Path, within: Path) -> None:
    """Remove a file, if it exists, and the folders of copies that become empty.

    Raises OSError, also if a link leads out of ``within``.
    """
    _require_within(path, within)
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if not folder.is_relative_to(within / VENDORED) or not folder.is_dir() or any(folder.iterdir()):
            break
        folder.rmdir()


def _require_within(path: Path, within: Path) -> None:
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(within)):
        raise OSError(0, "a link leads out of the project", str(path.parent))


def is_shown(pin: Pin) -> bool:
    """Return whether the commands of an item were shown to the user on this machine."""
    return _mark(pin).is_file()


def mark_shown(pin: Pin) -> None:
    """Record that the commands of an item were shown. Raises UserError if this cannot be written."""
    path = _mark(pin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise UserError.of(f"{path} cannot be written: {error.strerror}", "set XDG_STATE_HOME to a folder") from error


def _mark(pin: Pin) -> Path:
    from platformdirs import user_state_path

    return user_state_path("perfflow") / "library" / "shown" / pin.sha256
