"""Google Benchmark's ``--benchmark_out``: one value per repetition; its own aggregates are left aside.

``bytes_per_second`` and ``items_per_second`` are per s of the time the benchmark chose. Counters of the author's own
are read as metrics of their names. The program exits 0 although a benchmark gave up with an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfflow.errors import ToolOutputError
from perfflow.tools.json_parts import facts, part, parts, word
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, label

TOOL = "google-benchmark"

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIMES = {"real_time": "time", "cpu_time": "cpu"}
_OTHERS = {
    "bytes_per_second": "throughput",
    "items_per_second": "rate",
    "allocs_per_iter": "allocs",
    "max_bytes_used": "heap_peak",
}
# What a repetition is described by: the rest of its numbers are counters.
_DESCRIPTION = frozenset(
    {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations"}
    | {"total_allocated_bytes", "net_heap_growth"}
)
# Libraries before 1.5 do not say what is an aggregate.
_AGGREGATES_ONLY = "leave out --benchmark_report_aggregates_only, in the program ReportAggregatesOnly"
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has benchmarks and the context they ran in."""
    return isinstance(content.get("benchmarks"), list) and isinstance(content.get("context"), dict)


def parse(content: Mapping[str, object]) -> ResultSet:
    """Read every repetition.

    Raises ToolOutputError for nonsense, and where every benchmark reports an error.
    """
    samples = Samples()
    context = part(content, "context")
    aggregates: dict[str, None] = {}
    for entry in parts(content, "benchmarks"):
        if _is_aggregate(entry):
            aggregates[word(entry, "run_name", "name")] = None
        else:
            _add(samples, entry)
    if aggregates and not samples.holds_any:
        raise ToolOutputError(f"it holds aggregates alone: {_AGGREGATES_ONLY}")
    if missing := [label(name) for name in aggregates if not samples.holds(name)]:
        samples.warnings.append(f"only aggregates of {', '.join(missing)[:200]}: {_AGGREGATES_ONLY}")
    samples.warnings.extend(_warnings(context))
    machine = facts(cpus=context.get("num_cpus"), mhz=context.get("mhz_per_cpu"))
    return samples.result_set(TOOL, context.get("library_version"), machine, started=context.get("date"))


def _is_aggregate(entry: Mapping[str, object]) -> bool:
    kind = entry.get("run_type")
    return kind != "iteration" if kind is not None else word(entry, "name").endswith(_AGGREGATES)


def _add(samples: Samples, entry: Mapping[str, object]) -> None:
    name = word(entry, "name")
    if entry.get("error_occurred"):
        samples.fail(name, f"reports an error: {_said(entry, 'error_message')}")
        return
    if entry.get("skipped"):
        samples.warnings.append(f"{label(name)} was skipped: {_said(entry, 'skip_message')}")
        return
    scale = _scale(name, entry)
    for theirs, metric in _TIMES.items():
        samples.add(name, metric, entry.get(theirs), scale)
    for key, value in entry.items():
        if key in _OTHERS:
            samples.add(name, _OTHERS[key], value)
        elif _is_counter(key, value):
            samples.add_custom(name, key, value)


def _said(entry: Mapping[str, object], key: str) -> str:
    said = entry.get(key)
    return label(said) if isinstance(said, str) and said else "it does not say why"


def _is_counter(key: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and key not in _DESCRIPTION and key not in _TIMES


def _scale(name: str, entry: Mapping[str, object]) -> float:
    unit = entry.get("time_unit", "ns")
    if not isinstance(unit, str) or unit not in _SECONDS:
        raise ToolOutputError(f"the time unit of {label(name)} is not one that perfflow knows")
    return _SECONDS[unit]


def _warnings(context: Mapping[str, object]) -> list[str]:
    """Return what Google Benchmark itself warns of when it runs."""
    found = []
    if context.get("library_build_type") == "debug":
        found.append("the Google Benchmark library is a debug build, as Debian's is: times of a few ns include its own")
    if context.get("cpu_scaling_enabled") is True:
        found.append("CPU frequency scaling was on; timings may be noisy")
    return found


FORMAT = JsonFormat(TOOL, "./PROGRAM --benchmark_out=FILE --benchmark_out_format=json", recognises, parse)
