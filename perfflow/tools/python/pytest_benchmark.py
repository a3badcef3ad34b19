"""``pytest-benchmark``: the benchmarks of a pytest suite, each timed inside one process.

If no benchmark ran, pytest writes no file, sometimes with exit status 0. If a test failed, it may write one. Under a
counting profiler, drivers/pytest_counts.py replaces the timing by a fixed number of calls.

``FORMAT`` reads files of ``pytest --benchmark-json``: the rounds of each benchmark, in s per iteration.
``--benchmark-save`` and ``--benchmark-autosave`` store the rounds only with ``--benchmark-save-data``. Without them,
the mean, the standard deviation and the number of rounds are read.

``PY_SPY``, ``PYPERF`` and ``PYTEST`` have the error messages of these tools as regular expressions, and the message
with a remedy for each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import (
    TRACE,
    Adapter,
    Call,
    CommandText,
    Effort,
    Invocation,
    Parts,
    Role,
    Suite,
    may_leave,
    words,
)
from perfflow.tools.parsed_output import Figure, Figures, Json, Positive, Whole
from perfflow.tools.result_set import JsonFormat, ResultSet, StoredSummary, ValueCollector, facts, label

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


class StoredBenchmark(Json):
    """One benchmark; ``group`` is from its mark."""

    fullname: str = ""
    name: str = ""
    group: object = None
    stats: _Stats
    options: dict[str, object] = Field(default={})


class StoredSuite(Json):
    """The content of one file."""

    benchmarks: list[StoredBenchmark]
    machine_info: dict[str, object] = Field(default={})
    commit_info: dict[str, object] | None = None
    version: object = None
    datetime: object = None


def gather(suite: StoredSuite) -> ResultSet:
    """Return every benchmark under its full name. Raises ToolOutputError for invalid values."""
    samples = ValueCollector()
    for benchmark in suite.benchmarks:
        _add(samples, benchmark)
    names = {"kernel": "release", "arch": "machine", "python": "python_version"}
    machine = facts(suite.machine_info, cpu="cpu.brand_raw", cpus="cpu.count", os="system", **names)
    commit = {key: value for key, value in facts(suite.commit_info, commit="id").items() if value != "unversioned"}
    return samples.result_set(FORMAT.tool, suite.version, machine, commit, suite.datetime)


def _add(samples: ValueCollector, benchmark: StoredBenchmark) -> None:
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
        samples.add_summary(name, metric, stats.mean, StoredSummary(stats.rounds, spread))


FORMAT = JsonFormat(
    "pytest-benchmark",
    "pytest --benchmark-json FILE",
    lambda content: isinstance(content.get("benchmarks"), list) and isinstance(content.get("machine_info"), dict),
    StoredSuite,
    gather,
)


_ALLOWED = (
    "run perfflow as the process's own user or as root; if /proc/sys/kernel/yama/ptrace_scope is 1 or more, run "
    "`sudo sysctl kernel.yama.ptrace_scope=0`; start a container with `--cap-add SYS_PTRACE`"
)
PY_SPY: Mapping[str, str] = {
    r"^Permission Denied: Try running|denied \(os error 13\)|not permitted \(os error 1\)": (
        f"py-spy is not permitted to read {{process}}: {_ALLOWED}"
    ),
    r"Check that the process is running|No such process \(os error 3\)": (
        "{process} does not exist: it has ended, or its number is wrong"
    ),
    r"^Error: Failed to find python version": (
        "{process} is not a Python program that py-spy supports: use `uses: perf` for other programs"
    ),
    r"^(?P<what>.{1,200} could not be started: .{1,80})$": "{what}",
}
"""Messages of py-spy 0.4."""
PYPERF: Mapping[str, str] = {
    r"No module named '?pyperf\b|pyperf is not installed": (
        "pyperf is not installed for this `python`: pip install pyperf"
    ),
    # The last line of a traceback.
    r"^(?P<what>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)": "{what}",
}
PYTEST: Mapping[str, str] = {
    r"No module named '?pytest\b": "pytest is not installed for this `python`: pip install pytest",
    r"unrecognized arguments:.* --benchmark-only": (
        "pytest-benchmark is not installed for this `python`: pip install pytest-benchmark"
    ),
    r"Can't have both --benchmark-only and --benchmark-disable": (
        "benchmarks are disabled, for example by pytest-xdist: add `args: [-n0]`"
    ),
    r": error: (?P<what>\S.*)": "pytest did not start: {what}",
    r"^ERROR: (?P<what>\S.*)": "pytest did not start: {what}",
    r"no benchmarks have been run": "no benchmark ran: none matches, or all were skipped",
}


_FILE = "benchmark.json"
_STDOUT = "pytest.out"
_LISTER = Path(__file__).with_name("drivers") / "pytest_list.py"
_COUNTER = _LISTER.with_name("pytest_counts.py")
_TRACER = _LISTER.with_name("pytest_trace.py")
_RUNNER = _LISTER.with_name("pytest_run.py")
_ITERATED = "iterations"
# Two numbers of calls, and the largest time in s of one. Counting takes about 50 times as long. Python replaces its
# instructions by faster ones during the first calls, which should be among the fewer.
_COUNTS = ((0.001, (20, 120)), (0.1, (2, 12)))
_FEWEST_COUNTED = (1, 3)
# Node ids are relative to the root. With the root in the working directory they are valid arguments of pytest, too.
_FIXED = ("--rootdir=.", "-p", "no:cacheprovider", "--color=no")
# 200 rounds of 0.5 ms, fewer if the calibration was disturbed, and up to five rounds of slower benchmarks.
_BRIEF = ("--benchmark-max-time=0.1", "--benchmark-min-time=0.0005", "--benchmark-calibration-precision=100")
# In 20 ms for each of many benchmarks, of which the processes differ more than the rounds within one.
_AMONG_OTHERS = ("--benchmark-max-time=0.02", *_BRIEF[1:])
_FEWEST, _ENOUGH = 1, 5
# Seconds; starting pytest takes about as long.
_TOGETHER = 0.5
# Lines of the summary at the end, which -rfE enables.
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S.*", re.MULTILINE)


class PytestBenchmarkOptions(adapter.Options):
    """``with`` keys of ``uses: pytest-benchmark``."""

    paths: list[str] | str = Field(
        default="", description="Files, folders or node ids to run. Default: pytest's own selection."
    )
    python: str = Field(
        default="python3", min_length=1, description="Python interpreter with pytest-benchmark installed."
    )
    args: CommandText = Field(default="", description="Additional arguments for pytest.")
    select: str = Field(default="", description="Only run tests that match this expression, as with `pytest -k`.")
    groups: list[str] = Field(
        default=[], description="Only measure benchmarks marked `benchmark(group=...)` with one of these groups."
    )


def invocations(call: Call[PytestBenchmarkOptions]) -> tuple[Invocation, ...]:
    """Run the suite's benchmarks, or those that are chosen."""
    options, rounds = call.options, adapter.samples_of_pace(call.pace, _FEWEST, _ENOUGH)
    env = {}
    if call.iterations:
        env = {"PERFFLOW_ITERATIONS": str(call.iterations), "PERFFLOW_ITERATED": str(call.folder / _ITERATED)}
    several = len(call.chosen) > 1
    program = _COUNTER if call.iterations else _RUNNER
    brief = _AMONG_OTHERS if several else _BRIEF
    argv = (
        *(options.python, str(program), *_FIXED, "-q", "-rfE"),
        *("--benchmark-only", "--benchmark-enable"),
        # To write its file, pytest-benchmark starts git and other programs, which would be counted too.
        *(() if call.iterations else (f"--benchmark-json={call.folder / _FILE}",)),
        *(_storage(call), *words(options.args)),
        *((*brief, f"--benchmark-min-rounds={rounds}") if call.effort is Effort.BRIEF else ()),
        *(("--perfflow-chosen",) if several else ()),
        *(call.chosen or _selection(options)),
    )
    return (Invocation(argv, env, stdout=_STDOUT),)


