"""What a libtest harness prints of its benchmarks: ``test NAME ... bench:  1,234.50 ns/iter (+/- 9.01) = 12 MB/s``.

It gives the median of its own samples alone, so a process is one value without a distribution. MB are 10^6 bytes. The
JSON form has the same figures, and needs an unstable option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Reading
from perfflow.tools import tool_files

_BENCH = re.compile(
    r"^test (?P<name>\S.*?) +\.\.\. bench: +(?P<time>[\d,.]+) ns/iter \(\+/- [\d,.]+\)"
    r"(?: = (?P<rate>[\d,]+) MB/s)?\s*$",
    re.MULTILINE,
)
_FAILED = re.compile(r"^test (?P<name>\S.*?) +\.\.\. FAILED", re.MULTILINE)
_IGNORED = re.compile(r"^test (?P<name>\S.*?) +\.\.\. ignored\b", re.MULTILINE)
_RESULT = re.compile(r"^test result: (?P<what>\w+)\. .*?(?P<measured>\d+) measured;.*\n?", re.MULTILINE)


def readings(text: str) -> Iterator[Reading]:
    """Yield seconds per iteration, and bytes per second where a benchmark says its bytes.

    Raises ToolOutputError where a benchmark failed, or the output has no end, or not all that was measured.
    """
    if failed := _FAILED.search(text):
        raise ToolOutputError(f"benchmark {tool_files.clean_name(failed['name'])} failed")
    result = _RESULT.search(text)
    if not result or result["what"] != "ok":
        raise ToolOutputError("the output of the benchmarks is cut short")
    lines = list(_BENCH.finditer(text))
    if str(len(lines)) != result["measured"]:
        raise ToolOutputError(f"{result['measured'][:20]} benchmarks were measured, and {len(lines)} can be read")
    for found in lines:
        name = tool_files.clean_name(found["name"])
        # An empty loop is printed as 0, or 0.00.
        nanoseconds = tool_files.number_in(found["time"].replace(",", ""), f"time of {name[:80]}")
        yield Reading("time", tool_files.positive(nanoseconds, f"time of {name[:80]}") * 1e-9, name)
        if found["rate"]:
            megabytes = tool_files.number_in(found["rate"].replace(",", ""), f"MB/s of {name[:80]}")
            yield Reading("throughput", megabytes * 1e6, name)


def ignored(text: str) -> frozenset[str]:
    """Return the names of the benchmarks that are listed and not run, by ``#[ignore]``."""
    return frozenset(tool_files.clean_name(found["name"]) for found in _IGNORED.finditer(text))
