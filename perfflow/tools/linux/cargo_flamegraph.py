"""``cargo-flamegraph``: draw a flame graph as SVG with the program ``flamegraph`` of that crate, from samples of perf.

It records like ``uses: perf``, and hotspots are read from the same recording. It only adds the drawing.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Profile, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Profiler, ProfilingMethod, Program, Role, leaves
from perfflow.tools.linux import perf

NAME = "cargo-flamegraph"

_DRAWN = "flamegraph.svg"


def invocations(call: Call[perf.Stacks]) -> tuple[Invocation, ...]:
    """Record the command and draw the flame graph, then convert the samples to text."""
    options, data = call.options, str(call.folder / perf.DATA)
    record = (*perf.RECORD, "-F", str(options.frequency), "--call-graph", "dwarf,8192", "-o", data)
    argv = (
        *(call.program or "flamegraph", "-o", str(call.folder / _DRAWN), "-c", shlex.join(record)),
        *(("--no-inline",) if not options.inline_limit else ()),
        *("--", *call.command),
    )
    drawing = Invocation(argv, env={"DEBUGINFOD_URLS": ""})
    return drawing, perf.script_text(perf.PERF.name, data, options.inline_limit)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the samples and rank functions as ``perf`` does, and add the drawing.

    Raises ToolOutputError if there are no samples, or if the text or the drawing is cut or invalid.
    """
    drawn = tool_files.read_text(call.folder / _DRAWN)
    if "<svg" not in drawn[:2000] or not drawn.rstrip().endswith("</svg>"):
        raise ToolOutputError(f"{_DRAWN} is cut short or not an SVG drawing")
    parsed = perf.parse_script(call.folder, NAME)
    return replace(parsed, profiles=(Profile(_DRAWN, "svg"), *parsed.profiles))


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    profiler=Profiler(method=ProfilingMethod.SAMPLES, recording=perf.SCRIPT),
    options=perf.Stacks,
    program=Program("flamegraph", "cargo install flamegraph", instead="`uses: perf` gives the same folded stacks"),
    invocations=invocations,
    outputs=leaves(perf.DATA, _DRAWN),
    parse=parse,
)
