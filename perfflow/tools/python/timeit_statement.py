"""``timeit``: one Python statement, timed in a loop by the standard library, with all repeats kept.

A mean over many loops says nothing of single ones, so percentiles are those of batch means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import BATCH, Parsed, Usage, reading_of_process
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role

_FILE = "timeit.json"
_DRIVER = Path(__file__).with_name("drivers") / "timeit_run.py"
# In a repeat of fewer ticks or readings of the clock (s), the clock shows.
_TICKS, _READ = 100, 1e-7
_REMEDY = "the statement ended its process, or did not start"


class Options(adapter.Options):
    """``with`` keys of ``uses: timeit``."""

    stmt: str = Field(min_length=1, description="The Python statement to time, of one line or several.")
    setup: str = Field(default="pass", description="Run before each repeat, untimed.")
    number: int = Field(default=0, ge=0, description="Loops in a repeat; 0: as many as take 2 ms.")
    repeat: int = Field(default=0, ge=0, description="Repeats in a process; 0: 5 to 100, fewer of what is slow.")
    python: str = Field(default="python3", min_length=1, description="The interpreter that runs the statement.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Time the statement in a child by drivers/timeit_run.py. What it prints is discarded."""
    options = cast(Options, call.options)
    numbers = (str(options.number), str(options.repeat))
    argv = (options.python, str(_DRIVER), str(call.folder / _FILE), *numbers, options.setup, options.stmt)
    return (Invocation(argv),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The JSON file if it is there; ``parse`` says why it is not."""
    return tool_files.left(call.folder / _FILE)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the seconds per loop of every repeat.

    Raises ToolOutputError with the exception's own line where the statement raised, or if the file is nonsense.
    """
    content = tool_files.read_json(call.folder / _FILE, tool_files.last_words(call.folder) or _REMEDY)
    seconds = content.get("seconds") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(seconds, list) or not seconds:
        raise ToolOutputError(f"{_FILE} holds no repeats")
    number = tool_files.whole(tool_files.positive(content.get("number"), "number"), "number")
    repeats = [tool_files.positive(value, "repeat") for value in seconds]
    values = [tool_files.positive(value / number, "time of a loop") for value in repeats]
    reading = reading_of_process("time", values)
    if number > 1:
        reading = replace(reading, inner={**reading.inner, BATCH: float(number)})
    return Parsed((reading,), warnings=_too_short(content, min(repeats)))


def _too_short(content: Mapping[str, object], shortest: float) -> tuple[str, ...]:
    """Say when a repeat is so short that the clock's steps show in it, which a small ``number`` brings about."""
    resolution = tool_files.number(content.get("resolution"), "resolution")
    if shortest >= _TICKS * max(resolution, _READ):
        return ()
    return (f"a repeat takes {shortest * 1e9:.0f} ns, in which reading the clock shows: leave `number` out",)


ADAPTER = Adapter(
    name="timeit",
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("time"),
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
