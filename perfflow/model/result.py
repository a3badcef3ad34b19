"""result.json: the output of judging, and the only input of every report.

Values are in base units; ``change`` is candidate/baseline - 1; ``speedup`` above 1 is better for every metric.
A number that is not finite is null.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import ConfigDict, Field

from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.kernels import KernelResult
from perfflow.model.metrics import in_words
from perfflow.model.readings import Design
from perfflow.model.result_part import Number, ResultPart


class OnGpu(ResultPart):
    """A kernel on one of several GPUs: its time in s, and its share of that GPU's roof, null without a roof.

    ``slower`` is time / fastest time, ``of_best`` is share / best share.
    """

    kernel: str
    device: str
    seconds: float
    share: Number
    slower: float
    of_best: Number


class Sample(ResultPart):
    """One side of a row. ``readings`` is set if values have further properties, such as a distribution or a bound."""

    value: Number
    low: Number
    high: Number
    n: int
    # Not in repr, since a notebook shows the row and there may be thousands of samples.
    samples: list[float] = Field(repr=False)
    readings: list[dict[str, Any]] | None = Field(default=None, repr=False)
    confirming: list[int] = Field(default=[], repr=False)
    """For each sample, the number of the confirmation that it is from, or 0; empty without confirmations."""

    @property
    def at_most(self) -> tuple[bool, ...]:
        """For each sample, whether it is an upper bound, below which the tool cannot see; empty if none is."""
        bounds = tuple(bool(item.get("at_most")) for item in self.readings or ())
        return bounds if any(bounds) else ()


class Bounds(ResultPart):
    """An estimate with its confidence interval."""

    value: Number
    low: Number
    high: Number


class ConfirmationOf(ResultPart):
    """Fresh pairs, or runs of each side, that were taken because those before proved a change.

    ``change`` is that of the fresh ones alone, with its p-value; ``before`` that of the earlier ones.
    """

    pairs: int
    change: Bounds
    p: float
    before: Bounds
    agrees: bool


class AsBuilt(ResultPart):
    """A row of the programs as built, which was replaced by one over new code layouts of both sides."""

    design: str
    paired: bool
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None


class LayoutsOf(ResultPart):
    """The code layouts that were drawn of each side.

    ``n``: layouts per side; ``deviation``: the standard deviation between them without noise, as a share. ``numbers``:
    the layout of each sample of each side, if layouts were run more than once.
    """

    n: int
    deviation: float
    numbers: list[list[int]] | None = None
    built: AsBuilt
    is_accident: bool = False
    """Whether the change of the programs as built is an accident of code layout."""


class MemoryResult(ResultPart):
    """Heap memory (bytes) of one process of a side over its run, at most 200 points.

    ``axis`` is the unit of ``at``: ``instructions``, allocated ``bytes``, or ``time`` in seconds.
    """

    step: str = ""
    benchmark: str = ""
    tree: Literal["baseline", "candidate"]
    axis: Literal["instructions", "bytes", "time"]
    at: list[float]
    held: list[float]


class SizePoint(ResultPart):
    """A value at a size, in the metric's base unit, with its confidence interval."""

    size: float
    value: Number
    low: Number
    high: Number


class JobResult(ResultPart):
    """A job that measured one group of a run's steps. ``id`` is its number in the engine.

    ``state`` is ``done``, or how the job ended early; ``lost`` is why an earlier attempt did not count.
    """

    group: str
    id: str
    attempt: int
    state: str
    seconds: float
    lost: str = ""


class NodeResult(ResultPart):
    """A machine of a cluster that measured a part of the run: its name in the cluster, its facts, and its jobs."""

    name: str
    identity: str
    machine: dict[str, Any]
    jobs: list[JobResult]


