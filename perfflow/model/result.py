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
    """The name of the kernel, and the GPU."""
    device: str
    """See `kernel`."""
    seconds: float
    """Time of a launch, and share of that GPU's roof (0..1); null without a roof."""
    share: Number
    """See `seconds`."""
    slower: float
    """Time divided by that of the fastest GPU, and share divided by the best share."""
    of_best: Number
    """See `slower`."""


class Sample(ResultPart):
    """One side of a row. ``readings`` is set if values have further properties, such as a distribution or a bound."""

    value: Number
    """The statistic and its 95% interval; null if there are too few samples."""
    low: Number
    """See `value`."""
    high: Number
    """See `value`."""
    n: int
    """Number of samples."""
    # Not in repr, since a notebook shows the row and there may be thousands of samples.
    samples: list[float] = Field(repr=False)
    """The value of each process, in the order in which they were taken; value i of both sides is one pair if
    `paired`.
    """
    readings: list[dict[str, Any]] | None = Field(default=None, repr=False)
    """More about the samples, if there is more: `inner` is the distribution inside the process, `statistic` names the
    part of it that is `value`, `at_most` marks an upper bound, `exact` a count without noise, `tick` is the step of the
    last printed digit if that is coarse.
    """
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
    """The estimate and the ends of its interval; null is an open end."""
    low: Number
    """See `value`."""
    high: Number
    """See `value`."""


class ConfirmationOf(ResultPart):
    """Fresh pairs, or runs of each side, that were taken because those before proved a change.

    ``change`` is that of the fresh ones alone, with its p-value; ``before`` that of the earlier ones.
    """

    pairs: int
    """Number of fresh pairs, or of fresh runs of each side."""
    change: Bounds
    """Change by these alone, with a 95% interval, as bounds."""
    p: float
    """P-value of no change by these alone."""
    before: Bounds
    """Change by the samples before them, as bounds."""
    agrees: bool
    """Whether they confirm the change: `p` is at most 5%, and `change` has the direction of `before`."""


class AsBuilt(ResultPart):
    """A row of the programs as built, which was replaced by one over new code layouts of both sides."""

    design: str
    """How its samples were taken."""
    paired: bool
    """See `design`."""
    baseline: Sample | None
    """A sample of each side; null if there is none."""
    candidate: Sample | None
    """See `baseline`."""
    change: Bounds | None
    """As bounds."""


class LayoutsOf(ResultPart):
    """The code layouts that were drawn of each side.

    ``n``: layouts per side; ``deviation``: the standard deviation between them without noise, as a share. ``numbers``:
    the layout of each sample of each side, if layouts were run more than once.
    """

    n: int
    """Number of layouts of each side."""
    deviation: float
    """Standard deviation between layouts, net of noise, as a share of the value."""
    numbers: list[list[int]] | None = None
    """Number of the layout of each sample, for baseline and candidate; null if each layout was run once."""
    built: AsBuilt
    """The row as built."""
    is_accident: bool = False
    """Whether the change of the programs as built is an accident of code layout."""


class MemoryResult(ResultPart):
    """Heap memory (bytes) of one process of a side over its run, at most 200 points.

    ``axis`` is the unit of ``at``: ``instructions``, allocated ``bytes``, or ``time`` in seconds.
    """

    step: str = ""
    """The profiling step, and the benchmark."""
    benchmark: str = ""
    """See `step`."""
    tree: Literal["baseline", "candidate"]
    """`baseline` or `candidate`."""
    axis: Literal["instructions", "bytes", "time"]
    """The unit of `at`, counted from the start of the process: `instructions`, `bytes` that were allocated, or `time`
    in seconds.
    """
    at: list[float]
    """Points of the run and the bytes held there, at most 200; the highest points are kept."""
    held: list[float]
    """See `at`."""


class SizePoint(ResultPart):
    """A value at a size, in the metric's base unit, with its confidence interval."""

    size: float
    """The size."""
    value: Number
    """The value there, in the base unit of the metric, and its 95% interval."""
    low: Number
    """See `value`."""
    high: Number
    """See `value`."""


class JobResult(ResultPart):
    """A job that measured one group of a run's steps. ``id`` is its number in the engine.

    ``state`` is ``done``, or how the job ended early; ``lost`` is why an earlier attempt did not count.
    """

    group: str
    """The group of steps that it measured."""
    id: str
    """Number of the job in the engine."""
    attempt: int
    """Number of the attempt to measure the group."""
    state: str
    """`done`, or how it ended before that."""
    seconds: float
    """Duration on the machine."""
    lost: str = ""
    """Why an earlier attempt did not count; else empty."""


