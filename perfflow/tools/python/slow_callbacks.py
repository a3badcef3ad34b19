"""``slow-callbacks``: what holds up asyncio's event loop, counted and timed, with the place where it waits or computes.

While a callback or a step of a task runs, nothing else of the loop does: a call that blocks for 50 ms makes every other
request wait for as long. Source of the default: half of asyncio's own ``slow_callback_duration`` of 100 ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role, Seconds
from perfflow.tools.python import in_program

NAME = "slow-callbacks"

_FILE = "callbacks.json"
_KEPT = 20
_REMEDY = "the program ended by os._exit, exec or a signal, or it never started"
# Sums of floats in another order.
_ROUNDED = 1e-6


class Options(CommandOptions):
    """``with`` keys of ``uses: slow-callbacks``."""

    over: Seconds = Field(default=0.05, ge=0.001, le=60, description="What takes as long is slow, as in `50ms`.")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where callbacks were slow: how many were, and how long they took together (s)."""

    function: str
    file: str
    line: int
    task: str
    calls: int
    seconds: float


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under drivers/slow_callbacks_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    own = (str(call.folder / _FILE), repr(cast(Options, call.options).over))
    return (Invocation(in_program.under_driver(call.command, "slow_callbacks_run.py", own)),)


def outputs(call: Call) -> tuple[Path, ...]:
    """What the driver saw."""
    return (call.folder / _FILE,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Count the slow callbacks, and rank their places by the time that they took of the program's.

    Raises ToolOutputError if the program failed or ran no event loop, and if the file is cut or nonsense.
    """
    content = tool_files.read_json(call.folder / _FILE, _REMEDY)
    if not isinstance(content, dict) or not isinstance(content.get("slow"), list):
        raise ToolOutputError(f"{_FILE} holds no callbacks")
    if status := tool_files.whole(content.get("status"), "exit status"):
        raise ToolOutputError(f"the program exited with status {status}")
    callbacks = tool_files.whole(content.get("callbacks"), "callbacks")
    if not callbacks:
        raise ToolOutputError(
            "the program ran no callback on asyncio's own event loop (uvloop's cannot be looked into)"
        )
    places = [_place(item) for item in content["slow"]]
    longest = tool_files.positive(content.get("longest"), "longest callback")
    slow = sum(place.calls for place in places)
    _check(places, callbacks, longest, cast(Options, call.options).over)
    readings = (Reading("slow_callbacks", slow), Reading("slow_callback_max", longest))
    # Loops of several threads may be held up at once.
    total = max(tool_files.positive(content.get("seconds"), "seconds"), sum(place.seconds for place in places))
    ranked = sorted(places, key=lambda place: (-place.seconds, place.file, place.line, place.function, place.task))
    return Parsed(readings, tuple(_hotspot(place, total) for place in ranked[:_KEPT]))


def _place(item: object) -> _Place:
    fields: Mapping[str, object] = item if isinstance(item, dict) else {}
    names = [fields.get(key) for key in ("function", "file", "task")]
    if not all(isinstance(name, str) for name in names):
        raise ToolOutputError(f"{_FILE} holds a place without function, file and task")
    function, file, task = (str(name) for name in names)
    return _Place(
        tool_files.clean_name(function),
        tool_files.clean_name(file) if file else "",
        tool_files.whole(fields.get("line"), "line"),
        tool_files.clean_name(task),
        tool_files.whole(fields.get("calls"), "calls"),
        tool_files.positive(fields.get("seconds"), "seconds"),
    )


def _check(places: list[_Place], callbacks: int, longest: float, over: float) -> None:
    """Raise ToolOutputError where figures contradict each other."""
    slow, most = sum(place.calls for place in places), max((place.seconds for place in places), default=0.0)
    for place in places:
        if not place.calls * over <= place.seconds + _ROUNDED or place.seconds > place.calls * longest + _ROUNDED:
            raise ToolOutputError(f"{_FILE} is damaged: {place.calls} calls cannot take {place.seconds:.3g} s")
    if slow > callbacks or (longest >= over) != bool(places) or (places and longest > most + _ROUNDED):
        raise ToolOutputError(f"{_FILE} is damaged: its places do not explain the longest callback")


def _hotspot(place: _Place, total: float) -> Hotspot:
    calls = "1 callback" if place.calls == 1 else f"{place.calls:,} callbacks"
    where = "" if place.task == place.function else f" in steps of {place.task}"
    cause = f"measured: held up the event loop for {place.seconds:.3g} s in {calls}{where}"
    return Hotspot(place.function, place.seconds / total, "time", NAME, place.file, place.line, cause)


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("slow_callbacks", "slow_callback_max"),
    python=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