class Brief(ResultPart):
    """Information that the recipient of a routed run needs to start: one line each, with exact names."""

    regressed: list[str] = []
    undecided: list[str] = []
    """Rows in which a regression above the action threshold is not excluded, and rows that head does not measure."""
    thresholds: list[str] = []
    hotspots: list[str] = []
    commands: list[str] = []


class RouteTaken(ResultPart):
    """The first rule that matched, and its destination."""

    rule: str
    to: str
    why: str
    next: str = ""
    """What to do next, as a sentence."""
    command: str = ""
    """The command to type for it, '' if there is none."""
    brief: Brief = Brief()


SCHEMA: Literal["perfflow.result/2"] = "perfflow.result/2"
GATE = "review:gate:perf"


class GatesBy(StrEnum):
    """What makes a row gate. Those of ``BESIDE`` gate in addition to the row that decides about the benchmark."""

    CHOSEN = "chosen"
    """Its metric was chosen automatically."""
    REQUESTED = "requested"
    """The workflow names its metric."""
    CONTRADICTION = "contradiction"
    """It proves a regression that the chosen clock does not show."""
    TARGET = "target"
    GUARD = "guard"
    MEMORY = "memory"
    """Memory that has grown gates without being named."""
    PARSED = "parsed"
    """The workflow reads a custom metric beside a time."""


BESIDE = frozenset({GatesBy.TARGET, GatesBy.GUARD, GatesBy.MEMORY, GatesBy.PARSED})


class ReasonKind(StrEnum):
    """What a reason of the verdict is about. The kinds of ``WARNINGS`` accompany a verdict but did not cause it."""

    TARGET_NOT_MET = "target-not-met"
    REGRESSED = "regressed"
    NO_LONGER_ACCEPTED = "no-longer-accepted"
    CHECK_FAILED = "check-failed"
    ALTERED = "altered"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "step-not-started"
    STEP_FAILED = "step-failed"
    MISSING = "benchmark-missing"
    REMOVED = "benchmark-removed"
    NOTHING_MEASURED = "nothing-measured"
    NO_TIME = "no-time"
    BUDGET_SPENT = "budget-spent"
    TARGET_NOT_MEASURED = "target-not-measured"
    MEASURED_TWICE = "measured-twice"
    CONTRADICTION = "contradiction"
    TARGET_UNPROVEN = "target-unproven"
    UNPROVEN = "unproven"
    CONCERN = "concern"
    GROWTH = "growth"
    ACCEPTED = "accepted"
    ALLOWED = "failure-allowed"


WARNINGS = frozenset({ReasonKind.CONCERN, ReasonKind.GROWTH, ReasonKind.ACCEPTED, ReasonKind.ALLOWED})
FAILING = frozenset({ReasonKind.TARGET_NOT_MET, ReasonKind.REGRESSED, ReasonKind.CHECK_FAILED})
"""The kinds that fail a run."""


class Reason(ResultPart):
    """Why a verdict is not a pass, or a warning of a pass. ``text`` is for people; programs use the other fields.

    ``benchmark``: the benchmark it is about, '' if there is none or there are several. ``values``: what else the
    sentence is made of: ``metric``, ``step``, ``statistic``, ``requirement``, ``change`` (share), ``until`` (date),
    ``stopped``, ``key``, ``budget`` (seconds), ``benchmarks`` (names) or ``other`` (step), depending on the kind.
    """

    kind: ReasonKind
    benchmark: str = ""
    values: dict[str, Any] = {}
    text: str

    @property
    def is_warning(self) -> bool:
        """Whether it accompanies the verdict but did not cause it."""
        return self.kind in WARNINGS


def reason(kind: ReasonKind, text: str, benchmark: str = "", **values: Any) -> Reason:
    """Return a reason."""
    return Reason(kind=kind, benchmark=benchmark, values=values, text=text)


class LibraryItem(ResultPart):
    """A file of another repository that the run used, as ``perfflow.lock`` pins it."""

    reference: str
    commit: str
    sha256: str


