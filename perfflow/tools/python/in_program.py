"""What the profilers share that run inside a Python program, under a driver that says in JSON what they found.

A file holds ``status``, the exit status that the program asked for, ``modules``, those of its own that were loaded, and
``rows`` of ``file``, ``line`` and ``function``; or ``missing``, the library that its interpreter does not have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from perfflow.errors import ToolOutputError
from perfflow.tools import python_command, tool_files

_REMEDY = "the program ended by os._exit, exec or a signal, or it never started"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
WATCHED = "Modules whose lines are watched, with all below them, by name; __main__ is the program itself."
"""What every key ``profile`` says."""


def _names(value: object) -> object:
    """Accept ``a, b`` for ``[a, b]``. Raises ValueError for what is no module's name."""
    names = re.split(r"[,\s]+", value.strip(", ")) if isinstance(value, str) else value
    if isinstance(names, list):
        names = [name for name in names if name != ""]
        if wrong := [name for name in names if not isinstance(name, str) or not _MODULE.match(name)]:
            raise ValueError(f"{wrong[0]!r} is no module's name: write package.module, without .py")
    return names


Modules = Annotated[list[str], BeforeValidator(_names)]
"""Names of modules, as a list or with commas between them."""


def read(path: Path) -> Mapping[str, object]:
    """Return what a driver wrote. Raises ToolOutputError if it is none, or if the program failed or never ran."""
    content = tool_files.read_json(path, _REMEDY)
    if not isinstance(content, dict):
        raise ToolOutputError(f"{path.name} is no object")
    if isinstance(library := content.get("missing"), str):
        library = tool_files.clean_name(library)
        raise ToolOutputError(
            f"{library} is not installed for the interpreter of the command: run its `python -m pip install {library}`"
        )
    if status := tool_files.whole(content.get("status"), "exit status"):
        raise ToolOutputError(f"the program exited with status {status}")
    return content


def rows(content: Mapping[str, object], file: str) -> Sequence[object]:
    """Return the rows. Raises ToolOutputError if there is no list of them."""
    found = content.get("rows")
    if not isinstance(found, list):
        raise ToolOutputError(f"{file} holds no rows")
    return found


def place(row: object, file: str) -> tuple[str, str, int]:
    """Return function, file and line of a row. Raises ToolOutputError."""
    if not isinstance(row, dict):
        raise ToolOutputError(f"{file} holds a row that is no object")
    function, where = row.get("function"), row.get("file")
    if not isinstance(function, str) or not isinstance(where, str):
        raise ToolOutputError(f"{file} holds a row without function and file")
    name = tool_files.clean_name(function)
    return name, tool_files.clean_name(where), tool_files.whole(row.get("line"), "line")


def modules(content: Mapping[str, object], file: str) -> Sequence[str]:
    """Return the names of the modules that were watched. Raises ToolOutputError."""
    found = content.get("modules")
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ToolOutputError(f"{file} does not say which modules were watched")
    return found


def why_nothing(names: Sequence[str]) -> str:
    """Return why nothing of the program was watched, and what to do."""
    if names:
        return (
            f"the program ran nothing of {', '.join(names)}: name modules that it imports in `with: {{profile: [...]}}`"
        )
    return "the program did nothing: name the modules that do its work in `with: {profile: [package.module]}`"


def not_imported(names: Sequence[str], loaded: Sequence[str]) -> tuple[str, ...]:
    """Say which of the modules asked for the program did not import."""
    missing = [name for name in names if not any(each == name or each.startswith(f"{name}.") for each in loaded)]
    return (f"the program did not import {', '.join(missing)}, which `profile` names",) if missing else ()


def under_driver(command: Sequence[str], driver: str, own: Sequence[str]) -> tuple[str, ...]:
    """Return the argv that runs ``command`` under drivers/``driver`` by the same interpreter with the same flags.

    ``own`` are the driver's own arguments; form, target and the program's arguments follow. Raises ToolOutputError
    with a remedy if the command is no Python invocation.
    """
    parts = python_command.split(command)
    path = Path(__file__).with_name("drivers") / driver
    return (parts.interpreter, *parts.flags, str(path), *own, parts.form.value, parts.target, *parts.arguments)
