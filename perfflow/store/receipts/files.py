"""The files of a run and the declared input files of a workflow, with their sha256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfflow.tools.regular_files import opened

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
