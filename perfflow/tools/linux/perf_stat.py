"""``perf-stat``: counters of one run by ``perf stat``; the kernel's own everywhere, the processor's where it has a PMU.

The processor's ``instructions`` and ``cycles`` carry noise, other than the simulated ones of valgrind.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role
from perfflow.tools.linux.perf_stacks import PERF

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


@dataclass(frozen=True, slots=True)
class _Counter:
    """One line of perf's file; ``value`` in base units, None where perf has none, ``lack`` says why."""

    event: str
    pmu: str
    user_only: bool
    value: float | None
    lack: str
    running: float


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Count every event of one run."""
    program, file = call.program or "perf", str(call.folder / _FILE)
    return (Invocation((program, "stat", "-j", "-e", ",".join(_METRIC_OF), "-o", file, "--", *call.command)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The file of JSON lines."""
    return (call.folder / _FILE,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the counters, in s and counts; a counter that this machine lacks gives a warning and no reading.

    Raises ToolOutputError if a line is missing or nonsense, and where perf exits 0 although a signal ended the command,
    or although it does not know how the command ended.
    """
    _check_signal(call)
    counters = _read(call.folder / _FILE)
    _check_waited(counters)
    readings = tuple(
        Reading(metric, value) for event, metric in _METRIC_OF.items() if (value := _value(event, counters)) is not None
    )
    if not readings:
        raise ToolOutputError("perf stat counted nothing: this kernel gives no counters to this user")
    return Parsed(readings, warnings=tuple(_warnings(counters)))


def _check_signal(call: Call) -> None:
    """Raise ToolOutputError if a signal ended the command.

    perf stat exits 0 then and only says so on stderr, as ``"perf": Killed``.
    """
    said = tool_files.last_words(call.folder)
    program = tool_files.clean_name(call.command[0]) if call.command else ""
    names = {text: number for number in signal.valid_signals() if (text := signal.strsignal(number))}
    start, _, name = said.rpartition(": ")
    if program and start == program and name in names:
        raise ToolOutputError(f"the command was ended by signal {int(names[name])} ({name})")


def _check_waited(counters: Mapping[str, list[_Counter]]) -> None:
    """Raise ToolOutputError if perf stat did not see the command end.

    When a short command ends before perf waits for it, perf exits 0 whatever the command's status was. The times of
    wait4(2) are then missing, both of them; no process has neither.
    """
    if all(counter.lack == "not counted" for event in _ZERO_WHEN_UNCOUNTED for counter in counters[event]):
        raise ToolOutputError(
            "perf stat missed the exit status of so short a command: give it more work, or use `uses: command`"
        )


def _read(path: Path) -> dict[str, list[_Counter]]:
    """Return the lines of each event; several for the kinds of core of one processor."""
    counters: dict[str, list[_Counter]] = {event: [] for event in _METRIC_OF}
    lines = tool_files.read_whole(path).splitlines()
    for counter in filter(None, (_counter(line) for line in lines if line.strip() and not line.startswith("#"))):
        if any(known.pmu == counter.pmu for known in counters[counter.event]):
            raise ToolOutputError(f"{path.name} holds {counter.event} twice")
        counters[counter.event].append(counter)
    if missing := [event for event, found in counters.items() if not found]:
        raise ToolOutputError(f"{path.name} lacks {', '.join(missing)}: the command did not start, or the file is cut")
    return counters


def _counter(line: str) -> _Counter | None:
    """Read one line; None for the derived figures that newer versions of perf write between the counters.

    A decimal comma and ``nan``, which are no JSON, are put right. Raises ToolOutputError for what is none of perf's.
    """
    try:
        fields = json.loads(_DECIMAL_COMMA.sub(".", _NOT_FINITE.sub(": null", line)))
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{_FILE} is cut short or no JSON: {line[:80]!r}") from error
    if not isinstance(fields, dict):
        raise ToolOutputError(f"{_FILE} holds a line that is no object: {line[:80]!r}")
    if "counter-value" not in fields:
        return None
    match = _EVENT.match(str(fields.get("event", "")))
    if not match or match["name"] not in _METRIC_OF:
        raise ToolOutputError(f"{_FILE} holds an event that was not asked for: {line[:80]!r}")
    text, event, unit = str(fields["counter-value"]).strip(), match["name"], str(fields.get("unit", ""))
    lack, value = text.strip(" <>") if text.startswith("<") else "", None
    if lack and not lack.startswith("not "):
        raise ToolOutputError(f"{_FILE}: {event} is {text[:60]!r}")
    if not lack:
        if unit not in _UNITS or (event in _TIMES) != bool(unit):
            raise ToolOutputError(f"{_FILE}: {event} has the unit {unit[:20]!r}, which perfflow does not know")
        value = tool_files.number(tool_files.number_in(text, event) * _UNITS[unit], event)
        if not value and event in _NEVER_ZERO:
            lack, value = "counted as 0", None
    running = tool_files.number(fields.get("pcnt-running", 100.0), "pcnt-running")
    return _Counter(event, match["pmu"] or "", "u" in (match["modifiers"] or ""), value, lack, running)


def _value(event: str, counters: Mapping[str, list[_Counter]]) -> float | None:
    """Return one figure per event: the sum over kinds of core, None where nothing was counted."""
    found = counters[event]
    # The kernel switches, so in user space alone there are never any.
    if event == "context-switches" and any(counter.user_only for counter in found):
        return None
    values = [counter.value for counter in found if counter.value is not None]
    if values:
        return sum(values)
    uncounted = event in _ZERO_WHEN_UNCOUNTED and all(counter.lack == "not counted" for counter in found)
    return 0.0 if uncounted else None


def _warnings(counters: Mapping[str, list[_Counter]]) -> Iterator[str]:
    """Say which counters have no value, apart by reason, which are extrapolated, and what was not looked at."""
    reasons: dict[str, list[str]] = {}
    for event, found in counters.items():
        if _value(event, counters) is None and (lacks := [counter.lack for counter in found if counter.lack]):
            reasons.setdefault(lacks[0], []).append(event)
    for reason, events in reasons.items():
        yield f"{_LACKS.get(reason, reason)} {', '.join(events)}"
    every = [counter for found in counters.values() for counter in found]
    # Counters that shared the processor's registers.
    shared = {counter.event: 0 for counter in every if counter.value is not None and counter.running < _MULTIPLEXED}
    if shared:
        yield f"perf extrapolated {', '.join(shared)}: more counters than the processor has"
    if any(counter.user_only for counter in every):
        remedy = "set kernel.perf_event_paranoid to 1 or lower to see the kernel's part"
        yield f"perf counted in user space only, and no context switches: {remedy}"


ADAPTER = Adapter(
    name="perf-stat",
    role=Role.MEASURE,
    program=PERF,
    metrics=of_perfflow(*_METRIC_OF.values()),
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
