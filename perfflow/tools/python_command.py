"""``python [flags] script args`` taken apart and put together again with a driver in between.

The rules are CPython's own (Python/getopt.c, Python/initconfig.c): short flags may be joined (``-uB``), ``-c``, ``-m``,
``-W`` and ``-X`` take the rest of their word or the next word, and everything after ``-c`` and ``-m`` is the program's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from perfflow.errors import ToolOutputError
from perfflow.tools import regular_files


class Form(StrEnum):
    """How a Python program is named on the command line."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"


_FORM_OF = {"m": Form.MODULE, "c": Form.CODE}
_ALONE = frozenset("bBdEIOPqRsStuv")
_WITH_VALUE = frozenset("WX")
_LONG_WITH_VALUE = frozenset({"--check-hash-based-pycs"})
_REFUSED = {
    "i": "-i waits for a terminal",
    "x": "-x skips the script's first line, which perfflow's driver does not",
    "h": "-h runs no program",
    "?": "-? runs no program",
    "V": "-V runs no program",
}
_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*[a-z]?\Z")
_SHEBANG = re.compile(rb"#!.*\bpython[0-9.]*\b")
_REMEDY = "write the command as `python script.py ...`, `python -m module ...` or `python -c code`"


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """A Python invocation: the interpreter, its own flags, what it runs, and the program's arguments."""

    interpreter: str
    flags: tuple[str, ...]
    form: Form
    target: str
    arguments: tuple[str, ...]


def is_interpreter(program: str) -> bool:
    """Whether a program's name is that of a Python interpreter."""
    return bool(_INTERPRETER.match(Path(program).name))


def starts_python(command: Sequence[str]) -> bool:
    """Whether a command's program is a Python interpreter, or a script for one."""
    if not command:
        return False
    if is_interpreter(command[0]):
        return True
    try:
        with regular_files.opened(command[0]) as stream:
            return bool(_SHEBANG.match(stream.readline(4096)))
    except OSError:
        return False


def split(command: Sequence[str]) -> PythonCommand:
    """Take a command line apart. Raises ToolOutputError with a remedy if it does not run a Python program."""
    if not command or not is_interpreter(command[0]):
        _refuse(f"the command starts with {command[0][:80]!r}, not with python" if command else "there is no command")
    flags: list[str] = []
    words = list(command[1:])
    while words:
        word = words.pop(0)
        if word == "--" and words:
            word = words.pop(0)
            return _script(command[0], flags, word, words)
        if not word.startswith("-") or word == "-":
            return _script(command[0], flags, word, words)
        if word.startswith("--"):
            flags += _long(word, words)
        elif ending := _take_short(word, words, flags):
            form, target = ending
            return PythonCommand(command[0], tuple(flags), form, target, tuple(words))
    return _refuse("the command names no Python program")


def hidden_objects(command: tuple[str, ...]) -> tuple[str, ...]:
    """Say when a Python program's flags make it ignore PYTHONMALLOC."""
    if not _ignores_environment(command):
        return ()
    return ("python's flags -E or -I make it ignore PYTHONMALLOC, so objects under 512 B are not counted",)


def random_hashes(command: tuple[str, ...]) -> tuple[str, ...]:
    """Say when a Python program's flags make it ignore PYTHONHASHSEED."""
    if not _ignores_environment(command):
        return ()
    return ("python's flags -E or -I make it ignore PYTHONHASHSEED, so counts vary by about 0.1% from run to run",)


def _ignores_environment(command: tuple[str, ...]) -> bool:
    try:
        flags = split(command).flags
    except ToolOutputError:
        return False
    return any(flag.startswith("-") and {"E", "I"} & set(flag) for flag in flags)


def _script(interpreter: str, flags: list[str], word: str, words: list[str]) -> PythonCommand:
    if word in {"-", ""}:
        _refuse("the program would be read from standard input")
    return PythonCommand(interpreter, tuple(flags), Form.SCRIPT, word, tuple(words))


def _long(word: str, words: list[str]) -> list[str]:
    """Return a long flag and its value, taken from ``words``."""
    if word not in _LONG_WITH_VALUE or not words:
        _refuse(f"python's flag {word[:80]!r} is not one that runs a program")
    return [word, words.pop(0)]


def _take_short(word: str, words: list[str], flags: list[str]) -> tuple[Form, str] | None:
    """Move one word of joined short flags to ``flags``; return what is run if ``-c`` or ``-m`` is among them."""
    for index, letter in enumerate(word[1:], 1):
        if letter in _FORM_OF:
            if index > 1:
                flags.append(word[:index])
            return _FORM_OF[letter], _value(letter, word[index + 1 :], words)
        if letter in _WITH_VALUE:
            value = _value(letter, word[index + 1 :], words)
            flags.extend([word[: index + 1], value])
            return None
        if letter not in _ALONE:
            _refuse(_REFUSED.get(letter, f"python has no flag -{letter}"))
    flags.append(word)
    return None


def _value(letter: str, rest: str, words: list[str]) -> str:
    """Return a flag's value: the rest of its own word, else the next word."""
    if rest:
        return rest
    if not words:
        _refuse(f"python's flag -{letter} has no value")
    return words.pop(0)


def _refuse(reason: str) -> NoReturn:
    raise ToolOutputError(f"{reason}; {_REMEDY}, with `env:` for variables and without `shell:`")
