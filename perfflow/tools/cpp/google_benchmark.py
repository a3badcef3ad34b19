"""``google-benchmark``: run the benchmarks of a program that uses the C++ library Google Benchmark.

The program exits with 0 even if a benchmark reports an error or none matches, so success is read from its JSON file.
"""

from __future__ import annotations

import re

from pydantic import Field

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import pacing, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, may_leave
from perfflow.tools.cpp.google_benchmark_json import FORMAT

_FILE = "google-benchmark.json"
# Seconds without a unit: the only form of 1.7. Later versions accept it with a warning.
_SHORT = "--benchmark_min_time=0.001"
_FEWEST, _MOST = 3, 20
# The library compiles filters as POSIX extended expressions, in which only these characters may be escaped.
_SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
# Seconds, less than a third of a clock cycle: the loop was optimized away.
_OPTIMIZED_AWAY = 1e-10


class Options(CommandOptions):
    """``with`` keys of ``uses: google-benchmark``."""

    filter: str = Field(
        default="", description="An extended regular expression that selects benchmarks; -EXPR excludes them."
    )


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program's benchmarks, or ``only`` one of them. Raises ToolOutputError for a shell command."""
    out = (f"--benchmark_out={call.folder / _FILE}", "--benchmark_out_format=json")
    return (Invocation((*call.program_words, *out, *_brief(call), *_filter(call))),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every repetition, as ``google_benchmark_json`` reads a file.

    Raises ToolOutputError if the file is missing or invalid, if no benchmark matches, or if all of them failed.
    """
    said = tool_files.last_words(call.folder)
    reason = "the program does not use Google Benchmark or was killed" + (f"; its last output: {said}" if said else "")
    if said.startswith("Failed to match any benchmarks"):
        reason = "no benchmark matches the filter"
    found = FORMAT.read(call.folder / _FILE, reason)
    times = {name: min(values) for (name, metric), values in found.benchmarks.items() if metric == "time"}
    empty = ", ".join(sorted(name for name, least in times.items() if least < _OPTIMIZED_AWAY))[:200]
    warnings = (f"the compiler optimized away {empty}: use benchmark::DoNotOptimize",) if empty else ()
    return found.parsed(*warnings, single=True)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the program's benchmarks."""
    return Invocation((*call.program_words, "--benchmark_list_tests=true", *_filter(call)))


def _brief(call: Call) -> tuple[str, ...]:
    """Return flags for many short repetitions instead of a long one, so that percentiles are available."""
    if call.effort is not Effort.BRIEF:
        return ()
    return (_SHORT, f"--benchmark_repetitions={pacing.samples(call.pace, _FEWEST, _MOST)}")


def _filter(call: Call[Options]) -> tuple[str, ...]:
    if call.only:
        return (f"--benchmark_filter=^{_SPECIAL.sub(lambda found: chr(92) + found[0], call.only)}$",)
    text = call.options.filter
    return (f"--benchmark_filter={text}",) if text else ()


ADAPTER = Adapter(
    "google-benchmark",
    Role.MEASURE,
    invocations,
    parse,
    options=Options,
    metrics=builtin_metrics("time", "cpu", "throughput", "rate", "allocs", "heap_peak"),
    suite=True,
    counters=True,
    listing=listing,
    outputs=may_leave(_FILE),
)
