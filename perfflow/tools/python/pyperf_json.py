"""Reader of ``pyperf`` files: the values of every run without its warm-ups. Values are already per loop.

The format is that of pyperf's own ``Benchmark.dump``: metadata of the suite, of each benchmark and of each run. Inner
metadata take precedence. Only drivers/pyperf_script.py writes ``perfflow_cpu`` and ``perfflow_uncontended``, the values
by other clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic import Json as JsonText

from perfflow.model.errors import ToolOutputError
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, at, facts, label, moment
from perfflow.tools.tool_json import Counted, Figures, Json, one_of

# pyperf has the same unit, bytes, for --track-memory (the process) and for --tracemalloc (Python's allocators).
_METRICS = {"second": "time", "byte": "rss", "integer": "count"}
_AMBIGUOUS = (
    "the file does not distinguish process memory from Python's own allocations (tracemalloc): bytes are read as rss"
)


class _Facts(Json):
    """Metadata. Missing values are those of the outer level."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    unit: Annotated[str, one_of(_METRICS)] = "time"
    loops: Counted = 1
    inner_loops: Counted = 1
    perfflow_cpu: JsonText[Figures] = Field(default=[])
    perfflow_uncontended: JsonText[Figures] = Field(default=[])

    def within(self, outer: _Facts) -> _Facts:
        """Return these metadata, with missing values from ``outer``."""
        return outer.model_copy(update={key: getattr(self, key) for key in self.model_fields_set})


class _Run(Json):
    """One run. A run that only calibrated the number of loops has no values."""

    metadata: _Facts = Field(default_factory=_Facts)
    values: Figures = Field(default=[])


class _Benchmark(Json):
    metadata: _Facts = Field(default_factory=_Facts)
    runs: list[_Run]


class _Suite(Json):
    metadata: _Facts = Field(default_factory=_Facts)
    benchmarks: list[_Benchmark]


def _recognises(content: Mapping[str, object]) -> bool:
    found = content.get("benchmarks")
    if not isinstance(found, list) or "context" in content or "machine_info" in content:
        return False
    return all(isinstance(each, dict) and "runs" in each for each in found)


def _gather(suite: _Suite) -> ResultSet:
    """Return every benchmark of the suite. Raises ToolOutputError for a benchmark without a name or values."""
    samples = Samples()
    for benchmark in suite.benchmarks:
        _add(samples, suite.metadata, benchmark)
    known = suite.metadata.model_extra
    machine = facts(known, cpu="cpu_model_name", cpus="cpu_count", platform="platform", python="python_version")
    runs = (run for benchmark in suite.benchmarks for run in benchmark.runs)
    dates = [moment(at(run.metadata.model_extra, "date")) for run in runs]
    version = at(known, "perf_version")
    return samples.result_set(FORMAT.tool, version, machine, started=min(filter(None, dates), default=""))


def _add(samples: Samples, common: _Facts, benchmark: _Benchmark) -> None:
    known = benchmark.metadata.within(common)
    if not known.name.strip():
        raise ToolOutputError("a benchmark has no name")
    if known.unit == "rss":
        samples.warnings.append(_AMBIGUOUS)
    if samples.holds(known.name):
        raise ToolOutputError(f"two benchmarks are called {label(known.name)[:80]!r}")
    if not any(run.values for run in benchmark.runs):
        raise ToolOutputError(f"{label(known.name)} has no values")
    for run in benchmark.runs:
        of_run = run.metadata.within(known)
        batch = float(of_run.loops * of_run.inner_loops) if known.unit == "time" else 1.0
        for metric, values in (
            (known.unit, run.values),
            ("cpu", of_run.perfflow_cpu),
            ("uncontended", of_run.perfflow_uncontended),
        ):
            samples.add(known.name, metric, values, batch=batch)


FORMAT = JsonFormat("pyperf", "python -m pyperf timeit -o FILE", _recognises, _Suite, _gather)
