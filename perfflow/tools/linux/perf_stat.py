"""``perf-stat``: read counters of one run with ``perf stat``: the kernel's, and the processor's if it has a PMU.

The processor's ``instructions`` and ``cycles`` are noisy, unlike the counts of valgrind.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, leaves
from perfflow.tools.linux.perf import PERF
from perfflow.tools.parsed_output import Figure, Json

_FILE = "perf-stat.jsonl"
_METRIC_OF: Mapping[str, str] = {
    "duration_time": "time",
    "task-clock": "cpu",
    "user_time": "user",
    "system_time": "system",
    "page-faults": "page_faults",
    "context-switches": "context_switches",
    "cycles": "cycles",
    "instructions": "instructions",
    "cache-misses": "cache_misses",
    "branch-misses": "branch_misses",
}
# None of these is 0 for a process that ran, but some counters do not advance in virtual machines.
_NEVER_ZERO = frozenset({"duration_time", "task-clock", "page-faults", "cycles", "instructions"})
# perf writes `<not counted>` for a CPU time of 0, since it sets the counter's run time to 0 as well.
_ZERO_WHEN_UNCOUNTED = frozenset({"user_time", "system_time"})
_UNITS: Mapping[str, float] = {"": 1.0, "ns": 1e-9, "us": 1e-6, "msec": 1e-3, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_TIMES = frozenset({"duration_time", "task-clock", "user_time", "system_time"})
# `cycles:u`, and on processors with two kinds of core `cpu_core/cycles/u`.
_EVENT = re.compile(r"(?:(?P<pmu>\w+)/)?(?P<name>[\w-]+)(?:[:/](?P<modifiers>\w*))?\Z")
_MULTIPLEXED = 99.9
_LACKS = {
    "not supported": "this machine does not have the counters",
    "not counted": "perf could not count",
    "counted as 0": "perf counted 0, which is not valid, for",
}
# perf's ratios may be nan, and its numbers follow the user's locale.
_NOT_FINITE = re.compile(r":\s*-?(?:nan|inf)\b")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")


class _PerfStatLine(Json):
    """One line of perf, about one event. Newer versions also print derived figures, which have no value."""

    value: object = Field(None, alias="counter-value")
    event: object = ""
    unit: object = ""
    running: Figure = Field(100.0, alias="pcnt-running")


class _Counter(NamedTuple):
    """One counter of one kind of core; ``value`` in base units, or None with the reason in ``lack``."""

    value: float | None
    lack: str
    is_user_only: bool
    is_shared: bool


_Counters = Mapping[str, Collection[_Counter]]
"""Counters by event."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Count every event of one run."""
    program, file = call.program or "perf", str(call.folder / _FILE)
    return (Invocation((program, "stat", "-j", "-e", ",".join(_METRIC_OF), "-o", file, "--", *call.command)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the counters, in s and counts. A counter that this machine lacks gives a warning and no reading.

    Raises ToolOutputError if a line is missing or invalid, and if perf exits with 0 although a signal ended the command
    or the command's exit status is unknown.
    """
    _check_signal(call)
    counters = _read(call.folder / _FILE)
    # If a short command ends before perf waits for it, perf exits with 0 whatever the command's status was. Then both
    # times of wait4(2) are missing, which no real process has.
    if all(counter.lack == "not counted" for event in _ZERO_WHEN_UNCOUNTED for counter in counters[event]):
        raise ToolOutputError(
            "the command was so short that perf stat missed its exit status: give it more work, or use `uses: command`"
        )
    values = {event: _value(event, counters_of_event) for event, counters_of_event in counters.items()}
    readings = tuple(Reading(_METRIC_OF[event], value) for event, value in values.items() if value is not None)
    if not readings:
        raise ToolOutputError("perf stat counted nothing: the kernel does not give counters to this user")
    return Parsed(readings, warnings=tuple(_warnings(counters, values)))


def _check_signal(call: Call) -> None:
    """Raise ToolOutputError if a signal ended the command.

    perf stat then exits with 0 and only prints a line on stderr, such as ``"perf": Killed``.
    """
    start, _, name = tool_files.last_words(call.folder).rpartition(": ")
    names = {text: number for number in signal.valid_signals() if (text := signal.strsignal(number))}
    if call.command and start == tool_files.clean_name(call.command[0]) and name in names:
        raise ToolOutputError(f"the command was ended by signal {int(names[name])} ({name})")


def _read(path: Path) -> _Counters:
    """Return the counters of each event, several if the processor has several kinds of core.

    A decimal comma and ``nan``, which are not valid JSON, are replaced. Raises ToolOutputError for invalid lines.
    """
    counters: dict[str, dict[str, _Counter]] = {event: {} for event in _METRIC_OF}
    for line in tool_files.read_whole(path).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        content = tool_files.decoded(_DECIMAL_COMMA.sub(".", _NOT_FINITE.sub(": null", line)), path.name)
        counted = parsed_output.checked_json(_PerfStatLine, content, path.name)
        if counted.value is None:
            continue
        match = _EVENT.match(str(counted.event))
        if not match or match["name"] not in counters:
            raise ToolOutputError(f"{path.name} has an event that was not requested: {line[:80]!r}")
        of_event, pmu = counters[match["name"]], match["pmu"] or ""
        if pmu in of_event:
            raise ToolOutputError(f"{path.name} has {match['name']} twice")
        value, lack = _figure(match["name"], str(counted.value).strip(), str(counted.unit))
        of_event[pmu] = _Counter(value, lack, "u" in (match["modifiers"] or ""), counted.running < _MULTIPLEXED)
    if missing := [event for event, by_pmu in counters.items() if not by_pmu]:
        raise ToolOutputError(f"{path.name} lacks {', '.join(missing)}: the command did not start, or the file is cut")
    return {event: by_pmu.values() for event, by_pmu in counters.items()}


def _figure(event: str, text: str, unit: str) -> tuple[float | None, str]:
    """Return a value in base units, or None and the reason."""
    if text.startswith("<not "):
        return None, text.strip(" <>")
    if unit not in _UNITS or (event in _TIMES) != bool(unit):
        raise ToolOutputError(f"{_FILE}: {event} has the unit {unit[:20]!r}, which perfflow does not know")
    value = tool_files.number(tool_files.number_in(text, event) * _UNITS[unit], event)
    return (value, "") if value or event not in _NEVER_ZERO else (None, "counted as 0")


def _value(event: str, found: Collection[_Counter]) -> float | None:
    """Return one figure per event: the sum over kinds of core, None if nothing was counted."""
    # Context switches happen in the kernel, so counting user space alone gives 0.
    if event == "context-switches" and any(counter.is_user_only for counter in found):
        return None
    if values := [counter.value for counter in found if counter.value is not None]:
        return sum(values)
    uncounted = event in _ZERO_WHEN_UNCOUNTED and all(counter.lack == "not counted" for counter in found)
    return 0.0 if uncounted else None


def _warnings(counters: _Counters, values: Mapping[str, float | None]) -> Iterator[str]:
    """Yield warnings about missing counters, grouped by reason, extrapolated counters, and the kernel's part."""
    reasons: dict[str, list[str]] = {}
    for event, of_event in counters.items():
        if values[event] is None and (lacks := [counter.lack for counter in of_event if counter.lack]):
            reasons.setdefault(lacks[0], []).append(event)
    for reason, events in reasons.items():
        yield f"{_LACKS.get(reason, reason)} {', '.join(events)}"
    # Counters that took turns in the processor's registers.
    if shared := [
        event for event, of_event in counters.items() if any(each.is_shared and not each.lack for each in of_event)
    ]:
        yield f"perf extrapolated {', '.join(shared)}: the processor cannot count all events at once"
    if any(counter.is_user_only for of_event in counters.values() for counter in of_event):
        remedy = "set kernel.perf_event_paranoid to 1 or lower to include the kernel"
        yield f"perf counted in user space only, without context switches: {remedy}"


ADAPTER = Adapter(
    name="perf-stat",
    role=Role.MEASURE,
    program=PERF,
    metrics=builtin_metrics(*_METRIC_OF.values()),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
