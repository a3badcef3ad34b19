"""``google-benchmark``: run the benchmarks of a program that uses the C++ library Google Benchmark.

The program exits with 0 even if a benchmark reports an error or none matches, so success is read from its JSON file.
``FORMAT`` reads this file, of ``--benchmark_out``: one value per repetition. Its aggregates are ignored.
``bytes_per_second`` and ``items_per_second`` refer to the clock that the benchmark chose, CPU or real time. Counters of
the author become metrics of the same name.

Under a counting profiler, the program uses the clock of ``tools/drivers/stepping_clock.c``. The library runs batches of
iterations, the first of one, until a batch takes the least time. After a batch that takes more than a tenth of it, the
next has 1.4 times as many iterations as the least time needs. So the time of a batch fixes the factor between batches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import ConfigDict, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage, reading_of_process
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, Suite, may_leave
from perfflow.tools.parsed_output import Json, one_of_keys
from perfflow.tools.result_set import JsonFormat, ResultSet, ValueCollector, facts, label

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


class _GoogleBenchmarkEntry(Json):
    """A repetition, or an aggregate of several. A failed or skipped benchmark has no times."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1)]
    run_name: str = ""
    run_type: object = None
    iterations: object = None
    real_time: object = None
    cpu_time: object = None
    time_unit: Annotated[float, one_of_keys(_SECONDS)] = 1e-9
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
    benchmarks: list[_GoogleBenchmarkEntry]

    def seconds(self) -> dict[str, tuple[float, float]]:
        """Return the CPU time and the wall time (s) of all iterations of each benchmark, in all its repetitions.

        The wall time is infinite where the program measures it itself.
        """
        seconds: dict[str, tuple[float, float]] = {}
        for entry in self.benchmarks:
            cpu, wall = entry.cpu_time, entry.real_time
            if entry.is_aggregate or not isinstance(entry.iterations, int) or not isinstance(cpu, int | float):
                continue
            is_known = isinstance(wall, int | float) and _OWN_TIME not in entry.name
            once = entry.iterations * entry.time_unit
            computed, elapsed = seconds.get(label(entry.name), (0.0, 0.0))
            spent = once * wall if is_known and isinstance(wall, int | float) else math.inf
            seconds[label(entry.name)] = computed + once * cpu, elapsed + spent
        return seconds


def _gather(output: _Output) -> ResultSet:
    """Collect all repetitions. Raises ToolOutputError for invalid data, and if all benchmarks report errors."""
    samples, context = ValueCollector(), output.context
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


def _add(samples: ValueCollector, entry: _GoogleBenchmarkEntry) -> None:
    message = entry.error_message if entry.error_occurred else entry.skip_message
    reason = label(message) if isinstance(message, str) and message else "it gives no reason"
    if entry.error_occurred:
        samples.fail(entry.name, f"reports an error: {reason}")
        return
    if entry.skipped:
        samples.warnings.append(f"{label(entry.name)} was skipped: {reason}")
        return
    for metric, time in {"time": entry.real_time, "cpu": entry.cpu_time}.items():
        figure = tool_files.number(time, f"{metric} of {label(entry.name)}")
        samples.add(entry.name, metric, [figure], entry.time_unit)
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


_FILE = "google-benchmark.json"
# Seconds without a unit: the only form of 1.7. Later versions accept it with a warning.
_SHORT = "--benchmark_min_time=0.001"
_FEWEST, _MOST = 3, 20
# Seconds; a program starts fast, and the slowest benchmark determines the repetitions of all.
_TOGETHER = 0.02
# The library compiles filters as POSIX extended expressions, in which only these characters may be escaped.
_SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
# Seconds, less than a third of a clock cycle: the loop was optimized away.
_OPTIMIZED_AWAY = 1e-10
# Parts of the names of benchmarks that are timed by another clock than CPU time.
_BY_REAL_TIME = frozenset({"real_time", "manual_time"})

# Iterations in all batches -> the factor between batches, and their number.
_BATCHES: Mapping[int, tuple[int, int]] = {3: (2, 2), 13: (12, 2), 7: (2, 3), 157: (12, 3)}
_READINGS = "clock-readings"
# Both clocks are read at the start and at the end of a batch, so a batch takes two steps.
_OF_BATCH, _STEPS_OF_BATCH = 4, 2
_LEAST_SECONDS, _SAFETY = 1.0, 1.4
# Largest time in s of 157 iterations. Counting takes about 50 times as long.
_COUNTED_SECONDS = 0.05