class RunInfo(ResultPart):
    """Identity and settings of the run. Times are RFC 3339 in UTC; ``seconds`` is its duration.

    ``command`` and ``across_machines`` belong to comparisons of stored results, ``warnings`` to the run as a whole.
    """

    id: str
    workflow: str
    component: str
    started: str
    finished: str | None = None
    seconds: float | None = None
    seed: int
    file: str = ""
    params: dict[str, Any] = {}
    version: str = ""
    budget: float | None = None
    """Seconds for all measuring together, if there was a limit."""
    isolation: str = ""
    """What separated the measured programs from the machine, such as ``bubblewrap``; '' for nothing."""
    chosen: list[str] = []
    """Globs of the benchmarks that the run measures, given with `--benchmark`; empty for all."""
    shard: str = ""
    """The part of the benchmarks that the run measures, such as `2/4`, given with `--shard`; '' for all."""
    judged_by: list[str] = []
    """Thresholds that replaced the run's own when it was rejudged, as they were given."""
    interrupted: bool = False
    digest: str = ""
    """Hash of the workflow and its parameters, which must match to resume the run."""
    resumed: list[str] = []
    """Times when the run was resumed."""
    paused: float = 0.0
    """Seconds between its interruptions and resumptions, which are not part of its duration."""
    template: str = "report"
    """Layout of the report."""
    accept: Number = None
    """Smallest proven effect for which a candidate is kept, as a share; None without an optimize stage."""
    guard: list[str] = []
    """Globs of benchmarks that the optimize stage guards: all of their metrics gate."""
    independent: bool = False
    """Whether every candidate was judged against the original, and none was kept on top of another."""
    ruled_out: dict[str, str] = {}
    """Techniques of the optimization hierarchy without a candidate, and the reason."""
    command: list[str] = []
    out: str = ""
    """The folder given with `--out`; '' if the run is among the project's runs."""
    across_machines: bool = False
    data_missing: list[str] = []
    """Globs under ``data`` that matched no file when the run started."""
    library: list[LibraryItem] = []
    warnings: list[str] = []


class Gate(ResultPart):
    """The verdict for other systems."""

    name: str = GATE
    status: Literal["pass", "fail"]


class Scaling(ResultPart):
    """One size of a benchmark whose growth is fitted: matrix key, size, own name, and the common name of all sizes."""

    key: str
    size: float
    cell: str
    of: str


class Axis(ResultPart):
    """One cell of a step with ``compare: KEY``: key, value, own name, and the common name of all values.

    ``first`` is the first value, which is the baseline of the others if one tree is measured.
    """

    key: str
    value: str
    first: str
    cell: str
    of: str


class PlannedStep(ResultPart):
    """A planned step. ``technique`` and ``why`` are those of a candidate.

    ``benchmark`` is the name or glob that it measures, ``expect`` the globs of benchmarks that should appear.
    ``allowed``: it may fail. ``selected``: it should run. ``confirms`` are globs of the synthetic benchmarks that it
    confirms. ``automatic``: perfflow added it, so that it cannot be chosen with ``--only``.
    """

    id: str
    stage: str
    tool: str
    role: str = "work"
    compare: bool = False
    """Whether it compares the kept candidates with the original."""
    benchmark: str = ""
    metric: str | None = None
    expect: list[str] = []
    allowed: bool = False
    selected: bool = True
    technique: str = ""
    why: str = ""
    scaling: Scaling | None = None
    axis: Axis | None = None
    scenario: str = ""
    confirms: list[str] = []
    precision: str = ""
    in_one_tree: bool = False
    """Whether it compares two commands, settings or variants in one tree, also in a gate."""
    automatic: bool = False


