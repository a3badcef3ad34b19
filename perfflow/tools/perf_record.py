"""``perf``: stacks of any program sampled by the kernel, folded here from the text of ``perf script``.

``perf record`` falls back to the timer ``cpu-clock`` where there are no hardware counters; what was used is read from
the samples. The inlined callers and source lines come from debug information, so compile with ``-g``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Profile, Usage
from perfflow.samples.stacks import Frame, Stack, hotspots_of, write_folded
from perfflow.tools import tool_files
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Role

NAME = "perf"
ROLE = Role.PROFILE
DETERMINISTIC = False
PROGRAM = "perf"
VERSION_ARGV: tuple[str, ...] = ("--version",)
INSTALL = "apt-get install linux-perf"
METRICS: frozenset[str] = frozenset()
INTERPRETER = ""

_DATA = "perf.data"
_SCRIPT = "perf.script"
_FOLDED = "stacks.folded"
_FEW = 100
_DEEPEST = 512
_FIELDS = "comm,pid,tid,time,event,ip,sym,dso,srcline"
_TIMERS = frozenset({"cpu-clock", "task-clock"})

# `hot  3980/3980    919.305178: cpu-clock:ppp: ` with the only frame on the same line if there are no call graphs.
_SAMPLE = re.compile(
    r"\s*(?P<comm>\S.{0,40}?)\s+(?:\d{1,10}/)?\d{1,10}\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+"
    r"(?:\d+\s+)?(?P<event>\S+):(?:\s+(?P<rest>.*))?\Z"
)
_FRAME = re.compile(r"\s*(?P<ip>[0-9a-f]{1,16})\s+(?P<symbol>\S.*)\Z")
_OFFSET = re.compile(r"\+0x[0-9a-f]+\Z")
_INLINED = " (inlined)"
_SOURCE = re.compile(r"(?P<file>.*\S):(?P<line>\d{1,9})(?: \(discriminator \d+\))?\Z")


class CallGraph(StrEnum):
    """How perf finds the callers of a sampled function."""

    DWARF = "dwarf"
    FP = "fp"
    NONE = "none"


class Options(CommandOptions):
    """``with`` keys of ``uses: perf``."""

    frequency: int = Field(default=999, ge=1, le=100_000, description="Samples per second of CPU time.")
    call_graph: CallGraph = Field(
        default=CallGraph.DWARF,
        description="dwarf (8 KiB per sample, right for all code with debug information), fp (small, needs "
        "-fno-omit-frame-pointer and loses some callers even so) or none.",
    )
    event: str = Field(
        default="",
        pattern=r"^(?:[A-Za-z0-9_][A-Za-z0-9_:/=.,-]*)?$",
        description="The event to sample, as `perf list` names it; by default perf's choice for this machine.",
    )


OPTIONS = Options


@dataclass(slots=True)
class _Sample:
    """One sample: its frames leaf first, as perf prints them."""

    comm: str
    event: str
    frames: list[tuple[Frame, str]] = field(default_factory=list)


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Record the command, then turn the samples into text."""
    options, program, data = cast(Options, call.options), call.program or PROGRAM, str(call.folder / _DATA)
    event = ("-e", options.event) if options.event else ()
    graph = {CallGraph.DWARF: "dwarf,8192", CallGraph.FP: "fp", CallGraph.NONE: ""}[options.call_graph]
    record = (
        # Without --no-bpf-event a record takes a second longer; -N leaves the user's build-id cache alone.
        *(program, "record", "-q", "--no-bpf-event", "-N", *event, "-F", str(options.frequency)),
        *(("--call-graph", graph) if graph else ()),
        *("-o", data, "--", *call.command),
    )
    script = (program, "script", "-i", data, "-F", _FIELDS, "--full-source-path")
    # perf script would otherwise ask servers on the network for debug information.
    return Invocation(record), Invocation(script, env={"DEBUGINFOD_URLS": ""}, stdout=_SCRIPT)


