"""result.json: the one file in which measuring and judging meet, and the only input of every report.

Values are in base units; ``change`` is candidate/baseline - 1; ``speedup`` above 1 is better whatever the direction.
A number that is not finite is null.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from perfflow.model.result_base import PART, Number
from perfflow.model.result_kernels import KernelResult, OnGpu
from perfflow.model.result_nodes import NodeResult
from perfflow.model.result_routes import RouteTaken
from perfflow.model.result_samples import Bounds, LayoutsOf, MemoryResult, Sample, SizePoint

SCHEMA: Literal["perfflow.result/1"] = "perfflow.result/1"
GATE = "review:gate:perf"
HAS_TARGET = "has a target"
"""Why a row is gating although another metric times the benchmark."""
GUARDED = "is guarded"
"""Why a row gates that the author named under ``guard``."""
MEMORY_GREW = "memory grew"
"""Why a row of memory gates that nobody named."""
BESIDE_WHAT_DECIDES = (HAS_TARGET, GUARDED, MEMORY_GREW)
"""Why a row gates beside the one that decides about its benchmark."""
CONCERN, ACCEPTED, ALLOWED = "concern: ", "accepted until ", "failed (allowed): "
UNMEASURED = "nothing was measured: "
WARNED = (CONCERN, ACCEPTED, ALLOWED, UNMEASURED)
"""How those reasons begin that stand beside a verdict without being why it is what it is."""
CURRENT_RULES = "rules=current"
"""Among what a run was judged again by: the rules of this version instead of its own."""


class ResultPart(BaseModel):
    """Base of every part but those about kernels."""

    model_config = PART


class LibraryItem(ResultPart):
    """A file of another repository that the run used, as ``perfflow.lock`` pins it."""

    reference: str
    commit: str
    sha256: str


class RunInfo(ResultPart):
    """Which run this is. Times are RFC 3339 in UTC; ``seconds`` is what it took.

    ``command`` and ``across_machines`` are of stored results that were compared, ``warnings`` of the run as a whole.
    """

    id: str
    workflow: str
    component: str
    started: str
    finished: str | None
    seconds: float | None = None
    seed: int
    file: str = ""
    params: dict[str, Any] = {}
    version: str = ""
    budget: float | None = None
    """Seconds for all measuring together, where there was a limit."""
    judged_by: list[str] = []
    """Other thresholds than the run's own, as they were given to judge it again."""
    interrupted: bool = False
    digest: str = ""
    """Of the workflow and its parameters, by which a run is resumed."""
    resumed: list[str] = []
    """When the run was resumed."""
    template: Literal["report", "analysis"] = "report"
    """Layout of the report."""
    accept: Number = None
    """The least proven effect for which a candidate is kept, as a share; None without an optimize stage."""
    guard: list[str] = []
    """Globs of benchmarks that the optimize stage was told to guard: all of their metrics gate."""
    ruled_out: dict[str, str] = {}
    """Techniques of the optimization hierarchy that have no candidate, and why."""
    command: list[str] = []
    out: str = ""
    """The folder that a run was given with `--out`; '' where it lies among the project's runs."""
    across_machines: bool = False
    data_missing: list[str] = []
    """Globs under ``data`` that matched no file when the run started."""
    library: list[LibraryItem] = []
    warnings: list[str] = []


class Gate(ResultPart):
    """What other systems read."""

    name: str = GATE
    status: Literal["pass", "fail"]


class StepResult(ResultPart):
    """How one step went."""

    id: str
    stage: str
    tree: str
    tool: str
    status: Literal["done", "failed", "skipped", "timeout", "cached"]
    reason: str
    seconds: float
    waited: float = 0.0
    """Seconds for which others had the machine, beside those of the step itself."""
    argv: list[str]
    exit_code: int | None
    warnings: list[str]
    role: str = "work"
    benchmark: str = ""
    log: str = ""
    tail: list[str] = []
    """Of a step that failed: the last lines of its log."""
    outputs: dict[str, str] = {}
    allowed: bool = False
    metric: str | None = None
    expect: list[str] | None = None
    """None in files of earlier versions, which cannot be judged again."""
    selected: bool = True
    technique: str = ""
    why: str = ""
    ended: bool = True
    identical: bool = False
    not_started: bool = False
    scaling: dict[str, Any] | None = None
    """Of a size of a benchmark whose growth is fitted: its key, size, own name and that of all sizes together."""
    scenario: str = ""
    confirms: list[str] = []
    precision: str = ""
    in_one_tree: bool = False
    """Whether it compares two commands, settings or variants where it stands, also in a gate."""
    devices: list[str] = []
    """GPUs on which it measured, by their drivers' names; empty of what ran on the machine's own processor."""


class Expected(ResultPart):
    """What calibrating this machine found: spread of ln ratios, smallest change told, in how many seconds, when."""

    noise: Number
    smallest_change: Number
    within: Number
    calibrated: str


