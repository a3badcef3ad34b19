"""What lies in a project's folder, as far as it is looked at to tell what kind of project it is. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perfflow.trees.build_folders import ENVIRONMENTS, is_build_folder
from perfflow.trees.small_files import text_of

_MOST_ENTRIES = 20_000
_DEEPEST = 8
_MOST_TEXT = 2**25
"""Characters of all files together that are read to find one thing."""


class ProjectFiles:
    """Files below ``folder``, without hidden folders, environments and what builds make; no link is followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: list[str] | None = None

    def named(self, *endings: str) -> list[str]:
        """Paths relative to the folder that end with one of these, in order; those nearest to the top come first."""
        if self._paths is None:
            self._paths = sorted(self._walk(), key=lambda path: (path.count("/"), path))
        return [path for path in self._paths if f"/{path}".endswith(endings)]

    def text(self, path: str) -> str:
        """The text of a file, '' of one that is not there, too large, not a text, or behind a link that leads away."""
        return text_of(self.folder / path, self.folder)

    def having(self, word: str, *endings: str) -> Iterator[tuple[str, str]]:
        """Paths and texts of the files that end with one of these and hold a word."""
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
            except OSError:  # a folder that may not be read
                continue


def can_be_named(name: str) -> bool:
    """Whether a workflow can name a file as it is: what holds an expression would be evaluated there."""
    return name.isprintable() and "${{" not in name


def _is_own(name: str, inside: str) -> bool:
    """Whether a folder may hold sources of the project."""
    deep = inside.count("/") >= _DEEPEST
    made = name in (*ENVIRONMENTS, "__pycache__", "site-packages") or is_build_folder(name)
    return not (deep or made or name.startswith("."))
