"""``perf``: stacks of any program sampled by the kernel, folded here from the text of ``perf script``.

``perf record`` falls back to the timer ``cpu-clock`` where there are no hardware counters; what was used is read from
the samples. The inlined callers and source lines come from debug information, so compile with ``-g``.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import cast

from pydantic import AliasChoices, Field

from perfflow.samples.readings import Parsed, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role
from perfflow.tools.linux import perf_stacks

NAME = "perf"

_DATA = "perf.data"


class CallGraph(StrEnum):
    """How perf finds the callers of a sampled function."""

    DWARF = "dwarf"
    FP = "fp"
    LBR = "lbr"
    NONE = "none"


class Options(perf_stacks.Sampling):
    """``with`` keys of ``uses: perf``."""

    call_graph: CallGraph = Field(
        default=CallGraph.DWARF,
        validation_alias=AliasChoices("call_graph", "call-graph"),
        description="dwarf (8 KiB per sample, right for all code with debug information), fp (small, needs "
        "-fno-omit-frame-pointer and loses some callers even so), lbr (Intel's branch records, at most 32 callers) or "
        "none.",
    )
    event: str = Field(
        default="",
        pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9_:/=.,-]*)?$",
        description="The event to sample, as `perf list` names it; by default perf's choice for this machine.",
    )


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the command, then turn the samples into text."""
    options, program, data = cast(Options, call.options), call.program or "perf", str(call.folder / _DATA)
    event = ("-e", options.event) if options.event else ()
    graph = {CallGraph.DWARF: "dwarf,8192", CallGraph.NONE: ""}.get(options.call_graph, options.call_graph.value)
    record = (
        *(program, *perf_stacks.RECORD, *event, "-F", str(options.frequency)),
        *(("--call-graph", graph) if graph else ()),
        *("-o", data, "--", *call.command),
    )
    return Invocation(record), perf_stacks.text(program, data, options.inline_limit)


def outputs(call: Call) -> tuple[Path, ...]:
    """The recording; its text may be empty, for which ``parse`` has a better reason."""
    return (call.folder / _DATA,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the samples into ``stacks.folded`` and rank functions by the samples that count for them.

    Raises ToolOutputError if there are no samples, or if the text is cut or nonsense.
    """
    return perf_stacks.parse(call.folder, NAME, cast(Options, call.options).event)


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=Options,
    program=perf_stacks.PERF,
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
