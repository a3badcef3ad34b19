"""Reader of ``pytest --benchmark-json`` files: the rounds of each benchmark, in s per iteration.

``--benchmark-save`` and ``--benchmark-autosave`` store the rounds only with ``--benchmark-save-data``. Without them,
the mean, the standard deviation and the number of rounds are read.
"""

from __future__ import annotations

import math

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, Summary, facts, label
from perfflow.tools.tool_json import Figure, Figures, Json, Positive, Whole

# --benchmark-timer can be time.process_time, which measures CPU time instead of elapsed time.
_CPU_TIMERS = ("process_time", "thread_time")


class _Stats(Json):
    """The rounds of one benchmark. Only drivers/pytest_run.py writes ``cpu`` and ``uncontended``."""

    data: Figures | None = None
    cpu: Figures = Field(default=[])
    uncontended: Figures = Field(default=[])
    iterations: Positive = 1.0
    rounds: Whole | None = None
    mean: Figure | None = None
    stddev: Figure | None = None


class Benchmark(Json):
    """One benchmark; ``group`` is from its mark."""

    fullname: str = ""
    name: str = ""
    group: object = None
    stats: _Stats
    options: dict[str, object] = Field(default={})


class Suite(Json):
    """The content of one file."""

    benchmarks: list[Benchmark]
    machine_info: dict[str, object] = Field(default={})
    commit_info: dict[str, object] | None = None
    version: object = None
    datetime: object = None


def gather(suite: Suite) -> ResultSet:
    """Return every benchmark under its full name. Raises ToolOutputError for invalid values."""
    samples = Samples()
    for benchmark in suite.benchmarks:
        _add(samples, benchmark)
    names = {"kernel": "release", "arch": "machine", "python": "python_version"}
    machine = facts(suite.machine_info, cpu="cpu.brand_raw", cpus="cpu.count", os="system", **names)
    commit = {key: value for key, value in facts(suite.commit_info, commit="id").items() if value != "unversioned"}
    return samples.result_set(FORMAT.tool, suite.version, machine, commit, suite.datetime)


def _add(samples: Samples, benchmark: Benchmark) -> None:
    name, stats = benchmark.fullname or benchmark.name, benchmark.stats
    if not name:
        raise ToolOutputError("a benchmark has no fullname")
    metric = "cpu" if str(benchmark.options.get("timer")).endswith(_CPU_TIMERS) else "time"
    if stats.data:
        for clock, values in ((metric, stats.data), ("cpu", stats.cpu), ("uncontended", stats.uncontended)):
            samples.add(name, clock, values, batch=stats.iterations)
    elif stats.rounds is None or stats.mean is None or stats.stddev is None:
        raise ToolOutputError(f"{label(name)} has neither `data` nor all of `rounds`, `mean` and `stddev`")
    else:
        spread = stats.stddev / math.sqrt(max(1, stats.rounds))
        samples.add_summary(name, metric, stats.mean, Summary(stats.rounds, spread))


FORMAT = JsonFormat(
    "pytest-benchmark",
    "pytest --benchmark-json FILE",
    lambda content: isinstance(content.get("benchmarks"), list) and isinstance(content.get("machine_info"), dict),
    Suite,
    gather,
)