class NodeResult(ResultPart):
    """A machine of a cluster that measured a part of the run: its name in the cluster, its facts, and its jobs."""

    name: str
    """Name of the machine in the engine (Slurm)."""
    identity: str
    """Results of machines with the same identity are compared."""
    machine: dict[str, Any]
    """Facts about it, as under `machine` of the whole file; also `governor`, and facts from the engine about the
    job.
    """
    jobs: list[JobResult]
    """Its jobs."""


class Brief(ResultPart):
    """Information that the recipient of a routed run needs to start: one line each, with exact names."""

    regressed: list[str] = []
    """A line for each regressed row: change, interval, and the threshold that it exceeds."""
    undecided: list[str] = []
    """A line for each row that may hide a regression over the action threshold, and for each that head does not
    measure.
    """
    thresholds: list[str] = []
    """The thresholds, accepted regressions, and targets that are not met."""
    hotspots: list[str] = []
    """Functions that got slower: place, part of the loss, both sides, and the last commit that touched them."""
    commands: list[str] = []
    """Commands to measure again, to profile again and to find the commit, quoted for a shell, from the project's
    root.
    """


class RouteTaken(ResultPart):
    """The first rule that matched, and its destination."""

    rule: str
    """The first rule that matched: the name of a built-in rule, or `routes: ` and the condition of a rule of the
    workflow.
    """
    to: str
    """The destination."""
    why: str
    """The reason, in words."""
    next: str = ""
    """What to do next, as a sentence; for a rule of the workflow, its destination and reason."""
    command: str = ""
    """The command to type for that, from the project's root; empty if there is none."""
    brief: Brief = Brief()
    """A brief for the recipient."""


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
    """What it is about, see below."""
    benchmark: str = ""
    """The benchmark, or the glob of a missing one; empty if it is about none or about several."""
    values: dict[str, Any] = {}
    """What else it is about, depending on the kind: `metric`, `step`, `statistic`, `requirement`, `change` (a share),
    `until` (a date), `stopped` (as in benchmarks), `key` (of a matrix), `budget` (seconds), `benchmarks` (names),
    `other` (the step that measures the same).
    """
    text: str
    """The sentence that reports show; its words may change."""

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
    """The reference as in `perfflow.lock`."""
    commit: str
    """The pinned commit."""
    sha256: str
    """Checksum of its files, as in `perfflow.lock`."""


class RunInfo(ResultPart):
    """Identity and settings of the run. Times are RFC 3339 in UTC; ``seconds`` is its duration.

    ``command`` and ``across_machines`` belong to comparisons of stored results, ``warnings`` to the run as a whole.
    """

    id: str
    """The run's name in `.perfflow/runs`."""
    workflow: str
    """The name of the workflow, and the title of the report."""
    component: str
    """See `workflow`."""
    started: str
    """Times in RFC 3339, UTC; `finished` is null if perfflow was killed."""
    finished: str | None = None
    """See `started`."""
    seconds: float | None = None
    """Duration of the run, including `waited` of the steps, without the time between an interruption and `--resume`."""
    seed: int
    """Seed of the random order of the pairs; `--seed` repeats it."""
    file: str = ""
    """The file of the workflow, and its parameters with their values."""
    params: dict[str, Any] = {}
    """See `file`."""
    version: str = ""
    """Version of perfflow."""
    budget: float | None = None
    """Seconds for the whole command; null without a limit."""
    isolation: str = ""
    """What separated the measured programs from the machine, such as `bubblewrap`; empty for nothing."""
    chosen: list[str] = []
    """The globs given with `--benchmark`, if only these benchmarks were measured; else empty."""
    shard: str = ""
    """The part of the benchmarks that was measured, such as `2/4`, given with `--shard`; else empty."""
    judged_by: list[str] = []
    """Other thresholds, if the run was judged again."""
    interrupted: bool = False
    """Whether the run was interrupted, when it was resumed, and the seconds between."""
    digest: str = ""
    """Hash of the workflow and its parameters; a run can be resumed only with the same hash."""
    resumed: list[str] = []
    """See `interrupted`."""
    paused: float = 0.0
    """See `interrupted`."""
    template: str = "report"
    """Layout of the report: `report`, `analysis`, or the template that the workflow names; the run's folder has a copy,
    `report.md.j2`.
    """
    accept: Number = None
    """Of the optimize stage: the smallest effect for which a change is kept, as a share (null without the stage); globs
    of guarded benchmarks; techniques without a candidate, each with the reason.
    """
    guard: list[str] = []
    """See `accept`."""
    independent: bool = False
    """Whether each candidate was compared with the original, and none was kept on top of another: `perfflow judge`."""
    ruled_out: dict[str, str] = {}
    """See `accept`."""
    command: list[str] = []
    """The command line, of a gate and of a comparison of stored results."""
    out: str = ""
    """The folder of `--out`, else empty."""
    across_machines: bool = False
    """Whether the stored results are from two machines."""
    data_missing: list[str] = []
    """Globs under `data` that matched no file at the start of the run."""
    library: list[LibraryItem] = []
    """Files of other repositories that the workflow used, as a list; empty without any."""
    warnings: list[str] = []
    """Warnings about the run or the comparison as a whole."""


