"""``pyperf``: the values of every run but its warm-ups, which are already per loop.

The format is that of pyperf's own ``Benchmark.dump``: metadata of the suite, of each benchmark and of each run, where
the inner ones win.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfflow.errors import ToolOutputError
from perfflow.tools import tool_files
from perfflow.tools.json_parts import facts, part, parts, values, word
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, label, moment

TOOL = "pyperf"

# pyperf marks --track-memory (the process) and --tracemalloc (Python's own) alike, as bytes.
_METRICS = {"second": "time", "byte": "rss", "integer": "count"}
_AMBIGUOUS = "the file does not say whether its bytes are of the process or Python's own (tracemalloc); taken as rss"


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has benchmarks that have runs."""
    found = content.get("benchmarks")
    if not isinstance(found, list) or "context" in content or "machine_info" in content:
        return False
    return all(isinstance(each, dict) and "runs" in each for each in found)


def parse(content: Mapping[str, object]) -> ResultSet:
    """Read every benchmark of the suite. Raises ToolOutputError for nonsense, and for a benchmark without values."""
    samples = Samples()
    common = part(content, "metadata")
    suite = parts(content, "benchmarks")
    for benchmark in suite:
        _add(samples, common, benchmark)
    machine = facts(
        cpu=common.get("cpu_model_name"),
        cpus=common.get("cpu_count"),
        platform=common.get("platform"),
        python=common.get("python_version"),
    )
    dates = [moment(part(run, "metadata").get("date")) for item in suite for run in parts(item, "runs")]
    return samples.result_set(TOOL, common.get("perf_version"), machine, started=min(filter(None, dates), default=""))


def _add(samples: Samples, common: Mapping[str, object], benchmark: Mapping[str, object]) -> None:
    known = {**common, **part(benchmark, "metadata")}
    name = word(known, "name")
    metric = _metric(name, known)
    if metric == "rss":
        samples.warnings.append(_AMBIGUOUS)
    if samples.holds(name):
        raise ToolOutputError(f"two benchmarks are called {label(name)[:80]!r}")
    # A run that only found the number of loops has warm-ups and no values.
    for run in parts(benchmark, "runs"):
        facts_of_run = {**known, **part(run, "metadata")}
        outer, inner = (tool_files.positive(facts_of_run.get(key, 1), key) for key in ("loops", "inner_loops"))
        for value in values(run, "values") if "values" in run else ():
            samples.add(name, metric, value, batch=outer * inner if metric == "time" else 1.0)
    if not samples.holds(name):
        raise ToolOutputError(f"{label(name)} has no values")


def _metric(name: str, known: Mapping[str, object]) -> str:
    unit = known.get("unit", "second")
    if not isinstance(unit, str) or unit not in _METRICS:
        raise ToolOutputError(f"the unit of {label(name)} is not one that perfflow knows")
    return _METRICS[unit]


FORMAT = JsonFormat(TOOL, "python -m pyperf timeit -o FILE", recognises, parse)