Decision = Literal["improved", "regressed", "same", "unproven", "not measured", "new", "removed"]
Level = Literal["ok", "concern", "action"]


class Benchmark(ResultPart):
    """One metric of one benchmark. ``gating`` rows are those a verdict rests on.

    ``leading`` rows are those a verdict would rest on, if two sets without pairs had any.
    """

    name: str
    step: str
    tool: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    confidence: float | None
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None
    speedup: Bounds | None
    decision: Decision | None
    level: Level | None
    gating: bool
    pairs: int
    paired: bool = True
    leading: bool = False
    design: str | None = None
    """How its samples were taken; None in files of earlier versions, which cannot be judged again."""
    stopped: str = ""
    """Why its measuring ended: settled, last look, budget, total budget; empty where the workflow says how many."""
    layouts: LayoutsOf | None = None
    as_built: str = ""  # why no code layouts were drawn where they would have decided
    more: int | None
    seconds: Number = None
    """What taking the samples took; None in files of earlier versions."""
    warnings: list[str]
    why: str = ""
    same_as: str = ""
    """Of a rate: the time that it is the inverse of in all samples, so that both are one measurement."""
    expected: Expected | None = None
    accepted: str = ""
    """``until DATE: WHY`` of the trade-off by which a row passes that is beyond its own action threshold."""
    node: str = ""
    """The machine of a cluster that measured it; '' of what was measured where the run was started."""


class TargetResult(ResultPart):
    """One requirement on one benchmark."""

    benchmark: str
    metric: str
    statistic: str
    requirement: str
    measured: Number
    low: Number
    high: Number
    unit: str
    status: Literal["met", "not met", "unproven", "not measured"]
    detail: str = ""
    peak: Number = None
    """What a share ``of peak`` is of, in base units; ``peak_source`` says where it is from."""
    peak_source: str = ""


class PeakResult(ResultPart):
    """The most that the machine, or a device of it, can do, in base units.

    ``precision`` goes with ``flops``. ``step`` found it; it is '' for the workflow's own ``peaks``, whose ``how`` is
    empty, and for what is published of a GPU, where that names the document.
    """

    metric: str
    precision: str = ""
    value: float
    unit: str
    step: str = ""
    how: str = ""
    device: str = ""
    """The GPU that it is the peak of; '' is the machine's own processor, or whatever the workflow means."""


class RooflinePoint(ResultPart):
    """Where one side of a benchmark stands under the roof.

    ``intensity`` is in FLOP/B; ``attained`` and its bounds, and ``attainable``, are in FLOP/s; ``share`` is one by the
    other. Those and ``bound`` are None where a peak is not known. ``precision`` is '' where nobody says it: then the
    highest peak of all precisions is the roof. ``note`` says what makes the figure doubtful.
    """

    benchmark: str
    tree: Literal["baseline", "candidate"]
    precision: str = ""
    intensity: float
    attained: Bounds
    attainable: Number = None
    share: Number = None
    bound: Literal["memory", "compute", "latency"] | None = None
    note: str = ""
    device: str = ""
    """The GPU whose roof it is; '' is the machine's own processor."""


class Grown(ResultPart):
    """How one side grows: the exponent of the size, and the class whose curve comes closest to it.

    ``points`` are what was measured, ``curve`` what was fitted, with the band that the exponent's interval leaves it.
    """

    exponent: Bounds
    best: str
    sizes: list[float]
    points: list[SizePoint] = []
    curve: list[SizePoint] = []


class Growth(ResultPart):
    """How a metric grows with the matrix key that ``scaling`` names, on each side where there are two.

    ``worse`` and ``better`` are proven: the exponents' intervals lie apart, and in other classes.
    """

    benchmark: str
    metric: str
    key: str
    baseline: Grown | None
    candidate: Grown | None
    decision: Literal["worse", "better", "same", "unproven"] | None
    detail: str = ""


class StacksResult(ResultPart):
    """What the counts of folded stacks are; see ``model.readings.StackCounts``."""

    unit: str
    metric: str = ""
    by_thread: bool = False
    is_call_pairs: bool = False


class ProfileResult(ResultPart):
    """A profile on disk, its path relative to the run's folder; ``stacks`` where it holds folded stacks."""

    step: str
    benchmark: str
    tree: str
    path: str
    sha256: str
    kind: str = ""
    tool: str = ""
    """What made it; '' in files of earlier versions."""
    stacks: StacksResult | None = None


class HotspotResult(ResultPart):
    """A place in the code with its share (0..1); ``impact`` is what removing it would save, by Amdahl's law.

    ``share`` is what it is ranked by: of a sampling profiler, the samples of the function itself and of what it calls
    in libraries. ``self_share`` is without any callee, ``inclusive_share`` with all of them; null where unknown.
    """

    rank: int
    step: str
    benchmark: str
    tree: str
    location: str
    file: str
    line: int
    share: float
    unit: str
    source: str
    cause: str
    impact: str
    self_share: float | None = None
    inclusive_share: float | None = None
    function: str = ""
    """Of Python in the tree: the function that the line stands in, by its source; ``<module>`` where in none."""
    begins: int = 0
    """The first line of that function."""
    uses: list[str] = []
    """What the source shows the line to do, such as ``in a loop``."""