class StepResult(PlannedStep):
    """The outcome of one step."""

    tree: str
    status: Literal["done", "failed", "skipped", "timeout", "cached"]
    reason: str
    seconds: float
    waited: float = 0.0
    """Seconds of waiting for the machine, in addition to those of the step itself."""
    argv: list[str]
    exit_code: int | None
    warnings: list[str]
    cautions: list[str] = []
    """Those of the warnings that say how to read the figures."""
    few_samples: bool = False
    """Whether a profiler took too few samples for reliable shares."""
    log: str = ""
    tail: list[str] = []
    """Last lines of the log of a failed step."""
    outputs: dict[str, str] = {}
    ended: bool = True
    identical: bool = False
    rebuilt: bool = False
    """Whether both sides are builds of their own of a native program, from two trees."""
    not_started: bool = False
    out_of_time: bool = False
    """Whether it was ended, or not started, because the time of the whole command was over."""
    devices: list[str] = []
    """GPUs on which it measured, by their drivers' names; empty if it ran on the machine's own processor."""


class Expected(ResultPart):
    """Calibration of this machine: spread of ln ratios, smallest detectable change, seconds to detect it, and date."""

    noise: Number
    smallest_change: Number
    within: Number
    calibrated: str


Decision = Literal["improved", "regressed", "same", "unproven", "not measured", "new", "removed"]
Level = Literal["ok", "concern", "action"]


class Benchmark(ResultPart):
    """One metric of one benchmark. ``gating`` rows decide the verdict.

    ``leading`` rows would decide it if a comparison of two sets without pairs had a verdict.
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
    ignored: bool = False
    """The workflow lists the benchmark under ``ignore``, so no row of it decides."""
    design: str = Design.FIXED
    """How its samples were taken: a value of ``model.design.Design``."""
    stopped: str = ""
    """Why sampling ended: settled, last look, budget, total budget; empty if the workflow sets the number of runs."""
    layouts: LayoutsOf | None = None
    confirmations: list[ConfirmationOf] = []
    to_confirm: bool = False
    """Whether a change counts only if fresh samples confirm it, because many benchmarks were compared."""
    unconfirmed: bool = False
    """Whether a change was proven at first, or by all samples, but fresh ones did not confirm it."""
    as_built: str = ""  # why no code layouts were drawn although they would have decided
    more: int | None
    seconds: Number = None
    """Duration of the sampling; None if it is not known, as for stored sets."""
    warnings: list[str]
    gates_by: GatesBy | None = None
    """What makes the row gate, or would if stored sets were judged; None for other rows."""
    why: str = ""
    same_as: str = ""
    """For a rate: the time whose inverse it is in all samples, so that both are one measurement."""
    expected: Expected | None = None
    accepted: str = ""
    """``until DATE: WHY`` of the accepted regression that lets a row beyond its action threshold pass."""
    node: str = ""
    """The machine of a cluster that measured it; '' for the machine on which the run was started."""
    unchanged: Literal["files", "code"] | None = None
    """Why it was not timed: both sides execute and read equal files, or execute equal functions; None if it was."""
    changed: bool = False
    """Whether a custom metric whose direction is not known differs between the sides."""

    @property
    def in_pairs(self) -> bool:
        """Whether sample i of one side is the partner of sample i of the other."""
        if not self.baseline or not self.candidate or not self.paired:
            return False
        in_turn = self.design in (Design.FEW, Design.FEW_LAYOUTS)
        return not in_turn and len(self.baseline.samples) == len(self.candidate.samples)

    @property
    def title(self) -> str:
        """The name of the row for people: the benchmark and what is measured of it."""
        return f"{self.name} {in_words(self.metric)}"


def is_untimed(row: Benchmark) -> bool:
    """Return whether a row has no figures, because its benchmark cannot have changed."""
    return row.unchanged is not None and row.baseline is None and row.candidate is None


TargetStatus = Literal["met", "not met", "unproven", "not measured", "not held by base", "not looked at"]
"""``not held by base``: head of a gate does not meet it, and base is not proven to, so it does not decide.
``not looked at``: `--benchmark` chose only other benchmarks."""


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
    status: TargetStatus
    detail: str = ""
    peak: Number = None
    """The peak of a requirement ``of peak``, in base units; ``peak_source`` is its source."""
    peak_source: str = ""


class PeakResult(ResultPart):
    """The peak performance of the machine or one of its devices, in base units.

    ``precision`` is set for ``flops``. ``step`` measured it; it is '' for the workflow's own ``peaks``, which have no
    ``how``, and for published peaks of a GPU, whose ``how`` names the document.
    """

    metric: str
    precision: str = ""
    value: float
    unit: str
    step: str = ""
    how: str = ""
    device: str = ""
    """The GPU with this peak; '' is the machine's own processor, or any device for a peak of the workflow."""


