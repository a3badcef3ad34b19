"""``google-benchmark``: a program built with the C++ library Google Benchmark.

It exits 0 although a benchmark gave up with an error, or none matches, so its JSON file alone tells. Aggregates are
left aside, since perfflow makes its own from the repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Reading, Usage, reading_of_undisturbed
from perfflow.tools import tool_files
from perfflow.tools.protocol import Call, CommandOptions, Effort, Invocation, Role

NAME = "google-benchmark"
ROLE = Role.MEASURE
DETERMINISTIC = False
SUITE = True
PROGRAM = ""
VERSION_ARGV: tuple[str, ...] = ()
INSTALL = ""
METRICS = frozenset({"time", "cpu", "throughput", "rate"})
INTERPRETER = ""

_FILE = "google-benchmark.json"
_LIST = "benchmarks.txt"
# Seconds without a unit: 1.7 knows no other form, and later versions take it with a remark. Twenty short repetitions
# instead of one long one, so that some are undisturbed.
_BRIEF = ("--benchmark_min_time=0.001", "--benchmark_repetitions=20")
# The library compiles filters as POSIX extended expressions, in which only these may be escaped.
_SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
# Less than a third of a clock tick: no loop does anything in that time.
_NOTHING = 1e-10
_UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
_TIMES: Mapping[str, str] = {"time": "real_time", "cpu": "cpu_time"}
_RATES: Mapping[str, str] = {"throughput": "bytes_per_second", "rate": "items_per_second"}


class Options(CommandOptions):
    """``with`` keys of ``uses: google-benchmark``."""

    filter: str = Field(default="", description="An extended regular expression of benchmarks to run; -EXPR: the rest.")


OPTIONS = Options

_Values = dict[tuple[str, str], list[float]]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program's benchmarks, or ``only`` one of them. Raises ToolOutputError for a shell's text."""
    out = (f"--benchmark_out={call.folder / _FILE}", "--benchmark_out_format=json")
    return (Invocation((*_program(call), *out, *(_BRIEF if call.effort is Effort.BRIEF else ()), *_filter(call))),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON file if it holds something; ``parse`` says why it does not."""
    return tool_files.left(call.folder / _FILE)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read real and CPU time in s per iteration, and bytes and items per second, of every repetition.

    Raises ToolOutputError if there is no file, if it is nonsense, if no benchmark matched, or if one gave up.
    """
    content = tool_files.read_json(call.folder / _FILE, _reason(call.folder))
    runs = content.get("benchmarks") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(runs, list):
        raise ToolOutputError(f"{_FILE} is not of Google Benchmark")
    values: _Values = {}
    skipped, aggregates = [], []
    for run in runs:
        name = _name(run)
        if run.get("skipped"):
            skipped.append(name)
        elif _is_aggregate(run, name):
            aggregates.append(name)
        else:
            _take(run, name, values)
    if not values:
        raise ToolOutputError(f"{_FILE} holds no run of a benchmark, only {len(skipped)} skipped and aggregates")
    warnings = (*_built(content), *_optimised_away(values), *_without_runs(values, skipped, aggregates))
    return Parsed(tuple(_reading(key, found) for key, found in values.items()), warnings=warnings)


def enumerate(call: Call) -> Invocation:
    """Return the process that prints the names of the program's benchmarks."""
    return Invocation((*_program(call), "--benchmark_list_tests=true", *_filter(call)), stdout=_LIST)


def _program(call: Call) -> tuple[str, ...]:
    if call.shell_text:
        raise ToolOutputError("perfflow adds flags to the program, which a shell's text hides: drop `shell: true`")
    return call.command


def _filter(call: Call) -> tuple[str, ...]:
    if call.only:
        return (f"--benchmark_filter=^{_SPECIAL.sub(lambda found: chr(92) + found[0], call.only)}$",)
    text = cast(Options, call.options).filter
    return (f"--benchmark_filter={text}",) if text else ()


def _reason(folder: Path) -> str:
    """Return why there is no whole file, from what the program said last."""
    said = tool_files.last_words(folder)
    if said.startswith("Failed to match any benchmarks"):
        return "no benchmark matches the filter"
    reason = "the program is not of Google Benchmark, or was killed"
    return f"{reason}; it said last: {said}" if said else reason


def _name(run: object) -> str:
    """Return the name without the suffix of an aggregate. Raises ToolOutputError for a benchmark that gave up."""
    name = run.get("run_name", run.get("name")) if isinstance(run, dict) else None
    if not isinstance(run, dict) or not isinstance(name, str) or not name:
        raise ToolOutputError(f"{_FILE} holds a benchmark without a name")
    shown = tool_files.clean_name(name)
    if run.get("error_occurred"):
        said = tool_files.clean_name(str(run.get("error_message", "")))[:200]
        raise ToolOutputError(f"benchmark {shown[:80]} gave up: {said}")
    return shown


def _is_aggregate(run: Mapping[str, object], name: str) -> bool:
    """Tell a mean, deviation or fit from a repetition; libraries before 1.5 do so by the name alone."""
    kind = run.get("run_type")
    return kind != "iteration" if kind is not None else str(run.get("name", name)).endswith(_AGGREGATES)


def _take(run: Mapping[str, object], name: str, values: _Values) -> None:
    """Add one repetition's figures in base units."""
    unit = run.get("time_unit")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise ToolOutputError(
            f"{_FILE}: {name[:80]} has the time unit {ascii(unit)[:20]}, which perfflow does not know"
        )
    for metric, key in _TIMES.items():
        what = f"{key} of {name[:80]}"
        checked = tool_files.positive if metric == "time" else tool_files.number
        # Checked in seconds, in which a tiny figure may have become 0.
        figure = checked(tool_files.number(run.get(key), what) * _UNITS[unit], what)
        values.setdefault((name, metric), []).append(figure)
    for metric, key in _RATES.items():
        if key in run:
            values.setdefault((name, metric), []).append(tool_files.number(run[key], f"{key} of {name[:80]}"))


def _reading(key: tuple[str, str], values: Sequence[float]) -> Reading:
    name, metric = key
    return reading_of_undisturbed(metric, values, name) if len(values) > 1 else Reading(metric, values[0], name)


def _built(content: Mapping[str, object]) -> Iterator[str]:
    """Say when the library, which contains the timing loop's start and stop, was built without optimisation."""
    context = content.get("context")
    if isinstance(context, dict) and context.get("library_build_type") == "debug":
        yield "the Google Benchmark library is a debug build, as Debian's is: times of a few ns include its own"


def _optimised_away(values: _Values) -> Iterator[str]:
    """Name the benchmarks that measure an empty loop."""
    if empty := sorted(name for (name, metric), found in values.items() if metric == "time" and min(found) < _NOTHING):
        yield f"the compiler left nothing of {', '.join(empty)[:200]}: use benchmark::DoNotOptimize"


def _without_runs(values: _Values, skipped: Sequence[str], aggregates: Sequence[str]) -> Iterator[str]:
    """Name the benchmarks that have no reading."""
    measured = {name for name, _ in values}
    if missing := sorted({*skipped} - measured):
        yield f"skipped by the program: {', '.join(missing)[:200]}"
    if missing := sorted({*aggregates} - measured):
        yield f"only aggregates of {', '.join(missing)[:200]}: take ReportAggregatesOnly out of the program"
