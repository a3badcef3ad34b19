"""Resolves the names in workflow files: ``lib:``, ``pkg:``, paths, and items of ``perfflow.lock``. Fetches nothing.

A file of an item may name other files of the same item by relative path. Paths of its tool files are relative to the
top of its repository, as those of a project are relative to the top of the project.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from perfflow.library import lock_file, packages, references, search_path, store
from perfflow.library.lock_file import Lock, Pin
from perfflow.model.errors import Problem, UserError
from perfflow.workflow.readable import Readable

PROJECT = "project"
"""The origin of files of the project itself."""


class Library:
    """Resolves names to files for the project at ``root``, and records the items that were used."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.used: dict[str, Pin] = {}
        self._folders: dict[Path, str] = {}
        self._packages = set[Path]()
        self._parts: dict[Path, set[Path]] = {}
        self._contents: dict[Path, bytes] = {}
        self._readable: Readable | None = None

    @cached_property
    def lock(self) -> Lock:
        """The pins by reference. Raises UserError if the lock is damaged."""
        return lock_file.read(self.root)

    def find(self, name: str) -> Path:
        """Return the file of a workflow given by path, by name, or in a form of ``extends``."""
        return self.resolve(name, self.root) if is_elsewhere(name) else search_path.find(name, self.root)

    def resolve(self, text: str, folder: Path) -> Path:
        """Return the file that ``extends`` names in a file of this folder. Raises UserError."""
        if references.names_one(text):
            return self._pinned(text)
        if text.startswith(packages.PKG):
            top, path = packages.find(text)
            self._allow(top, text)
            return path
        if "://" in text:
            hint = "write git+https://HOST/OWNER/REPO@REV#PATH, and pin it: perfflow library add REFERENCE"
            raise UserError.of(f"{text} is an address, not a workflow", hint)
        return self._inside(search_path.resolve(text, folder), folder, text)

    def tool(self, text: str, file: str) -> Path:
        """Return the tool file that ``uses`` names in a file. Raises UserError."""
        if is_elsewhere(text):
            return self.resolve(text, Path(file).parent)
        top = self._top_of(Path(file))
        return self.root / text if top is None else self._inside(top / text, top, text)

    def readable(self, path: Path) -> Readable:
        """Return the folders that may be read for a workflow. Items that it names later are added."""
        return self.reading(search_path.readable(path))

    def reading(self, readable: Readable) -> Readable:
        """Add the folders of packages and the files of items, now and later, to the readable ones. Returns them."""
        self._readable = readable
        for folder in self._packages:
            readable.allow(folder)
        readable.fix(self._contents)
        return readable

    def origin(self, path: Path) -> str:
        """Return the origin of a workflow: ``project``, ``lib:NAME``, or its reference or package."""
        top = self._top_of(path)
        return search_path.origin(path) if top is None else self._folders[top]

    def named(self, file: str) -> str:
        """Return the name of a file for users. For an item: its reference and the path in its repository."""
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
        """Yield a problem for each item whose files were never shown on this machine.

        Copies in the project count as shown, because they are visible in the project.
        """
        for name, pin in self.used.items():
            if not pin.vendored and not store.is_shown(name, pin):
                hint = f"show them: perfflow library add {shlex.quote(name)}; in CI, use --trust"
                yield Problem(f"the commands of {name} were never shown on this machine", hint)

    def folder_of(self, name: str, pin: Pin) -> Path:
        """Return the folder of an item on this machine, which may be missing."""
        return store.vendored(self.root, references.read(name)) if pin.vendored else store.cached(pin)

    def _pinned(self, text: str) -> Path:
        name = str(references.read(text))
        pin, said = self.lock.get(name), shlex.quote(name)
        if pin is None:
            raise UserError.of(f"{name} is not in perfflow.lock", f"pin and fetch it: perfflow library add {said}")
        folder = self.folder_of(name, pin)
        verb = "vendor" if pin.vendored else "add"
        if not folder.is_dir():
            where = f"{folder} is missing" if pin.vendored else f"{name} is not on this machine"
            raise UserError.of(where, f"fetch it: perfflow library {verb} {said}")
        files, wrong = store.checked(folder, pin)
        if wrong:
            raise UserError.of(f"{name}: {'; '.join(wrong)}", f"restore it: perfflow library {verb} {said}")
        self.used[name] = pin
        self._folders.setdefault(folder, name)
        # Copies of items from one repository share a folder.
        contents = {folder / path: raw for path, raw in files.items()}
        self._parts.setdefault(folder, set()).update(contents)
        # Only these bytes are used from now on, since a file may be replaced after its checksum was compared.
        self._contents.update(contents)
        if self._readable:
            self._readable.fix(contents)
        return folder / pin.path

    def _allow(self, folder: Path, name: str) -> None:
        self._folders.setdefault(folder, name)
        self._packages.add(folder)
        if self._readable:
            self._readable.allow(folder)

    def _top_of(self, path: Path) -> Path | None:
        return next((folder for folder in self._folders if path.is_relative_to(folder)), None)

    def _inside(self, path: Path, folder: Path, text: str) -> Path:
        """Return the normalized path. Raises UserError if a file of an item names a path outside the item."""
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
    """Return whether a name refers to a package or a repository, not to a path or a tool."""
    return name.startswith(packages.PKG) or references.names_one(name)