class Gate(ResultPart):
    """The verdict for other systems."""

    name: str = GATE
    """`review:gate:perf`."""
    status: Literal["pass", "fail"]
    """`pass` or `fail`; exits 1, 3 and 4 are `fail`."""


class Scaling(ResultPart):
    """One size of a benchmark whose growth is fitted: matrix key, size, own name, and the common name of all sizes."""

    key: str
    """The key of `scaling`, and the size."""
    size: float
    """See `key`."""
    cell: str
    """Its own name, and the name of all sizes together; `*` stands for a suite's own id."""
    of: str
    """See `cell`."""


class Axis(ResultPart):
    """One cell of a step with ``compare: KEY``: key, value, own name, and the common name of all values.

    ``first`` is the first value, which is the baseline of the others if one tree is measured.
    """

    key: str
    """The key of `compare`, the value of this cell, and the first value."""
    value: str
    """See `key`."""
    first: str
    """See `key`."""
    cell: str
    """Its own name, and the name of all values together; `*` stands for a suite's own id."""
    of: str
    """See `cell`."""


class PlannedStep(ResultPart):
    """A planned step. ``technique`` and ``why`` are those of a candidate.

    ``benchmark`` is the name or glob that it measures, ``expect`` the globs of benchmarks that should appear.
    ``allowed``: it may fail. ``selected``: it should run. ``confirms`` are globs of the synthetic benchmarks that it
    confirms. ``automatic``: perfflow added it, so that it cannot be chosen with ``--only``.
    """

    id: str
    """As in the workflow; the id of a matrix cell is `id[key=value]`."""
    stage: str
    """See `id`."""
    tool: str
    """The tool, or `run`."""
    role: str = "work"
    """What the step does: `measure`, `profile`, `machine` (finds peaks of the machine), `check`, `work`, `candidate`
    (changes the code) or `compare` (compares the kept code with the original).
    """
    compare: bool = False
    """Whether it compares the kept candidates with the original; whether perfflow added it."""
    benchmark: str = ""
    """As in the workflow."""
    metric: str | None = None
    """See `benchmark`."""
    expect: list[str] = []
    """See `benchmark`."""
    allowed: bool = False
    """Whether `continue-on-error` allows it to fail."""
    selected: bool = True
    """False if `--stage`, `--only` or `--from` left it out."""
    technique: str = ""
    """Of a candidate: as in the workflow."""
    why: str = ""
    """See `technique`."""
    scaling: Scaling | None = None
    """The size of a benchmark with sizes; else null."""
    axis: Axis | None = None
    """The cell of a step with `compare: KEY`; else null."""
    scenario: str = ""
    """The kind of benchmark, and the benchmarks that it confirms, as in the workflow."""
    confirms: list[str] = []
    """See `scenario`."""
    precision: str = ""
    """Precision of its floating-point operations, from its `work`; else empty."""
    in_one_tree: bool = False
    """Whether it compares two commands, settings or variants in one tree, also in a gate."""
    automatic: bool = False
    """See `compare`."""


class StepResult(PlannedStep):
    """The outcome of one step."""

    tree: str
    """The tree in which it ran: `baseline` or `candidate`."""
    status: Literal["done", "failed", "skipped", "timeout", "cached"]
    """`done`, `failed`, `skipped`, `timeout` or `cached` (taken from the run that was resumed)."""
    reason: str
    """Why its status is not done, in words."""
    seconds: float
    """Seconds that the whole step took, and seconds before it in which other runs had the machine."""
    waited: float = 0.0
    """See `seconds`."""
    argv: list[str]
    """Its command and exit status; null if no process ended."""
    exit_code: int | None
    """See `argv`."""
    warnings: list[str]
    """Warnings about its figures."""
    cautions: list[str] = []
    """Those of the `warnings` that say how to read the figures."""
    few_samples: bool = False
    """Whether a profiler took too few samples for reliable shares."""
    log: str = ""
    """Path of its output in the run's folder, and values that it wrote to `PERFFLOW_OUTPUT`."""
    tail: list[str] = []
    """Last lines of the log of a failed step, at most 20."""
    outputs: dict[str, str] = {}
    """See `log`."""
    ended: bool = True
    """False if the run ended before the step did."""
    identical: bool = False
    """Whether both sides executed the same files; then the floor is 0.5% instead of 2%."""
    rebuilt: bool = False
    """Whether both sides are builds of their own of a native program, which differ in code layout whatever changed."""
    not_started: bool = False
    """Whether its program could not be started."""
    out_of_time: bool = False
    """Whether it was ended, or not started, because the time of the command (`--budget`) was over."""
    devices: list[str] = []
    """GPUs on which it measured, by the names of their drivers; empty if it ran on the processor."""


