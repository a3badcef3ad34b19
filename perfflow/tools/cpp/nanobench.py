"""``nanobench``: run a program with benchmarks of the C++ library nanobench, and read the tables that it prints.

The library has no command line: a process measures all benchmarks of the program, each for a time of its own choice.
A table has the median of a benchmark's epochs, and its reciprocal. ``drivers/nanobench_names.py`` reads its rows.

nanobench times by the steady clock. Benchmarks that only compute in one thread are timed by CPU time, with
``tools/drivers/cpu_clock.c``. Under a profiler, the variable NANOBENCH_ENDLESS lets one benchmark run until it is
ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools import cpu_clock, python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, Suite, may_leave
from perfflow.tools.cpp.drivers.nanobench_names import BETWEEN, NanobenchRow, rows
from perfflow.tools.cpu_clock import ClockLog

_NAMES = python_command.driver_command("nanobench_names.py", __file__)
_PRINTED, _CLOCK_LOG, _ENDLESS = "nanobench.txt", "clock", "endless"
# Runs a program until 2 s after its endless benchmark began, or for twice as long as the benchmarks before it took.
_UNTIL_ENDLESS = """
rm -f "$0"; "$@" 2> "$0" & pid=$!; left=20
until grep -q NANOBENCH_ENDLESS "$0" || ! kill -0 $pid; do sleep 0.1; left=$((left + 2)); done 2> /dev/null
while [ $left -gt 0 ] && kill -0 $pid 2> /dev/null; do sleep 0.1; left=$((left - 1)); done
kill $pid 2> /dev/null; wait $pid; status=$?; [ $status -gt 128 ] || exit $status
"""
_CALLS = r"(?:ankerl::nanobench::Bench& )?ankerl::nanobench::Bench::run\b"
# Both figures of a row have two decimals.
_HALF_A_DIGIT = 0.00501


def invocations(call: Call[CommandOptions]) -> tuple[Invocation, ...]:
    """Run the program with all its benchmarks; under a sampling profiler, the chosen one until it is ended."""
    if call.effort is Effort.SAMPLED and call.only:
        name = call.only.partition(BETWEEN)[2] or call.only
        words = ("/bin/sh", "-c", _UNTIL_ENDLESS, str(call.folder / _ENDLESS), *call.command)
        return (Invocation(words, {"NANOBENCH_ENDLESS": name}),)
    env = cpu_clock.environment(call.cpu_clock, call.folder / _CLOCK_LOG) if call.cpu_clock else {}
    return (Invocation(call.command, env, stdout=_PRINTED),)


def listing(call: Call) -> Invocation:
    """Return the process that prints the names of the benchmarks, which it runs."""
    return Invocation((*_NAMES, *call.command))


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the median of each benchmark's epochs.

    With ``call.cpu_clock`` it is CPU time, and the elapsed time is known from its log. Raises ToolOutputError if the
    output has no table, if a row is damaged, and if two benchmarks have the same name.
    """
    remedy = "the program prints no table of nanobench: `output(...)` of its Bench must not redirect it"
    found, failed = list(rows(tool_files.read_whole(call.folder / _PRINTED, remedy))), dict[str, str]()
    readings = list(_readings(found, failed))
    names = [row.name for row in found]
    if len(names) != len(set(names)):
        twice = max(names, key=names.count)
        raise ToolOutputError(f"two benchmarks are called {twice!r}: rename one, or give its Bench a title")
    if not found:
        raise ToolOutputError(remedy)
    if not readings:
        name, reason = next(iter(failed.items()))
        raise ToolOutputError(f"{name} {reason}")
    log = ClockLog.read(call.folder / _CLOCK_LOG) if call.cpu_clock else None
    if log:
        readings = list(cpu_clock.of_both_clocks(readings, log, usage, shares_core=call.core is not None))
    if missing := [name for name in call.chosen if tool_files.clean_name(name) not in {*names, *failed}]:
        raise ToolOutputError(f"the benchmark {missing[0][:80]!r} left no result")
    return Parsed(tuple(readings), failed=failed)


def _readings(found: list[NanobenchRow], failed: dict[str, str]) -> Iterator[Reading]:
    for row in found:
        if not row.name:
            raise ToolOutputError(f"{_PRINTED} has a damaged row")
        name = tool_files.clean_name(row.name)
        if row.why:
            failed[name] = f"failed: {tool_files.clean_name(row.why)[:200]}"
            continue
        yield Reading("time", _seconds(row, f"time of {name[:80]}"), name)


def _seconds(row: NanobenchRow, what: str) -> float:
    """Return the time of a row from the one of its two figures that has more digits.

    Raises ToolOutputError if they contradict each other.
    """
    time = tool_files.number_in(row.time.replace(",", ""), what)
    rate = tool_files.number_in(row.rate.replace(",", ""), f"rate of {row.name[:80]}") if row.rate else 0.0
    if row.rate:
        least, most = (
            max(0.0, time + half) * max(0.0, rate + half) * row.unit for half in (-_HALF_A_DIGIT, _HALF_A_DIGIT)
        )
        if not least <= 1 <= most:
            raise ToolOutputError(f"{what} contradicts its rate: {row.time.strip()[:30]} and {row.rate.strip()[:30]}")
    return 1 / rate if rate > time else tool_files.positive(time, what) * row.unit


ADAPTER = Adapter(
    "nanobench",
    Role.MEASURE,
    invocations,
    parse,
    metrics=builtin_metrics("time", "cpu", "uncontended"),
    suite=Suite(listing=listing, together=math.inf, harness=_CALLS, times_by_clock=True),
    outputs=may_leave(_PRINTED),
)
