"""``catch2``: run the ``BENCHMARK`` blocks of a program that uses the C++ library Catch2, version 2.13 or 3.

Catch2 lists and selects test cases, not the benchmarks in them. So they are listed by a short run, and the test cases
that have the chosen benchmarks run. ``drivers/catch2_names.py`` names them by the XML report: test case, sections and
benchmark. The report has the mean of a benchmark's samples; ``--benchmark-no-analysis`` leaves out the bootstrap of
100,000 resamples, which takes longer than the samples.

Catch2 times by the steady clock. Benchmarks that only compute in one thread are timed by CPU time, with
``tools/drivers/cpu_clock.c``: the mean of elapsed times contains the time slices of other programs. Catch2 reads the
clock for a second or more before the first benchmark; this clock lets it be done sooner.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as ET

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools import adapter, cpu_clock, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, Suite, may_leave
from perfflow.tools.cpp.drivers.catch2_names import BETWEEN, benchmarks
from perfflow.tools.cpu_clock import ClockLog

_NAMES = python_command.driver_command("catch2_names.py", __file__)
_REPORT, _CLOCK_LOG = "catch2.xml", "clock"
_ROOTS = ("Catch", "Catch2TestRun")
# With the clock of CPU time, a sample takes several ms: 1000 times what Catch2 takes for the clock's resolution.
_FEWEST, _MOST, _HASTE = 3, 5, 10
_TOGETHER = 0.02
_NANO = 1e-9
# How long the benchmark runs before its samples, in ms. Under a profiler it runs mostly then.
_WARM_UP, _WARM_UP_OF_PROFILE = 10, 1000
# Characters with a meaning in a test specification.
_SPECIAL = re.compile(r"[\\,\[\]\"~]")
# Through these functions Catch2 calls a benchmark; the rest of it reads the clock or computes statistics.
_CALLS = r"(?:void )?Catch::Benchmark::(?:Detail::BenchmarkFunction::|Chronometer::)"
# The status is the number of failed assertions, or another one that stands for a failure. The report says which.
_STATUSES = frozenset(range(256))


class Catch2Options(CommandOptions):
    """``with`` keys of ``uses: catch2``."""

    filter: str = Field(
        default="", description="Test cases to run, as Catch2 selects them: names or tags, such as `[!benchmark]`."
    )


def invocations(call: Call[Catch2Options]) -> tuple[Invocation, ...]:
    """Run the test cases of the chosen benchmarks. Raises ToolOutputError for a shell command."""
    return (_invocation(call, _length(call)),)


def _invocation(call: Call[Catch2Options], length: tuple[int, int]) -> Invocation:
    samples, warm_up = length
    report = ("--reporter", "xml", "--out", str(call.folder / _REPORT), "--order", "decl")
    how = ("--benchmark-no-analysis", f"--benchmark-samples={samples}", f"--benchmark-warmup-time={warm_up}")
    env = cpu_clock.environment(call.cpu_clock, call.folder / _CLOCK_LOG, _HASTE) if call.cpu_clock else {}
    chosen = _of_test_cases(call.chosen) or call.options.filter
    return Invocation((*call.program_words, *report, *how, *((chosen,) if chosen else ())), env)


def _length(call: Call) -> tuple[int, int]:
    """Return the number of samples, and the time before them (ms)."""
    if call.effort is Effort.SAMPLED:
        return 1, _WARM_UP_OF_PROFILE
    if call.effort is Effort.BRIEF:
        return adapter.samples_of_pace(call.pace, _FEWEST, _MOST), _WARM_UP
    return _MOST, _WARM_UP_OF_PROFILE // 10


def _of_test_cases(chosen: tuple[str, ...]) -> str:
    """Return a specification of the test cases that may have the benchmarks: any part of a name before the last."""
    paths = (name.split(BETWEEN) for name in chosen)
    cases = dict.fromkeys(BETWEEN.join(path[:end]) for path in paths for end in range(1, max(2, len(path))))
    return ",".join(_SPECIAL.sub(lambda special: f"\\{special[0]}", case) for case in cases)


def listing(call: Call[Catch2Options]) -> Invocation:
    """Return the process that prints the names of the benchmarks, which it runs once."""
    run = _invocation(call, (1, 1))
    return replace(run, argv=(*_NAMES, str(call.folder / _REPORT), *run.argv))


def parse(call: Call[Catch2Options], usage: Usage) -> Parsed:
    """Read the mean of each benchmark's samples. The benchmarks of a test case that failed have failed.

    With ``call.cpu_clock`` it is CPU time, and the elapsed time is known from its log. Raises ToolOutputError if the
    report is missing, cut or has no benchmark, and if two benchmarks have the same name.
    """
    failed: dict[str, str] = {}
    readings = list(_readings(_report(call), failed))
    names = [reading.benchmark for reading in readings]
    if len(names) != len(set(names)):
        raise ToolOutputError(
            f"two benchmarks are called {max(names, key=names.count)!r}: rename one of them; what is outside the "
            "sections of a test case runs once for each of them"
        )
    if missing := [name for name in call.chosen if tool_files.clean_name(name) not in {*names, *failed}]:
        raise ToolOutputError(f"the benchmark {missing[0][:80]!r} left no result")
    if not readings and failed:
        name, reason = next(iter(failed.items()))
        raise ToolOutputError(f"{name} {reason}")
    if not readings:
        raise ToolOutputError(
            "no benchmark ran: hidden test cases need a `filter`, such as `[!benchmark]`, and Catch2 2 needs the "
            "definition CATCH_CONFIG_ENABLE_BENCHMARKING"
        )
    log = ClockLog.read(call.folder / _CLOCK_LOG) if call.cpu_clock else None
    if log:
        readings = list(cpu_clock.of_both_clocks(readings, log, usage, shares_core=call.core is not None))
    return Parsed(tuple(readings), failed=failed)


def _report(call: Call) -> ET.Element:
    said = tool_files.last_words(call.folder)
    reason = f"the program does not use Catch2 or was killed{f'; its last output: {said}' if said else ''}"
    text = tool_files.read_text(call.folder / _REPORT, reason)
    try:
        report = ET.fromstring(text)  # noqa: S314 (of the user's own program)
    except ET.ParseError as error:
        raise ToolOutputError(f"{_REPORT} is cut short or not valid XML") from error
    if report.tag not in _ROOTS:
        raise ToolOutputError(f"{_REPORT} is not a report of Catch2")
    return report


def _readings(report: ET.Element, failed: dict[str, str]) -> Iterator[Reading]:
    for case in report.iter("TestCase"):
        reason = _failure(case)
        for found, result in benchmarks(case, (case.get("name", "").strip(),)):
            name = tool_files.clean_name(found)
            mean, wrong = result.find("mean"), result.find("failed")
            if reason or mean is None:
                told = wrong.get("message", "") if wrong is not None else reason
                failed[name] = f"failed: {tool_files.clean_name(told)[:200] if told else 'it has no samples'}"
                continue
            nanoseconds = tool_files.number_in(mean.get("value", ""), f"time of {name[:80]}")
            yield Reading("time", tool_files.positive(nanoseconds, f"time of {name[:80]}") * _NANO, name)


def _failure(case: ET.Element) -> str:
    """Return why a test case failed: the first assertion or exception; '' if it passed. Raises ToolOutputError."""
    result = case.find("OverallResult")
    if result is None:
        raise ToolOutputError(f"{_REPORT} is cut short")
    if result.get("success") == "true":
        return ""
    for element in case.iter():
        told = element.findtext("Original") if element.tag == "Expression" else element.text
        if element.tag == "Expression" and element.get("success") == "true":
            continue
        if element.tag in ("Expression", "Exception", "Failure", "FatalErrorCondition"):
            place = f"{element.get('filename', '?').rpartition('/')[2]}:{element.get('line', '?')}"
            return tool_files.clean_name(f"{place}: {' '.join((told or '').split())}")[:200]
    return "its test case failed"


ADAPTER = Adapter(
    "catch2",
    Role.MEASURE,
    invocations,
    parse,
    options=Catch2Options,
    metrics=builtin_metrics("time", "cpu", "uncontended"),
    suite=Suite(listing=listing, together=_TOGETHER, harness=_CALLS, times_by_clock=True),
    outputs=may_leave(_REPORT),
    good_statuses=_STATUSES,
)