def outputs(call: Call) -> tuple[Path, ...]:
    """The recording; its text may be empty, for which ``parse`` has a better reason."""
    return (call.folder / _DATA,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Fold the samples into ``stacks.folded`` and rank functions by their own samples.

    Raises ToolOutputError if there are no samples, or if the text is cut or nonsense.
    """
    stacks: Counter[Stack] = Counter()
    leaves: Counter[Frame] = Counter()
    events: Counter[str] = Counter()
    for sample in _samples(tool_files.read_lines(call.folder / _SCRIPT)):
        events[sample.event] += 1
        named = [frame for frame, _ in sample.frames]
        stacks[sample.comm, *(frame.name for frame in reversed(named))] += 1
        leaves[_leaf(sample)] += 1
    total = sum(stacks.values())
    if not total:
        raise ToolOutputError("perf took no sample: give the program more work or a higher `frequency`")
    (call.folder / _FOLDED).write_text(write_folded(stacks), encoding="utf-8")
    warnings = _warnings(total, events, cast(Options, call.options))
    return Parsed((), hotspots_of(leaves.items(), source=NAME), (Profile(_FOLDED, "folded"),), warnings)


def enumerate(call: Call) -> None:
    """One command is one benchmark."""


def _samples(lines: Iterable[str]) -> Iterator[_Sample]:
    """Yield the samples of ``perf script``'s text. Raises ToolOutputError for a line that is none of it, or a cut."""
    sample: _Sample | None = None
    is_open = False
    for line in lines:
        if not line.strip():
            is_open = False
            continue
        header = None if line.startswith("\t") else _SAMPLE.match(line)
        if header and sample:
            yield sample
        if header:
            # An empty line ends a stack below its header.
            is_open = not header["rest"]
            sample = _Sample(tool_files.clean_name(header["comm"]), tool_files.clean_name(header["event"]))
        if not sample:
            raise ToolOutputError(f"{_SCRIPT} does not start with a sample: {line[:80]!r}")
        if frame := header["rest"] if header else line:
            _add(sample, frame)
    if is_open:
        raise ToolOutputError(f"{_SCRIPT} is cut short: its last stack has no end")
    if sample:
        yield sample


def _add(sample: _Sample, line: str) -> None:
    """Add a frame, or the source line below a frame, to the sample."""
    is_source = line.startswith("  ") and not line.startswith("   ")
    match = None if is_source else _FRAME.match(line)
    if match:
        if len(sample.frames) >= _DEEPEST:
            raise ToolOutputError(f"{_SCRIPT} holds a stack of more than {_DEEPEST} frames")
        sample.frames.append(_frame(match["symbol"]))
    elif is_source and sample.frames:
        sample.frames[-1] = _with_source(sample.frames[-1], line.strip())
    else:
        raise ToolOutputError(f"{_SCRIPT} holds a line that is no frame: {line[:80]!r}")


def _frame(text: str) -> tuple[Frame, str]:
    """Return the frame of ``symbol (library)`` and the library's name; unknown symbols are called by their library."""
    symbol, library = _apart(text.removesuffix(_INLINED).rstrip())
    name = _OFFSET.sub("", symbol)
    if name in {"", "[unknown]"}:
        name = f"[{library}]" if library else "[unknown]"
    return Frame(tool_files.clean_name(name)), tool_files.clean_name(library) if library else ""


def _apart(text: str) -> tuple[str, str]:
    """Split ``f(int) (/usr/lib/x.so)`` at the library, whose path may itself hold parentheses."""
    if not text.endswith(")"):
        return text, ""
    for start in (" (/", " ([", " ("):
        symbol, found, library = text.partition(start)
        if found:
            path = (start[2:] + library)[:-1].removesuffix(" (deleted)")
            return symbol, Path(path).name.strip("[]")
    return text, ""


def _with_source(frame: tuple[Frame, str], text: str) -> tuple[Frame, str]:
    """Add ``/src/hot.c:4``; ``??:0`` and ``libc.so.6[27249]`` say that there is no source."""
    match = _SOURCE.match(text.removesuffix(_INLINED))
    if not match or match["file"].startswith("??") or match["line"] == "0":
        return frame
    known, library = frame
    return Frame(known.name, tool_files.clean_name(match["file"]), int(match["line"])), library


def _leaf(sample: _Sample) -> Frame:
    """Return the frame the sample counts for; without a source it carries the library in its name."""
    if not sample.frames:
        return Frame("[unknown]")
    frame, library = sample.frames[0]
    if frame.file or not library or frame.name.startswith("["):
        return frame
    return Frame(f"{frame.name} ({library})")


def _warnings(total: int, events: Counter[str], options: Options) -> tuple[str, ...]:
    """Say when there are too few samples, and when perf did not sample what it prefers or was asked for."""
    found = []
    if total < _FEW:
        found.append(
            f"{total} samples are few: give the program more work, or a higher `frequency`, for shares to mean much"
        )
    used = events.most_common(1)[0][0].split(":")[0]
    if used in _TIMERS and options.event.split(":")[0] != used:
        found.append(f"sampled by the timer {used}: this machine offers perf no hardware counter")
    return tuple(found)
