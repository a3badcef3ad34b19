"""The files of a run, and those a workflow declares as its input, with their sha256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfflow.tools.regular_files import opened

_EMPTY = hashlib.sha256().hexdigest()
"""Most steps print nothing to one of their two streams: those files are not opened."""


def hashes(folder: Path) -> Iterable[tuple[str, str]]:
    """Every file below a folder with its hash, folder by folder, as paths sort."""
    # The separator before any other character.
    for name, size in sorted(_files(folder), key=lambda file: file[0].replace(os.sep, "\0")):
        yield name, sha256(folder / name) if size else _EMPTY


def names(folder: Path) -> set[str]:
    """Names of all files below a folder, relative to it."""
    return {name for name, _ in _files(folder)}


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Names of all files below a folder, relative to it, and their sizes, in no order.

    Links to folders are not followed, nor are those that lead out of this one.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{prefix}{entry.name}{os.sep}")
                elif entry.is_file() and not (entry.is_symlink() and _leads_out(entry.path, folder)):
                    yield prefix + entry.name, entry.stat().st_size


def _leads_out(path: str, folder: Path) -> bool:
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def data_hashes(root: Path, globs: Iterable[str]) -> dict[str, str]:
    """Hashes of the input files that a workflow declares under ``data``, relative to the tree where they are in it."""
    paths = sorted({path for glob in globs for path in _matching(root, glob) if path.is_file()})
    return {str(path.relative_to(root) if path.is_relative_to(root) else path): sha256(path) for path in paths}


def unmatched(root: Path, globs: Iterable[str]) -> list[str]:
    """The globs under ``data`` that match no file: what they were to declare was not there."""
    return [glob for glob in globs if not any(path.is_file() for path in _matching(root, glob))]


def _matching(root: Path, glob: str) -> Iterable[Path]:
    start = Path(glob).anchor
    pattern = glob[len(start) :] if start else glob
    return Path(start or root).glob(pattern) if pattern else ()


def sha256(path: Path) -> str:
    """Hash of a regular file's bytes in hexadecimal; one without a size, as those in /proc, is taken for empty."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() if os.fstat(stream.fileno()).st_size else _EMPTY