class Cheaper(ResultPart):
    """A technique before another one in the optimization hierarchy, and what had become of it when that was tried."""

    technique: str
    status: Literal["tried", "ruled out", "open"]
    detail: str = ""


class Optimization(ResultPart):
    """One try of the optimize stage. ``effect`` is a share of the tree it was measured against, up is better.

    ``before`` and ``after`` are in base units; ``bound`` is the share of its hotspot, the most it could bring;
    ``revision`` is the commit of what was kept; ``diff_file`` is relative to the run's folder.
    """

    id: str
    technique: str
    why: str
    decision: Literal["accepted", "rejected", "skipped"]
    reason: str
    benchmark: str = ""
    metric: str = ""
    unit: str = ""
    effect: Bounds | None = None
    before: Number = None
    after: Number = None
    pairs: int = 0
    bound: Number = None
    diff: str = ""
    diff_file: str = ""
    files: list[str] = []
    lines: int = 0
    env: dict[str, str] = {}
    params: dict[str, Any] = {}
    revision: str | None = None
    log: str = ""
    tail: list[str] = []
    """The last lines of the log of the command for which it was rejected, in ``log`` of the run's folder."""
    cheaper: list[Cheaper] = []
    """The cheaper techniques, in the order of the hierarchy."""


class CommitInfo(ResultPart):
    """A commit between base and head that touched a place: its full revision, its subject, and who wrote it."""

    revision: str
    subject: str
    author: str = ""


class Attribution(ResultPart):
    """A function that costs more on the candidate, of a benchmark that regressed.

    ``baseline`` and ``candidate`` are its own cost per operation (per run where no ``ops`` is known) in ``unit``,
    ``share`` is its part of all that the benchmark lost; ``crate`` is the crate or package it belongs to, ``region``
    the name that the workflow gives the area. ``commits`` touched its lines, newest first; empty where unknown.
    """

    benchmark: str
    metric: str
    step: str
    tool: str
    function: str
    file: str = ""
    line: int = 0
    crate: str = ""
    region: str = ""
    unit: str
    baseline: Number
    candidate: Number
    change: Number
    share: Number
    commits: list[CommitInfo] = []
    note: str = ""
    """What keeps this from being certain, such as too few samples."""
    samples: list[int] = []
    """Of a sampling profiler, how many it took of each side; empty of others."""
    region_share: Number = None
    """The part of all that the benchmark lost which the functions of its region have together."""


class Recommendation(ResultPart):
    """Advice that a rule gives on what this run found; ``evidence`` is what it found, with its figures.

    ``source`` is '' for perfflow's own rules. Else it is a tool, whose ``rule`` it is: then ``advice`` is in its words,
    ``evidence`` is empty, and ``gain`` is the speedup that the tool estimates, as a share, where it does.
    """

    finding: str
    advice: str
    evidence: str
    rule: str = ""
    benchmark: str = ""
    source: str = ""
    gain: Number = None


class Verification(ResultPart):
    """The outcome of one correctness step."""

    id: str
    status: Literal["passed", "failed", "skipped", "not run"]
    detail: str


class Result(ResultPart):
    """The whole file."""

    schema_: Literal["perfflow.result/1"]
    run: RunInfo
    verdict: Literal["pass", "fail", "unproven", "error"] | None
    """None where two stored sets were compared: nothing of them was taken in pairs, so nothing is judged."""
    gate: Gate | None
    evidence: list[str]
    reasons: list[str] = []
    machine: dict[str, Any]
    nodes: list[NodeResult] = []
    """Other machines that measured, where the run was shared out; ``machine`` is the one that it was started on."""
    trees: dict[str, dict[str, Any] | None]
    steps: list[StepResult]
    benchmarks: list[Benchmark]
    targets: list[TargetResult]
    growth: list[Growth] = []
    peaks: list[PeakResult] = []
    roofline: list[RooflinePoint] = []
    kernels: list[KernelResult] = []
    across_gpus: list[OnGpu] = []
    profiles: list[ProfileResult]
    hotspots: list[HotspotResult]
    memory: list[MemoryResult] = []
    optimizations: list[Optimization]
    verification: list[Verification]
    attributions: list[Attribution] = []
    recommendations: list[Recommendation]
    confirmations: list[dict[str, Any]]
    routes: list[RouteTaken]
    criteria: dict[str, Any]
    data: dict[str, str] | None = None

    @property
    def waited(self) -> float:
        """Seconds for which steps waited since others had the machine."""
        return sum(step.waited for step in self.steps)

    @property
    def unmeasured(self) -> bool:
        """Whether something that should have been measured was not, and no failure stands before it."""
        lacking = any(not text.startswith(WARNED) for text in self.reasons)
        return self.verdict == "error" or (self.verdict is None and lacking)

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )
