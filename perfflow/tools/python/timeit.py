"""``timeit``: one Python statement, timed in a loop by the standard library, with all repeats kept.

A mean over many loops says nothing of single ones, so percentiles are those of batch means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.metrics import of_perfflow
from perfflow.model.readings import Parsed, Usage, reading_of_process
from perfflow.tools import adapter, tool_files, tool_json
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, may_leave
from perfflow.tools.tool_json import Counted, Figure, Json, Positives

_FILE = "timeit.json"
_DRIVER = Path(__file__).with_name("drivers") / "timeit_run.py"
# In a repeat of fewer ticks or readings of the clock (s), the clock shows.
_TICKS, _READ = 100, 1e-7


class Options(adapter.Options):
    """``with`` keys of ``uses: timeit``."""

    stmt: str = Field(min_length=1, description="The Python statement to time, of one line or several.")
    setup: str = Field(default="pass", description="Statement to run before each repeat. It is not timed.")
    number: int = Field(default=0, ge=0, description="Loops in a repeat; 0 means as many as take 2 ms.")
    repeat: int = Field(
        default=0, ge=0, description="Repeats in a process; 0 means 5 to 100, fewer if the statement is slow."
    )
    python: str = Field(default="python3", min_length=1, description="The interpreter that runs the statement.")


class _Repeats(Json):
    """The loops in a repeat, what each repeat took (s), and the step of the clock (s)."""

    number: Counted
    seconds: Annotated[Positives, Field(min_length=1)]
    resolution: Figure


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Time the statement in a child by drivers/timeit_run.py. What it prints is discarded."""
    options = call.options
    numbers = (str(options.number), str(options.repeat))
    argv = (options.python, str(_DRIVER), str(call.folder / _FILE), *numbers, options.setup, options.stmt)
    return (Invocation(argv),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the seconds per loop of every repeat.

    Raises ToolOutputError with the exception's own line where the statement raised, or if the file is nonsense.
    """
    remedy = tool_files.last_words(call.folder) or "the statement ended its process, or did not start"
    found = tool_json.read(_Repeats, call.folder / _FILE, remedy)
    values, shortest = [value / found.number for value in found.seconds], min(found.seconds)
    tool_files.positive(min(values), "time of a loop")
    said = f"a repeat takes {shortest * 1e9:.0f} ns, in which reading the clock shows: leave `number` out"
    # A small `number` brings that about.
    warnings = (said,) if shortest < _TICKS * max(found.resolution, _READ) else ()
    return Parsed((reading_of_process("time", values, batch=float(found.number)),), warnings=warnings)


ADAPTER = Adapter(
    "timeit", Role.MEASURE, invocations, parse, options=Options, metrics=of_perfflow("time"), outputs=may_leave(_FILE)
)
