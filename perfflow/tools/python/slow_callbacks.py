"""``slow-callbacks``: callbacks that block asyncio's event loop: how many, for how long, and where in the program.

While a callback or a step of a task runs, the loop runs nothing else: a call that blocks for 50 ms delays every other
request by 50 ms. The default of ``over`` is half of asyncio's own ``slow_callback_duration`` of 100 ms.
"""

from __future__ import annotations

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Reading, Usage
from perfflow.tools.adapter import Call, CommandOptions, Role, Seconds
from perfflow.tools.parsed_output import Figure, Json, Name, Positive, Whole
from perfflow.tools.python import in_program

NAME = "slow-callbacks"

_FILE = "callbacks.json"
# Tolerance (s): the driver adds the same floats in another order.
_TOLERANCE = 1e-6


class SlowCallbacksOptions(CommandOptions):
    """``with`` keys of ``uses: slow-callbacks``."""

    over: Seconds = Field(
        default=0.05, ge=0.001, le=60, description="A callback that takes at least this long is slow, such as `50ms`."
    )


class _SlowCallbacksPlace(in_program.ProgramPlace):
    """A place of slow callbacks and the task that they belong to: their number and their total time (s)."""

    task: Name
    calls: Whole
    seconds: Positive


class _Callbacks(Json):
    """The number of callbacks, the longest one (s), the duration of the program (s), and the places of slow ones."""

    callbacks: Whole
    longest: Figure
    seconds: Figure
    slow: list[_SlowCallbacksPlace]


def parse(call: Call[SlowCallbacksOptions], usage: Usage) -> Parsed:
    """Count the slow callbacks, and rank their places by their share of the program's time.

    Raises ToolOutputError if the program failed or ran no event loop, or if the file is truncated or invalid.
    """
    recorded = in_program.read(_Callbacks, call.folder / _FILE)
    if not recorded.callbacks:
        raise ToolOutputError("the program ran no callback on asyncio's own event loop (uvloop is not supported)")
    _check(recorded, call.options.over)
    slow = sum(place.calls for place in recorded.slow)
    readings = (Reading("slow_callbacks", slow), Reading("slow_callback_max", recorded.longest))
    # Event loops in several threads can be blocked at the same time.
    total = max(recorded.seconds, sum(place.seconds for place in recorded.slow))
    ranked = in_program.ranked(sorted(recorded.slow, key=lambda place: place.task), lambda place: place.seconds)
    return Parsed(readings, tuple(_hotspot(place, total) for place in ranked))


def _check(found: _Callbacks, over: float) -> None:
    """Raise ToolOutputError if figures contradict each other."""
    for place in found.slow:
        least, most = place.calls * over, place.calls * found.longest
        if not least - _TOLERANCE <= place.seconds <= most + _TOLERANCE:
            raise ToolOutputError(f"{_FILE} is damaged: {place.calls} calls cannot take {place.seconds:.3g} s")
    slow = sum(place.calls for place in found.slow)
    explained = max((place.seconds for place in found.slow), default=found.longest)
    is_slow = found.longest >= over
    if slow > found.callbacks or is_slow != bool(found.slow) or found.longest > explained + _TOLERANCE:
        raise ToolOutputError(f"{_FILE} is damaged: its places do not explain the longest callback")


def _hotspot(place: _SlowCallbacksPlace, total: float) -> Hotspot:
    calls = in_program.counted(place.calls, "callback")
    where = "" if place.task == place.function else f" in steps of {place.task}"
    cause = f"measured: held up the event loop for {place.seconds:.3g} s in {calls}{where}"
    return Hotspot(place.function, place.seconds / total, "time", NAME, place.file, place.line, cause)


ADAPTER = in_program.adapter(
    *(NAME, parse, (_FILE,), "over"),
    role=Role.MEASURE,
    options=SlowCallbacksOptions,
    metrics=builtin_metrics("slow_callbacks", "slow_callback_max"),
)
