"""``perf``: sample the stacks of any program with Linux perf, and rank its functions.

The stacks are folded from the text by drivers/perf_text.py.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Profiler, ProfilingMethod, Role, leaves
from perfflow.tools.linux import perf_samples
from perfflow.tools.linux.perf_samples import Event, Stacks

NAME = "perf"


class Options(Stacks):
    """``with`` keys of ``uses: perf``."""

    call_graph: Literal["dwarf", "fp", "lbr", "none"] = Field(
        default="dwarf",
        description="How to record callers: dwarf (8 KiB per sample, correct for all code with debug information), fp "
        "(small, needs -fno-omit-frame-pointer and still misses some callers), lbr (Intel's branch records, at most 32 "
        "callers) or none.",
    )
    event: Event = ""


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Record the command, then convert the samples to text."""
    options = call.options
    graph = {"dwarf": "dwarf,8192", "none": ""}.get(options.call_graph, options.call_graph)
    record = perf_samples.recording(call, options.frequency, options.event, graph)
    return record, perf_samples.text(call.program or "perf", str(call.folder / perf_samples.DATA), options.inline_limit)


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Fold the samples into ``stacks.folded`` and rank functions by the samples attributed to them.

    Raises ToolOutputError if there are no samples, or if the text is cut or invalid.
    """
    return perf_samples.parse_script(call.folder, NAME, call.options.event)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(
        method=ProfilingMethod.SAMPLES,
        follows={"time": 0, "instructions": 1},
        python=2,
        repeats=True,
        recording=perf_samples.SCRIPT,
        raw=(perf_samples.DATA, perf_samples.SCRIPT),
    ),
    options=Options,
    program=perf_samples.PERF,
    passes_stdout=True,
    invocations=invocations,
    # The text is not listed, since `parse` reports an empty text with a better reason.
    outputs=leaves(perf_samples.DATA),
    parse=parse,
)
