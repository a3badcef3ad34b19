"""``google-benchmark``: a program built with the C++ library Google Benchmark.

It exits 0 although a benchmark gave up with an error, or none matches, so its JSON file alone tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Usage
from perfflow.tools import pacing, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, may_leave
from perfflow.tools.cpp.google_benchmark_json import FORMAT

_FILE = "google-benchmark.json"
_LIST = "benchmarks.txt"
# Seconds without a unit: 1.7 knows no other form, and later versions take it with a remark.
_SHORT = "--benchmark_min_time=0.001"
_FEWEST, _MOST = 3, 20
# The library compiles filters as POSIX extended expressions, in which only these may be escaped.
_SPECIAL = re.compile(r"[.\[\\()*+?{|^$]")
# Less than a third of a clock tick: no loop does anything in that time.
_NOTHING = 1e-10


class Options(CommandOptions):
    """``with`` keys of ``uses: google-benchmark``."""

    filter: str = Field(default="", description="An extended regular expression of benchmarks to run; -EXPR: the rest.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program's benchmarks, or ``only`` one of them. Raises ToolOutputError for a shell's text."""
    out = (f"--benchmark_out={call.folder / _FILE}", "--benchmark_out_format=json")
    return (Invocation((*_program(call), *out, *_brief(call), *_filter(call))),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read every repetition, as ``google_benchmark_json`` reads a file.

    Raises ToolOutputError if there is no file, if it is nonsense, if no benchmark matched, or if all of them gave up.
    """
    found = FORMAT.read(call.folder / _FILE, _reason(call.folder))
    return found.parsed(*_optimised_away(found.benchmarks), single=True)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the program's benchmarks."""
    return Invocation((*_program(call), "--benchmark_list_tests=true", *_filter(call)), stdout=_LIST)


def _program(call: Call) -> tuple[str, ...]:
    if call.shell_text:
        raise ToolOutputError("perfflow adds flags to the program, which a shell's text hides: drop `shell: true`")
    return call.command


def _brief(call: Call) -> tuple[str, ...]:
    """Many short repetitions in place of a long one, of which percentiles can be taken."""
    if call.effort is not Effort.BRIEF:
        return ()
    return (_SHORT, f"--benchmark_repetitions={pacing.samples(call.pace, _FEWEST, _MOST)}")


def _filter(call: Call) -> tuple[str, ...]:
    if call.only:
        return (f"--benchmark_filter=^{_SPECIAL.sub(lambda found: chr(92) + found[0], call.only)}$",)
    text = cast(Options, call.options).filter
    return (f"--benchmark_filter={text}",) if text else ()


def _reason(folder: Path) -> str:
    """Return why there is no whole file, from what the program said last."""
    said = tool_files.last_words(folder)
    if said.startswith("Failed to match any benchmarks"):
        return "no benchmark matches the filter"
    reason = "the program is not of Google Benchmark, or was killed"
    return f"{reason}; it said last: {said}" if said else reason


def _optimised_away(values: Mapping[tuple[str, str], Sequence[float]]) -> Iterator[str]:
    """Name the benchmarks that measure an empty loop."""
    if empty := sorted(name for (name, metric), found in values.items() if metric == "time" and min(found) < _NOTHING):
        yield f"the compiler left nothing of {', '.join(empty)[:200]}: use benchmark::DoNotOptimize"


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