def iteration_counts(call: Call, seconds: float) -> tuple[int, ...]:
    """Return two numbers of calls; () for a whole suite."""
    return next((counts for most, counts in _COUNTS if seconds <= most), _FEWEST_COUNTED) if call.only else ()


def iterated(call: Call) -> str:
    """Return the number of calls. Raises ToolOutputError if it is another than asked for."""
    text = tool_files.first_text(call.folder, _ITERATED).strip()
    if text != str(call.iterations):
        raise ToolOutputError(f"{text or 'no'} calls of {call.iterations}: its test does not call the fixture once")
    return text


def parse(call: Call[PytestBenchmarkOptions], usage: Usage) -> Parsed:
    """Read the seconds per call of every round of every benchmark.

    Raises ToolOutputError if a test failed that is not one of several chosen ones, or if the file is missing or invalid
    or contains no benchmark.
    """
    printed = tool_files.last_bytes(call.folder, _STDOUT)
    failed = {}
    for line in _FAILED.finditer(printed):
        reason_printed = f"pytest reports: {tool_files.clean_name(line[0])[:200]}"
        # The reason follows the id, which may contain spaces.
        test = line[0].partition(" ")[2]
        name = next((name for name in call.chosen if test == name or test.startswith(f"{name} - ")), "")
        if not name or call.only:
            raise ToolOutputError(reason_printed)
        failed[name] = reason_printed
    reason = tool_files.why(f"{tool_files.last_bytes(call.folder)}\n{printed}", PYTEST)
    reason = reason or tool_files.last_words(call.folder) or "no benchmark ran"
    suite, groups = FORMAT.load(call.folder / _FILE, reason), call.options.groups
    chosen = [item for item in suite.benchmarks if not groups or item.group in groups]
    if groups and not chosen:
        raise ToolOutputError(f"none of the benchmarks that ran is in the groups of `groups`: {', '.join(groups)}")
    results = FORMAT.gather(suite.model_copy(update={"benchmarks": chosen}))
    if outside := next((name for name, _ in results.benchmarks if name.startswith("::")), ""):
        raise ToolOutputError(f"{outside[:80]} is in a file outside the step's folder: set `working-directory`")
    if results.summaries:
        raise ToolOutputError(f"{_FILE} contains no rounds of {next(iter(results.summaries))[0][:80]}")
    return replace(results.parsed(), failed=failed)