class Expected(ResultPart):
    """Calibration of this machine: spread of ln ratios, smallest detectable change, seconds to detect it, and date."""

    noise: Number
    """Robust standard deviation of the logarithms of the ratios between identical sides."""
    smallest_change: Number
    """Smallest change that can be detected here, as a share."""
    within: Number
    """Seconds that this takes."""
    calibrated: str
    """Time of the calibration."""


Decision = Literal["improved", "regressed", "same", "unproven", "not measured", "new", "removed"]
Level = Literal["ok", "concern", "action"]


class Benchmark(ResultPart):
    """One metric of one benchmark. ``gating`` rows decide the verdict.

    ``leading`` rows would decide it if a comparison of two sets without pairs had a verdict.
    """

    name: str
    """The benchmark, and the step and tool that measured it."""
    step: str
    """See `name`."""
    tool: str
    """See `name`."""
    metric: str
    """For example `time`, `p50`, `s`; the statistic of suites is `capped mean`, or `mean` if the plain mean decided."""
    statistic: str
    """See `metric`."""
    unit: str
    """See `metric`."""
    better: Literal["lower", "higher", "none"]
    """The better direction: `lower`, `higher` or `none`."""
    confidence: float | None
    """Confidence of the intervals of `change` and `speedup`; null without an interval, as for exact figures."""
    baseline: Sample | None
    """A sample of each side; null if there is none."""
    candidate: Sample | None
    """See `baseline`."""
    change: Bounds | None
    """Candidate/baseline - 1, as bounds."""
    speedup: Bounds | None
    """Factor of improvement, as bounds; above 1 is better for every metric."""
    decision: Decision | None
    """`improved`, `regressed`, `same`, `unproven`, `not measured`, `new` (only in the candidate), `removed` (only in
    the baseline); null if the row is not decided.
    """
    level: Level | None
    """Of a row that regressed, the size by its estimate: `ok` (at most the concern threshold), `concern` or `action`.
    `ok` for other rows, but null if the benchmark was removed, and for an unproven row unless a regression beyond the
    action threshold is excluded.
    """
    gating: bool
    """Whether the verdict rests on this row."""
    pairs: int
    """The number of pairs, and whether the samples were taken in pairs."""
    paired: bool = True
    """See `pairs`."""
    leading: bool = False
    """Of stored results, which gate nothing: whether the row would gate."""
    ignored: bool = False
    """Whether the workflow lists the benchmark under `ignore`: then none of its rows gates, and its level is `ok`."""
    design: str = Design.FIXED
    """How the samples were taken: `looks` (interim analyses), `fixed` (a fixed number of pairs), `few` (a few runs in
    random order), `unpaired` (stored results). Over code layouts: `layouts`, `fixed layouts`, `few layouts`.
    """
    stopped: str = ""
    """Why measuring ended: `settled`, `last look`, `budget` (of the benchmark), `total budget` (of the run); empty if
    the workflow sets the number of runs.
    """
    layouts: LayoutsOf | None = None
    """The code layouts of both sides, which decide; null if the programs were measured as built."""
    confirmations: list[ConfirmationOf] = []
    """Each confirmation: the fresh samples that were to confirm a change."""
    to_confirm: bool = False
    """Whether a change counts only if fresh samples confirm it, because many benchmarks were compared or shared
    processes.
    """
    unconfirmed: bool = False
    """Whether the row is unproven because they did not."""
    as_built: str = ""
    """Why no code layouts were drawn where they would have decided; else empty."""
    more: int | None
    """Estimated number of further pairs that would settle an unproven row."""
    seconds: Number = None
    """Seconds to take the samples, from which `more` is converted to a time; null if they are not known."""
    warnings: list[str]
    """Warnings about the row."""
    gates_by: GatesBy | None = None
    """What makes the row gate: it was `chosen` automatically, the workflow names it (`requested`), it proves a
    regression that the chosen clock does not show (`contradiction`), a `target`, a `guard`, `memory` that grew, or a
    custom metric that was `parsed`; null for other rows.
    """
    why: str = ""
    """Why the row gates, in words."""
    same_as: str = ""
    """Of a throughput or rate that is the inverse of a time in all samples: that time. Both are one measurement, so the
    row gates only if a target names it. Else empty.
    """
    expected: Expected | None = None
    """The result of `perfflow calibrate` on this machine; null without it."""
    accepted: str = ""
    """`until DATE: WHY` of the accepted regression by which a row over its action threshold passes; else empty."""
    node: str = ""
    """The machine of a cluster that measured the row; else empty."""
    unchanged: Literal["files", "code"] | None = None
    """Why it was not timed: `files` or `code`; null if it was."""
    changed: bool = False
    """True if a custom metric without a direction differs between the sides: their intervals do not overlap."""

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
    """As in the workflow, with globs resolved."""
    metric: str
    """See `benchmark`."""
    statistic: str
    """See `benchmark`."""
    requirement: str
    """See `benchmark`."""
    measured: Number
    """The figure with its interval; null if unknown."""
    low: Number
    """See `measured`."""
    high: Number
    """See `measured`."""
    unit: str
    """See `measured`."""
    status: TargetStatus
    """`met`, `not met`, `unproven`, `not measured`, `not held by base` if base of a gate is not proven to meet it
    either, or `not looked at` if the run measured other benchmarks.
    """
    detail: str = ""
    """What is missing, in words."""
    peak: Number = None
    """For a share `of peak`: the peak in base units, and its source; else null and empty."""
    peak_source: str = ""
    """See `peak`."""


