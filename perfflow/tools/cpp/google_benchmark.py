"""``google-benchmark``: a program built with the C++ library Google Benchmark.

It exits 0 although a benchmark gave up with an error, or none matches, so its JSON file alone tells.
"""

from __future__ import annotations

import re

from pydantic import Field

from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Usage
from perfflow.tools import pacing, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, may_leave
from perfflow.tools.cpp.google_benchmark_json import FORMAT

_FILE = "google-benchmark.json"
# Seconds without a unit: 1.7 knows no other form, and later versions take it with a remark.
_SHORT = "--benchmark_min_time=0.001"
_FEWEST, _MOST = 3, 20
# The library compiles filters as POSIX extended expressions, in which only these may be escaped.
_SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
# Less than a third of a clock tick: no loop does anything in that time.
_NOTHING = 1e-10


class Options(CommandOptions):
    """``with`` keys of ``uses: google-benchmark``."""

    filter: str = Field(
        default="", description="An extended regular expression of benchmarks to run; -EXPR runs all others."
    )


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program's benchmarks, or ``only`` one of them. Raises ToolOutputError for a shell's text."""
    out = (f"--benchmark_out={call.folder / _FILE}", "--benchmark_out_format=json")
    return (Invocation((*call.program_words, *out, *_brief(call), *_filter(call))),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every repetition, as ``google_benchmark_json`` reads a file.

    Raises ToolOutputError if there is no file, if it is nonsense, if no benchmark matched, or if all of them gave up.
    """
    said = tool_files.last_words(call.folder)
    reason = "the program is not of Google Benchmark, or was killed" + (f"; it said last: {said}" if said else "")
    if said.startswith("Failed to match any benchmarks"):
        reason = "no benchmark matches the filter"
    found = FORMAT.read(call.folder / _FILE, reason)
    times = {name: min(values) for (name, metric), values in found.benchmarks.items() if metric == "time"}
    empty = ", ".join(sorted(name for name, least in times.items() if least < _NOTHING))[:200]
    warnings = (f"the compiler left nothing of {empty}: use benchmark::DoNotOptimize",) if empty else ()
    return found.parsed(*warnings, single=True)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the program's benchmarks."""
    return Invocation((*call.program_words, "--benchmark_list_tests=true", *_filter(call)))


def _brief(call: Call) -> tuple[str, ...]:
    """Many short repetitions in place of a long one, of which percentiles can be taken."""
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
    metrics=of_perfflow("time", "cpu", "throughput", "rate", "allocs", "heap_peak"),
    suite=True,
    counters=True,
    listing=listing,
    outputs=may_leave(_FILE),
)
