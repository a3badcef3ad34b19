"""``cuda-bench``: a program that times its own GPU kernels, by CUDA events, and prints a line for each repetition.

``cuda_times`` describes the lines. Which clock and which device it was is the program's word; nothing here needs CUDA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.kernels import together
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import BATCH, Parsed, Reading, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Effort, Invocation, Role, may_leave
from perfflow.tools.nvidia import cuda_times

_FILE = "cuda-bench.txt"
_LIST = "kernels.txt"


class Options(CommandOptions):
    """``with`` keys of ``uses: cuda-bench``."""

    list: str = Field(default="--list", description="The flag that names the kernels; '' where there is none.")
    only: str = Field(default="--kernel=", description="The flag before the name of a kernel to run alone.")
    brief: str = Field(default="--repeats=10", description="The flag for the shortest honest run; '' for none.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the program, or ``only`` one of its kernels. Raises ToolOutputError for a shell's text."""
    options = cast(Options, call.options)
    brief = (options.brief,) if options.brief and call.effort is Effort.BRIEF else ()
    only = (f"{options.only}{call.only}",) if call.only else ()
    return (Invocation((*_program(call), *brief, *only), stdout=_FILE),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the time of every repetition in s per launch, and what it moved and computed a second.

    Raises ToolOutputError if the output is cut or nonsense, or if a kernel could not be launched.
    """
    said = tool_files.last_words(call.folder)
    told = cuda_times.read(tool_files.read_whole(call.folder / _FILE, said))
    if call.only and call.only not in told.kernels:
        raise ToolOutputError(f"{call.only[:80]} was to be measured, but {', '.join(told.kernels)[:80]} was")
    # Without the device times of kernels mean little.
    warnings = [f"measured on {device}" for device in told.devices]
    if len(told.devices) > 1:
        warnings.append("the program used several GPUs: what is compared must be of one")
    return Parsed(tuple(_readings(told)), warnings=tuple(warnings), device=together(told.gpus))


def listing(call: Call) -> Invocation | None:
    """Return the process that prints the kernels' names; None for a program that has no such flag."""
    flag = cast(Options, call.options).list
    return Invocation((*_program(call), flag), stdout=_LIST) if flag else None


def _program(call: Call) -> tuple[str, ...]:
    if call.shell_text:
        raise ToolOutputError("perfflow adds flags to the program, which a shell's text hides: drop `shell: true`")
    return call.command


def _readings(told: cuda_times.Told) -> Iterator[Reading]:
    for name, metric, values, batch in cuda_times.series(told):
        reading = reading_of_many(metric, values, name)
        yield replace(reading, inner={**reading.inner, BATCH: batch})


ADAPTER = Adapter(
    name="cuda-bench",
    role=Role.MEASURE,
    options=Options,
    metrics=of_perfflow("time", "bandwidth", "flops", "rate"),
    suite=True,
    gpu=True,
    invocations=invocations,
    outputs=may_leave(_FILE),
    parse=parse,
    listing=listing,
)
