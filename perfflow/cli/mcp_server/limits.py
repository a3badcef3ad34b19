"""Limits of a server, set when it is started: the allowed tools, the budget and the folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.model.units import UnitError, duration
from perfflow.tools.python_command import is_interpreter

ALLOW_RUN, ALLOW_COMMANDS = "--allow-run", "--allow-commands"
MOST_PATCH = 1_000_000
"""Largest patch, in bytes."""
MOST_TEXT = 10_000
"""Longest name, command or parameter, in characters."""
_NAME = re.compile(r"(?:lib:)?[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INTERPRETERS = frozenset(("node", "sh", "bash", "ruby", "perl", "php", "lua"))
"""Interpreters beside Python, whose first argument is a file of the project."""
Scalar = str | bool | int | float
"""The value of a parameter of a workflow."""


@dataclass(frozen=True)
class SessionLimits:
    """The limits of a session.

    ``root``: top folder of the project, with links resolved. ``budget``: longest time that one call may measure, in
    seconds. ``may_run``: run workflows of the project, and patches. ``may_command``: also run any command.
    """

    root: Path
    budget: float
    may_run: bool = False
    may_command: bool = False

    def require_run(self, tool: str) -> None:
        """Raise UserError if the server may not run anything."""
        if not (self.may_run or self.may_command):
            raise _not_allowed(f"{tool} runs commands of the project, but this server is read-only", ALLOW_RUN)

    def require_commands(self, what: str) -> None:
        """Raise UserError if the server may not run commands that the client chooses."""
        if not self.may_command:
            raise _not_allowed(f"{what}, but this server does not run commands that the client chooses", ALLOW_COMMANDS)

    def time(self, asked: str | None, usual: float | None = None) -> tuple[str, str]:
        """Return the budget of a call as an option's value, and a note if it is less than the requested one.

        ``usual``: seconds, if the call requests none. Raises UserError for a text that is not a duration.
        """
        try:
            seconds = duration(asked) if asked is not None else usual
        except UnitError as error:
            raise UserError.of(f"budget: {error}", "write 90s, 10m or 1h 30m") from error
        if seconds is None or seconds <= self.budget:
            return f"{seconds or self.budget:g}s", ""
        note = (
            f"the budget of {seconds:g} s was cut to {self.budget:g} s, the limit of the server (perfflow mcp --budget)"
        )
        return f"{self.budget:g}s", note if asked is not None else ""

    def inside(self, text: str) -> Path:
        """Return the file or folder of the project that a path names, with links resolved.

        Raises UserError for a path that leads out of the project, also through a link.
        """
        require_text("a path", text)
        try:
            path = (self.root / text).resolve()
        except (OSError, RuntimeError) as error:  # a loop of links
            raise UserError.of(f"{text}: {error}", "name a file of the project") from error
        if not path.is_relative_to(self.root):
            raise UserError.of(f"{text} leads out of the project {self.root}", "name a file of the project")
        return path

    def program(self, command: str) -> str:
        """Return a command of plain words: a program of the project, or an interpreter with one of its files.

        A server that may run any command returns it as it is. Raises UserError for any other.
        """
        require_text("command", command)
        if self.may_command:
            return command
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UserError.of(f"command: {error}", "close the quotation mark") from error
        interpreted = is_interpreter(words[0]) or words[0] in _INTERPRETERS
        own = words[1] if interpreted and words[1:] else words[0]
        # A program may be built only later.
        if not (self.inside(own).is_file() if interpreted else "/" in own and self.inside(own)):
            text = f"{words[0]} is neither a program of the project nor an interpreter with a file of it"
            raise _not_allowed(f"{text}; this server runs no other", ALLOW_COMMANDS)
        return shlex.join(words)

    def workflow(self, name: str) -> str:
        """Return a workflow's name as an argument: a file of the project, or one of the library.

        Raises UserError for anything else, such as a file elsewhere or a reference to another repository.
        """
        require_text("a workflow", name)
        if _NAME.fullmatch(name) and not (self.root / name).exists():
            paths = (self.root / search_path.FOLDER / f"{name}{suffix}" for suffix in search_path.WORKFLOW_SUFFIXES)
            for path in paths:
                if path.is_symlink() or path.exists():
                    return self._file(str(path), name)
            if Path(name).suffix not in search_path.WORKFLOW_SUFFIXES:
                return name
        return self._file(name, name)

    def _file(self, path: str, name: str) -> str:
        found = self.inside(path)
        if not found.is_file():
            hint = "name a workflow that `look` lists, or a file of the project"
            raise UserError.of(f"no workflow called {name!r}", hint)
        return str(found.relative_to(self.root))

    def run_name(self, run: str) -> str:
        """Return the id of a stored run. Raises UserError for any other text, such as a path."""
        if not _RUN.fullmatch(run):
            raise UserError.of(f"{run[:100]!r} is not the id of a run", "give an id that a tool returned, or latest")
        return run


def settings(params: Mapping[str, Scalar] | None) -> list[str]:
    """Return options that set parameters. Raises UserError for an invalid name of a parameter."""
    words = []
    for name, value in (params or {}).items():
        if not _PARAMETER.fullmatch(name):
            raise UserError.of(
                f"{name[:100]!r} is not the name of a parameter", "its parameters are those under `params` in its file"
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        require_text(f"the parameter {name}", text, empty=True)
        words.append(f"--set={name}={text}")
    return words


def require_text(what: str, text: str, *, empty: bool = False) -> None:
    """Raise UserError for a text that cannot be an argument of a command."""
    if not (text or empty):
        raise UserError.of(f"{what} is empty")
    if len(text) > MOST_TEXT:
        raise UserError.of(f"{what} has {len(text):,} characters; {MOST_TEXT:,} are allowed")
    if "\0" in text:
        raise UserError.of(f"{what} contains a NUL character")


def _not_allowed(what: str, flag: str) -> UserError:
    return UserError.of(what, f"a human can allow it: start the server with `perfflow mcp {flag}`")