class GoogleBenchmarkOptions(CommandOptions):
    """``with`` keys of ``uses: google-benchmark``."""

    filter: str = Field(
        default="", description="An extended regular expression that selects benchmarks; -EXPR excludes them."
    )


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program's benchmarks, or the chosen ones in its own order. Raises ToolOutputError for a shell command."""
    out = (f"--benchmark_out={call.folder / _FILE}", "--benchmark_out_format=json")
    if not call.iterations:
        return (Invocation((*call.program_words, *out, *_brief(call), *_filter(call))),)
    factor, batches = _BATCHES[call.iterations]
    step = round(_LEAST_SECONDS * _SAFETY / factor / _STEPS_OF_BATCH * 1e9)
    env = {
        "LD_PRELOAD": str(call.clock),
        "PERFFLOW_CLOCK_READINGS": str(call.folder / _READINGS),
        "PERFFLOW_CLOCK_CPU": "1",
        "PERFFLOW_CLOCK_EARLY": str(_OF_BATCH * (batches - 1)),
        "PERFFLOW_CLOCK_EARLY_NS": str(step),
    }
    once = (f"--benchmark_min_time={_LEAST_SECONDS:g}", "--benchmark_repetitions=1")
    return (Invocation((*call.program_words, *out, *once, *_filter(call)), env),)


def iteration_counts(call: Call, seconds: float) -> tuple[int, ...]:
    """Return two numbers of iterations; () without the stepping clock or without a benchmark."""
    if call.clock is None or not call.only:
        return ()
    return (7, 157) if 157 * seconds <= _COUNTED_SECONDS else (3, 13)


def iterated(call: Call) -> str:
    """Return how often the clock was read.

    Raises ToolOutputError if the last batch has another number of iterations than asked for, or if it was not the only
    one of its size.
    """
    factor, batches = _BATCHES[call.iterations]
    text = tool_files.first_text(call.folder, _READINGS).strip()
    last = [
        entry for entry in FORMAT.load(call.folder / _FILE, "it was not written").benchmarks if not entry.is_aggregate
    ]
    as_asked = len(last) == 1 and last[0].iterations == factor ** (batches - 1)
    if not as_asked or text != str(_OF_BATCH * batches):
        raise ToolOutputError(
            "its number of iterations cannot be fixed: it sets its iterations, repetitions, threads or least time "
            "itself, pauses its timer, or is linked statically"
        )
    return text


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every repetition from the file of ``--benchmark_out``.

    Raises ToolOutputError if the file is missing or invalid, if no benchmark matches, or if all of them failed.
    """
    last_line = tool_files.last_words(call.folder)
    reason = "the program does not use Google Benchmark or was killed" + (
        f"; its last output: {last_line}" if last_line else ""
    )
    if last_line.startswith("Failed to match any benchmarks"):
        reason = "no benchmark matches the filter"
    output = FORMAT.load(call.folder / _FILE, reason)
    results = FORMAT.gather(output)
    times = {name: min(values) for (name, metric), values in results.benchmarks.items() if metric == "time"}
    empty = ", ".join(sorted(name for name, least in times.items() if least < _OPTIMIZED_AWAY))[:200]
    warnings = (f"the compiler optimized away {empty}: use benchmark::DoNotOptimize",) if empty else ()
    parsed = results.parsed(*warnings, single=True)
    return replace(parsed, readings=(*parsed.readings, *_uncontended(call, results, output.seconds(), usage)))


def _uncontended(
    call: Call, results: ResultSet, seconds: Mapping[str, tuple[float, float]], usage: Usage
) -> Iterator[Reading]:
    """Yield an upper bound of the time without core waits of each benchmark, if the program has one thread.

    If another process shares the core, there is none for benchmarks whose rates are per second of real time.

    The library does not measure how long a benchmark waited for a core, but it is known of the process. ``seconds``:
    CPU time and wall time of all iterations of a benchmark.
    """
    for (name, metric), values in results.benchmarks.items():
        is_shared = call.core is not None and not _BY_REAL_TIME.isdisjoint(name.split("/"))
        known = metric == "cpu" and not is_shared
        factor = usage.uncontended_factor(*seconds.get(name, (0.0, 0.0))) if known else None
        if factor:
            yield replace(reading_of_process("uncontended", [value * factor for value in values], name), at_most=True)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the program's benchmarks."""
    return Invocation((*call.program_words, "--benchmark_list_tests=true", *_filter(call)))


def _brief(call: Call) -> tuple[str, ...]:
    """Return flags for many short repetitions instead of a long one, so that percentiles are available."""
    if call.effort is not Effort.BRIEF:
        return ()
    return (_SHORT, f"--benchmark_repetitions={adapter.samples_of_pace(call.pace, _FEWEST, _MOST)}")


def _filter(call: Call[GoogleBenchmarkOptions]) -> tuple[str, ...]:
    if call.chosen:
        names = "|".join(_SPECIAL.sub(lambda found: chr(92) + found[0], name) for name in call.chosen)
        return (f"--benchmark_filter=^({names})$",)
    text = call.options.filter
    return (f"--benchmark_filter={text}",) if text else ()


ADAPTER = Adapter(
    "google-benchmark",
    Role.MEASURE,
    invocations,
    parse,
    options=GoogleBenchmarkOptions,
    metrics=builtin_metrics("time", "cpu", "uncontended", "throughput", "rate", "allocs", "heap_peak"),
    suite=Suite(
        together=_TOGETHER,
        listing=listing,
        steps_clock=True,
        iteration_counts=iteration_counts,
        iterated=iterated,
        harness=r"benchmark::",
    ),
    counters=True,
    outputs=may_leave(_FILE),
)