class PeakResult(ResultPart):
    """The peak performance of the machine or one of its devices, in base units.

    ``precision`` is set for ``flops``. ``step`` measured it; it is '' for the workflow's own ``peaks``, which have no
    ``how``, and for published peaks of a GPU, whose ``how`` names the document.
    """

    metric: str
    """`bandwidth` (B/s), `flops` (FLOP/s) with the precision of the numbers, such as `f32`, or another metric that the
    workflow's `peaks` names.
    """
    precision: str = ""
    """See `metric`."""
    value: float
    """The peak of the machine or the device."""
    unit: str
    """See `value`."""
    step: str = ""
    """The step that found the peak, and its description of the method. Both are empty for `peaks` of the workflow. A
    published peak of a GPU has no step, and `how` names the document.
    """
    how: str = ""
    """See `step`."""
    device: str = ""
    """The GPU, by the name of its driver; empty for the processor, and for `peaks` of the workflow, which apply to
    everything.
    """


class RooflinePoint(ResultPart):
    """The position of one side of a benchmark under the roofline.

    ``intensity`` is in FLOP/B; ``attained`` and its bounds, and ``attainable``, are in FLOP/s; ``share`` is attained /
    attainable. ``attainable``, ``share`` and ``bound`` are None if a peak is unknown. ``precision`` is '' if it is
    unknown: then the highest peak of all precisions is the roof. ``note`` is the reason to doubt the figure.
    """

    benchmark: str
    """The benchmark, and the precision from its step's `work`, else that of most operations that a profiler counted in
    a kernel, else empty.
    """
    tree: Literal["baseline", "candidate"]
    """The side: `baseline` or `candidate`."""
    precision: str = ""
    """See `benchmark`."""
    intensity: float
    """Arithmetic divided by memory traffic, in FLOP/B."""
    attained: Bounds
    """Attained FLOP/s, as bounds."""
    attainable: Number = None
    """FLOP/s under the roof at that intensity, and the attained share of it; null if a peak is unknown."""
    share: Number = None
    """See `attainable`."""
    bound: Literal["memory", "compute", "latency"] | None = None
    """The limit at that intensity: `memory` or `compute`; `latency` if a profiler saw a GPU use neither."""
    note: str = ""
    """What makes the point doubtful, or which peak is missing."""
    device: str = ""
    """The GPU that it ran on and whose roof it is; empty for the processor."""


class Grown(ResultPart):
    """Growth of one side: the exponent of the size, and the class with the closest curve.

    ``points`` are measured, ``curve`` is fitted, with a band from the interval of the exponent. Numbers of threads have
    an ``efficiency`` instead of an exponent and a class: the speedup over the fewest threads, divided by how many times
    more threads there are.
    """

    exponent: Bounds | None
    """The p of `a + b * n^p`, as bounds of 95%; null over numbers of threads."""
    best: str
    """The class with the closest curve: `constant`, `log`, `linear`, `nlogn`, `quadratic` or `cubic`; empty over
    numbers of threads.
    """
    efficiency: list[SizePoint] = []
    """Over numbers of threads: the speedup over the fewest threads, divided by how many times more threads there are,
    as points.
    """
    sizes: list[float]
    """The fitted sizes."""
    points: list[SizePoint] = []
    """The measured values, as points."""
    curve: list[SizePoint] = []
    """The fitted curve at 25 sizes, as points; their bounds are the band of the exponent's interval."""