class RooflinePoint(ResultPart):
    """The position of one side of a benchmark under the roofline.

    ``intensity`` is in FLOP/B; ``attained`` and its bounds, and ``attainable``, are in FLOP/s; ``share`` is attained /
    attainable. ``attainable``, ``share`` and ``bound`` are None if a peak is unknown. ``precision`` is '' if it is
    unknown: then the highest peak of all precisions is the roof. ``note`` is the reason to doubt the figure.
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
    """The GPU with this roof; '' is the machine's own processor."""


class Grown(ResultPart):
    """Growth of one side: the exponent of the size, and the class with the closest curve.

    ``points`` are measured, ``curve`` is fitted, with a band from the interval of the exponent. Numbers of threads have
    an ``efficiency`` instead of an exponent and a class: the speedup over the fewest threads, divided by how many times
    more threads there are.
    """

    exponent: Bounds | None
    best: str
    efficiency: list[SizePoint] = []
    sizes: list[float]
    points: list[SizePoint] = []
    curve: list[SizePoint] = []


class Growth(ResultPart):
    """Growth of a metric with the matrix key that ``scaling`` names, on each side.

    ``worse`` and ``better`` are proven: the exponents' intervals do not overlap and belong to different classes.
    """

    benchmark: str
    metric: str
    key: str
    baseline: Grown | None
    candidate: Grown | None
    decision: Literal["worse", "better", "same", "unproven"] | None
    detail: str = ""


class StacksResult(ResultPart):
    """Meaning of the counts of folded stacks; see ``model.readings.StackCounts``."""

    unit: str
    metric: str = ""
    by_thread: bool = False
    is_call_pairs: bool = False


class ProfileResult(ResultPart):
    """A profile on disk, its path relative to the run's folder; ``stacks`` if it contains folded stacks."""

    step: str
    benchmark: str
    tree: str
    path: str
    sha256: str
    kind: str = ""
    tool: str = ""
    """The tool that made it."""
    stacks: StacksResult | None = None


class HotspotResult(ResultPart):
    """A place in the code with its share (0..1); ``impact`` is the saving from removing it, by Amdahl's law.

    Hotspots are ranked by ``share``: for a sampling profiler, the samples of the function itself and of its calls into
    libraries. ``self_share`` excludes all callees, ``inclusive_share`` includes all of them; null if unknown.
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
    """For Python in the tree: the function that contains the line, by its source; ``<module>`` if there is none."""
    begins: int = 0
    """The first line of that function."""
    uses: list[str] = []
    """Properties of the line in its source, such as ``in a loop``."""


class Cheaper(ResultPart):
    """A cheaper technique in the optimization hierarchy, and its status when the candidate was tried."""

    technique: str
    status: Literal["tried", "ruled out", "open"]
    detail: str = ""


class Needs(ResultPart):
    """What would decide about an undecided candidate: a ``budget`` for one more look, such as ``90s``."""

    budget: str


class Optimization(ResultPart):
    """One candidate of the optimize stage. ``effect`` is relative to the tree that it was compared with, up is better.

    ``before`` and ``after`` are in base units; ``bound`` is the share of its hotspot, the largest possible gain;
    ``revision`` is the commit of an accepted candidate; ``diff_file`` is relative to the run's folder.
    """

    id: str
    technique: str
    why: str
    decision: Literal["accepted", "rejected", "skipped"]
    outcome: Outcome | None = None
    code: Code | None = None
    reason: str
    flags: list[Flag] = []
    needs: Needs | None = None
    attempts: int = 0
    """Measured tries of the same original so far, in any run, with this one; 0 if it was not measured."""
    surely: Number = None
    """The low end of the effect at the confidence that so many attempts ask for."""
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
    """Last lines of the log of the command that failed; the whole log is ``log`` in the run's folder."""
    cheaper: list[Cheaper] = []
    """The cheaper techniques, in the order of the hierarchy."""


