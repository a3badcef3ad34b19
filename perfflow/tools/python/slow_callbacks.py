"""``slow-callbacks``: what holds up asyncio's event loop, counted and timed, with the place where it waits or computes.

While a callback or a step of a task runs, nothing else of the loop does: a call that blocks for 50 ms makes every other
request wait for as long. Source of the default: half of asyncio's own ``slow_callback_duration`` of 100 ms.
"""

from __future__ import annotations

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools.adapter import Call, CommandOptions, Role, Seconds
from perfflow.tools.python import in_program
from perfflow.tools.tool_json import Figure, Json, Name, Positive, Whole

NAME = "slow-callbacks"

_FILE = "callbacks.json"
# Sums of floats in another order.
_ROUNDED = 1e-6


class Options(CommandOptions):
    """``with`` keys of ``uses: slow-callbacks``."""

    over: Seconds = Field(
        default=0.05, ge=0.001, le=60, description="A callback that takes this long is slow, such as `50ms`."
    )


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


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Count the slow callbacks, and rank their places by the time that they took of the program's.

    Raises ToolOutputError if the program failed or ran no event loop, and if the file is cut or nonsense.
    """
    found = in_program.read(_Callbacks, call.folder / _FILE)
    if not found.callbacks:
        raise ToolOutputError(
            "the program ran no callback on asyncio's own event loop (uvloop's cannot be looked into)"
        )
    _check(found, call.options.over)
    slow = sum(place.calls for place in found.slow)
    readings = (Reading("slow_callbacks", slow), Reading("slow_callback_max", found.longest))
    # Loops of several threads may be held up at once.
    total = max(found.seconds, sum(place.seconds for place in found.slow))
    ranked = in_program.ranked(sorted(found.slow, key=lambda place: place.task), lambda place: place.seconds)
    return Parsed(readings, tuple(_hotspot(place, total) for place in ranked))


def _check(found: _Callbacks, over: float) -> None:
    """Raise ToolOutputError where figures contradict each other."""
    for place in found.slow:
        least, most = place.calls * over, place.calls * found.longest
        if not least - _ROUNDED <= place.seconds <= most + _ROUNDED:
            raise ToolOutputError(f"{_FILE} is damaged: {place.calls} calls cannot take {place.seconds:.3g} s")
    slow = sum(place.calls for place in found.slow)
    explained = max((place.seconds for place in found.slow), default=found.longest)
    is_slow = found.longest >= over
    if slow > found.callbacks or is_slow != bool(found.slow) or found.longest > explained + _ROUNDED:
        raise ToolOutputError(f"{_FILE} is damaged: its places do not explain the longest callback")


def _hotspot(place: _Place, total: float) -> Hotspot:
    calls = in_program.counted(place.calls, "callback")
    where = "" if place.task == place.function else f" in steps of {place.task}"
    cause = f"measured: held up the event loop for {place.seconds:.3g} s in {calls}{where}"
    return Hotspot(place.function, place.seconds / total, "time", NAME, place.file, place.line, cause)


ADAPTER = in_program.adapter(
    *(NAME, parse, (_FILE,), "over"),
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("slow_callbacks", "slow_callback_max"),
)