def listing(call: Call[PytestBenchmarkOptions]) -> Invocation:
    """Return the process that collects the suite and prints the node ids of its benchmarks."""
    options = call.options
    argv = (options.python, str(_LISTER), *_FIXED, "-q", _storage(call), *words(options.args), *_selection(options))
    env = {"PERFFLOW_GROUPS": json.dumps(options.groups)} if options.groups else {}
    return Invocation(argv, env)


def tracing(call: Call[PytestBenchmarkOptions]) -> Invocation:
    """Return the process that records what each benchmark executes and reads."""
    fixed = (*_FIXED, "-q", "--benchmark-only", "--benchmark-enable", _storage(call))
    return Invocation((call.options.python, str(_TRACER), str(call.folder / TRACE), *fixed, *words(call.options.args)))


def _storage(call: Call) -> str:
    """Return the argument that keeps pytest-benchmark from creating a folder .benchmarks in the working directory."""
    return f"--benchmark-storage=file://{call.folder / 'storage'}"


def _has_file(_options: PytestBenchmarkOptions, path: str, folder: Path) -> bool:
    return (folder / path.partition("::")[0]).exists()


def _selection(options: PytestBenchmarkOptions) -> tuple[str, ...]:
    paths = [options.paths] if isinstance(options.paths, str) else options.paths
    return (*(("-k", options.select) if options.select else ()), *(path for path in paths if path))


ADAPTER = Adapter(
    "pytest-benchmark",
    Role.MEASURE,
    invocations,
    parse,
    options=PytestBenchmarkOptions,
    metrics=builtin_metrics("time", "cpu", "uncontended"),
    suite=Suite(
        harness=r"(?:.*/)?pytest_benchmark/fixture\.py:(?:.*\.)?runner\b",
        listing=listing,
        parts=Parts("paths", _has_file),
        tracing=tracing,
        iteration_counts=iteration_counts,
        iterated=iterated,
        together=_TOGETHER,
    ),
    outputs=may_leave(_FILE),
)
