"""What events say of a run, typed: ``from_json`` makes these of an event's parts, and ``to_json`` the parts of these.

What has a default may be missing in events of earlier versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal

from perfflow.model.kernels import KernelOf
from perfflow.model.later import dataclass
from perfflow.model.memory_curve import MemoryCurveOf
from perfflow.model.plain_data import FLAT, SPARSE
from perfflow.model.readings import Hotspot, Peak, Side, StackCounts
from perfflow.model.source_place import NOWHERE, SourcePlace


@dataclass(frozen=True)
class BisectQuestion:
    """What a bisection's answer depends on beside its revisions: steps, glob, metric, and which commits count."""

    only: tuple[str, ...]
    benchmark: str
    metric: str
    first_parent: bool


@dataclass(frozen=True)
class PinnedItem:
    """What a run used of another repository; see ``model.result.LibraryItem``."""

    reference: str
    commit: str
    sha256: str


@dataclass(frozen=True)
class RunFacts:
    """Which run this is. ``accept``, ``guard`` and ``ruled_out`` are the optimize stage's, None without one.

    ``library`` is None where nothing came from other repositories.
    Times are RFC 3339 in UTC; ``finished`` is None while it has not ended. ``budget`` is in s.
    """

    id: str
    workflow: str
    component: str
    started: str
    seed: int
    file: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    version: str = ""
    budget: float | None = None
    command: tuple[str, ...] = ()
    out: str = ""
    data_missing: tuple[str, ...] = ()
    library: tuple[PinnedItem, ...] | None = field(default=None, metadata=SPARSE)
    template: str = "report"
    accept: float | None = field(default=None, metadata=SPARSE)
    guard: tuple[str, ...] | None = field(default=None, metadata=SPARSE)
    ruled_out: Mapping[str, str] | None = field(default=None, metadata=SPARSE)
    warnings: tuple[str, ...] = ()
    across_machines: bool = False
    bisect: BisectQuestion | None = None
    finished: str | None = None
    resumed: tuple[str, ...] = ()
    judged_by: tuple[str, ...] = ()


def no_run() -> RunFacts:
    """Return the facts of events that have none, or not yet: the id is ''."""
    return RunFacts(id="", workflow="", component="", started="", seed=0)


@dataclass(frozen=True)
class Expectation:
    """What calibrating this machine found of a metric of a benchmark; see ``model.result.Expected``."""

    benchmark: str
    metric: str
    noise: float | None
    smallest_change: float | None
    within: float | None
    calibrated: str


@dataclass(frozen=True)
class Touching:
    """A commit that touched a function; ``revision`` is '' where it stands for changes that are not committed."""

    revision: str
    subject: str
    author: str = ""


