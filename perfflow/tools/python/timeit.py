"""``timeit``: one Python statement, timed in a loop by the standard library. All repeats are kept.

Each repeat gives the mean of its loops, so percentiles are those of batch means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage, reading_of_process
from perfflow.tools import adapter, parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, may_leave
from perfflow.tools.parsed_output import Counted, Figure, Figures, Json, Positives

_FILE = "timeit.json"
_DRIVER = Path(__file__).with_name("drivers") / "timeit_run.py"
# A repeat shorter than _TICKS ticks of the clock, or readings of it (_READ s each), is distorted by the clock.
_TICKS, _READ = 100, 1e-7


class TimeitOptions(adapter.Options):
    """``with`` keys of ``uses: timeit``."""

    stmt: str = Field(min_length=1, description="The Python statement to time. It can have several lines.")
    setup: str = Field(default="pass", description="Statement to run before each repeat. It is not timed.")
    number: int = Field(default=0, ge=0, description="Loops per repeat; 0 means as many as take 2 ms.")
    repeat: int = Field(
        default=0, ge=0, description="Repeats per process; 0 means 5 to 100, or fewer if the statement is slow."
    )
    python: str = Field(default="python3", min_length=1, description="Python interpreter that runs the statement.")


class _Repeats(Json):
    """The loops per repeat, the time of each repeat (s) by each clock, and the resolution of the clock (s)."""

    number: Counted
    seconds: Annotated[Positives, Field(min_length=1)]
    resolution: Figure
    cpu: Figures = Field(default=[])
    uncontended: Figures = Field(default=[])


def invocations(call: Call[TimeitOptions]) -> tuple[Invocation, ...]:
    """Time the statement by drivers/timeit_run.py. Its output is discarded."""
    options = call.options
    numbers = (str(options.number), str(options.repeat))
    argv = (options.python, str(_DRIVER), str(call.folder / _FILE), *numbers, options.setup, options.stmt)
    return (Invocation(argv),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the seconds per loop of every repeat.

    Raises ToolOutputError with the line of the exception if the statement raised one, or if the file is invalid.
    """
    remedy = tool_files.last_words(call.folder) or "the statement ended its process, or did not start"
    repeats = parsed_output.read_json(_Repeats, call.folder / _FILE, remedy)
    values, shortest = [value / repeats.number for value in repeats.seconds], min(repeats.seconds)
    tool_files.positive(min(values), "time of a loop")
    warning = f"a repeat takes {shortest * 1e9:.0f} ns, which is too short for the clock: leave out `number`"
    warnings = (warning,) if shortest < _TICKS * max(repeats.resolution, _READ) else ()
    clocks = {"time": repeats.seconds, "cpu": repeats.cpu, "uncontended": repeats.uncontended}
    readings = (
        reading_of_process(clock, [value / repeats.number for value in seconds], batch=float(repeats.number))
        for clock, seconds in clocks.items()
        if seconds and min(seconds) > 0
    )
    return Parsed(tuple(readings), warnings=warnings)


ADAPTER = Adapter(
    "timeit",
    Role.MEASURE,
    invocations,
    parse,
    options=TimeitOptions,
    metrics=builtin_metrics("time", "cpu", "uncontended"),
    outputs=may_leave(_FILE),
)
