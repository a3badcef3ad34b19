"""What the files of one workflow may name: ``lib:``, ``pkg:``, paths, and what ``perfflow.lock`` pins. Fetches nothing.

A file of an item may name others beside it, by paths that stay in the item; its tool files start at its repository's
top, as those of a project start at the project's.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perfflow.library import packages, references, search_path
from perfflow.model.errors import Problem, UserError
from perfflow.workflow.readable import Readable

if TYPE_CHECKING:
    # Few workflows name what is pinned, so what reads the lock is imported where one does.
    from perfflow.library.lock_file import Lock, Pin

PROJECT = "project"
"""The origin of what is neither perfflow's nor somebody else's."""


class Library:
    """Turns names into files for the project whose top is ``root``, and remembers what came from elsewhere."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.used: dict[str, Pin] = {}
        self._folders: dict[Path, str] = {}
        self._parts: dict[Path, set[Path]] = {}
        self._readable: Readable | None = None

    @cached_property
    def lock(self) -> Lock:
        """Reference -> pin. Raises UserError where the lock is damaged."""
        from perfflow.library import lock_file

        return lock_file.read(self.root)

    def find(self, name: str) -> Path:
        """Return the file of a workflow given by path, by name, or as one of the forms of ``extends``."""
        return self.resolve(name, self.root) if is_elsewhere(name) else search_path.find(name, self.root)

    def resolve(self, text: str, folder: Path) -> Path:
        """Return the file that ``extends`` means in a file of this folder. Raises UserError."""
        if references.names_one(text):
            return self._pinned(text)
        if text.startswith(packages.PKG):
            top, path = packages.find(text)
            self._allow(top, text)
            return path
        if "://" in text:
            hint = "write git+https://HOST/OWNER/REPO@REV#PATH, and pin it: perfflow library add REFERENCE"
            raise UserError.of(f"{text} is an address, and not a workflow", hint)
        return self._inside(search_path.resolve(text, folder), folder, text)

    def tool(self, text: str, file: str) -> Path:
        """Return the tool file that ``uses`` means in a file. Raises UserError."""
        if is_elsewhere(text):
            return self.resolve(text, Path(file).parent)
        top = self._top_of(Path(file))
        return self.root / text if top is None else self._inside(top / text, top, text)

    def readable(self, path: Path) -> Readable:
        """Return what may be read for the sake of a workflow; items that it comes to name are added to that."""
        return self.reading(search_path.readable(path))

    def reading(self, readable: Readable) -> Readable:
        """Let what is resolved be read as well, now and later."""
        self._readable = readable
        for folder in self._folders:
            readable.allow(folder)
        return readable

    def origin(self, path: Path) -> str:
        """Whose a workflow is: ``project``, ``lib:NAME``, or the reference or package that it came by."""
        top = self._top_of(path)
        return search_path.origin(path) if top is None else self._folders[top]

    def named(self, file: str) -> str:
        """A file as a user here names it: of an item, the reference and the path in its repository."""
        path = Path(file)
        top = self._top_of(path)
        if top is None:
            if path.parent == search_path.SHIPPED:
                return f"{search_path.LIB}{path.stem}"
            return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
        name = self._folders[top]
        inside = path.relative_to(top).as_posix()
        mark = "#" if references.names_one(name) else "/"
        return f"{name.partition(mark)[0]}{mark}{inside}"

    def unshown(self) -> Iterator[Problem]:
        """Complain of each item whose commands were never shown on this machine.

        What the project holds a copy of was shown with the project.
        """
        for name, pin in self.used.items():
            from perfflow.library import store

            if not pin.vendored and not store.is_shown(pin):
                hint = f"look at them: perfflow library add {shlex.quote(name)}; where nobody looks, run with --trust"
                yield Problem(f"the commands of {name} were never shown on this machine", hint)

    def folder_of(self, name: str, pin: Pin) -> Path:
        """Where the files of an item lie on this machine, if they do."""
        from perfflow.library import store

        return store.vendored(self.root, references.read(name)) if pin.vendored else store.cached(pin)

    def _pinned(self, text: str) -> Path:
        from perfflow.library import store

        name = str(references.read(text))
        pin, said = self.lock.get(name), shlex.quote(name)
        if pin is None:
            raise UserError.of(f"{name} is not in perfflow.lock", f"pin and fetch it: perfflow library add {said}")
        folder = self.folder_of(name, pin)
        verb = "vendor" if pin.vendored else "add"
        if not folder.is_dir():
            where = f"{folder} is missing" if pin.vendored else f"{name} is not on this machine"
            raise UserError.of(where, f"fetch it: perfflow library {verb} {said}")
        if wrong := list(store.changed(folder, pin)):
            raise UserError.of(f"{name}: {'; '.join(wrong)}", f"put it back: perfflow library {verb} {said}")
        self.used[name] = pin
        self._allow(folder, name)
        # Copies of one repository share a folder.
        self._parts.setdefault(folder, set()).update(folder / path for path in pin.files)
        return folder / pin.path

    def _allow(self, folder: Path, name: str) -> None:
        self._folders.setdefault(folder, name)
        if self._readable:
            self._readable.allow(folder)

    def _top_of(self, path: Path) -> Path | None:
        return next((folder for folder in self._folders if path.is_relative_to(folder)), None)

    def _inside(self, path: Path, folder: Path, text: str) -> Path:
        """The path, where it does not lead out of the item that names it, and is a part of that."""
        top = self._top_of(folder)
        if top is None:
            return path
        path = Path(os.path.normpath(path))
        parts = self._parts.get(top)
        is_part = path in parts if parts else path.is_relative_to(top)
        if not (is_part or path.is_relative_to(search_path.SHIPPED)):
            raise UserError.of(f"{text} leads out of {self._folders[top]}", "name a file of that repository")
        return path


def is_elsewhere(name: str) -> bool:
    """Whether a name is of a package or of a repository, which a path and the name of a tool are not."""
    return name.startswith(packages.PKG) or references.names_one(name)
