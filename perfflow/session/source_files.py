"""Convert file names in debug information to paths relative to the root of the tree."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from perfflow.model.readings import Hotspot
from perfflow.model.source_place import NOWHERE, SourcePlace
from perfflow.tools.own_code import is_own
from perfflow.trees.python_places import PythonSource

_MOST_FILES = 50_000
_LONGEST = 4_000_000
_NOT_SOURCES = frozenset({"target", "node_modules", "__pycache__", "venv"})


class SourceFiles:
    """The source files of one tree.

    Debug information gives an absolute path, or one relative to the folder where the compiler ran, such as
    ``src/lib.rs`` of a crate in the tree. ``folders``: where relative names may start.
    """

    def __init__(self, root: Path, folders: Iterable[Path] = ()) -> None:
        self._root = root
        self._folders = (root, *folders)
        self._known: dict[str, str] = {}
        self._sources: dict[str, PythonSource] = {}

    def placed(self, spot: Hotspot) -> Hotspot:
        """Return the hotspot with its file relative to the root, so that shared reports do not reveal home folders.

        A file that is outside the tree or ambiguous keeps its name.
        """
        return replace(spot, file=self.from_root(spot.file))

    def place_of(self, spot: Hotspot) -> SourcePlace:
        """Return the place of a hotspot's line in its source, for Python files of the tree only."""
        file = self.from_root(spot.file)
        if not file.endswith(".py") or Path(file).is_absolute():
            return NOWHERE
        if file not in self._sources:
            self._sources[file] = PythonSource(_read(self._root / file))
        return self._sources[file].place(spot.line, spot.location)

    def from_root(self, file: str) -> str:
        """Return a file relative to the root, or unchanged if it is outside the tree or ambiguous."""
        if file not in self._known:
            self._known[file] = (self._inside(Path(file)) if is_own(file) else None) or file
        return self._known[file]

    def _inside(self, file: Path) -> str | None:
        if file.is_absolute():
            return self._from_root(file)
        for folder in self._folders:
            # A name from a tool's output may contain anything.
            if _is_file(folder / file) and (found := self._from_root(folder / file)):
                return found
        wanted = file.parts
        if not wanted or ".." in wanted:
            return None
        same = [path for path in self._all if path.parts[-len(wanted) :] == wanted]
        return same[0].as_posix() if len(same) == 1 else None

    def _from_root(self, file: Path) -> str | None:
        for path, root in ((Path(os.path.normpath(file)), self._root), (_real(file), _real(self._root))):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return None

    @cached_property
    def _all(self) -> tuple[Path, ...]:
        """Every file of the tree, relative to the root, without hidden folders and build folders."""
        found: list[Path] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_SOURCES)
            found += [(Path(folder) / name).relative_to(self._root) for name in files]
            if len(found) > _MOST_FILES:
                return ()
        return tuple(found)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _read(file: Path) -> str:
    """Return the text of a file, '' if it is too long or cannot be read."""
    try:
        return "" if file.stat().st_size > _LONGEST else file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
