"""``perf-stat``: counters of one run by ``perf stat``; the kernel's own everywhere, the processor's where it has a PMU.

The processor's ``instructions`` and ``cycles`` carry noise, other than the simulated ones of valgrind.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Program, Role

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
# None of these is 0 for a process that ran.
_NEVER_ZERO = frozenset({"duration_time", "task-clock", "page-faults", "cycles", "instructions"})
# perf writes `<not counted>` for a share of CPU time that is 0, since it gives its run time as 0 as well.
_ZERO_WHEN_UNCOUNTED = frozenset({"user_time", "system_time"})
_UNITS: Mapping[str, float] = {"": 1.0, "ns": 1e-9, "us": 1e-6, "msec": 1e-3, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_TIMES = frozenset({"duration_time", "task-clock", "user_time", "system_time"})
# `cycles:u`, and on processors with two kinds of core `cpu_core/cycles/u`.
_EVENT = re.compile(r"(?:(?P<pmu>\w+)/)?(?P<name>[\w-]+)(?:[:/](?P<modifiers>\w*))?\Z")
_MULTIPLEXED = 99.9
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
    warnings = [*_lacking(counters), *_scaled(counters), *_restricted(counters)]
    readings = tuple(
        Reading(metric, value) for event, metric in _METRIC_OF.items() if (value := _value(event, counters)) is not None
    )
    if not readings:
        raise ToolOutputError("perf stat counted nothing: this kernel gives no counters to this user")
    return Parsed(readings, warnings=tuple(warnings))


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
    text = tool_files.read_whole(path)
    counters: dict[str, list[_Counter]] = {event: [] for event in _METRIC_OF}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        counter = _counter(line)
        if counter is None:
            continue
        if any(known.pmu == counter.pmu for known in counters[counter.event]):
            raise ToolOutputError(f"{path.name} holds {counter.event} twice")
        counters[counter.event].append(counter)
    if missing := [event for event, found in counters.items() if not found]:
        raise ToolOutputError(f"{path.name} lacks {', '.join(missing)}: the command did not start, or the file is cut")
    return counters


def _counter(line: str) -> _Counter | None:
    """Read one line; None for the derived figures that newer versions of perf write between the counters."""
    fields = _fields(line)
    if "counter-value" not in fields:
        return None
    match = _EVENT.match(str(fields.get("event", "")))
    if not match or match["name"] not in _METRIC_OF:
        raise ToolOutputError(f"{_FILE} holds an event that was not asked for: {line[:80]!r}")
    text, event = str(fields["counter-value"]), match["name"]
    lack = text.strip(" <>") if text.strip().startswith("<") else ""
    if lack and not lack.startswith("not "):
        raise ToolOutputError(f"{_FILE}: {event} is {text[:60]!r}")
    value = None if lack else _base(event, text, str(fields.get("unit", "")))
    running = fields.get("pcnt-running", 100.0)
    user_only = "u" in (match["modifiers"] or "")
    return _Counter(event, match["pmu"] or "", user_only, value, lack, tool_files.number(running, "pcnt-running"))


def _fields(line: str) -> Mapping[str, object]:
    """Return a line's JSON object; a decimal comma and ``nan``, which are no JSON, are put right."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if fields is None:
        try:
            fields = json.loads(_DECIMAL_COMMA.sub(".", _NOT_FINITE.sub(": null", line)))
        except (ValueError, RecursionError) as error:
            raise ToolOutputError(f"{_FILE} is cut short or no JSON: {line[:80]!r}") from error
    if not isinstance(fields, dict):
        raise ToolOutputError(f"{_FILE} holds a line that is no object: {line[:80]!r}")
    return fields


def _base(event: str, text: str, unit: str) -> float:
    """Return a counter's value in s or as a count. Raises ToolOutputError for an unknown unit or a false 0."""
    if unit not in _UNITS or (event in _TIMES) != bool(unit):
        raise ToolOutputError(f"{_FILE}: {event} has the unit {unit[:20]!r}, which perfflow does not know")
    value = tool_files.number_in(text, event) * _UNITS[unit]
    return tool_files.positive(value, event) if event in _NEVER_ZERO else value


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


def _lacking(counters: Mapping[str, list[_Counter]]) -> list[str]:
    """Say which counters have no value, apart by reason."""
    reasons: dict[str, list[str]] = {}
    for event, found in counters.items():
        if _value(event, counters) is None and (lacks := [counter.lack for counter in found if counter.lack]):
            reasons.setdefault(lacks[0], []).append(event)
    said = {"not supported": "this machine does not have the counters", "not counted": "perf could not count"}
    return [f"{said.get(reason, reason)} {', '.join(events)}" for reason, events in reasons.items()]


def _scaled(counters: Mapping[str, list[_Counter]]) -> list[str]:
    """Say which counters shared the hardware's registers, so that perf extrapolated them."""
    shared = [
        event
        for event, found in counters.items()
        if any(counter.value is not None and counter.running < _MULTIPLEXED for counter in found)
    ]
    return [f"perf extrapolated {', '.join(shared)}: more counters than the processor has"] if shared else []


def _restricted(counters: Mapping[str, list[_Counter]]) -> list[str]:
    if not any(counter.user_only for found in counters.values() for counter in found):
        return []
    remedy = "set kernel.perf_event_paranoid to 1 or lower to see the kernel's part"
    return [f"perf counted in user space only, and no context switches: {remedy}"]


ADAPTER = Adapter(
    name="perf-stat",
    role=Role.MEASURE,
    program=Program("perf", "apt-get install linux-perf"),
    metrics=of_perfflow(*_METRIC_OF.values()),
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
