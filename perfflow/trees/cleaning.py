"""Find and lock the trees of projects in the user's cache, to remove them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from perfflow.trees.slots import locked


@dataclass(frozen=True)
class Home:
    """The folder with the trees of one project, and the time of their last use (seconds since 1970)."""

    path: Path
    project: Path | None
    written: float


@dataclass(frozen=True)
class Tree:
    """One tree with its builds: the folder that shows it, its project, and when it was last used."""

    path: Path
    project: Path
    used: float

    @property
    def folders(self) -> list[Path]:
        """The folders with its files, its builds and what else belongs to it."""
        return [path for path in (self.path, *self.path.parent.glob(f"{self.path.name}.*")) if path.is_dir()]

    def forget(self) -> None:
        """Remove the notes about it, so that nothing counts as built while its folders are removed."""
        for file in self.path.parent.glob(f"{self.path.name}.*"):
            if file.is_file():
                file.unlink(missing_ok=True)


def trees(home: Home) -> list[Tree]:
    """Return the trees of a project that show something."""
    project = home.project or Path()
    return [Tree(file.with_suffix(""), project, file.stat().st_mtime) for file in sorted(home.path.glob("*/*.index"))]


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
def held(home: Path) -> Iterator[bool]:
    """Lock the trees in the home of a project; yield False if a run uses them."""
    with ExitStack() as stack:
        for file in home.glob("*/lock"):
            number = locked(file)
            if number is None:
                yield False
                return
            stack.callback(os.close, number)
        yield True
