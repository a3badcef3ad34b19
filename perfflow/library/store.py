"""Stores fetched items in the user's cache, in folders named by checksum, and records which items were shown."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path, user_state_path

from perfflow.library import lock_file
from perfflow.library.lock_file import Pin
from perfflow.library.references import Reference
from perfflow.model.errors import UserError
from perfflow.store.run_lock import only_writer
from perfflow.workflow.readable import Readable

VENDORED = Path("workflows", "vendor")
"""Folder for copies of items in a project."""
_FRESH = ".fresh-"
"""Prefix of temporary folders in the cache."""


def cached(pin: Pin) -> Path:
    """Return the folder of an item in the cache, which may be missing. Its files have their paths in the repository."""
    return _cache() / pin.sha256


def _cache() -> Path:
    return user_cache_path("perfflow") / "library"


@contextmanager
def changing(root: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Lock a project's lock file, then the cache, against other perfflow processes that change them.

    Temporary folders of killed processes are removed. ``waiting`` is called before waiting for another process. Raises
    UserError if a folder cannot be used.
    """
    cache = _cache()
    try:
        cache.mkdir(0o700, parents=True, exist_ok=True)
        with only_writer(root, waiting), only_writer(cache, waiting):
            for left in cache.glob(f"{_FRESH}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except OSError as error:
        raise UserError.of(f"{error.filename or root}: {error.strerror}", "set XDG_CACHE_HOME to a folder") from error


@contextmanager
def temporary() -> Iterator[Path]:
    """Yield a new folder in the cache. If this process is killed, the next one in ``changing`` removes it."""
    with tempfile.TemporaryDirectory(prefix=_FRESH, dir=_cache(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def vendored(root: Path, reference: Reference) -> Path:
    """Return the folder for copied files of a repository in a project."""
    return root / VENDORED / reference.folder


def sums(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file by path."""
    return {name: hashlib.sha256(raw).hexdigest() for name, raw in files.items()}


def checked(folder: Path, pin: Pin) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of an item that match the lock, and the differences of the others from it.

    Each file is read once, so the returned bytes are those that were compared, even if it is changed meanwhile.
    """
    readable = Readable.of(folder)
    files, wrong = dict[str, bytes](), list[str]()
    for name, sha256 in sorted(pin.files.items()):
        try:
            raw = readable.bytes_of(folder / name)
        except (OSError, ValueError):
            wrong.append(f"{name} is missing or cannot be read")
            continue
        except UserError:
            wrong.append(f"{name} is a link that leads out of its folder")
            continue
        found = hashlib.sha256(raw).hexdigest()
        if found == sha256:
            files[name] = raw
        else:
            wrong.append(f"{name} was changed: its sha256 is {found[:12]}…, but {sha256[:12]}… in {lock_file.NAME}")
    return files, wrong


def changed(folder: Path, pin: Pin) -> list[str]:
    """Return the differences from the lock: files that are missing, changed, or behind a link out of the folder."""
    return checked(folder, pin)[1]


def keep(pin: Pin, files: Mapping[str, bytes]) -> None:
    """Write an item into the cache, replacing a damaged one. Raises UserError if it cannot be written."""
    folder = cached(pin)
    if not changed(folder, pin):
        return
    try:
        with temporary() as fresh:
            write_into(fresh / "item", files, fresh)
            if folder.is_dir():
                shutil.rmtree(folder)
            (fresh / "item").rename(folder)
    except OSError as error:
        raise UserError.of(f"{folder} cannot be written: {error.strerror}", "set XDG_CACHE_HOME to a folder") from error


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


def is_shown(name: str, pin: Pin) -> bool:
    """Return whether all files of an item were shown to the user on this machine. ``name``: its reference."""
    return _mark(name, pin).is_file()


def mark_shown(name: str, pin: Pin) -> None:
    """Record that all files of an item were shown. Raises UserError if this cannot be written."""
    path = _mark(name, pin)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    except OSError as error:
        raise UserError.of(f"{path} cannot be written: {error.strerror}", "set XDG_STATE_HOME to a folder") from error


def _mark(name: str, pin: Pin) -> Path:
    """Return the file that records what was shown: the bytes, and which of the files the reference names."""
    shown = hashlib.sha256(f"{name}\n{pin.path}\n{pin.sha256}\n".encode()).hexdigest()
    return user_state_path("perfflow") / "library" / "shown" / shown
