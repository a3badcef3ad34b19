"""``pyperf``: the benchmarks of a script that uses pyperf's Runner, or one statement.

perfflow itself starts fresh processes and alternates between the two sides, so each call of a comparison takes short
values once: a script runs in one process, with a fork for each benchmark (see drivers/pyperf_script.py), a statement in
one worker. ``--copy-env`` gives the workers the whole environment; otherwise the variables of a candidate would not
reach the measured code.

``FORMAT`` reads pyperf's files: the values of every run without its warm-ups. Values are already per loop. The format
is that of pyperf's own ``Benchmark.dump``: metadata of the suite, of each benchmark and of each run. Inner metadata
take precedence. Only drivers/pyperf_script.py writes ``perfflow_cpu`` and ``perfflow_uncontended``, the values by other
clocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic import Json as JsonText

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import TRACE, Adapter, Call, CommandText, Effort, Invocation, Role, Suite, may_leave, words
from perfflow.tools.parsed_output import Counted, Figures, Json, one_of_keys
from perfflow.tools.python import pytest_benchmark
from perfflow.tools.result_set import JsonFormat, ResultSet, ValueCollector, at, facts, label, moment

# pyperf has the same unit, bytes, for --track-memory (the process) and for --tracemalloc (Python's allocators).
_STORED_METRICS = {"second": "time", "byte": "rss", "integer": "count"}
_AMBIGUOUS = (
    "the file does not distinguish process memory from Python's own allocations (tracemalloc): bytes are read as rss"
)


class _Facts(Json):
    """Metadata. Missing values are those of the outer level."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    unit: Annotated[str, one_of_keys(_STORED_METRICS)] = "time"
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


class _PyperfBenchmark(Json):
    metadata: _Facts = Field(default_factory=_Facts)
    runs: list[_Run]


class _PyperfSuite(Json):
    metadata: _Facts = Field(default_factory=_Facts)
    benchmarks: list[_PyperfBenchmark]


def _recognises(content: Mapping[str, object]) -> bool:
    found = content.get("benchmarks")
    if not isinstance(found, list) or "context" in content or "machine_info" in content:
        return False
    return all(isinstance(each, dict) and "runs" in each for each in found)


def _gather(suite: _PyperfSuite) -> ResultSet:
    """Return every benchmark of the suite. Raises ToolOutputError for a benchmark without a name or values."""
    samples = ValueCollector()
    for benchmark in suite.benchmarks:
        _add(samples, suite.metadata, benchmark)
    known = suite.metadata.model_extra
    machine = facts(known, cpu="cpu_model_name", cpus="cpu_count", platform="platform", python="python_version")
    runs = (run for benchmark in suite.benchmarks for run in benchmark.runs)
    dates = [moment(at(run.metadata.model_extra, "date")) for run in runs]
    version = at(known, "perf_version")
    return samples.result_set(FORMAT.tool, version, machine, started=min(filter(None, dates), default=""))


def _add(samples: ValueCollector, common: _Facts, benchmark: _PyperfBenchmark) -> None:
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


FORMAT = JsonFormat("pyperf", "python -m pyperf timeit -o FILE", _recognises, _PyperfSuite, _gather)


_FILE, _DOUBLED = "pyperf.json", "doubled.json"
_CHECKED = "check.txt"
_DRIVER = Path(__file__).with_name("drivers") / "pyperf_script.py"
# One worker, and values of 5 ms.
_BRIEF = ("--processes=1", "--warmups=1", "--min-time=0.005")
# For a profiler: a second in values of 0.1 s.
_SAMPLED = ("--quiet", "--copy-env", "--processes=1", "--warmups=0", "--min-time=0.1", "--values=10")
# What calls the benchmark, and what that is called in pyperf's timeit.
_HARNESS = r"(?:.*/)?pyperf/_(?:runner|timeit)\.py:(?:.*\.)?(?:task_func|main|time_func)\b|<timeit-src>:inner\b"
_FEWEST, _MOST = 3, 20
# Seconds.
_TOGETHER = 0.2
_METRICS = ("time", "cpu", "uncontended", "rss")


class PyperfOptions(adapter.Options):
    """``with`` keys of ``uses: pyperf``: a script or a statement."""

    script: str = Field(default="", description="A Python script with a pyperf.Runner.")
    stmt: str = Field(default="", description="A Python statement, as for `pyperf timeit`.")
    setup: list[str] | str = Field(default="", description="With `stmt`: statements to run before, untimed.")
    python: str = Field(default="python3", min_length=1, description="Python interpreter with pyperf installed.")
    args: CommandText = Field(default="", description="Additional arguments for pyperf or the script.")
    memory: bool = Field(default=False, description="Measure the memory of the process instead of time.")

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if bool(self.script) == bool(self.stmt):
            raise ValueError("set either `script` or `stmt`")
        return self


