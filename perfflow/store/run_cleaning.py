"""Find old runs with their sizes, and remove them."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfflow.store.run_folder import EVENTS, HOME, PATCHES, RESULT
from perfflow.store.run_lock import is_held
from perfflow.trees.rmtree import remove_tree

_GOING = ".going-"
"""Prefix of a folder that is being removed. If a clean-up is killed, the next one removes the rest."""


@dataclass(frozen=True)
class OldFolder:
    """A removable folder: when it was last written (seconds since 1970) and its size on disk in bytes."""

    path: Path
    written: float
    size: int
    what: str


def runs(root: Path) -> list[OldFolder]:
    """Return the runs of a project that no process is writing, newest first."""
    return _runs_in(root / HOME / "runs", "run")


def comparisons(cache: Path) -> list[OldFolder]:
    """Return the runs of `perfflow compare` outside any project, newest first."""
    return _runs_in(cache / "compare", "comparison")


def patches(root: Path, gone: Collection[Path]) -> list[OldFolder]:
    """Return the submitted patches that no run uses. Runs in ``gone`` do not count."""
    folder, left = root / HOME / PATCHES, set()
    runs = root / HOME / "runs"
    for run in runs.iterdir() if runs.is_dir() else ():
        if run not in gone and not run.is_symlink():
            left.add((root / _workflow_of(run)).parent)
    unused = [path for path in (folder.iterdir() if folder.is_dir() else ()) if path not in left and path.is_dir()]
    return [OldFolder(path, _newest(path), size_of(path), "patch") for path in sorted(unused)]


def _workflow_of(run: Path) -> str:
    """Return a run's workflow file, relative to the project root; '' if it is not known."""
    with suppress(OSError, ValueError, KeyError, TypeError), (run / EVENTS).open(encoding="utf-8") as stream:
        return str(json.loads(stream.readline())["run"]["file"])
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads((run / RESULT).read_bytes())["run"]["file"])
    return ""


def _newest(folder: Path) -> float:
    """Return when a file in a folder was last written, in seconds since 1970."""
    return max((entry.stat(follow_symlinks=False).st_mtime for entry in _below(folder)), default=0.0)


def _runs_in(folder: Path, what: str) -> list[OldFolder]:
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_symlink() or not path.is_dir() or is_held(path / EVENTS):
            continue
        of_ours = path.name.startswith(_GOING) or any((path / name).is_file() for name in (EVENTS, RESULT))
        if of_ours:
            found.append(OldFolder(path, _written(path), size_of(path), what))
    return sorted(found, key=lambda item: (item.written, item.path.name), reverse=True)


def _written(path: Path) -> float:
    if path.name.startswith(_GOING):
        return 0.0
    times = []
    for name in (EVENTS, RESULT):
        with suppress(OSError):
            times.append((path / name).stat().st_mtime)
    return max(times, default=0.0)


def size_of(folder: Path) -> int:
    """Return the bytes on disk of all files below a folder, without following links."""
    return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in _below(folder))


def _below(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        # Another process may be removing it now.
        with suppress(FileNotFoundError, PermissionError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry


def remove(folder: Path) -> None:
    """Remove a folder: rename it first, so that its name is free at once. Raises OSError."""
    going = folder
    if not folder.name.startswith(_GOING):
        going = folder.with_name(f"{_GOING}{secrets.token_hex(6)}")
        folder.rename(going)
    remove_tree(going)


def drop_dangling_latest(root: Path) -> None:
    """Remove the link `latest` if its run no longer exists."""
    latest = root / HOME / "runs" / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
