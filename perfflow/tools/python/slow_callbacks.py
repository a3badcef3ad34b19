"""``slow-callbacks``: what holds up asyncio's event loop, counted and timed, with the place where it waits or computes.

While a callback or a step of a task runs, nothing else of the loop does: a call that blocks for 50 ms makes every other
request wait for as long. Source of the default: half of asyncio's own ``slow_callback_duration`` of 100 ms.
"""

from __future__ import annotations

from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role, Seconds, leaves
from perfflow.tools.python import in_program
from perfflow.tools.tool_json import Figure, Json, Name, Positive, Whole

NAME = "slow-callbacks"

_FILE = "callbacks.json"
# Sums of floats in another order.
_ROUNDED = 1e-6


class Options(CommandOptions):
    """``with`` keys of ``uses: slow-callbacks``."""

    over: Seconds = Field(default=0.05, ge=0.001, le=60, description="What takes as long is slow, as in `50ms`.")


class _Place(in_program.Row):
    """Where callbacks were slow, in steps of which task: how many were, and how long they took together (s)."""

    task: Name
    calls: Whole
    seconds: Positive


class _Callbacks(Json):
    """How many callbacks ran, how long the program did, the longest callback (s), and where callbacks were slow."""

    callbacks: Whole
    longest: Figure
    seconds: Figure
    slow: list[_Place]


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under drivers/slow_callbacks_run.py by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation.
    """
    over = cast(Options, call.options).over
    return (in_program.under("slow_callbacks_run.py", call, call.folder / _FILE, repr(over)),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Count the slow callbacks, and rank their places by the time that they took of the program's.

    Raises ToolOutputError if the program failed or ran no event loop, and if the file is cut or nonsense.
    """
    found = in_program.read(_Callbacks, call.folder / _FILE)
    if not found.callbacks:
        raise ToolOutputError(
            "the program ran no callback on asyncio's own event loop (uvloop's cannot be looked into)"
        )
    _check(found.slow, found.callbacks, found.longest, cast(Options, call.options).over)
    slow = sum(place.calls for place in found.slow)
    readings = (Reading("slow_callbacks", slow), Reading("slow_callback_max", found.longest))
    # Loops of several threads may be held up at once.
    total = max(found.seconds, sum(place.seconds for place in found.slow))
    ranked = in_program.ranked(sorted(found.slow, key=lambda place: place.task), lambda place: place.seconds)
    return Parsed(readings, tuple(_hotspot(place, total) for place in ranked))


def _check(places: list[_Place], callbacks: int, longest: float, over: float) -> None:
    """Raise ToolOutputError where figures contradict each other."""
    slow, most = sum(place.calls for place in places), max((place.seconds for place in places), default=0.0)
    for place in places:
        if not place.calls * over <= place.seconds + _ROUNDED or place.seconds > place.calls * longest + _ROUNDED:
            raise ToolOutputError(f"{_FILE} is damaged: {place.calls} calls cannot take {place.seconds:.3g} s")
    if slow > callbacks or (longest >= over) != bool(places) or (places and longest > most + _ROUNDED):
        raise ToolOutputError(f"{_FILE} is damaged: its places do not explain the longest callback")


def _hotspot(place: _Place, total: float) -> Hotspot:
    calls = in_program.counted(place.calls, "callback")
    where = "" if place.task == place.function else f" in steps of {place.task}"
    cause = f"measured: held up the event loop for {place.seconds:.3g} s in {calls}{where}"
    return Hotspot(place.function, place.seconds / total, "time", NAME, place.file, place.line, cause)


ADAPTER = Adapter(
    NAME,
    Role.MEASURE,
    invocations,
    parse,
    options=Options,
    metrics=of_perfflow("slow_callbacks", "slow_callback_max"),
    python=True,
    outputs=leaves(_FILE),
)
