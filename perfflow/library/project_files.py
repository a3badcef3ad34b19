"""The files of a project that are read to detect its kind. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perfflow.trees.slots import ENVIRONMENTS, is_build_folder
from perfflow.trees.snapshots import text_of

_MOST_ENTRIES = 20_000
_DEEPEST = 8
_MOST_TEXT = 2**25
"""Largest total number of characters that one search reads."""


class ProjectFiles:
    """Files below ``folder``, except hidden folders, environments and build folders. Links are not followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: list[str] | None = None

    def named(self, *endings: str) -> list[str]:
        """Return the paths that end with one of these, relative to the folder and sorted by depth."""
        if self._paths is None:
            self._paths = sorted(self._walk(), key=lambda path: (path.count("/"), path))
        return [path for path in self._paths if f"/{path}".endswith(endings)]

    def text(self, path: str) -> str:
        """Return the text of a file, '' if it is missing, too large, not text, or behind a link out of the folder."""
        return text_of(self.folder / path, self.folder)

    def having(self, word: str, *endings: str) -> Iterator[tuple[str, str]]:
        """Yield path and text of the files that end with one of these and contain a word."""
        left = _MOST_TEXT
        for path in self.named(*endings):
            text = self.text(path)
            left -= len(text)
            if left < 0:
                return
            if word in text:
                yield path, text

    def _walk(self) -> Iterator[str]:
        folders, left = [""], _MOST_ENTRIES
        while folders:
            inside = folders.pop(0)
            try:
                with os.scandir(self.folder / inside) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0:
                            return
                        path = f"{inside}{entry.name}"
                        if not can_be_named(entry.name):
                            continue
                        if entry.is_file(follow_symlinks=False):
                            yield path
                        elif entry.is_dir(follow_symlinks=False) and _is_own(entry.name, inside):
                            folders.append(f"{path}/")
            except OSError:  # an unreadable folder
                continue


def can_be_named(name: str) -> bool:
    """Return whether a workflow can contain the name literally. An expression in it would be evaluated."""
    return name.isprintable() and "${{" not in name


def _is_own(name: str, inside: str) -> bool:
    """Return whether a folder may contain sources of the project."""
    deep = inside.count("/") >= _DEEPEST
    made = name in (*ENVIRONMENTS, "__pycache__", "site-packages") or is_build_folder(name)
    return not (deep or made or name.startswith("."))