class Growth(ResultPart):
    """Growth of a metric with the matrix key that ``scaling`` names, on each side.

    ``worse`` and ``better`` are proven: the exponents' intervals do not overlap and belong to different classes.
    """

    benchmark: str
    """The benchmark of all sizes, and the metric."""
    metric: str
    """See `benchmark`."""
    key: str
    """The matrix key of the sizes."""
    baseline: Grown | None
    """How each side grows; null if the side is missing, or has too few sizes or samples."""
    candidate: Grown | None
    """See `baseline`."""
    decision: Literal["worse", "better", "same", "unproven"] | None
    """`worse` and `better` are proven: the intervals of the exponents do not overlap and lie in different classes.
    `same`: both are known to be of one class. Else `unproven`. Null if only one side was measured.
    """
    detail: str = ""
    """The best class, or what is missing."""


class StacksResult(ResultPart):
    """Meaning of the counts of folded stacks; see ``model.readings.StackCounts``."""

    unit: str
    """The unit of the counts: `samples`, `ns`, `instructions`, `bytes`, `allocations`, or an event of the processor,
    such as `cycles`.
    """
    metric: str = ""
    """The metric whose whole figure the counts add up to, so that shares of both are the same; empty if they add up to
    a part of it.
    """
    by_thread: bool = False
    """Whether the first frame of each stack is the name of its thread."""
    is_call_pairs: bool = False
    """Whether the tool records only direct callers, so that longer stacks are estimates."""


class ProfileResult(ResultPart):
    """A profile on disk, its path relative to the run's folder; ``stacks`` if it contains folded stacks."""

    step: str
    """The profiling step, the benchmark and the side."""
    benchmark: str
    """See `step`."""
    tree: str
    """See `step`."""
    path: str
    """The file in the run's folder, and its hash."""
    sha256: str
    """See `path`."""
    kind: str = ""
    """The kind of file, such as `folded` (stacks for a flame graph)."""
    tool: str = ""
    """The tool that made it."""
    stacks: StacksResult | None = None
    """What the counts of folded stacks are; null for other files."""


class HotspotResult(ResultPart):
    """A place in the code with its share (0..1); ``impact`` is the saving from removing it, by Amdahl's law.

    Hotspots are ranked by ``share``: for a sampling profiler, the samples of the function itself and of its calls into
    libraries. ``self_share`` excludes all callees, ``inclusive_share`` includes all of them; null if unknown.
    """

    rank: int
    """1 is the largest of its step and tree."""
    step: str
    """The profiling step, the benchmark and the side."""
    benchmark: str
    """See `step`."""
    tree: str
    """See `step`."""
    location: str
    """The function, and its place if known."""
    file: str
    """See `location`."""
    line: int
    """See `location`."""
    share: float
    """The share (0 to 1) by which it is ranked, and its unit: `time`, `instructions`, `bytes`, `stalls`, ..."""
    unit: str
    """See `share`."""
    source: str
    """The tool."""
    cause: str
    """A measurement of the tool, or a supposition that is marked as one."""
    impact: str
    """The most that its removal would save with what it calls (`inclusive_share`), by Amdahl's law."""
    self_share: float | None = None
    """The share without the functions that it calls, and with all of them; null if unknown."""
    inclusive_share: float | None = None
    """See `self_share`."""
    function: str = ""
    """Of Python in the tree: the function that contains the line (`Store.keep`; `<module>` if none), and the first line
    of that function; else empty and 0.
    """
    begins: int = 0
    """See `function`."""
    uses: list[str] = []
    """What the line does according to its source, such as `in a loop`; see recommendations."""


class Cheaper(ResultPart):
    """A cheaper technique in the optimization hierarchy, and its status when the candidate was tried."""

    technique: str
    """The cheaper technique."""
    status: Literal["tried", "ruled out", "open"]
    """`tried` (there was a candidate of it before), `ruled out` (the workflow gives a reason) or `open`."""
    detail: str = ""
    """Its candidates and their outcomes, why it is ruled out, or why its candidate was skipped."""


class Needs(ResultPart):
    """What would decide about an undecided candidate: a ``budget`` for one more look, such as ``90s``."""

    budget: str
    """A `--budget` that would probably decide, such as `90s`: of the run, or of each patch of `perfflow judge`."""