class CommitInfo(ResultPart):
    """A commit between base and head that touched a function: its full revision, subject and author."""

    revision: str
    subject: str
    author: str = ""


class Attribution(ResultPart):
    """A function of a regressed benchmark that costs more on the candidate.

    ``baseline`` and ``candidate`` are its own cost per operation (per run if ``ops`` is unknown) in ``unit``,
    ``share`` is its share of the regression of the benchmark; ``crate`` is its crate or package, ``region`` the
    workflow's name for the area. ``commits`` touched its lines, newest first; empty if unknown.
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
    """Why this is uncertain, such as too few samples."""
    samples: list[int] = []
    """For a sampling profiler, the number of samples of each side; empty for others."""
    region_share: Number = None
    """Share of the benchmark's regression of all functions in its region together."""
    share_low: Number = None
    share_high: Number = None
    """The interval of ``share``, three standard errors to each side; None for counts, which have no noise."""


class Recommendation(ResultPart):
    """Advice of a rule on the findings of this run; ``evidence`` are the findings with their figures.

    ``source`` is '' for perfflow's own rules. Otherwise it is the tool with this ``rule``: then ``advice`` is in its
    words, ``evidence`` is empty, and ``gain`` is the speedup that the tool estimates, as a share, if it does.
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


class Blind(ResultPart):
    """Lines of code that changed between base and head, and those of them that no benchmark executes.

    ``lines`` has ranges such as ``10-12`` by file.
    """

    changed: int
    missed: int
    lines: dict[str, list[str]] = {}


class Result(ResultPart):
    """The whole file."""

    schema_: Literal["perfflow.result/2"] = Field(alias="schema")
    run: RunInfo
    verdict: Literal["pass", "fail", "unproven", "error"] | None
    """None if two stored sets were compared: their samples are not paired, so they are not judged."""
    gate: Gate | None
    evidence: list[str]
    reasons: list[Reason] = []
    machine: dict[str, Any]
    nodes: list[NodeResult] = []
    """Other machines that measured parts of the run; ``machine`` is the one that it was started on."""
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
    blind: Blind | None = None
    """None if it is not known which lines the benchmarks execute."""
    recommendations: list[Recommendation]
    confirmations: list[dict[str, Any]]
    routes: list[RouteTaken]
    criteria: dict[str, Any]
    data: dict[str, str] | None = None

    @property
    def waited(self) -> float:
        """Seconds that steps waited for the machine."""
        return sum(step.waited for step in self.steps)

    @property
    def unmeasured(self) -> bool:
        """Whether something was not measured that should have been, and no failure takes precedence."""
        return self.verdict == "error" or (self.verdict is None and bool(self.causes))

    @property
    def reason_texts(self) -> list[str]:
        """The sentences of all reasons."""
        return [item.text for item in self.reasons]

    @property
    def causes(self) -> list[Reason]:
        """The reasons why the verdict is not a pass."""
        return [item for item in self.reasons if not item.is_warning]

    @property
    def warned(self) -> list[Reason]:
        """The reasons that accompany the verdict but did not cause it."""
        return [item for item in self.reasons if item.is_warning]

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)
