"""``scalene``: a Python program's time by line, in Python, native code and the system, and what allocates and copies.

scalene runs inside the program, by the program's interpreter, and samples by signals; its shares come without counts.
It exits 0 after SIGINT and for a program too short to be sampled, and 1 after ``sys.exit()``, so
drivers/scalene_run.py records the exit status, and a profile that is missing is an error. No figure is taken for a
metric: memory is sampled in steps of 1 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import FEW_SAMPLES, Cost, Hotspot, Parsed, Profile, Usage
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.python import in_program, scalene_profile
from perfflow.tools.python.scalene_profile import Function
from perfflow.tools.tool_json import Json

NAME = "scalene"
# It is no program of perfflow's: the interpreter of the profiled program has it, or has not.

_PROFILE = "scalene.json"
_STATUS = "status.json"
_LACKING = "scalene is not installed for this interpreter"
_KEPT = 20
_FEW = 100
_TOO_SHORT = (
    "scalene took no sample of the program's own code: give it more work (a second at least), and start it where its "
    "code lies: what is neither below the working directory nor beside the script is not looked into"
)
_NO_STATUS = "the program ended by a signal, by exec, or in a way that scalene does not survive"


class Options(CommandOptions):
    """``with`` keys of ``uses: scalene``."""

    rate: int = Field(default=100, ge=1, le=1000, description="Samples per second.")
    memory: bool = Field(default=True, description="Also sample what is allocated and copied.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program under scalene by its own interpreter.

    Raises ToolOutputError with a remedy if the command is no Python invocation, or is code on the command line.
    """
    options = cast(Options, call.options)
    if python_command.split(call.command).form is python_command.Form.CODE:
        raise ToolOutputError("scalene only looks into files: put the code of `-c` into a script")
    mode = "memory" if options.memory else "cpu"
    own = (call.folder / _PROFILE, options.rate, mode, call.folder / _STATUS)
    return (in_program.under("scalene_run.py", call, *own),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The program's exit status, and the profile if there is one: ``parse`` says why there is none."""
    return (call.folder / _STATUS, *tool_files.left(call.folder / _PROFILE))


def parse(call: Call, usage: Usage) -> Parsed:
    """Rank functions by their share of the samples: in Python, in native code, and in the system.

    Raises ToolOutputError if scalene is not installed, the program failed or was too short, or if a file is nonsense.
    """
    if not (call.folder / _STATUS).exists() and _LACKING in tool_files.last_bytes(call.folder):
        python = call.command[0] if call.command else "python"
        raise ToolOutputError(f"{_LACKING}: {python} -m pip install scalene")
    in_program.read(Json, call.folder / _STATUS, _NO_STATUS)
    if not (call.folder / _PROFILE).exists():
        raise ToolOutputError(_TOO_SHORT)
    found = scalene_profile.read(call.folder / _PROFILE, _TOO_SHORT)
    ranked = sorted((item for item in found.functions if item.share), key=lambda item: (-item.share, item.name))
    if not ranked:
        raise ToolOutputError(_TOO_SHORT)
    spots = tuple(_hotspot(item, found.footprint) for item in ranked[:_KEPT])
    costs = tuple(Cost("time", item.name, item.share * found.elapsed, item.file, item.line) for item in ranked)
    return Parsed((), spots, (Profile(_PROFILE, NAME),), tuple(_warnings(found)), costs)


def _hotspot(item: Function, footprint: float) -> Hotspot:
    said = [
        f"{item.python:.0%} in Python, {item.native:.0%} in native code, {item.system:.0%} in the system or waiting"
    ]
    if item.gpu >= 0.005:
        said.append(f"the GPU busy for {item.gpu:.0%}")
    if item.allocated:
        said.append(f"{_size(item.allocated)} seen allocated")
    if item.copied >= 1:
        said.append(f"{_size(item.copied)} copied a second")
    if item.peak and footprint:
        said.append(f"the program's memory at its largest in line {item.peak}, {_size(footprint)}")
    cause = f"measured: {'; '.join(said)}"
    return Hotspot(item.name, item.share, "time", NAME, item.file, item.line, cause, self_share=item.share)


def _size(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 10e6 else f"{size / 1e6:.1f} MB"


def _warnings(found: scalene_profile.Found) -> Sequence[str]:
    if found.samples >= _FEW:
        return ()
    return (f"{found.samples} {FEW_SAMPLES}: give the program more work, or a higher `rate`, for shares to mean much",)


ADAPTER = Adapter(NAME, Role.PROFILE, invocations, parse, options=Options, python=True, outputs=outputs)
