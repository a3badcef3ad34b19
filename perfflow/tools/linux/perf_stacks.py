"""A recording of perf -> folded stacks and hotspots, by the text that drivers/perf_text.py makes of it.

A sample counts for the innermost function of the project's own code on its stack: what that calls in libraries is its
doing. Where no frame is known to be the project's own, it counts for the function that was running. Its weight is its
period: perf begins with short ones and adapts, so that samples of equal weight would show the start of a program.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import FEW_SAMPLES, Hotspot, Parsed, Profile
from perfflow.samples.stacks import Frame, Stack, costs_of, hotspots_of, write_folded
from perfflow.tools import own_code
from perfflow.tools.adapter import CommandOptions, Invocation, Program
from perfflow.tools.linux import costly_calls, perf_samples
from perfflow.tools.linux.perf_samples import Sample

PERF = Program("perf", "apt-get install linux-perf")
# Without --no-bpf-event a record takes a second longer; -N leaves the user's build-id cache alone.
RECORD = ("record", "-q", "--no-bpf-event", "-N")
SCRIPT = "perf.script"
"""The text of a recording; those of several, one after the other, are that of all."""
_FOLDED = "stacks.folded"
_FEW = 100
_FIELDS = "comm,pid,tid,time,period,event,ip,sym,dso,srcline"
_TEXT = (sys.executable, "-I", "-S", str(Path(__file__).with_name("drivers") / "perf_text.py"))
_NO_SOURCES = (
    "no sample has a source file of the project's own: build with debug information (-g; in Rust `debug = 1`) for "
    "files, lines and inlined callers"
)
_TELLING = 0.25
"""The share of a hotspot's samples from which on one kind of call below it is its cause."""
_TIMERS = frozenset({"cpu-clock", "task-clock"})

_Place = tuple[str, str]


class Sampling(CommandOptions):
    """``with`` keys of the tools that record with perf."""

    frequency: int = Field(default=999, ge=1, le=100_000, description="Samples per second of CPU time.")
    inline_limit: float = Field(
        default=60,
        ge=0,
        le=3600,
        description="Seconds that finding inlined callers may take, 0 for none; where it takes longer, functions stand "
        "for what was inlined into them.",
    )


def text(program: str, data: str, limit: float) -> Invocation:
    """Return the process that writes the text of a recording; inlined callers may take ``limit`` seconds."""
    script = (program, "script", "-i", data, "-F", _FIELDS, "--full-source-path")
    # perf script would otherwise ask servers on the network for debug information.
    return Invocation((*_TEXT, f"{limit:g}", *script), env={"DEBUGINFOD_URLS": ""}, stdout=SCRIPT)


def parse(folder: Path, source: str, event: str = "") -> Parsed:
    """Fold the samples into ``stacks.folded`` and rank functions by the samples that count for them.

    ``event`` is what perf was asked for. Raises ToolOutputError if there are no samples, or if the text is cut or
    nonsense.
    """
    notes: list[str] = []
    events: dict[str, _Found] = {}
    for sample in perf_samples.read(folder / SCRIPT, notes):
        events.setdefault(sample.event, _Found()).take(sample)
    if not events:
        raise ToolOutputError("perf took no sample: give the program more work or a higher `frequency`")
    # Samples of several events are no common measure: the one named first, by perf or the workflow, is ranked.
    found = next(iter(events.values()))
    (folder / _FOLDED).write_text(write_folded(found.stacks), encoding="utf-8")
    if not found.own:
        notes.append(_NO_SOURCES)
    # What costs are counted in is samples: of unequal ones the mean sample.
    mean = found.total / found.samples
    weights = found.blamed if mean == 1 else {frame: weight / mean for frame, weight in found.blamed.items()}
    costs = costs_of(weights.items(), "time")
    warnings = (*_warnings(found.samples, list(events), event), *notes)
    return Parsed((), found.hotspots(source), (Profile(_FOLDED, "folded"),), warnings, costs)


@dataclass(slots=True)
class _Found:
    """What the samples of one event add up to by their periods; places are functions by name and file."""

    samples: int = 0
    total: int = 0
    stacks: Counter[Stack] = field(default_factory=Counter)
    own: int = 0
    blamed: Counter[Frame] = field(default_factory=Counter)
    selves: Counter[_Place] = field(default_factory=Counter)
    inclusive: Counter[_Place] = field(default_factory=Counter)
    below: dict[_Place, Counter[tuple[str, str]]] = field(default_factory=dict)

    def take(self, sample: Sample) -> None:
        """Count one sample."""
        weight = max(1, sample.period)
        self.samples += 1
        self.total += weight
        frames = [frame for frame, _ in sample.frames]
        self.stacks[sample.comm, *(frame.name for frame in reversed(frames))] += weight
        at = own_code.innermost(frames)
        self.own += at is not None
        leaf = sample.leaf
        blamed = leaf if at is None else frames[at]
        place = (blamed.name, blamed.file)
        self.blamed[blamed] += weight
        self.selves[place] += 0 if at else weight
        for each in {place} | {(frame.name, frame.file) for frame in frames}:
            self.inclusive[each] += weight
        kind = costly_calls.kind_below([frame.name for frame in reversed(frames[:at])] if at else [])
        if kind[0]:
            self.below.setdefault(place, Counter())[kind] += weight

    def hotspots(self, source: str) -> tuple[Hotspot, ...]:
        """Rank places by the samples that count for them."""
        return tuple(self._explained(spot) for spot in hotspots_of(self.blamed.items(), source=source))

    def _explained(self, spot: Hotspot) -> Hotspot:
        place, total = (spot.location, spot.file), self.total
        cause = costly_calls.said(self.below.get(place, Counter()), round(spot.share * total), _TELLING)
        if not cause and (kind := costly_calls.kind_of(spot.location)):
            cause = f"supposed: {kind}, by the function's name"
        own, whole = self.selves[place] / total, self.inclusive[place] / total
        return replace(spot, cause=cause, self_share=own, inclusive_share=whole)


def _warnings(total: int, events: Sequence[str], wanted: str) -> Iterator[str]:
    """Say when there are too few samples, when perf sampled something else than asked for, and what is not ranked."""
    used, *others = (name.split(":")[0] for name in events)
    if total < _FEW:
        yield f"{total} {FEW_SAMPLES}: give the program more work, or a higher `frequency`, for shares to mean much"
    if used in _TIMERS and wanted.split(":", maxsplit=1)[0] != used:
        yield f"sampled by the timer {used}: this machine offers perf no hardware counter"
    if others:
        yield f"functions are ranked by {used} alone; profile {' and '.join(others)} in a step of its own"
