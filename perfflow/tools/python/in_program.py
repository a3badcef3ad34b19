"""Shared code of profilers that run inside a Python program, under a driver that writes its findings as JSON.

A file contains ``status``, the exit status of the program, ``modules``, its own modules that were loaded, and ``rows``
of ``file``, ``line`` and ``function``; or ``missing``, the library that its interpreter lacks.
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
from perfflow.tools import parsed_output, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, leaves
from perfflow.tools.parsed_output import Json, M, Name, Whole

REMEDY = "the program ended by os._exit, exec or a signal, or it never started"
_RUNNER = "python_run.py"
_STARTED = (_RUNNER, "scalene_run.py")
"""Drivers that are started directly; the runner loads the others."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
WATCHED = "Names of modules whose lines to profile, including submodules; `__main__` is the program itself."
"""The description of every key ``profile``, before its default."""


def _names(value: object) -> object:
    """Accept ``a, b`` for ``[a, b]``. Raises ValueError for a text that is not a module's name."""
    names = re.split(r"[,\s]+", value.strip(", ")) if isinstance(value, str) else value
    if isinstance(names, list):
        names = [name for name in names if name != ""]
        if wrong := [name for name in names if not isinstance(name, str) or not _MODULE.match(name)]:
            raise ValueError(f"{wrong[0]!r} is not a module's name: write package.module, without .py")
    return names


Modules = Annotated[list[str], BeforeValidator(_names)]
"""Names of modules, as a list or as text with commas."""


class ProgramPlace(Json):
    """A place in the program. Functions in C have no file; cProfile writes ``~``."""

    function: Name
    file: Annotated[str, AfterValidator(lambda file: tool_files.clean_name(file) if file.strip("~") else "")]
    line: Whole


class Watched(Json):
    """The output of drivers that profile own modules; ``modules`` are the names of the profiled ones."""

    modules: list[str]


class _Ended(Json):
    status: Whole | None = None
    missing: Name = ""


R = TypeVar("R", bound=ProgramPlace)


def read(model: type[M], path: Path, remedy: str = REMEDY) -> M:
    """Return what a driver wrote. Raises ToolOutputError if it is invalid, or if the program failed or never ran."""
    content = tool_files.read_json(path, remedy)
    require_success(content, path.name)
    return parsed_output.checked_json(model, content, path.name)


def require_success(content: object, file: str) -> bool:
    """Return True if the driver reports that the program succeeded. Raises ToolOutputError like ``read``."""
    found = parsed_output.checked_json(_Ended, content, file)
    if found.missing:
        what = f"{found.missing} is not installed for the interpreter of the command"
        raise ToolOutputError(f"{what}: run `python -m pip install {found.missing}` with that interpreter")
    if found.status is None:
        raise ToolOutputError(f"{file}: status is missing")
    if found.status:
        raise ToolOutputError(f"the program exited with status {found.status}")
    return True


def ranked(rows: Iterable[R], weigh: Callable[[R], float]) -> list[R]:
    """Return the rows with the largest weight, the largest first, without rows of weight 0."""
    found = sorted(rows, key=lambda row: (-weigh(row), row.function, row.file, row.line))
    return [row for row in found[:MOST_HOTSPOTS] if weigh(row)]


def short_paths(files: Iterable[str]) -> Mapping[str, str]:
    """Return for each file the shortest end of its path that no other file has, such as ``json/decoder.py``.

    A whole path would show a user's folders, and the file name alone would merge all ``__init__.py``.
    """
    ends_of: dict[str, str] = {}
    alike, length = [sorted(set(files))], 0
    while alike:
        length += 1
        ends: defaultdict[str, list[str]] = defaultdict(list)
        for file in (file for group in alike for file in group):
            ends["/".join(file.split("/")[-length:])].append(file)
        ends_of |= {group[0]: end for end, group in ends.items() if len(group) == 1}
        alike = [group for group in ends.values() if len(group) > 1]
    return ends_of


def counted(number: int, what: str) -> str:
    """Return ``1 hit`` or ``1,200 hits``."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def under_driver(command: Sequence[str], driver: str, own: Sequence[str]) -> tuple[str, ...]:
    """Return the argv that runs ``command`` under drivers/``driver`` by the same interpreter with the same flags.

    ``own`` are the driver's own arguments; form, target and the program's arguments follow. Raises ToolOutputError
    with a remedy if the command is not a Python invocation.
    """
    parts = python_command.split(command)
    path = Path(__file__).with_name("drivers") / (driver if driver in _STARTED else _RUNNER)
    under = () if driver in _STARTED else (f"--under={driver}",)
    return (parts.interpreter, *parts.flags, str(path), *under, *own, parts.form.value, parts.target, *parts.arguments)


def under(driver: str, call: Call, *own: object, env: Mapping[str, str] | None = None) -> Invocation:
    """Return the process that runs the call's command under a driver, by its own interpreter; ``own`` as above.

    Raises ToolOutputError with a remedy if the command is not a Python invocation.
    """
    return Invocation(under_driver(call.command, driver, [str(word) for word in own]), env or {})


def adapter(
    name: str, parse: Callable[[Call, Usage], Parsed], files: Sequence[str], key: str = "", **facts: Any
) -> Adapter:
    """Return the adapter of a profiler whose driver, drivers/NAME_run.py, runs the program.

    The driver's arguments are the paths of ``files`` and the value of the option ``key``. ``facts`` are further fields.
    The invocations raise ToolOutputError with a remedy if the command is not a Python invocation.
    """

    def invocations(call: Call) -> tuple[Invocation, ...]:
        arguments: list[object] = [call.folder / file for file in files]
        if key:
            value = getattr(call.options, key)
            arguments.append(",".join(value) if isinstance(value, list) else value)
        return (under(f"{name.replace('-', '_')}_run.py", call, *arguments),)

    role = facts.pop("role", Role.PROFILE)
    return Adapter(name, role, invocations, parse, python=True, outputs=leaves(*files), **facts)


def reason_without_rows(names: Sequence[str]) -> str:
    """Return why no line of the program was profiled, and what to do."""
    if not names:
        return "none of its own code ran: name the modules that do its work in `with: {profile: [package.module]}`"
    return f"the program ran no code of {', '.join(names)}: name modules that it imports in `with: {{profile: [...]}}`"


def not_imported(names: Sequence[str], loaded: Sequence[str]) -> tuple[str, ...]:
    """Return a warning about the modules in ``names`` that the program did not import."""
    missing = [name for name in names if not any(f"{each}.".startswith(f"{name}.") for each in loaded)]
    return (f"the program did not import {', '.join(missing)}, which `profile` names",) if missing else ()
