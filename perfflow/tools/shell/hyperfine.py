"""``hyperfine``: time a command with hyperfine, one run per process, so that perfflow can interleave the two sides.

``--shell`` is always given, since 1.x runs commands in a shell by default and 2.x does not. ``-i`` is never given: if
the command fails, hyperfine exits with status 1 and leaves an export file of 0 bytes.

``FORMAT`` reads files of ``hyperfine --export-json``: the format of 1.x, and ``schema_version`` 2 of hyperfine 2.x. 1.x
has the wall time of each run, but only the means of user and system time. These become samples of one value.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.parsed_output import Figure, Figures, Json, one_of_keys
from perfflow.tools.result_set import FailedBenchmarkError, JsonFormat, ResultSet, ValueCollector, facts, label

_SECONDS = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}
_BYTES = {"byte": 1.0, "kilobyte": 1e3, "megabyte": 1e6, "kibibyte": 1024.0, "mebibyte": 1024.0**2}


class _Time(Json):
    """``{"value": 1.5, "unit": "second"}``; ``unit`` becomes its size in base units."""

    value: Figure
    unit: Annotated[float, one_of_keys(_SECONDS)]


class _Size(Json):
    value: Figure
    unit: Annotated[float, one_of_keys(_BYTES)]


class _Measurement(Json):
    """One run of schema 2, with perfflow's names of the metrics."""

    time: _Time | None = Field(default=None, alias="time_wall_clock")
    cpu: _Time | None = Field(default=None, alias="time_cpu")
    user: _Time | None = Field(default=None, alias="time_user")
    system: _Time | None = Field(default=None, alias="time_system")
    rss: _Size | None = Field(default=None, alias="memory_peak_resident")
    exit_code: int | None = 0


class _Result(Json):
    """The runs of one command. If it has ``measurements``, it is of schema 2."""

    command: str
    name: str = ""
    parameters: dict[str, object] = Field(default={})
    times: Figures | None = None
    exit_codes: list[int | None] | None = None
    user: Figure | None = None
    system: Figure | None = None
    memory_usage_byte: Figures | None = None
    measurements: list[_Measurement] | None = None


class _Export(Json):
    results: list[_Result]
    metadata: dict[str, object] = Field(default={})


def _recognises(content: Mapping[str, object]) -> bool:
    results = content.get("results")
    return isinstance(results, list) and all(isinstance(result, dict) and "command" in result for result in results)


def _gather(export: _Export) -> ResultSet:
    """Collect all results. Raises ToolOutputError for invalid data, and if each command failed in some run."""
    samples = ValueCollector()
    for name, result in _named(export.results):
        if samples.holds(name):
            samples.warnings.append(f"{label(name)} occurs more than once; its runs were combined")
        try:
            (_add_schema_1 if result.measurements is None else _add_schema_2)(samples, name, result)
        except FailedBenchmarkError as error:
            samples.fail(name, str(error))
    machine = facts(export.metadata, os="platform.os", arch="platform.architecture")
    return samples.result_set(FORMAT.tool, export.metadata.get("hyperfine_version"), machine)


def _named(results: Sequence[_Result]) -> Iterator[tuple[str, _Result]]:
    """Yield each result with its name. Parameters are added to names that occur more than once."""
    often = Counter(result.name or result.command for result in results)
    for result in results:
        name = result.name or result.command
        given = result.parameters if often[name] > 1 else {}
        told = ", ".join(f"{key} = {value}" for key, value in given.items() if isinstance(value, str))
        yield f"{name} ({told})" if told else name, result


def _add_schema_1(samples: ValueCollector, name: str, result: _Result) -> None:
    if result.times is None:
        raise ToolOutputError(f"times of {label(name)} is missing")
    if result.exit_codes is not None:
        _check_exits(result.exit_codes)
        if len(result.exit_codes) != len(result.times):
            raise ToolOutputError(f"{label(name)} has {len(result.times)} times for {len(result.exit_codes)} runs")
    if not result.times:
        raise ToolOutputError(f"{label(name)} has no run with a time")
    if 0 in result.times:
        raise FailedBenchmarkError("has a run of 0 s, shorter than the start of the shell: measure it again with -N")
    samples.add(name, "time", result.times)
    cpu = None if result.user is None or result.system is None else result.user + result.system
    for metric, value in {"user": result.user, "system": result.system, "cpu": cpu}.items():
        samples.add(name, metric, [] if value is None else [value])
    samples.add(name, "rss", result.memory_usage_byte or [])


def _add_schema_2(samples: ValueCollector, name: str, result: _Result) -> None:
    runs = result.measurements or []
    _check_exits([run.exit_code for run in runs])
    if not runs or not all(run.time for run in runs):
        raise ToolOutputError(f"{label(name)} has no run with a time")
    for metric in ("time", "cpu", "user", "system", "rss"):
        found: list[_Time | _Size | None] = [getattr(run, metric) for run in runs]
        samples.add(name, metric, [item.value * item.unit for item in found if item])


def _check_exits(codes: Sequence[int | None]) -> None:
    """Raise FailedBenchmarkError unless all runs exited with 0, since a command that fails early is not faster."""
    failed = [code for code in codes if code != 0]
    if failed:
        how = "a signal" if failed[0] is None else f"status {failed[0]}"
        raise FailedBenchmarkError(f"failed in {len(failed)} of {len(codes)} runs (ended by {how})")


FORMAT = JsonFormat("hyperfine", "hyperfine --export-json FILE", _recognises, _Export, _gather)


_EXPORT = "hyperfine.json"
_LONGEST_LABEL = 200


def invocations(call: Call[CommandOptions]) -> tuple[Invocation, ...]:
    """Run the command once, without warm-up; perfflow controls warm-up and repetition."""
    text = call.shell_text if call.options.shell else shlex.join(call.command)
    # With `=`, a name may start with `-`.
    label = (call.benchmark or "command")[:_LONGEST_LABEL]
    argv = (
        *(call.program or "hyperfine", "--style", "none", f"--shell={'default' if call.options.shell else 'none'}"),
        *("--warmup", "0", "--runs", "1", f"--command-name={label}", "--export-json", str(call.folder / _EXPORT)),
        *((f"--output={call.stdout}",) if call.stdout else ()),
        *("--", text),
    )
    return (Invocation(argv),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read export files of hyperfine 1.x and of ``schema_version`` 2, in s and bytes.

    Raises ToolOutputError if the file is missing, empty or invalid, or reports that the command failed.
    """
    # hyperfine's message goes on to suggest -i, which would turn a failure into a fast run.
    last_line = tool_files.last_words(call.folder).partition(". Use the")[0]
    results = FORMAT.read(call.folder / _EXPORT, last_line)
    if len({name for name, _ in results.benchmarks}) != 1:
        raise ToolOutputError(f"{_EXPORT} does not hold exactly one result")
    parsed = results.parsed(single=True)
    return replace(parsed, readings=tuple(replace(reading, benchmark="") for reading in parsed.readings))


ADAPTER = Adapter(
    "hyperfine",
    Role.MEASURE,
    invocations,
    parse,
    program=Program("hyperfine", "apt-get install hyperfine"),
    metrics=builtin_metrics("time", "cpu", "user", "system", "rss"),
    passes_stdout=True,
    outputs=leaves(_EXPORT),
)
