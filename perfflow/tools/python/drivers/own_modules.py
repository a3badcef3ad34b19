"""Which modules are the program's own, and how a driver gets hold of their code before it runs.

Loaded by the drivers beside it, into the measured interpreter: standard library only, nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible.
# ruff: noqa: PTH100, PTH109, PTH120

from __future__ import annotations

import importlib.machinery
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from typing import Any

    Change = Callable[[types.CodeType, str], types.CodeType]

_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = os.path.dirname(os.path.realpath(os.__file__))


class OwnModules:
    """The modules below the folder a program starts in, below its script's folder, and on PYTHONPATH.

    What is installed (site-packages) and the standard library are not. Where there are ``names``, the modules of these
    names alone and what is below them, wherever they are; ``__main__`` is the program itself.
    """

    def __init__(self, form: str, target: str, names: list[str]) -> None:
        folders = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        if form == "script":
            folders.append(os.path.dirname(os.path.abspath(target)))
        self._roots = [os.path.realpath(folder) for folder in folders]
        self._names = names
        self._made: list[types.CodeType] = []
        self.loaded: list[str] = []

    def holds(self, name: str, path: str) -> bool:
        """Tell whether a module is one of them, by its full name and its file."""
        if self._names:
            return any(name == own or name.startswith(own + ".") for own in self._names)
        place = os.path.realpath(path)
        if _below(place, _LIBRARY) or any(f"{os.sep}{folder}{os.sep}" in place for folder in _INSTALLED):
            return False
        return any(_below(place, root) for root in self._roots)

    def change(self, change: Change) -> None:
        """Let ``change(code, name)`` stand in for the code of every one that is loaded from source from now on."""
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.get_code

        def get_code(self_: Any, name: str) -> Any:
            code = original(self_, name)
            if code is None or not self.holds(name, self_.path):
                return code
            return self._changed(change, code, name)

        loader.get_code = get_code

    def program(self, change: Change, code: types.CodeType) -> types.CodeType:
        """Return the changed code of the program itself, which the interpreter's loaders may have changed already."""
        if any(code is made for made in self._made) or (self._names and not self.holds("__main__", "")):
            return code
        return self._changed(change, code, "__main__")

    def always_compile(self) -> None:
        """Compile every one of them in each run, so that runs with and without ``__pycache__`` allocate the same."""
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.path_stats

        def path_stats(self_: Any, path: str) -> Any:
            if self.holds(self_.name, path):
                # What the import system does where a source has no time: it neither reads nor writes bytecode.
                raise OSError
            return original(self_, path)

        loader.path_stats = path_stats

    def _changed(self, change: Change, code: types.CodeType, name: str) -> types.CodeType:
        made = change(code, name)
        self._made.append(made)
        self.loaded.append(name)
        return made


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def names_in(text: str) -> list[str]:
    """Return the names of modules in an argument, which are joined by commas."""
    return [name for name in text.split(",") if name]


def stop_without(library: str, output: str) -> None:
    """Say in ``output`` that a library is missing from this interpreter, and end the process with status 1."""
    with open(output, "w", encoding="utf-8") as stream:  # noqa: PTH123 (pathlib is not imported)
        stream.write(f'{{"missing": "{library}"}}\n')
    sys.exit(f"{sys.executable}: {library} is not installed")