@dataclass(frozen=True)
class Blame:
    """The commits that touched a function that got slower, newest first, and what to know of them."""

    benchmark: str
    function: str
    file: str
    commits: tuple[Touching, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Branch:
    """The branch that holds what was kept; both '' where there is none, for the ``reason``."""

    name: str = ""
    revision: str = ""
    reason: str = field(default="", metadata=SPARSE)


@dataclass(frozen=True)
class Scaling:
    """Of a size of a benchmark whose growth is fitted: the matrix key, the size, its own name, that of all together."""

    key: str
    size: float
    cell: str
    of: str


@dataclass(frozen=True)
class PlannedStep:
    """A step as the run set out to do it. ``technique`` and ``why`` are a candidate's, None of other steps.

    ``benchmark`` is the name or glob that it measures, ``expect`` globs of benchmarks that should appear. ``allowed``:
    its failure is. ``selected``: it was to run. ``confirms`` are globs of the synthetic benchmarks that it confirms.
    """

    id: str
    stage: str
    tool: str
    role: str
    compare: bool = field(default=False, metadata=SPARSE)
    benchmark: str = ""
    metric: str | None = None
    expect: tuple[str, ...] = ()
    allowed: bool = False
    selected: bool = True
    technique: str | None = field(default=None, metadata=SPARSE)
    why: str | None = field(default=None, metadata=SPARSE)
    scaling: Scaling | None = field(default=None, metadata=SPARSE)
    scenario: str = field(default="", metadata=SPARSE)
    confirms: tuple[str, ...] = field(default=(), metadata=SPARSE)
    precision: str = field(default="", metadata=SPARSE)
    in_one_tree: bool = field(default=False, metadata=SPARSE)


@dataclass(frozen=True)
class StoredProfile:
    """A profile on disk, its path relative to the run's folder; ``benchmark`` where its step profiles several.

    ``tool`` made it, '' in events of earlier versions; ``stacks`` says what its folded stacks are, if it holds any.
    """

    tree: Side
    path: str
    kind: str
    sha256: str
    benchmark: str = field(default="", metadata=SPARSE)
    tool: str = field(default="", metadata=SPARSE)
    stacks: StackCounts | None = field(default=None, metadata=SPARSE)


@dataclass(frozen=True)
class FoundHotspot:
    """A hotspot of one side, and what the source says of its place."""

    spot: Hotspot = field(metadata=FLAT)
    tree: Side
    place: SourcePlace = field(default=NOWHERE, metadata=FLAT)


@dataclass(frozen=True)
class SideCost:
    """What a function cost on one side, in the profiler's unit: its share (0..1), and the variance of that if known."""

    count: float
    share: float
    variance: float | None


@dataclass(frozen=True)
class FunctionCost:
    """What a function cost on both sides; ``region`` is the workflow's name of the area it belongs to."""

    function: str
    file: str
    line: int
    crate: str
    region: str
    baseline: SideCost
    candidate: SideCost

    def on(self, side: Side) -> SideCost:
        """What it cost on a side."""
        return self.candidate if side is Side.CANDIDATE else self.baseline


@dataclass(frozen=True)
class BenchmarkCosts:
    """What the functions of a benchmark cost by one metric, the costliest first; ``totals`` are of all functions.

    ``kind`` is ``counted``, ``sampled`` or ``timed``; ``ops`` the operations of a call, None where unknown.
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


@dataclass(frozen=True)
class Effect:
    """A change as a share of the tree it was measured against, up is better, and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class TryFigures:
    """The row by which a try was judged; ``before`` and ``after`` are in base units."""

    benchmark: str
    metric: str
    unit: str
    pairs: int
    before: float | None
    after: float | None
    effect: Effect | None = field(default=None, metadata=SPARSE)


@dataclass(frozen=True)
class LastWords:
    """What the command said for which a try was rejected; ``log`` is relative to the run's folder."""

    tail: tuple[str, ...]
    log: str


@dataclass(frozen=True)
class TriedChange:
    """What a try changed: code, '' where the diff is too long for an event, environment and parameters."""

    diff: str = ""
    diff_file: str = ""
    files: tuple[str, ...] = ()
    lines: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Try:
    """One entry of the optimize stage's ledger; ``bound`` is the share of its hotspot, the most it could bring."""

    id: str
    technique: str
    why: str
    decision: Literal["accepted", "rejected", "skipped"]
    reason: str
    bound: float | None = None
    figures: TryFigures | None = field(default=None, metadata=FLAT)
    words: LastWords | None = field(default=None, metadata=FLAT)
    change: TriedChange | None = field(default=None, metadata=FLAT)

    @property
    def effect(self) -> Effect | None:
        """What it brought, None where that is not known."""
        return self.figures.effect if self.figures else None


@dataclass(frozen=True)
class Found:
    """What a step found beside its samples; ``devices`` are the GPUs that it was about."""

    devices: tuple[str, ...] = field(default=(), metadata=SPARSE)
    profiles: tuple[StoredProfile, ...] = field(default=(), metadata=SPARSE)
    hotspots: tuple[FoundHotspot, ...] = field(default=(), metadata=SPARSE)
    peaks: tuple[Peak, ...] = field(default=(), metadata=SPARSE)
    kernels: tuple[KernelOf, ...] = field(default=(), metadata=SPARSE)
    costs: tuple[BenchmarkCosts, ...] = field(default=(), metadata=SPARSE)
    optimizations: tuple[Try, ...] = field(default=(), metadata=SPARSE)
    memory: tuple[MemoryCurveOf, ...] = field(default=(), metadata=SPARSE)

    def __add__(self, other: Found) -> Found:
        both = {about.name: getattr(self, about.name) + getattr(other, about.name) for about in fields(self)}
        return Found(**both)


NOTHING = Found()


@dataclass(frozen=True)
class StepRecord:
    """How a step ended, and what it found. Times are in s; ``detail`` is what a check says, ``tail`` ends its log."""

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
    not_started: bool = False
    devices: tuple[str, ...] = ()
    profiles: tuple[StoredProfile, ...] = ()
    hotspots: tuple[FoundHotspot, ...] = ()
    peaks: tuple[Peak, ...] = ()
    kernels: tuple[KernelOf, ...] = ()
    costs: tuple[BenchmarkCosts, ...] = ()
    optimizations: tuple[Try, ...] = ()
    memory: tuple[MemoryCurveOf, ...] = ()
