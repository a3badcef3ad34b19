"""Read Google Benchmark's ``--benchmark_out``: one value per repetition. Its aggregates are ignored.

``bytes_per_second`` and ``items_per_second`` refer to the clock that the benchmark chose, CPU or real time. Counters of
the author become metrics of the same name. The program exits with 0 even if a benchmark reports an error.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import ConfigDict, Field

from perfflow.model.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, facts, label
from perfflow.tools.tool_json import Json, one_of

_OWN_TIME = "/manual_time"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_OTHERS = {
    "bytes_per_second": "throughput",
    "items_per_second": "rate",
    "allocs_per_iter": "allocs",
    "max_bytes_used": "heap_peak",
}
# Keys that describe a repetition. All other numbers are counters.
_DESCRIPTION = frozenset(
    {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations"}
    | {"total_allocated_bytes", "net_heap_growth"}
)
# Versions before 1.5 do not mark aggregates.
_AGGREGATES_ONLY = "remove --benchmark_report_aggregates_only, or ReportAggregatesOnly in the program"
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")


class _Entry(Json):
    """A repetition, or an aggregate of several. A failed or skipped benchmark has no times."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1)]
    run_name: str = ""
    run_type: object = None
    iterations: object = None
    real_time: object = None
    cpu_time: object = None
    time_unit: Annotated[float, one_of(_SECONDS)] = 1e-9
    error_occurred: object = None
    error_message: object = None
    skipped: object = None
    skip_message: object = None

    @property
    def is_aggregate(self) -> bool:
        """Whether it is computed from repetitions."""
        return self.name.endswith(_AGGREGATES) if self.run_type is None else self.run_type != "iteration"


class _Output(Json):
    context: dict[str, object]
    benchmarks: list[_Entry]

    def seconds(self) -> dict[str, tuple[float, float]]:
        """Return the CPU time and the wall time (s) of all iterations of each benchmark, in all its repetitions.

        The wall time is infinite where the program measures it itself.
        """
        found: dict[str, tuple[float, float]] = {}
        for entry in self.benchmarks:
            cpu, wall = entry.cpu_time, entry.real_time
            if entry.is_aggregate or not isinstance(entry.iterations, int) or not isinstance(cpu, int | float):
                continue
            is_known = isinstance(wall, int | float) and _OWN_TIME not in entry.name
            once = entry.iterations * entry.time_unit
            computed, elapsed = found.get(label(entry.name), (0.0, 0.0))
            spent = once * wall if is_known and isinstance(wall, int | float) else math.inf
            found[label(entry.name)] = computed + once * cpu, elapsed + spent
        return found


def _gather(output: _Output) -> ResultSet:
    """Collect all repetitions. Raises ToolOutputError for invalid data, and if all benchmarks report errors."""
    samples, context = Samples(), output.context
    aggregates = dict.fromkeys(entry.run_name or entry.name for entry in output.benchmarks if entry.is_aggregate)
    for entry in output.benchmarks:
        if not entry.is_aggregate:
            _add(samples, entry)
    if aggregates and not samples.holds_any:
        raise ToolOutputError(f"it has only aggregates: {_AGGREGATES_ONLY}")
    if missing := [label(name) for name in aggregates if not samples.holds(name)]:
        samples.warnings.append(f"only aggregates of {', '.join(missing)[:200]}: {_AGGREGATES_ONLY}")
    # Google Benchmark prints the same warnings when it runs.
    if context.get("library_build_type") == "debug":
        text = "the Google Benchmark library is a debug build, like Debian's: its overhead distorts times of a few ns"
        samples.warnings.append(text)
    if context.get("cpu_scaling_enabled") is True:
        samples.warnings.append("CPU frequency scaling was on; timings may be noisy")
    machine = facts(context, cpus="num_cpus", mhz="mhz_per_cpu")
    return samples.result_set(FORMAT.tool, context.get("library_version"), machine, started=context.get("date"))


def _add(samples: Samples, entry: _Entry) -> None:
    message = entry.error_message if entry.error_occurred else entry.skip_message
    said = label(message) if isinstance(message, str) and message else "it gives no reason"
    if entry.error_occurred:
        samples.fail(entry.name, f"reports an error: {said}")
        return
    if entry.skipped:
        samples.warnings.append(f"{label(entry.name)} was skipped: {said}")
        return
    for metric, time in {"time": entry.real_time, "cpu": entry.cpu_time}.items():
        found = tool_files.number(time, f"{metric} of {label(entry.name)}")
        samples.add(entry.name, metric, [found], entry.time_unit)
    for key, value in (entry.model_extra or {}).items():
        if key in _OTHERS:
            samples.add(entry.name, _OTHERS[key], [tool_files.number(value, f"{key} of {label(entry.name)}")])
        elif isinstance(value, int | float) and not isinstance(value, bool) and key not in _DESCRIPTION:
            samples.add_custom(entry.name, key, [value])


FORMAT = JsonFormat(
    "google-benchmark",
    "./PROGRAM --benchmark_out=FILE --benchmark_out_format=json",
    lambda content: isinstance(content.get("benchmarks"), list) and isinstance(content.get("context"), dict),
    _Output,
    _gather,
)
