"""Read ``data.js`` of github-action-benchmark: all results on a repository's pages, one set for each CI run.

The ``range`` of a value is ignored, since its meaning differs between tools.

Format: the action's README and ``src/write.ts``: ``window.BENCHMARK_DATA = {"entries": {SUITE: [{"commit", "date",
"tool", "benches": [{"name", "value", "unit"}]}]}}``, ``date`` in ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from perfflow.model.metrics import Better
from perfflow.model.units import UNITS, Dimension
from perfflow.tools import tool_files
from perfflow.tools.parsed_output import Figure, Json, checked_json
from perfflow.tools.result_set import ResultSet, ValueCollector

TOOL = "github-action-benchmark"
_MARK = "window.BENCHMARK_DATA"
_METRICS = {Dimension.TIME: "time", Dimension.RATE: "rate", Dimension.THROUGHPUT: "throughput", Dimension.BYTES: ""}
_PER = ("/iter", "/op", "/call", "/run")
_RATES = {"iter/sec": 1.0, "ops/sec": 1.0, "iterations/sec": 1.0}


class _Commit(Json):
    id: str
    timestamp: str = ""


class _DataJsBench(Json):
    name: str
    value: float
    unit: str = ""


class _DataJsEntry(Json):
    commit: _Commit
    date: Figure
    tool: str = ""
    benches: list[_DataJsBench]


class _DataJsFile(Json):
    entries: dict[str, list[_DataJsEntry]]


def recognises(text: str) -> bool:
    """Whether the text is a data.js file."""
    return text.lstrip().startswith(_MARK)


def parse(text: str, left_out: list[str]) -> Iterator[ResultSet]:
    """Yield the sets in the order of the file, each with its commit. Raises ToolOutputError for a damaged file.

    Benchmarks whose value is negative, or a time of 0, are added to ``left_out`` instead: some run failed to measure.
    """
    content = text.partition("=")[2].strip().rstrip(";")
    data = checked_json(_DataJsFile, tool_files.decoded(content, f"the JSON after `{_MARK} =`"))
    several = len(data.entries) > 1
    for suite, entries in data.entries.items():
        for entry in entries:
            found_set = _set(suite if several else "", entry, left_out)
            if found_set:
                yield found_set


def _set(suite: str, entry: _DataJsEntry, left_out: list[str]) -> ResultSet | None:
    samples = ValueCollector()
    for bench in entry.benches:
        name = f"{suite}/{bench.name}" if suite else bench.name
        metric, scale = _metric_of(bench.unit)
        if bench.value < 0 or (metric == "time" and not bench.value):
            left_out.append(name)
        elif metric:
            samples.add(name, metric, [bench.value], scale)
        else:
            bigger = "bigger" in entry.tool.lower()
            smaller = "smaller" in entry.tool.lower()
            samples.better[bench.unit] = Better.HIGHER if bigger else Better.LOWER if smaller else Better.NONE
            samples.add_custom(name, bench.unit or "value", [bench.value])
    if entry.benches and not samples.holds_any:
        return None
    facts = {"commit": entry.commit.id, "committed": entry.commit.timestamp}
    return samples.result_set(TOOL, "", {}, facts, started=entry.date / 1000)


@cache
def _metric_of(unit: str) -> tuple[str, float]:
    """Return the metric of a unit and its size in base units; ('', 1) for a custom unit."""
    if unit in _RATES:
        return "rate", _RATES[unit]
    stem = next((unit.removesuffix(ending) for ending in _PER if unit.endswith(ending)), unit)
    if stem in UNITS:
        dimension, size = UNITS[stem]
        return _METRICS.get(dimension, ""), float(size)
    return "", 1.0
