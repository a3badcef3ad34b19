"""Find and lock the trees of projects in the user's cache, to remove them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from perfflow.model.lazy import dataclass
from perfflow.trees.slots import locked


@dataclass(frozen=True)
class Home:
    """The folder with the trees of one project, and the time of their last use (seconds since 1970)."""

    path: Path
    project: Path | None
    written: float


def homes(cache: Path) -> list[Home]:
    """Return the homes of all projects, sorted by project."""
    folder = cache / "trees"
    found = [_home(path) for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    return sorted(found, key=lambda home: (str(home.project or ""), home.path.name))


def _home(path: Path) -> Home:
    try:
        project = Path(os.fsdecode((path / "project").read_bytes()).removesuffix("\n"))
    except OSError:
        project = None
    times = [0.0]
    for file in (path / "project", *path.glob("*/*.index"), *path.glob("*/lock")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return Home(path, project, max(times))


@contextmanager
def held(home: Home) -> Iterator[bool]:
    """Lock the trees of a project; yield False if a run uses them."""
    with ExitStack() as stack:
        for file in home.path.glob("*/lock"):
            number = locked(file)
            if number is None:
                yield False
                return
            stack.callback(os.close, number)
        yield True
