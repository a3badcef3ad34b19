"""``perf-stat``: counters of one run by ``perf stat``; the kernel's own everywhere, the processor's where it has a PMU.

The processor's ``instructions`` and ``cycles`` carry noise, other than the simulated ones of valgrind.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools import tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, leaves
from perfflow.tools.linux.perf_samples import PERF
from perfflow.tools.tool_json import Figure, Json

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
# None of these is 0 for a process that ran, but virtual machines let some counters stand still.
_NEVER_ZERO = frozenset({"duration_time", "task-clock", "page-faults", "cycles", "instructions"})
# perf writes `<not counted>` for a share of CPU time that is 0, since it gives its run time as 0 as well.
_ZERO_WHEN_UNCOUNTED = frozenset({"user_time", "system_time"})
_UNITS: Mapping[str, float] = {"": 1.0, "ns": 1e-9, "us": 1e-6, "msec": 1e-3, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_TIMES = frozenset({"duration_time", "task-clock", "user_time", "system_time"})
# `cycles:u`, and on processors with two kinds of core `cpu_core/cycles/u`.
_EVENT = re.compile(r"(?:(?P<pmu>\w+)/)?(?P<name>[\w-]+)(?:[:/](?P<modifiers>\w*))?\Z")
_MULTIPLEXED = 99.9
_LACKS = {
    "not supported": "this machine does not have the counters",
    "not counted": "perf could not count",
    "counted as 0": "perf counted 0, which cannot be:",
}
# What perf prints as a ratio may be nan, and numbers follow the user's locale.
_NOT_FINITE = re.compile(r":\s*-?(?:nan|inf)\b")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")


class _Line(Json):
    """What perf prints of one event; newer versions print derived figures as well, which have no value."""

    value: object = Field(None, alias="counter-value")
    event: object = ""
    unit: object = ""
    running: Figure = Field(100.0, alias="pcnt-running")


class _Counter(NamedTuple):
    """One counter of one kind of core; ``value`` in base units, None where perf has none, ``lack`` says why."""

    value: float | None
    lack: str
    is_user_only: bool
    is_shared: bool


_Counters = Mapping[str, Collection[_Counter]]
"""Those of each event."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Count every event of one run."""
    program, file = call.program or "perf", str(call.folder / _FILE)
    return (Invocation((program, "stat", "-j", "-e", ",".join(_METRIC_OF), "-o", file, "--", *call.command)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the counters, in s and counts; a counter that this machine lacks gives a warning and no reading.

    Raises ToolOutputError if a line is missing or nonsense, and where perf exits 0 although a signal ended the command,
    or although it does not know how the command ended.
    """
    _check_signal(call)
    counters = _read(call.folder / _FILE)
    # When a short command ends before perf waits for it, perf exits 0 whatever the command's status was. The times of
    # wait4(2) are then missing, both of them; no process has neither.
    if all(counter.lack == "not counted" for event in _ZERO_WHEN_UNCOUNTED for counter in counters[event]):
        raise ToolOutputError(
            "perf stat missed the exit status of so short a command: give it more work, or use `uses: command`"
        )
    values = {event: _value(event, found) for event, found in counters.items()}
    readings = tuple(Reading(_METRIC_OF[event], value) for event, value in values.items() if value is not None)
    if not readings:
        raise ToolOutputError("perf stat counted nothing: this kernel gives no counters to this user")
    return Parsed(readings, warnings=tuple(_warnings(counters, values)))


def _check_signal(call: Call) -> None:
    """Raise ToolOutputError if a signal ended the command.

    perf stat exits 0 then and only says so on stderr, as ``"perf": Killed``.
    """
    start, _, name = tool_files.last_words(call.folder).rpartition(": ")
    names = {text: number for number in signal.valid_signals() if (text := signal.strsignal(number))}
    if call.command and start == tool_files.clean_name(call.command[0]) and name in names:
        raise ToolOutputError(f"the command was ended by signal {int(names[name])} ({name})")


def _read(path: Path) -> _Counters:
    """Return the counters of each event; several for the kinds of core of one processor.

    A decimal comma and ``nan``, which are no JSON, are put right. Raises ToolOutputError for what is none of perf's.
    """
    counters: dict[str, dict[str, _Counter]] = {event: {} for event in _METRIC_OF}
    for line in tool_files.read_whole(path).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        content = tool_files.decoded(_DECIMAL_COMMA.sub(".", _NOT_FINITE.sub(": null", line)), path.name)
        told = tool_json.checked(_Line, content, path.name)
        if told.value is None:
            continue
        match = _EVENT.match(str(told.event))
        if not match or match["name"] not in counters:
            raise ToolOutputError(f"{path.name} holds an event that was not asked for: {line[:80]!r}")
        of_event, pmu = counters[match["name"]], match["pmu"] or ""
        if pmu in of_event:
            raise ToolOutputError(f"{path.name} holds {match['name']} twice")
        value, lack = _figure(match["name"], str(told.value).strip(), str(told.unit))
        of_event[pmu] = _Counter(value, lack, "u" in (match["modifiers"] or ""), told.running < _MULTIPLEXED)
    if missing := [event for event, found in counters.items() if not found]:
        raise ToolOutputError(f"{path.name} lacks {', '.join(missing)}: the command did not start, or the file is cut")
    return {event: found.values() for event, found in counters.items()}


def _figure(event: str, text: str, unit: str) -> tuple[float | None, str]:
    """Return a value in base units, or why there is none."""
    if text.startswith("<not "):
        return None, text.strip(" <>")
    if unit not in _UNITS or (event in _TIMES) != bool(unit):
        raise ToolOutputError(f"{_FILE}: {event} has the unit {unit[:20]!r}, which perfflow does not know")
    value = tool_files.number(tool_files.number_in(text, event) * _UNITS[unit], event)
    return (value, "") if value or event not in _NEVER_ZERO else (None, "counted as 0")


def _value(event: str, found: Collection[_Counter]) -> float | None:
    """Return one figure per event: the sum over kinds of core, None where nothing was counted."""
    # The kernel switches, so in user space alone there are never any.
    if event == "context-switches" and any(counter.is_user_only for counter in found):
        return None
    if values := [counter.value for counter in found if counter.value is not None]:
        return sum(values)
    uncounted = event in _ZERO_WHEN_UNCOUNTED and all(counter.lack == "not counted" for counter in found)
    return 0.0 if uncounted else None


def _warnings(counters: _Counters, values: Mapping[str, float | None]) -> Iterator[str]:
    """Say which counters have no value, apart by reason, which are extrapolated, and what was not looked at."""
    reasons: dict[str, list[str]] = {}
    for event, found in counters.items():
        if values[event] is None and (lacks := [counter.lack for counter in found if counter.lack]):
            reasons.setdefault(lacks[0], []).append(event)
    for reason, events in reasons.items():
        yield f"{_LACKS.get(reason, reason)} {', '.join(events)}"
    # Counters that shared the processor's registers.
    if shared := [
        event for event, found in counters.items() if any(each.is_shared and not each.lack for each in found)
    ]:
        yield f"perf extrapolated {', '.join(shared)}: more counters than the processor has"
    if any(counter.is_user_only for found in counters.values() for counter in found):
        remedy = "set kernel.perf_event_paranoid to 1 or lower to see the kernel's part"
        yield f"perf counted in user space only, and no context switches: {remedy}"


ADAPTER = Adapter(
    name="perf-stat",
    role=Role.MEASURE,
    program=PERF,
    metrics=of_perfflow(*_METRIC_OF.values()),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