class Optimization(ResultPart):
    """One candidate of the optimize stage. ``effect`` is relative to the tree that it was compared with, up is better.

    ``before`` and ``after`` are in base units; ``bound`` is the share of its hotspot, the largest possible gain;
    ``revision`` is the commit of an accepted candidate; ``diff_file`` is relative to the run's folder.
    """

    id: str
    """The candidate; an attempt of a proposer is `id.1`, `id.2`."""
    technique: str
    """As in the workflow."""
    why: str
    """See `technique`."""
    decision: Literal["accepted", "rejected", "skipped"]
    """`accepted` (kept), `rejected` (removed) or `skipped` (not tried)."""
    outcome: Outcome | None = None
    """The same for programs: see outcomes of patches."""
    code: Code | None = None
    """See `outcome`."""
    reason: str
    """Why, in words."""
    flags: list[Flag] = []
    """See `outcome`."""
    needs: Needs | None = None
    """What would decide, null if no time would."""
    attempts: int = 0
    """Measured tries on the same original so far, in any run, with this one; the low end of the effect at the
    confidence that they ask for, null for the first.
    """
    surely: Number = None
    """See `attempts`."""
    benchmark: str = ""
    """The benchmark and metric by which it was judged, and the base unit."""
    metric: str = ""
    """See `benchmark`."""
    unit: str = ""
    """See `benchmark`."""
    effect: Bounds | None = None
    """Improvement over the state before it, as a share, as bounds; up is better for every metric."""
    before: Number = None
    """The figures of both sides in that comparison, and the number of pairs."""
    after: Number = None
    """See `before`."""
    pairs: int = 0
    """See `before`."""
    bound: Number = None
    """The share of time of its hotspot, which is the most it could bring; null without a profile."""
    diff: str = ""
    """Its change: the text (empty if very long), the file in the run's folder, changed files, lines added and
    removed.
    """
    diff_file: str = ""
    """See `diff`."""
    files: list[str] = []
    """See `diff`."""
    lines: int = 0
    """See `diff`."""
    env: dict[str, str] = {}
    """Environment and parameters that it sets."""
    params: dict[str, Any] = {}
    """See `env`."""
    revision: str | None = None
    """Commit of a kept change, else null."""
    log: str = ""
    """Of a candidate that was rejected because a command failed: path of the output in the run's folder, and its last
    lines.
    """
    tail: list[str] = []
    """See `log`."""
    cheaper: list[Cheaper] = []
    """Cheaper techniques in the hierarchy, and their state when it was tried."""


class CommitInfo(ResultPart):
    """A commit between base and head that touched a function: its full revision, subject and author."""

    revision: str
    """The commit; `uncommitted changes` have no revision and no author."""
    subject: str
    """See `revision`."""
    author: str = ""
    """See `revision`."""


class Attribution(ResultPart):
    """A function of a regressed benchmark that costs more on the candidate.

    ``baseline`` and ``candidate`` are its own cost per operation (per run if ``ops`` is unknown) in ``unit``,
    ``share`` is its share of the regression of the benchmark; ``crate`` is its crate or package, ``region`` the
    workflow's name for the area. ``commits`` touched its lines, newest first; empty if unknown.
    """

    benchmark: str
    """The regressed benchmark and metric."""
    metric: str
    """See `benchmark`."""
    step: str
    """The profiling step, and the profiler."""
    tool: str
    """See `step`."""
    function: str
    """The function, and the line that costs most on the candidate if known."""
    file: str = ""
    """See `function`."""
    line: int = 0
    """See `function`."""
    crate: str = ""
    """The crate or Python package of its file, and the matching region of the workflow; empty if there is none."""
    region: str = ""
    """See `crate`."""
    unit: str
    """Its own cost on each side, for each operation, or for each run without `ops`."""
    baseline: Number
    """See `unit`."""
    candidate: Number
    """See `unit`."""
    change: Number
    """Candidate / baseline - 1 (null if the baseline has no cost), and its part of the benchmark's loss."""
    share: Number
    """See `change`."""
    commits: list[CommitInfo] = []
    """Commits between base and head that touched it, the newest first."""
    note: str = ""
    """Why this is uncertain: few samples, a substitute tool, commits that touched only its file."""
    samples: list[int] = []
    """Number of samples of each side, from a sampling profiler; else empty."""
    region_share: Number = None
    """The part of the benchmark's loss of all named functions of its region; null without a region."""
    share_low: Number = None
    """The interval of `share`: three standard errors of the profiles and of the change to each side; null for
    counts.
    """
    share_high: Number = None
    """See `share_low`."""


class Recommendation(ResultPart):
    """Advice of a rule on the findings of this run; ``evidence`` are the findings with their figures.

    ``source`` is '' for perfflow's own rules. Otherwise it is the tool with this ``rule``: then ``advice`` is in its
    words, ``evidence`` is empty, and ``gain`` is the speedup that the tool estimates, as a share, if it does.
    """

    finding: str
    """The finding."""
    advice: str
    """The advice."""
    evidence: str
    """Figures of this run that support it; empty for advice of a tool."""
    rule: str = ""
    """The rule."""
    benchmark: str = ""
    """The benchmark; empty for the whole run."""
    source: str = ""
    """For advice of a tool, in its words: the tool, and its estimate of the speedup as a share; empty and null for
    perfflow's own rules.
    """
    gain: Number = None
    """See `source`."""


