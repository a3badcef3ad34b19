"""A run's manifest: what ran where, on which inputs, and the sha256 of every file of the run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfflow.result import Result
from perfflow.rundir.folder import EVENTS, RECEIPT
from perfflow.version import VERSION

SCHEMA = "perfflow.receipt/1"
_EMPTY = hashlib.sha256().hexdigest()
"""Most steps print nothing to one of their two streams: those files are not opened."""


def make(result: Result, folder: Path, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a finished run."""
    return {
        "schema": SCHEMA,
        "run": result.run.model_dump(mode="json"),
        "versions": {"perfflow": VERSION, **versions},
        "machine": result.machine,
        "trees": result.trees,
        "steps": [{"id": step.id, "tool": step.tool, "argv": step.argv} for step in result.steps],
        "data": result.data or {},
        "files": dict(_hashes(folder)),
    }


def _hashes(folder: Path) -> Iterable[tuple[str, str]]:
    # Folder by folder, as paths sort: the separator before any other character.
    for name, size in sorted(_files(folder), key=lambda file: file[0].replace(os.sep, "\0")):
        # The receipt cannot hold its own hash, and the events may still get their last line.
        if name not in (RECEIPT, EVENTS):
            yield name, sha256(folder / name) if size else _EMPTY


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Names of all files below a folder, relative to it, and their sizes, in no order.

    Links to folders are not followed.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(folder / prefix) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{prefix}{entry.name}{os.sep}")
                elif entry.is_file():
                    yield prefix + entry.name, entry.stat().st_size


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
    """Hash of a file's bytes in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
