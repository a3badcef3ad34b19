"""Detect programs that do less work if nobody reads their output, by a warm-up run whose output is read."""

from __future__ import annotations

import contextlib
import shlex
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from perfflow.execute.child import PIPE
from perfflow.execute.invoke import Failure, Invoked
from perfflow.execute.prepare import Ready
from perfflow.model.readings import UNREAD_OUTPUT, Side, Usage
from perfflow.model.units import Dimension, format_quantity

# GNU grep stops at the first match; a pipe alone costs about 0.2 ms for each MB.
_FACTOR, _LEAST = 1.5, 0.002
# Programs that take longer (s) are not run again: a cold start explains no such difference, and a run costs too much.
_LONG = 2.0
_SHOWN = 60

Start = Callable[[Ready], Invoked]
_Key = tuple[Side, int | None]


@dataclass
class _Seen:
    prepared: Ready
    read: Usage
    """Usage of the run whose output was read."""
    unread: list[float] = field(default_factory=list)
    """CPU time (s) of each run whose output was discarded."""

    @property
    def suspicious(self) -> bool:
        """Whether the program did clearly more work when its output was read."""
        return bool(self.unread) and _cpu(self.read) > statistics.median(self.unread) * _FACTOR + _LEAST


class UnreadOutput:
    """Gives a reader to the first, untimed run of each side whose output goes to /dev/null by default."""

    def __init__(self) -> None:
        self._seen: dict[_Key, _Seen | None] = {}
        """None if a program did not end in time with a reader."""

    def with_reader(self, prepared: Ready) -> Ready | None:
        """Return the same call with a reader, None if it does not need one or had one before."""
        return _piped(prepared) if _discards(prepared) and _key(prepared) not in self._seen else None

    def note_read(self, prepared: Ready, invoked: Invoked) -> None:
        """Store the usage of a run whose output was read."""
        self._seen[_key(prepared)] = _Seen(prepared, invoked.usage)

    def give_up(self, prepared: Ready) -> None:
        """Do not try a reader again, because the program did not end in time with one."""
        self._seen[_key(prepared)] = None

    def note(self, prepared: Ready, invoked: Invoked) -> None:
        """Store the usage of a timed run."""
        seen = self._seen.get(_key(prepared))
        if seen:
            seen.unread.append(_cpu(invoked.usage))

    def warnings(self, start: Start) -> dict[str, None]:
        """Return warnings about programs that behave differently. Run again with a reader to rule out a cold start."""
        said: dict[str, None] = {}
        for seen in filter(None, self._seen.values()):
            if seen.suspicious and seen.read.wall < _LONG:
                with contextlib.suppress(Failure):
                    seen.read = start(_piped(seen.prepared)).usage
            if seen.suspicious:
                said[_text(seen)] = None
        return said


def _discards(prepared: Ready) -> bool:
    """Return whether the output goes to /dev/null by default, and the figures are those of the program itself."""
    tool, call = prepared.tool, prepared.call
    unasked = bool(call and not call.stdout) and prepared.planned.step.stdout is None
    return unasked and tool is not None and tool.passes_stdout and not tool.program


def _key(prepared: Ready) -> _Key:
    return prepared.side, prepared.ops


def _piped(prepared: Ready) -> Ready:
    return replace(prepared, call=replace(prepared.call, stdout=PIPE)) if prepared.call else prepared


def _cpu(usage: Usage) -> float:
    return usage.user + usage.system


def _text(seen: _Seen) -> str:
    call = seen.prepared.call
    command = (call.shell_text or shlex.join(call.command)) if call else ""
    shown = command if len(command) <= _SHOWN else f"{command[:_SHOWN]}..."
    unread, read = (
        format_quantity(value, Dimension.TIME) for value in (statistics.median(seen.unread), _cpu(seen.read))
    )
    return (
        f"`{shown}` {UNREAD_OUTPUT}: it used {unread} of CPU time, but {read} "
        "when its output was read; use `stdout: pipe` (compare: --stdout pipe)"
    )