class Verification(ResultPart):
    """The outcome of one correctness step."""

    id: str
    """The step."""
    status: Literal["passed", "failed", "skipped", "not run"]
    """`passed`, `failed`, `skipped` or `not run`."""
    detail: str
    """What was checked, or the first difference."""


class Blind(ResultPart):
    """Lines of code that changed between base and head, and those of them that no benchmark executes.

    ``lines`` has ranges such as ``10-12`` by file.
    """

    changed: int
    """Number of lines of code that changed between base and head."""
    missed: int
    """How many of them no benchmark executes."""
    lines: dict[str, list[str]] = {}
    """Which these are: ranges by file, of 50 files at most."""


class Result(ResultPart):
    """The whole file."""

    schema_: Literal["perfflow.result/2"] = Field(alias="schema")
    """`perfflow.result/2`."""
    run: RunInfo
    """The run."""
    verdict: Literal["pass", "fail", "unproven", "error"] | None
    """`pass`, `fail`, `unproven` or `error` (something was not measured); null for a comparison of two stored results,
    which were not measured in pairs.
    """
    gate: Gate | None
    """The gate for other systems; null if `verdict` is null."""
    evidence: list[str]
    """Lines for a review, such as `perf: parse cpu: 19.8 ms; Δ vs baseline: -45.5%`."""
    reasons: list[Reason] = []
    """The reasons why the verdict is not a pass; then warnings of a pass."""
    machine: dict[str, Any]
    """Processor, cores, memory, kernel, Python, and under `noise` how quiet the machine was; two results are from one
    machine if `identity` is the same.
    """
    nodes: list[NodeResult] = []
    """The machines of a cluster that measured parts of the run; empty if `machine` measured everything."""
    trees: dict[str, dict[str, Any] | None]
    """`baseline` and `candidate`: the code of each side, with revision, branch, and whether files were changed (with
    candidates, `untracked`: whether there were untracked files); `candidate` is null if both sides ran in one tree.
    With `gate --against`, the baseline has `best`: the `benchmark` and `metric` that chose the revision, the stored
    `value` (in `unit`) of that revision, when it was `measured`, how many `days` and `commits` ago, and the share
    `lost` since. With `gate --overlay`, it has the paths (`overlay`) and the number of files that differ from its own
    (`replaced`). `built` is when an earlier run built a tree that was not built again.
    """
    steps: list[StepResult]
    """The outcome of each step."""
    benchmarks: list[Benchmark]
    """One row for each metric of each benchmark."""
    targets: list[TargetResult]
    """One row for each requirement on each benchmark."""
    growth: list[Growth] = []
    """How benchmarks with `scaling` grow with their sizes."""
    peaks: list[PeakResult] = []
    """Peaks of the machine, from steps or from the workflow."""
    roofline: list[RooflinePoint] = []
    """Benchmarks under the roof, if their arithmetic and memory traffic are both known."""
    kernels: list[KernelResult] = []
    """GPU kernels seen by profilers, with occupancy by the model, bound and stalls."""
    across_gpus: list[OnGpu] = []
    """Kernels whose two sides ran on different GPUs, by their shares of each GPU's roof."""
    profiles: list[ProfileResult]
    """Profiles on disk."""
    hotspots: list[HotspotResult]
    """Places that take time, instructions or bytes."""
    memory: list[MemoryResult] = []
    """The heap over the run, from tools that record it."""
    optimizations: list[Optimization]
    """The candidates of the optimize stage, and their outcomes."""
    verification: list[Verification]
    """Outcomes of correctness steps."""
    attributions: list[Attribution] = []
    """Functions that cost more on the candidate, of benchmarks that regressed; the largest loss first."""
    blind: Blind | None = None
    """Changed lines that no benchmark executes; null if it is not known what all benchmarks execute."""
    recommendations: list[Recommendation]
    """Advice from rules about the findings of this run."""
    confirmations: list[dict[str, Any]]
    """Benchmarks that changed among many, or regressed where `confirm` asks for fresh pairs: `benchmark`, `metric`,
    `decision`, `pairs`, and the `outcome`: `confirmed`, `refuted` or `open`. Also realistic benchmarks that confirm
    changed synthetic ones: `by`, `by_decision`, and whether it `agrees` (null if unknown).
    """
    routes: list[RouteTaken]
    """The route of the first rule that matched; empty if the run neither compared two trees nor has routes of its
    own.
    """
    criteria: dict[str, Any]
    """Targets, thresholds and accepted regressions by which the run was judged."""
    data: dict[str, str] | None = None
    """Sha256 of the workflow's declared input files, by path."""

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
