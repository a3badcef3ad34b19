"""``hyperfine``: one run per process, so that perfflow chooses what runs next, and the two sides can be interleaved.

``--shell`` is always given, since 1.x runs commands in a shell by default and 2.x does not. ``-i`` is never given, so a
command that fails ends hyperfine with status 1 and an export file of 0 bytes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Reading, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Role

NAME = "hyperfine"
ROLE = Role.MEASURE
DETERMINISTIC = False
PROGRAM = "hyperfine"
VERSION_ARGV: tuple[str, ...] = ("--version",)
INSTALL = "apt-get install hyperfine"
METRICS = frozenset({"time", "cpu", "user", "system", "rss"})
INTERPRETER = ""
OPTIONS = CommandOptions

_EXPORT = "hyperfine.json"
_LONGEST_LABEL = 200
_SECONDS = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}
_BYTES = {"byte": 1.0, "kilobyte": 1e3, "megabyte": 1e6, "kibibyte": 1024.0, "mebibyte": 1024.0**2}
# The metrics of schema 2 and their names here, with the units each may come in.
_SCHEMA_2: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "time_wall_clock": ("time", _SECONDS),
    "time_cpu": ("cpu", _SECONDS),
    "time_user": ("user", _SECONDS),
    "time_system": ("system", _SECONDS),
    "memory_peak_resident": ("rss", _BYTES),
}

_Values = dict[str, list[float]]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Measure the command once, without warm-up; both are perfflow's business."""
    options = cast(CommandOptions, call.options)
    text = call.shell_text if options.shell else shlex.join(call.command)
    # Joined with `=`, a name may start with `-`.
    label = (call.benchmark or "command")[:_LONGEST_LABEL]
    argv = (
        *(call.program or PROGRAM, "--style", "none", f"--shell={'default' if options.shell else 'none'}"),
        *("--warmup", "0", "--runs", "1", f"--command-name={label}", "--export-json", str(call.folder / _EXPORT)),
        *("--", text),
    )
    return (Invocation(argv),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON export."""
    return (call.folder / _EXPORT,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read export files of hyperfine 1.x and of ``schema_version`` 2, in s and bytes.

    Raises ToolOutputError if the file is missing, empty or nonsense, or says that the command failed.
    """
    # What hyperfine says goes on to propose -i, which would turn a failure into a fast run.
    said = tool_files.last_words(call.folder).partition(". Use the")[0]
    content = tool_files.read_json(call.folder / _EXPORT, said)
    result = _only_result(content)
    values = _of_schema_2(result) if "measurements" in result else _of_schema_1(result)
    if not values.get("time"):
        raise ToolOutputError(f"{_EXPORT} holds no time of a run")
    warnings = _without_zeros(values)
    return Parsed(tuple(_reading(metric, found) for metric, found in values.items()), warnings=warnings)


def enumerate(call: Call) -> None:
    """One command is one benchmark."""


def _only_result(content: object) -> Mapping[str, object]:
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, list) or len(results) != 1 or not isinstance(results[0], dict):
        raise ToolOutputError(f"{_EXPORT} does not hold exactly one result")
    return cast(Mapping[str, object], results[0])


def _of_schema_1(result: Mapping[str, object]) -> _Values:
    """Read a result of hyperfine 1.x: times of each run, but only the means of user and system time."""
    for code in _list(result, "exit_codes"):
        _check_exit(code)
    values = {"time": [tool_files.positive(value, "time") for value in _list(result, "times")]}
    for metric in ("user", "system"):
        if metric in result:
            values[metric] = [tool_files.number(result[metric], metric)]
    if {"user", "system"} <= values.keys():
        values["cpu"] = [values["user"][0] + values["system"][0]]
    if memory := _list(result, "memory_usage_byte"):
        values["rss"] = [tool_files.number(value, "rss") for value in memory]
    return values


def _of_schema_2(result: Mapping[str, object]) -> _Values:
    """Read a result of hyperfine 2.x: every metric of every run with its unit."""
    values: _Values = {}
    for run in _list(result, "measurements"):
        if not isinstance(run, dict):
            raise ToolOutputError(f"{_EXPORT}: a measurement is no object")
        _check_exit(run.get("exit_code", 0))
        for theirs, (metric, units) in _SCHEMA_2.items():
            if theirs in run:
                values.setdefault(metric, []).append(_quantity(run[theirs], theirs, units))
    for value in values.get("time", []):
        tool_files.positive(value, "time_wall_clock")
    return values


def _quantity(value: object, what: str, units: Mapping[str, float]) -> float:
    """Return ``{"value": 1.5, "unit": "second"}`` in base units."""
    unit = value.get("unit") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(unit, str) or unit not in units:
        raise ToolOutputError(f"{_EXPORT}: {what} has no unit that perfflow knows")
    return tool_files.number(value.get("value"), what) * units[unit]


def _list(result: Mapping[str, object], key: str) -> Sequence[object]:
    found = result.get(key)
    if found is not None and not isinstance(found, list):
        raise ToolOutputError(f"{_EXPORT}: {key} is no list")
    return found or []


def _check_exit(code: object) -> None:
    """Raise ToolOutputError unless the command exited with 0; null is a command that a signal ended."""
    if code is None:
        raise ToolOutputError("the command was ended by a signal")
    if tool_files.whole(abs(code) if isinstance(code, int) else code, "exit code"):
        raise ToolOutputError(f"the command exited with status {code}")


def _without_zeros(values: _Values) -> tuple[str, ...]:
    """Drop CPU time and memory of exactly 0, which no process has: less than a shell's start, or not measured."""
    dropped = [metric for metric in ("cpu", "rss") if metric in values and not all(values[metric])]
    if "cpu" in dropped:
        values.pop("user", None)
        values.pop("system", None)
    for metric in dropped:
        del values[metric]
    return tuple(f"hyperfine gave 0 for {metric}, which cannot be; there is no reading of it" for metric in dropped)


def _reading(metric: str, values: Sequence[float]) -> Reading:
    return Reading(metric, values[0]) if len(values) == 1 else reading_of_many(metric, values)
