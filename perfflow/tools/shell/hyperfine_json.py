"""``hyperfine --export-json``: the shape of 1.x, and ``schema_version`` 2 of hyperfine 2.x.

1.x gives wall times per run, but user and system time as means over the runs: these come as samples of one value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.json_parts import facts, part, parts, values, word
from perfflow.tools.result_set import FailedBenchmarkError, JsonFormat, ResultSet, Samples, label

TOOL = "hyperfine"

_SECONDS = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}
_BYTES = {"byte": 1.0, "kilobyte": 1e3, "megabyte": 1e6, "kibibyte": 1024.0, "mebibyte": 1024.0**2}
# The metrics of schema 2, their names here, and the units each may come in.
_SCHEMA_2: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "time_wall_clock": ("time", _SECONDS),
    "time_cpu": ("cpu", _SECONDS),
    "time_user": ("user", _SECONDS),
    "time_system": ("system", _SECONDS),
    "memory_peak_resident": ("rss", _BYTES),
}


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has a list of results of commands."""
    results = content.get("results")
    return isinstance(results, list) and all(isinstance(result, dict) and "command" in result for result in results)


def parse(content: Mapping[str, object]) -> ResultSet:
    """Read every result. Raises ToolOutputError for nonsense, and where every command failed in some run."""
    samples = Samples()
    for name, result in _named(parts(content, "results")):
        if samples.holds(name):
            samples.warnings.append(f"{label(name)} is there more than once; its runs were put together")
        try:
            (_add_schema_2 if "measurements" in result else _add_schema_1)(samples, name, result)
        except FailedBenchmarkError as error:
            samples.fail(name, str(error))
    metadata = part(content, "metadata")
    platform = part(metadata, "platform")
    machine = facts(os=platform.get("os"), arch=platform.get("architecture"))
    return samples.result_set(TOOL, metadata.get("hyperfine_version"), machine)


def _named(results: Sequence[Mapping[str, object]]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield each result with its name; those that share one are told apart by their parameters."""
    names = [word(result, "name", "command") for result in results]
    often = Counter(names)
    for name, result in zip(names, results, strict=True):
        given = part(result, "parameters") if often[name] > 1 else {}
        told = ", ".join(f"{key} = {value}" for key, value in given.items() if isinstance(value, str))
        yield f"{name} ({told})" if told else name, result


def _add_schema_1(samples: Samples, name: str, result: Mapping[str, object]) -> None:
    times = values(result, "times")
    if "exit_codes" in result:
        codes = values(result, "exit_codes")
        _check_exits(codes)
        if len(codes) != len(times):
            raise ToolOutputError(f"{label(name)} has {len(times)} times of {len(codes)} runs")
    if not times:
        raise ToolOutputError(f"{label(name)} has no time of a run")
    if 0 in times:
        raise FailedBenchmarkError("has a run of 0 s, less than the shell's start: measure it again with -N")
    for value in times:
        samples.add(name, "time", value)
    means = [tool_files.number(result[key], f"{key} of {label(name)}") for key in ("user", "system") if key in result]
    for metric, value in zip(("user", "system"), means, strict=False):
        samples.add(name, metric, value)
    if len(means) == 2:
        samples.add(name, "cpu", sum(means))
    if result.get("memory_usage_byte") is not None:
        for value in values(result, "memory_usage_byte"):
            samples.add(name, "rss", value)


def _add_schema_2(samples: Samples, name: str, result: Mapping[str, object]) -> None:
    runs = parts(result, "measurements")
    _check_exits([run.get("exit_code", 0) for run in runs])
    if not runs or not all("time_wall_clock" in run for run in runs):
        raise ToolOutputError(f"{label(name)} has no time of a run")
    for run in runs:
        for theirs, (metric, units) in _SCHEMA_2.items():
            if theirs in run:
                samples.add(name, metric, *_quantity(part(run, theirs), theirs, units))


def _quantity(quantity: Mapping[str, object], what: str, units: Mapping[str, float]) -> tuple[object, float]:
    """Return the value and the base units it is of: of ``{"value": 1.5, "unit": "second"}`` 1.5 and 1."""
    unit = quantity.get("unit")
    if not isinstance(unit, str) or unit not in units:
        raise ToolOutputError(f"{what} has no unit that perfflow knows")
    return quantity.get("value"), units[unit]


def _check_exits(codes: Sequence[object]) -> None:
    """Raise ToolOutputError unless every run exited with 0: a command that fails early is no faster."""
    failed = [code for code in codes if code != 0]
    if failed:
        how = f"status {failed[0]}" if isinstance(failed[0], int) else "a signal"
        raise FailedBenchmarkError(f"failed in {len(failed)} of {len(codes)} runs (ended by {how})")


FORMAT = JsonFormat(TOOL, "hyperfine --export-json FILE", recognises, parse)
