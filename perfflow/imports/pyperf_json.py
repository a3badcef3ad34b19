"""``pyperf``: the values of every run but its warm-ups, which are already per loop.

The format is that of pyperf's own ``Benchmark.dump``: metadata of the suite, of each benchmark and of each run, where
the inner ones win.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfflow.errors import ToolOutputError
from perfflow.imports.imported import Imported, JsonFormat, Samples, label
from perfflow.imports.json_parts import facts, part, parts, values, word

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


def parse(content: Mapping[str, object]) -> Imported:
    """Read every benchmark of the suite. Raises ToolOutputError for nonsense, and for a benchmark without values."""
    samples = Samples()
    common = part(content, "metadata")
    for benchmark in parts(content, "benchmarks"):
        _add(samples, common, benchmark)
    machine = facts(
        cpu=common.get("cpu_model_name"),
        cpus=common.get("cpu_count"),
        platform=common.get("platform"),
        python=common.get("python_version"),
    )
    return samples.imported(TOOL, common.get("perf_version"), machine)


def _add(samples: Samples, common: Mapping[str, object], benchmark: Mapping[str, object]) -> None:
    known = {**common, **part(benchmark, "metadata")}
    name = word(known, "name")
    metric = _metric(name, known)
    if metric == "rss":
        samples.warnings.append(_AMBIGUOUS)
    # A run that only found the number of loops has warm-ups and no values.
    found = [value for run in parts(benchmark, "runs") if "values" in run for value in values(run, "values")]
    if not found:
        raise ToolOutputError(f"{label(name)} has no values")
    for value in found:
        samples.add(name, metric, value)


def _metric(name: str, known: Mapping[str, object]) -> str:
    unit = known.get("unit", "second")
    if not isinstance(unit, str) or unit not in _METRICS:
        raise ToolOutputError(f"the unit of {label(name)} is not one that perfflow knows")
    return _METRICS[unit]


FORMAT = JsonFormat(TOOL, "python -m pyperf timeit -o FILE", recognises, parse)
