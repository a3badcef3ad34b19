"""The typed contents of a run's events. ``from_json`` reads them from an event, ``to_json`` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from perfflow.model.kernels import KernelResult
from perfflow.model.plain_data import FLAT, SPARSE
from perfflow.model.readings import Hotspot, Peak, Side, StackCounts
from perfflow.model.result import CommitInfo, MemoryResult, Optimization
from perfflow.model.targets import NOWHERE, SourcePlace


@dataclass(frozen=True)
class BisectQuestion:
    """The parameters of a bisection besides its revisions: steps, benchmark globs, metric, and which commits to try."""

    only: tuple[str, ...]
    benchmarks: tuple[str, ...]
    metric: str
    first_parent: bool


@dataclass(frozen=True)
class Alteration:
    """What another program changed while perfflow ran, so that the run's figures cannot be trusted.

    ``where``: the numbers of lines of ``events.jsonl``, or paths of files in perfflow's own package.
    """

    what: Literal["events", "perfflow"]
    where: tuple[str, ...]


@dataclass(frozen=True)
class UnchangedBenchmark:
    """A benchmark that a step did not time, because both sides execute and read the same.

    ``by``: whether all executed and read ``files`` are equal, or all executed ``functions``; with their numbers.
    """

    step: str
    benchmark: str
    by: Literal["files", "code"]
    files: int = 0
    functions: int = 0
    audited: bool = field(default=False, metadata=SPARSE)
    """Whether it is timed all the same, to check the method."""
    native: bool = field(default=False, metadata=SPARSE)
    """Whether it is code of native programs, which lies at other addresses on the other side."""


@dataclass(frozen=True)
class ExecutedLines:
    """The lines of changed files that the benchmarks of a step execute on head, and the lines that contain code."""

    executed: Mapping[str, tuple[int, ...]]
    known: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Blame:
    """The commits that touched a slower function, newest first, and a note about them.

    ``defined_in`` and ``defined_at`` are the file and line of its definition, found by its name if the profile has no
    file; else '' and 0.
    """

    benchmark: str
    function: str
    file: str
    commits: tuple[CommitInfo, ...] = ()
    note: str = ""
    defined_in: str = field(default="", metadata=SPARSE)
    defined_at: int = field(default=0, metadata=SPARSE)


@dataclass(frozen=True)
class Branch:
    """The branch with the accepted candidates; name and revision are '' if there is none, for the ``reason``."""

    name: str = ""
    revision: str = ""
    reason: str = field(default="", metadata=SPARSE)


@dataclass(frozen=True)
class StoredProfile:
    """A profile on disk, with its path relative to the run's folder; ``benchmark`` is set if its step profiles several.

    ``tool`` created it; ``stacks`` describes its folded stacks, if any.
    """

    tree: Side
    path: str
    kind: str
    sha256: str
    benchmark: str = field(default="", metadata=SPARSE)
    tool: str = ""
    stacks: StackCounts | None = field(default=None, metadata=SPARSE)


@dataclass(frozen=True)
class FoundHotspot:
    """A hotspot of one side, and its place in the source."""

    spot: Hotspot = field(metadata=FLAT)
    tree: Side
    place: SourcePlace = field(default=NOWHERE, metadata=FLAT)


@dataclass(frozen=True)
class SideCost:
    """The cost of a function on one side in the profiler's unit, its share (0..1), and the share's variance."""

    count: float
    share: float
    variance: float | None


@dataclass(frozen=True)
class FunctionCost:
    """The cost of a function on both sides; ``region`` is the workflow's name for its area of the code."""

    function: str
    file: str
    line: int
    crate: str
    region: str
    baseline: SideCost
    candidate: SideCost

    def on(self, side: Side) -> SideCost:
        """Return the cost on a side."""
        return self.candidate if side is Side.CANDIDATE else self.baseline


@dataclass(frozen=True)
class BenchmarkCosts:
    """The costs of a benchmark's functions by one metric, the costliest first; ``totals`` are over all functions.

    ``kind`` is ``counted``, ``sampled`` or ``timed``; ``ops`` is the number of operations per call, None if unknown.
    """

    benchmark: str
    metric: str
    tool: str
    kind: str
    ops: int | None
    note: str
    calls: Mapping[Side, int]
    totals: Mapping[Side, float]
    functions: tuple[FunctionCost, ...]


@dataclass(frozen=True, kw_only=True)
class StepFindings:
    """The findings of a step besides its samples; ``devices`` are the GPUs that it used."""

    devices: tuple[str, ...] = field(default=(), metadata=SPARSE)
    profiles: tuple[StoredProfile, ...] = field(default=(), metadata=SPARSE)
    hotspots: tuple[FoundHotspot, ...] = field(default=(), metadata=SPARSE)
    peaks: tuple[Peak, ...] = field(default=(), metadata=SPARSE)
    kernels: tuple[KernelResult, ...] = field(default=(), metadata=SPARSE)
    costs: tuple[BenchmarkCosts, ...] = field(default=(), metadata=SPARSE)
    optimizations: tuple[Optimization, ...] = field(default=(), metadata=SPARSE)
    memory: tuple[MemoryResult, ...] = field(default=(), metadata=SPARSE)

    def __add__(self, other: StepFindings) -> StepFindings:
        both = {about.name: getattr(self, about.name) + getattr(other, about.name) for about in fields(self)}
        return StepFindings(**both)


NOTHING = StepFindings()


@dataclass(frozen=True)
class StepRecord(StepFindings):
    """How a step ended, with its findings. Times are in s; ``detail`` is a check's message, ``tail`` ends the log."""

    id: str
    status: str
    reason: str = ""
    seconds: float = 0.0
    waited: float = 0.0
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    warnings: tuple[str, ...] = ()
    log: str = ""
    tail: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    identical: bool = False
    rebuilt: bool = False
    cautions: tuple[str, ...] = ()
    few_samples: bool = False
    not_started: bool = False
    out_of_time: bool = False
