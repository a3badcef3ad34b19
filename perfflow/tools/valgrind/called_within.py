"""Functions that ``within`` of a tool names: a glob over names as they are written, in one form or another.

``submit``, ``Conductor::submit``, ``conductor::submit`` and ``demo::conductor::Conductor::submit`` name one function.
Debug information gives no more of an inlined one than ``submit`` and its source file; which functions that may be, the
program's symbols tell (drivers/symbol_names.py). What cannot be told apart is an error, never a figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

from perfflow.errors import ToolOutputError
from perfflow.tools import own_code, rust_names, tool_files

# What compilers and demanglers put behind a function's name.
_AFTER_NAME = r"(?:\(.*\))?(?: const)?(?:\.(?:part|constprop|isra|cold|llvm)(?:\.\d+)?)*(?: \[clone [^]]*\])*"
_AFTER = re.compile(rf"(?<=[^(]){_AFTER_NAME}\Z", re.DOTALL)
_UNKNOWN = "? "
_CLOSURE = re.compile(r"\{closure#\d+\}|\{closure_env#\d+\}|\{\{closure\}\}")
_FOREIGN_CRATES = ("std::", "core::", "alloc::", "<std::", "<core::", "<alloc::")


class Within:
    """The functions that a glob names, among those of the programs that ran.

    In a glob ``*`` and ``?`` stand for any characters, ``/`` and ``:`` included. ``symbols`` are the driver's lines.
    """

    def __init__(self, glob: str, symbols: Iterable[str]) -> None:
        name = "".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in glob)
        self._shown = tool_files.clean_name(glob)
        self._pattern = re.compile(f"(?:{name})(?:{_AFTER_NAME})", re.DOTALL)
        self._unknown = False
        self._named: dict[str, list[tuple[str, bool]]] = {}
        for line in symbols:
            if line.startswith(_UNKNOWN):
                self._unknown = True
            elif plain := rust_names.plain(line):
                self._named.setdefault(_last(plain), []).append((plain, self._fits(plain)))
        self._known: dict[tuple[str, str], bool] = {}

    def names(self, name: str, file: str) -> bool:
        """Whether the glob names the function of a frame. Raises ToolOutputError where that cannot be told."""
        key = (name, file)
        if key not in self._known:
            self._known[key] = self._names(rust_names.plain(name), file)
        return self._known[key]

    def _names(self, name: str, file: str) -> bool:
        if self._fits(name) or any(self._pattern.fullmatch(form) for form in _in_module(name, file)):
            return True
        if "::" in _without_arguments(name) or not own_code.is_own(file):
            return False
        meant = _of_file(self._named.get(_last(name), []), file)
        wanted = [symbol for symbol, fits in meant if fits]
        others = [symbol for symbol, fits in meant if not fits]
        if wanted and others:
            raise ToolOutputError(
                f"`within: {self._shown}`: an inlined {tool_files.clean_name(name)} allocates, which is "
                f"{tool_files.clean_name(wanted[0])} or {tool_files.clean_name(others[0])}: write `within: "
                f"{tool_files.clean_name(rust_names.in_module(name, file))}` for both"
            )
        return bool(wanted)

    def require(self) -> None:
        """Raise ToolOutputError where no program has such a function, so that 0 would mean nothing."""
        if any(fits for symbols in self._named.values() for _, fits in symbols):
            return
        if self._unknown:
            raise ToolOutputError(
                f"no function on a stack that allocates matches `within: {self._shown}`, and the program does not tell "
                "the names of its functions: build it with debug information, or without stripping it"
            )
        raise ToolOutputError(
            f"no function of the program matches `within: {self._shown}`: write its name, or a glob such as *::name"
        )

    def _fits(self, name: str) -> bool:
        return any(self._pattern.fullmatch(form) for form in _forms(name))


def _forms(name: str) -> Iterator[str]:
    """The ways to write a function's name: with its path or the end of it, and without types and type arguments."""
    for plain in {name: None, _without_arguments(name): None}:
        parts = plain.split("::")
        modules = [part for part in parts[:-1] if not part[:1].isupper() and part[:1] != "<"] + parts[-1:]
        for words in (parts, modules):
            yield from ("::".join(words[at:]) for at in range(len(words)))


def _in_module(name: str, file: str) -> Iterator[str]:
    """A name behind the module that its file is, whatever type is between them."""
    if PurePosixPath(file).suffix == ".rs":
        yield rust_names.in_module(_last(name), file)


def _of_file(symbols: list[tuple[str, bool]], file: str) -> list[tuple[str, bool]]:
    """Of symbols with one last name, return those that may be in a file: of Rust, whose modules are in the path."""
    own = [item for item in symbols if not item[0].startswith(_FOREIGN_CRATES)]
    module = rust_names.in_module("x", file).rpartition("::")[0]
    return [item for item in own if module and module in re.split(r"\W+", item[0])] or own


@cache
def _last(name: str) -> str:
    """Return ``submit`` for ``demo::Queue<a::B>::submit(int)``, and one name for all closures."""
    bare = _without_arguments(_AFTER.sub("", name, count=1))
    depth, start = 0, 0
    for at, letter in enumerate(bare):
        depth += {"<": 1, ">": -1, "(": 1, ")": -1}.get(letter, 0)
        if depth == 0 and bare.startswith("::", at):
            start = at + 2
    return _CLOSURE.sub("{closure}", bare[start:])


def _without_arguments(name: str) -> str:
    """Return ``new`` for ``new<demo::Task>``; a name that does not end so, or is all in brackets, stays."""
    if not name.endswith(">") or name.endswith(("->", "operator>", "operator>>")):
        return name
    depth = 0
    for at in range(len(name) - 1, 0, -1):
        depth += {">": 1, "<": -1}.get(name[at], 0)
        if not depth:
            return name[:at].removesuffix("::") if name[at - 1] != " " else name
    return name
