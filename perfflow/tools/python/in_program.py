"""What the profilers share that run inside a Python program, under a driver that says in JSON what they found.

A file holds ``status``, the exit status that the program asked for, ``modules``, those of its own that were loaded, and
``rows`` of ``file``, ``line`` and ``function``; or ``missing``, the library that its interpreter does not have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import MOST_HOTSPOTS, Parsed, Usage
from perfflow.tools import python_command, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, leaves
from perfflow.tools.tool_json import Json, M, Name, Whole

REMEDY = "the program ended by os._exit, exec or a signal, or it never started"
_RUNNER = "python_run.py"
_STARTED = (_RUNNER, "scalene_run.py")
"""Drivers that are started themselves; the runner loads the others."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
WATCHED = "Modules whose lines are watched, with all below them, by name; __main__ is the program itself."
"""What every key ``profile`` says."""


def _names(value: object) -> object:
    """Accept ``a, b`` for ``[a, b]``. Raises ValueError for what is not a module's name."""
    names = re.split(r"[,\s]+", value.strip(", ")) if isinstance(value, str) else value
    if isinstance(names, list):
        names = [name for name in names if name != ""]
        if wrong := [name for name in names if not isinstance(name, str) or not _MODULE.match(name)]:
            raise ValueError(f"{wrong[0]!r} is not a module's name: write package.module, without .py")
    return names


Modules = Annotated[list[str], BeforeValidator(_names)]
"""Names of modules, as a list or with commas between them."""


class Row(Json):
    """A place in the program. What is written in C has no file; cProfile calls that ``~``."""

    function: Name
    file: Annotated[str, AfterValidator(lambda file: tool_files.clean_name(file) if file.strip("~") else "")]
    line: Whole


class Watched(Json):
    """What drivers of own modules say: the names of those that were watched."""

    modules: list[str]


class _Ended(Json):
    status: Whole | None = None
    missing: Name = ""


R = TypeVar("R", bound=Row)


def read(model: type[M], path: Path, remedy: str = REMEDY) -> M:
    """Return what a driver wrote. Raises ToolOutputError if it is none, or if the program failed or never ran."""
    content = tool_files.read_json(path, remedy)
    ended(content, path.name)
    return tool_json.checked(model, content, path.name)


def ended(content: object, file: str) -> bool:
    """Return True for what a driver says where the program went well. Raises ToolOutputError as ``read``."""
    found = tool_json.checked(_Ended, content, file)
    if found.missing:
        what = f"{found.missing} is not installed for the interpreter of the command"
        raise ToolOutputError(f"{what}: run its `python -m pip install {found.missing}`")
    if found.status is None:
        raise ToolOutputError(f"{file}: status is missing")
    if found.status:
        raise ToolOutputError(f"the program exited with status {found.status}")
    return True


def ranked(rows: Iterable[R], weigh: Callable[[R], float]) -> list[R]:
    """Return the rows that weigh the most, the heaviest first; those of no weight are left out."""
    found = sorted(rows, key=lambda row: (-weigh(row), row.function, row.file, row.line))
    return [row for row in found[:MOST_HOTSPOTS] if weigh(row)]


def short_paths(files: Iterable[str]) -> Mapping[str, str]:
    """Return of each file the shortest end of its path that none of the others has: ``json/decoder.py``.

    A whole path would say where somebody's files lie, and the name alone would make one of all ``__init__.py``.
    """
    found: dict[str, str] = {}
    alike, length = [sorted(set(files))], 0
    while alike:
        length += 1
        ends: defaultdict[str, list[str]] = defaultdict(list)
        for file in (file for group in alike for file in group):
            ends["/".join(file.split("/")[-length:])].append(file)
        found |= {group[0]: end for end, group in ends.items() if len(group) == 1}
        alike = [group for group in ends.values() if len(group) > 1]
    return found


def counted(number: int, what: str) -> str:
    """Return ``1 hit`` or ``1,200 hits``."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def under_driver(command: Sequence[str], driver: str, own: Sequence[str]) -> tuple[str, ...]:
    """Return the argv that runs ``command`` under drivers/``driver`` by the same interpreter with the same flags.

    ``own`` are the driver's own arguments; form, target and the program's arguments follow. Raises ToolOutputError
    with a remedy if the command is no Python invocation.
    """
    parts = python_command.split(command)
    path = Path(__file__).with_name("drivers") / (driver if driver in _STARTED else _RUNNER)
    under = () if driver in _STARTED else (f"--under={driver}",)
    return (parts.interpreter, *parts.flags, str(path), *under, *own, parts.form.value, parts.target, *parts.arguments)


def under(driver: str, call: Call, *own: object, env: Mapping[str, str] | None = None) -> Invocation:
    """Return the process of the call's command under a driver by its own interpreter, and the driver's arguments.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    return Invocation(under_driver(call.command, driver, [str(word) for word in own]), env or {})


def adapter(
    name: str, parse: Callable[[Call, Usage], Parsed], files: Sequence[str], key: str = "", **facts: Any
) -> Adapter:
    """Return the adapter of a profiler whose driver, drivers/NAME_run.py, runs the program.

    The driver is told where to leave ``files``, and the value of the option ``key``. ``facts`` are further fields. The
    invocations raise ToolOutputError with a remedy if the command is no Python invocation.
    """

    def invocations(call: Call) -> tuple[Invocation, ...]:
        own: list[object] = [call.folder / file for file in files]
        if key:
            value = getattr(call.options, key)
            own.append(",".join(value) if isinstance(value, list) else value)
        return (under(f"{name.replace('-', '_')}_run.py", call, *own),)

    role = facts.pop("role", Role.PROFILE)
    return Adapter(name, role, invocations, parse, python=True, outputs=leaves(*files), **facts)


def why_nothing(names: Sequence[str]) -> str:
    """Return why nothing of the program was watched, and what to do."""
    if not names:
        return "the program did nothing: name the modules that do its work in `with: {profile: [package.module]}`"
    return f"the program ran nothing of {', '.join(names)}: name modules that it imports in `with: {{profile: [...]}}`"


def not_imported(names: Sequence[str], loaded: Sequence[str]) -> tuple[str, ...]:
    """Say which of the modules asked for the program did not import."""
    missing = [name for name in names if not any(f"{each}.".startswith(f"{name}.") for each in loaded)]
    return (f"the program did not import {', '.join(missing)}, which `profile` names",) if missing else ()