def invocations(call: Call[PyperfOptions]) -> tuple[Invocation, ...]:
    """Run the script, some of its benchmarks, or time the statement. A whole run ends with ``pyperf check``."""
    options = call.options
    brief = call.effort is not Effort.NORMAL or not options.script
    common = (
        *("--quiet", "--copy-env", f"--output={call.folder / _FILE}"),
        *((*_BRIEF, f"--values={adapter.samples_of_pace(call.pace, _FEWEST, _MOST)}") if brief else ()),
        *(("--track-memory",) if options.memory else ()),
        *words(options.args),
    )
    if options.stmt:
        setup = [options.setup] if isinstance(options.setup, str) else options.setup
        lines = (f"--setup={line}" for line in setup if line)
        return (Invocation((options.python, "-m", "pyperf", "timeit", *common, *lines, "--", options.stmt)),)
    if call.effort is Effort.SAMPLED:
        return (Invocation((*_driver(call, "sampled"), *_SAMPLED, *words(options.args), *_chosen(call))),)
    run = Invocation((*_driver(call, "brief" if brief else "run"), *common, *_chosen(call)))
    if brief:
        return (run,)
    check = (options.python, "-m", "pyperf", "check", str(call.folder / _FILE))
    return (run, Invocation(check, stdout=_CHECKED))


def parse(call: Call[PyperfOptions], usage: Usage) -> Parsed:
    """Read the values of every worker, in s per loop or bytes, without those of warm-ups and calibration.

    Raises ToolOutputError if a worker failed, if the file is missing or invalid, or if a benchmark has no value.
    """
    printed = tool_files.last_bytes(call.folder)
    reason = (
        tool_files.why(printed, pytest_benchmark.PYPERF)
        or tool_files.last_words(call.folder)
        or "the script did not finish"
    )
    if "failed with exit code" in printed:
        raise ToolOutputError(reason)
    results = FORMAT.read(call.folder / _FILE, reason)
    if other := [metric for _, metric in results.benchmarks if metric not in _METRICS]:
        raise ToolOutputError(f"{_FILE} contains values that are neither seconds nor bytes: {other[0]}")
    parsed = results.parsed(*_instabilities(call.folder), *_doubled(call.folder))
    if call.options.script:
        return parsed
    # pyperf calls a statement ``timeit``.
    return replace(parsed, readings=tuple(replace(reading, benchmark="") for reading in parsed.readings))


def listing(call: Call[PyperfOptions]) -> Invocation | None:
    """Return the process that prints the names of a script's benchmarks; a statement is one benchmark."""
    if not call.options.script:
        return None
    return Invocation((*_driver(call, "list"), *words(call.options.args)))


def tracing(call: Call[PyperfOptions]) -> Invocation:
    """Return the process that records what each benchmark of a script executes and reads."""
    settings = f"--perfflow-settings={call.folder / TRACE}"
    return Invocation((*_driver(call, "trace"), *words(call.options.args), settings))


def _chosen(call: Call) -> tuple[str, ...]:
    return (f"--perfflow-chosen={json.dumps(call.chosen)}",) if call.chosen else ()


def _driver(call: Call[PyperfOptions], mode: str) -> tuple[str, ...]:
    return (call.options.python, str(_DRIVER), mode, call.options.script)


def _doubled(folder: Path) -> Iterator[str]:
    """Yield a warning about each name that two benchmarks of the script have."""
    for name in json.loads(tool_files.first_text(folder, _DOUBLED) or "[]"):
        yield f"the script has two benchmarks called {tool_files.clean_name(str(name))}; only the first is measured"


def _instabilities(folder: Path) -> Iterator[str]:
    """Yield what ``pyperf check`` finds unstable. It prints list items below the underlined name of a benchmark."""
    lines, name = tool_files.first_text(folder, _CHECKED).splitlines(), ""
    for before, line in zip(["", *lines], lines, strict=False):
        if line and not line.strip("-="):
            name = tool_files.clean_name(before)[:80]
        elif line.startswith("* "):
            yield tool_files.clean_name(f"pyperf finds {name or 'it'} unstable: {line[2:]}")[:300]


ADAPTER = Adapter(
    "pyperf",
    Role.MEASURE,
    invocations,
    parse,
    options=PyperfOptions,
    metrics=builtin_metrics(*_METRICS),
    suite=Suite(together=_TOGETHER, harness=_HARNESS, listing=listing, tracing=tracing),
    outputs=may_leave(_FILE, _DOUBLED),
)
