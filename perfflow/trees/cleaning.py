"""Trees of projects in the user's cache: which there are, whose, and how they go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from perfflow.model.later import dataclass
from perfflow.trees.slots import locked


@dataclass(frozen=True)
class Home:
    """Where the trees of one project lie, and when they were last switched (seconds since 1970)."""

    path: Path
    project: Path | None
    written: float


def homes(cache: Path) -> list[Home]:
    """All of them, by their project."""
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
    """Keep runs from the trees of a project; False where one has them."""
    with ExitStack() as stack:
        for file in home.path.glob("*/lock"):
            number = locked(file)
            if number is None:
                yield False
                return
            stack.callback(os.close, number)
        yield True
