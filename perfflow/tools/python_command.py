"""Parse Python command lines.

``split`` parses ``python [flags] script args``, so that a driver can be inserted. The rules are those of CPython
(Python/getopt.c, Python/initconfig.c): short flags may be joined (``-uB``); ``-c``, ``-m``, ``-W`` and ``-X`` take the
rest of their word or the next word; all words after ``-c`` and ``-m`` belong to the program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, NoReturn

from perfflow.model.errors import ToolOutputError
from perfflow.tools import regular_files


class Form(StrEnum):
    """The form in which a command line names a Python program."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"


_FORM_OF = {"m": Form.MODULE, "c": Form.CODE}
_ALONE = "bBdEIOPqRsStuv"
_WITH_VALUE = ("W", "X", *_FORM_OF)
_LONG_WITH_VALUE = "--check-hash-based-pycs"
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


class PythonCommand(NamedTuple):
    """A Python invocation: the interpreter, its flags, the program that it runs, and the program's arguments."""

    interpreter: str
    flags: tuple[str, ...]
    form: Form
    target: str
    arguments: tuple[str, ...]


def driver_command(driver: str, beside: str = __file__) -> tuple[str, ...]:
    """Return the command of one of perfflow's drivers: a bare interpreter, which loads no installed packages.

    The driver is in the folder ``drivers`` beside the module whose ``__file__`` is given.
    """
    return (sys.executable, "-I", "-S", str(Path(beside).with_name("drivers") / driver))


def is_interpreter(program: str) -> bool:
    """Whether a program's name is that of a Python interpreter."""
    return bool(_INTERPRETER.match(Path(program).name))


def starts_python(command: Sequence[str]) -> bool:
    """Whether a command starts a Python interpreter, directly or as a script."""
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
    """Parse a command line. Raises ToolOutputError with a remedy if it does not run a Python program."""
    if not command or not is_interpreter(command[0]):
        _refuse(f"the command starts with {command[0][:80]!r}, not with python" if command else "there is no command")
    flags: list[str] = []
    words = list(command[1:])
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-" or (word == "--" and words):
            target = words.pop(0) if word == "--" else word
            if target in {"-", ""}:
                _refuse("the program would be read from standard input")
            return PythonCommand(command[0], tuple(flags), Form.SCRIPT, target, tuple(words))
        if word.startswith("--"):
            if word != _LONG_WITH_VALUE or not words:
                _refuse(f"python's flag {word[:80]!r} does not run a program")
            flags += [word, words.pop(0)]
        elif ending := _parse_short_flags(word, words, flags):
            return PythonCommand(command[0], tuple(flags), *ending, tuple(words))
    return _refuse("the command names no Python program")


def hidden_objects(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a warning if a Python program's flags make it ignore PYTHONMALLOC."""
    return _ignored_variable(command, "PYTHONMALLOC, so objects under 512 B are not counted")


def random_hashes(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a warning if a Python program's flags make it ignore PYTHONHASHSEED."""
    return _ignored_variable(command, "PYTHONHASHSEED, so counts vary by about 0.1% from run to run")


def _ignored_variable(command: tuple[str, ...], what: str) -> tuple[str, ...]:
    try:
        flags = split(command).flags
    except ToolOutputError:
        return ()
    ignores = any(flag.startswith("-") and {"E", "I"} & set(flag) for flag in flags)
    return (f"python's flags -E or -I make it ignore {what}",) if ignores else ()


def _parse_short_flags(word: str, words: list[str], flags: list[str]) -> tuple[Form, str] | None:
    """Append one word of joined short flags to ``flags``; return the program if ``-c`` or ``-m`` is among them."""
    rest = word[1:].lstrip(_ALONE)
    before, letter = word.removesuffix(rest), rest[:1]
    if not letter:
        flags.append(word)
        return None
    if letter not in _WITH_VALUE:
        _refuse(_REFUSED.get(letter, f"python has no flag -{letter}"))
    if len(rest) == 1 and not words:
        _refuse(f"python's flag -{letter} has no value")
    # The value is the rest of the flag's word, else the next word.
    value = rest[1:] or words.pop(0)
    if letter in _FORM_OF:
        flags += [before] if before != "-" else []
        return _FORM_OF[letter], value
    flags += [before + letter, value]
    return None


def _refuse(reason: str) -> NoReturn:
    raise ToolOutputError(f"{reason}; {_REMEDY}, with `env:` for variables and without `shell:`")
