"""Fold the events of a run into a record: everything that it measured, without conclusions.

Live, killed and stored runs are folded from the same events in the same way.

``with_groups`` adds parts of a run that were measured on other machines: one event per job, which stands for the events
of its folder. So a run contains all measurements of a job or none, even if the collecting process is killed. A group
that was measured again counts once, by its last job.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import intern
from typing import Any, TypeVar

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.kernels import KernelResult
from perfflow.model.metrics import MEMORY
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import NO_INNER, SCHEDULES, Design, Peak, Reading, Side
from perfflow.model.result import Attribution, Blind, Expected, Optimization, PlannedStep, RunInfo
from perfflow.store.run_facts import (
    Alteration,
    BisectQuestion,
    Blame,
    Branch,
    ExecutedLines,
    FoundHotspot,
    StepFindings,
    StepRecord,
    StoredProfile,
    UnchangedBenchmark,
)

GROUP = "group"


SCHEMA = "perfflow.events/1"
_MEASURE = "measure"
_PROFILE = "profile"
"""The role of a planned step that profiles."""


def _empty() -> dict[Side, list[Reading]]:
    return {side: [] for side in Side}


@dataclass
class MetricSeries:
    """All readings of one metric of one benchmark.

    ``design`` is the sampling design. ``paired``: the sides have the same length and were taken in random order.
    ``two_sided``: the step measured two sides, so if one has no readings, the benchmark or metric is new or removed.
    """

    benchmark: str
    metric: str
    step: str
    tool: str
    paired: bool
    two_sided: bool
    design: str = Design.FIXED
    sides: dict[Side, list[Reading]] = field(default_factory=_empty)
    lone: dict[Side, list[Reading]] = field(default_factory=_empty)
    """Readings without a partner in their pair: all readings of a metric that only one side has."""
    built: MetricSeries | None = None
    """The readings of the programs as built, if fresh code layouts decide."""
    layouts: dict[Side, list[int]] = field(default_factory=lambda: {side: [] for side in Side})
    """The code layout number of each reading of a side; the readings are sorted by it."""
    confirming: dict[Side, list[int]] = field(default_factory=lambda: {side: [] for side in Side})
    """The number of the confirmation that each reading of a side is from; 0 for readings before the first."""
    to_confirm: bool = False
    """Whether a change counts only if a confirmation agrees, because many benchmarks were compared."""

    @property
    def comparable(self) -> bool:
        """Whether the design allows a comparison of the sides."""
        return self.paired or self.design in (Design.FEW, Design.FEW_LAYOUTS)

    @property
    def exact(self) -> bool:
        """Whether the tool declares the readings exact."""
        return any(item.exact for side in Side for item in self.readings(side))

    seconds: float = 0.0
    """Time to take the samples in ``sides``; 0 for runs of versions that did not record it."""
    group: str = ""
    """The group that measured it on another machine; '' if this machine did."""

    @property
    def confirmations(self) -> int:
        """The number of confirmations."""
        return max((number for side in Side for number in self.confirming[side]), default=0)

    def begin(self, design: str, event: Mapping[str, Any]) -> None:
        """Prepare for the readings of an event: readings of code layouts set aside those of the programs as built."""
        self.to_confirm = self.to_confirm or event.get("many", False)
        if event.get("layout", 0):
            self.start_layouts(design)
        self.seconds += event.get("seconds", 0.0)

    def start_layouts(self, design: str) -> None:
        """Set aside the readings of the programs as built."""
        if self.built is None:
            self.built = replace(self)
            self.sides, self.lone = _empty(), _empty()
            self.layouts, self.confirming = {side: [] for side in Side}, {side: [] for side in Side}
            self.design, self.paired = design, design != Design.FEW_LAYOUTS and self.two_sided
            self.seconds = 0.0

    def add(self, side: Side, reading: Reading, layout: int = 0, confirmation: int = 0) -> None:
        """Add a reading, of a code layout or a confirmation if its number is not 0."""
        place = bisect_right(self.layouts[side], layout) if layout else len(self.sides[side])
        self.sides[side].insert(place, reading)
        self.confirming[side].insert(place, confirmation)
        if layout:
            self.layouts[side].insert(place, layout)

    @property
    def statistic(self) -> str:
        """The statistic of the values inside a process that the readings are; '' if it is not recorded."""
        return next((item.statistic for side in Side for item in self.readings(side)), "")

    def one_sided(self) -> Side | None:
        """Return the only side of a comparison with readings; None if both have some or only one was measured."""
        have = [side for side in Side if self.sides[side] or self.lone[side]]
        return have[0] if self.two_sided and len(have) == 1 else None

    def readings(self, side: Side) -> list[Reading]:
        """Return the readings of a side: those in pairs, or all readings if only this side has the metric."""
        return self.lone[side] if self.one_sided() is side and self.paired else self.sides[side]


@dataclass
class Record:
    """The measurements of a run, step by step and sample by sample."""

    run: RunInfo = field(default_factory=lambda: RunInfo(id="", workflow="", component="", started="", seed=0))
    """The facts of the run; the id is '' without an opening event."""
    bisect: BisectQuestion | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    trees: dict[str, Any] = field(default_factory=dict)
    criteria: Criteria = field(default_factory=Criteria)
    data: dict[str, str] | None = None
    """sha256 of the declared input files by path; None for runs of versions that did not record it."""
    planned: dict[str, PlannedStep] = field(default_factory=dict)
    steps: dict[str, StepRecord] = field(default_factory=dict)
    series: dict[tuple[str, str], MetricSeries] = field(default_factory=dict)
    expected: dict[tuple[str, str], Expected] = field(default_factory=dict)
    """Expectations from the calibration of this machine, by benchmark and metric."""
    interrupted: bool = False
    ended: bool = False
    warnings: dict[str, list[str]] = field(default_factory=dict)
    measured_twice: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    """Benchmark, metric and the other step, by step, of samples that were skipped: the other measures the same."""
    stopped: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why measuring ended, by step and benchmark; '' for all benchmarks of the step."""
    without_layouts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Why no code layouts were drawn although they would have decided, by step and benchmark."""
    trials: dict[str, Record] = field(default_factory=dict)
    """Records of the runs on the tree of a candidate or on the accepted state, by the step that tried it."""
    original: str = ""
    """The tree that the candidates started from."""
    kept: dict[str, str] = field(default_factory=dict)
    """Commits of the accepted candidates, in the order of acceptance."""
    unchanged: dict[tuple[str, str], UnchangedBenchmark] = field(default_factory=dict)
    """The benchmarks that both sides execute alike, by step and benchmark."""
    executed: dict[str, ExecutedLines] = field(default_factory=dict)
    """What the benchmarks of a step execute of the changed files, by step, if it is known."""
    blind: Blind | None = None
    ledger: list[Optimization] = field(default_factory=list)
    """Ledger entries that come from a stored result instead of from steps."""
    blamed: dict[tuple[str, str, str], Blame] = field(default_factory=dict)
    """Commits that touched a function, with a note, by benchmark, function and file."""
    attributed: list[Attribution] | None = None
    """Slower functions from a stored result, which does not have the costs per step."""
    branch: Branch | None = None
    altered: list[Alteration] = field(default_factory=list)
    jobs: dict[str, GroupJob] = field(default_factory=dict)
    """The jobs on other machines that measured parts of the run, by group."""
    _group: str = ""
    """The group whose events are being folded; '' for events of this machine."""

    def fold(self, event: Mapping[str, Any]) -> None:
        """Fold one event. Unknown kinds are ignored."""
        self._group = event.get(GROUP, "")
        match "trial" if "trial" in event else event.get("event"):
            case "trial":
                self._take_trial(event)
            case "run":
                self._open(event)
            case "group" | "noise" | "reused" | "altered":
                self._take_machine(event)
            case "sample":
                self._take_sample(event)
            case "step" | "cached":
                self._take_step(event)
            case "planned" | "stopped" | "blamed" | "layouts" | "unchanged" | "executed" | "blind":
                self._take_reason(event)
            case "optimizing" | "kept" | "branch":
                self._take_optimizing(event)
            case "resumed":
                self._resume(event)
            case "interrupted" | "end":
                self.interrupted, self.ended = event["event"] == "interrupted", event["event"] == "end"
                self.run = self.run.model_copy(update={"finished": event["time"]})

    def _take_machine(self, event: Mapping[str, Any]) -> None:
        """Fold the job of a group on another machine, the noise of a machine, a kept build, or an alteration."""
        if event["event"] == "altered":
            self.altered.append(from_json(Alteration, event))
            return
        if event["event"] == "reused":
            self.trees[event["side"]] = {**(self.trees.get(event["side"]) or {}), "built": event["built"]}
            return
        if event["event"] == GROUP:
            self.jobs[self._group] = from_json(GroupJob, event)
            return
        noise = {key: value for key, value in event.items() if key not in ("event", GROUP)}
        job = self.jobs.get(self._group)
        if job is None:
            self.machine["noise"] = noise
        else:
            self.jobs[self._group] = replace(job, machine={**job.machine, "noise": noise})

    def _take_reason(self, event: Mapping[str, Any]) -> None:
        """Fold an added step, why measuring ended, lacks layouts or is not needed, or who touched a slower function."""
        if event["event"] == "planned":
            self.planned[event["id"]] = PlannedStep.model_validate(event)
        elif event["event"] == "stopped":
            self.stopped[event["step"], event["benchmark"]] = event["reason"]
        elif event["event"] == "unchanged":
            self.unchanged[event["step"], event["benchmark"]] = from_json(UnchangedBenchmark, event)
        elif event["event"] == "executed":
            self.executed[event["step"]] = from_json(ExecutedLines, event)
        elif event["event"] == "blind":
            self.blind = Blind.model_validate(event)
        elif event["event"] == "layouts":
            self.without_layouts[event["step"], event["benchmark"]] = event["reason"]
            self._take_as_built(event["step"], event["benchmark"])
        else:
            blame = from_json(Blame, event)
            self.blamed[blame.benchmark, blame.function, blame.file] = blame

    def _take_as_built(self, step: str, benchmark: str) -> None:
        """Let the programs as built decide again, where too few pairs with code layouts were taken to decide."""
        fewest = SCHEDULES[Design.LAYOUTS][0][0]
        for key, series in self.series.items():
            own = series.step == step and benchmark in ("", series.benchmark)
            if own and series.built and series.design == Design.LAYOUTS and len(series.sides[Side.BASELINE]) < fewest:
                self.series[key] = series.built

    def _take_optimizing(self, event: Mapping[str, Any]) -> None:
        """Fold the tree that the candidates started from, an accepted candidate, or the branch with the result."""
        if event["event"] == "optimizing":
            self.original = event["tree"]
            self.run = self.run.model_copy(update={"isolation": event.get("isolation", "")})
        elif event["event"] == "kept":
            self.kept[event["id"]] = event["revision"]
        else:
            self.branch = from_json(Branch, event)

    def _take_trial(self, event: Mapping[str, Any]) -> None:
        """Fold one event of a try. A try that begins again replaces the interrupted one."""
        name = event["trial"]
        if name not in self.trials or event.get("event") == "begun":
            self.trials[name] = Record(run=self.run, planned=self.planned)
            self.kept.pop(name, None)
        self.trials[name].fold({key: value for key, value in event.items() if key != "trial"})

    def tried(self) -> Iterator[Optimization]:
        """Yield the entries of the ledger, in the order of the plan."""
        yield from self.ledger
        for _, step in self.ended_steps():
            yield from step.optimizations

    def concluded(self) -> Record:
        """Return the record to judge: that of the run, with the measurements of the accepted state.

        These are the final comparison with the original, which replaces the baseline's own samples, and the profiles
        taken again after the last accepted change, with their metrics.
        """
        comparing = (name for name, step in self.planned.items() if step.compare)
        final = next((self.trials[name] for name in comparing if name in self.trials), Record())
        last = self.trials.get(next(reversed(self.kept), ""), Record())
        return replace(
            self,
            steps={
                name: _with_kept(step, final.steps.get(name), last.steps.get(name)) for name, step in self.steps.items()
            },
            series={**self.series, **self._profiled_again(last), **final.series},
            stopped={**self.stopped, **final.stopped},
            without_layouts={**self.without_layouts, **final.without_layouts},
        )

    def _profiled_again(self, last: Record) -> dict[tuple[str, str], MetricSeries]:
        """Return the profile metrics of the baseline, with those of the accepted state as the candidate's."""
        found = {}
        for key, series in self.series.items():
            again = last.series.get(key)
            if again and again.step == series.step and self.plan_of(series.step).role == _PROFILE:
                sides = {Side.BASELINE: series.sides[Side.BASELINE], Side.CANDIDATE: again.sides[Side.BASELINE]}
                found[key] = replace(series, sides=sides, two_sided=True)
        return found

    def _open(self, event: Mapping[str, Any]) -> None:
        """Fold the plan, the machine, the trees and the criteria of the run."""
        if event.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"its schema is {event['schema']!r}, not {SCHEMA!r}")
        self.run = RunInfo.model_validate(event["run"])
        question = event["run"].get("bisect")
        self.bisect = from_json(BisectQuestion, question) if question else None
        self.machine.update(event["machine"])
        self.trees.update(event["trees"])
        self.criteria = criteria_from_json(event["criteria"])
        self.data = event.get("data")
        for expected in event.get("expected", []):
            self.expected[expected["benchmark"], expected["metric"]] = Expected.model_validate(expected)
        self.planned = {expected["id"]: PlannedStep.model_validate(expected) for expected in event["steps"]}

    def _resume(self, event: Mapping[str, Any]) -> None:
        """Fold the resumption of a run: clear its end, and forget steps that did not succeed."""
        self.interrupted = self.ended = False
        paused = self.run.paused + event["paused"]
        resumed = [*self.run.resumed, event["time"]]
        self.run = self.run.model_copy(update={"finished": None, "resumed": resumed, "paused": paused})
        for step_id in event["selected"]:
            self.planned[step_id] = self.planned[step_id].model_copy(update={"selected": True})
        for step_id in [name for name, step in self.steps.items() if step.status not in ("done", "cached")]:
            del self.steps[step_id]

    def _take_step(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "cached":
            self.steps[event["id"]] = replace(self.steps[event["id"]], status="cached")
            return
        step, before = from_json(StepRecord, event), self.steps.get(event["id"])
        self.steps[event["id"]] = merged(before, step) if before and self._group else step
        self._take_profile(event)

    def _take_profile(self, event: Mapping[str, Any]) -> None:
        both = len(event.get("readings", {})) > 1
        for side, readings in event.get("readings", {}).items():
            for item in readings:
                reading = reading_from_json(item)
                series = self._series(event["id"], reading, paired=False, two_sided=both, design=Design.FIXED)
                if series:
                    series.add(Side(side), reading)

    def _take_sample(self, event: Mapping[str, Any]) -> None:
        design, layout = event.get("design", Design.FIXED), event.get("layout", 0)
        taken = {side: [reading_from_json(item) for item in event[side]] for side in Side if side in event}
        if layout:
            # Code layout does not affect memory, so the programs as built decide about it.
            taken = {
                side: [item for item in readings_of_side if item.metric not in MEMORY]
                for side, readings_of_side in taken.items()
            }
        if len(taken) == 1:
            self._take_single(event, *next(iter(taken.items())))
            return
        by_key = {side: {(item.benchmark, item.metric): item for item in readings} for side, readings in taken.items()}
        for key in dict.fromkeys(key for readings in by_key.values() for key in readings):
            pair = [readings[key] for readings in by_key.values() if key in readings]
            series = self._series(event["step"], pair[0], paired=True, two_sided=True, design=design)
            if not series:
                continue
            series.begin(design, event)
            # A metric that only one side of a pair has (a program that sometimes starts a thread) is not a pair.
            if len(pair) == 2:
                for side, reading in zip(Side, pair, strict=True):
                    series.add(side, reading, layout, event.get("confirmation", 0))
            else:
                side = next(side for side, readings in by_key.items() if key in readings)
                series.lone[side].append(pair[0])

    def _take_single(self, event: Mapping[str, Any], side: Side, readings: Sequence[Reading]) -> None:
        """Fold the readings of a process without a partner."""
        design = event.get("design", Design.FIXED)
        two_sided = design in (Design.FEW, Design.UNPAIRED) or event.get("alone", False)
        for reading in readings:
            series = self._series(event["step"], reading, paired=False, two_sided=two_sided, design=design)
            if series is None:
                continue
            series.begin(design, event)
            series.add(side, reading, event.get("layout", 0), event.get("confirmation", 0))

    def _series(
        self, step: str, reading: Reading, *, paired: bool, two_sided: bool, design: str
    ) -> MetricSeries | None:
        """Return the series of a reading. The first step to measure it owns it; others get a warning and None."""
        plan = self.plan_of(step)
        benchmark = reading.benchmark or plan.benchmark or step
        series = self.series.get((benchmark, reading.metric))
        if series and series.step == step and series.group != self._group:
            # Every group measures the peaks of its machine. Another kind of machine gets its own row.
            if self._kind_of(series.group) == self._kind_of(self._group):
                return None
            benchmark = f"{benchmark} @{self.jobs[self._group].node}"
        key = (benchmark, reading.metric)
        series = self.series.get(key)
        if series is None:
            design = Design.LOOKS if design == Design.CONFIRM else design
            series = MetricSeries(
                benchmark, reading.metric, step, plan.tool, paired, two_sided, design, group=self._group
            )
            self.series[key] = series
        if series.step == step:
            return series
        both = plan.role == self.plan_of(series.step).role == _MEASURE
        begin = "measured twice: " if both else ""
        note = f"{begin}`{reading.metric}` of `{benchmark}` was already measured by step `{series.step}`"
        if note not in self.warnings.setdefault(step, []):
            self.warnings[step].append(note)
            if both:
                self.measured_twice.setdefault(step, []).append((benchmark, reading.metric, series.step))
        return None

    def _kind_of(self, group: str) -> str:
        """Return the identity of the machine that measured a group."""
        job = self.jobs.get(group)
        return str((job.machine if job else self.machine).get("identity", ""))

    def node_of(self, series: MetricSeries) -> str:
        """Return the cluster node that measured a series; '' for this machine."""
        job = self.jobs.get(series.group)
        return job.node if job else ""

    def lost_before(self, series: MetricSeries) -> list[str]:
        """Return a warning if a lost job had begun to measure a series; else an empty list."""
        job = self.jobs.get(series.group)
        return [f"measured again from its first pair, after a job was lost: {job.lost}"] if job and job.lost else []

    def why_stopped(self, series: MetricSeries) -> str:
        """Return why the measuring of a series ended; '' if that is not recorded."""
        return _of(self.stopped, series)

    def why_as_built(self, series: MetricSeries) -> str:
        """Return why no code layouts were drawn for a series although they would have decided; '' without a reason."""
        return _of(self.without_layouts, series)

    def plan_of(self, step_id: str) -> PlannedStep:
        """Return the plan of a step; a minimal one if the plan does not contain it."""
        return self.planned.get(step_id) or PlannedStep(id=step_id, stage="", tool="run", role="")

    def outcome_of(self, step_id: str) -> StepRecord:
        """Return how a step ended and its findings; an empty record with status '' if it did not end."""
        return self.steps.get(step_id) or StepRecord(step_id, "")

    def ended_steps(self) -> Iterator[tuple[str, StepRecord]]:
        """Return the steps that ended, in the order of the plan: the order in which they ended may be random."""
        return ((step_id, self.steps[step_id]) for step_id in self.planned if step_id in self.steps)

    def peaks(self) -> list[tuple[str, Peak]]:
        """Return all peaks that steps found, with the step, in the order of the steps."""
        return [(step_id, peak) for step_id, step in self.ended_steps() for peak in step.peaks]

    def kernels(self) -> list[KernelResult]:
        """Return all GPU kernels that steps profiled, in the order of the steps."""
        return [
            item.model_copy(update={"step": step_id}) for step_id, step in self.ended_steps() for item in step.kernels
        ]

    def precision_of(self, series: MetricSeries) -> str:
        """Return the declared precision of a benchmark's arithmetic, '' without one."""
        return self.plan_of(series.step).precision

    def hotspots(self) -> list[tuple[str, FoundHotspot]]:
        """Return all hotspots with the step that found them, in the order of the steps."""
        return [(step_id, item) for step_id, step in self.ended_steps() for item in step.hotspots]


def _of(reasons: Mapping[tuple[str, str], str], series: MetricSeries) -> str:
    """Return the reason for a benchmark, or for its whole step."""
    return reasons.get((series.step, series.benchmark)) or reasons.get((series.step, ""), "")


def _with_kept(step: StepRecord, final: StepRecord | None, last: StepRecord | None) -> StepRecord:
    """Return a step with ``identical`` from the final comparison and with the profiles of the accepted state."""
    if final is not None:
        step = replace(step, identical=final.identical)
    if last is None:
        return step
    trees = {*(item.tree for item in last.profiles), *(item.tree for item in last.memory)}
    trees |= {*(item.tree for item in last.hotspots), *(Side(item.tree) for item in last.kernels)}
    # If the trial compared, its baseline is the state before the change; otherwise everything is of the candidate.
    side = Side.CANDIDATE if Side.CANDIDATE in trees else Side.BASELINE
    return replace(
        step,
        profiles=(*step.profiles, *_of_kept(last.profiles, side)),
        hotspots=(*step.hotspots, *_of_kept(last.hotspots, side)),
        kernels=(
            *step.kernels,
            *(item.model_copy(update={"tree": "candidate"}) for item in last.kernels if item.tree == side),
        ),
        memory=(
            *step.memory,
            *(item.model_copy(update={"tree": "candidate"}) for item in last.memory if item.tree == side),
        ),
    )


_Found = TypeVar("_Found", StoredProfile, FoundHotspot)


def _of_kept(found: Iterable[_Found], side: Side) -> Iterator[_Found]:
    """Yield the findings of one side of a trial, as those of the candidate of the whole run."""
    return (replace(item, tree=Side.CANDIDATE) for item in found if item.tree == side)


def record_of(events: Iterable[Mapping[str, Any]]) -> Record:
    """Fold all events of a run into a record."""
    record = Record()
    for event in events:
        record.fold(event)
    return record


def reading_to_json(reading: Reading) -> dict[str, Any]:
    """Return plain data without default values, because most lines of a long run are readings."""
    data: dict[str, Any] = {"metric": reading.metric, "value": reading.value}
    if reading.benchmark:
        data["benchmark"] = reading.benchmark
    if reading.inner:
        data["inner"] = dict(reading.inner)
    for mark in ("at_most", "exact"):
        if getattr(reading, mark):
            data[mark] = True
    if reading.tick:
        data["tick"] = reading.tick
    if reading.statistic:
        data["statistic"] = reading.statistic
    return data


def reading_from_json(data: Mapping[str, Any]) -> Reading:
    """Read what ``reading_to_json`` wrote."""
    # Interned, because all lines of a long run contain the same few names.
    metric, benchmark = intern(data["metric"]), intern(data.get("benchmark", ""))
    at_most, exact = data.get("at_most", False), data.get("exact", False)
    statistic, tick = intern(data.get("statistic", "")), data.get("tick", 0.0)
    return Reading(metric, data["value"], benchmark, data.get("inner", NO_INNER), at_most, exact, statistic, tick)


_OF_THE_JOB = ("run", "resumed", "interrupted", "end", GROUP)
"""Events of a job that concern only its own run."""
_WORST = ("failed", "timeout", "skipped", "done", "cached")
"""Statuses by importance. A step of which one group had no part was skipped there, which does not matter."""


@dataclass(frozen=True)
class GroupJob:
    """The job that measured a group: its folder relative to the run's, its node, and how it ended.

    ``job`` is the number in the cluster's scheduler, ``machine`` the node's facts, ``seconds`` its duration, ``lost``
    why an earlier attempt did not finish. ``built`` is the folder of its build, if this job built the trees.
    """

    group: str
    attempt: int
    folder: str
    state: str
    node: str
    job: str = ""
    seconds: float = 0.0
    lost: str = ""
    reason: str = ""
    built: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """Return the event that stands for the events of the job."""
        return {"event": GROUP, **to_json(self)}


def with_groups(
    path: Path, events: Iterable[dict[str, Any]], read: Callable[[Path], Iterator[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield the events of a run's folder, each job event followed by the events of its folder, which ``read`` reads."""
    last: dict[str, int] | None = None
    for event in events:
        if event.get("event") != GROUP:
            yield event
            continue
        if last is None:
            last = _last_attempts(path)
        if event["attempt"] == last.get(event[GROUP]):
            # A process that was stopped while it collected a job may have written its event twice.
            del last[event[GROUP]]
            yield event
            for folder in filter(None, (event.get("built"), event["folder"])):
                its_own = (
                    event_of_job for event_of_job in read(path / folder) if event_of_job.get("event") not in _OF_THE_JOB
                )
                yield from (_of_group(event[GROUP], folder, event_of_job) for event_of_job in its_own)


def _last_attempts(path: Path) -> dict[str, int]:
    """Return the last attempt of each group; earlier attempts do not count."""
    found: dict[str, int] = {}
    beginning = f'{{"event":"{GROUP}"'.encode()
    with (path / "events.jsonl").open("rb") as stream:
        for line in stream:
            if line.startswith(beginning) and line.endswith(b"\n"):
                event = json.loads(line)
                found[event[GROUP]] = event["attempt"]
    return found


def _of_group(group: str, folder: str, event: dict[str, Any]) -> dict[str, Any]:
    """Return an event as one of the whole run: with its group, and with paths relative to the run's folder."""
    event[GROUP] = group
    _move(event, ("log",), folder)
    for item in event.get("profiles", ()):
        _move(item, ("path",), folder)
    for item in event.get("optimizations", ()):
        _move(item, ("log", "diff_file"), folder)
    return event


def _move(item: dict[str, Any], keys: Sequence[str], folder: str) -> None:
    for key in keys:
        if item.get(key):
            item[key] = f"{folder}/{item[key]}"


def _rank(step: StepRecord) -> int:
    has_no_part = step.status == "skipped" and not step.not_started
    return len(_WORST) if has_no_part or step.status not in _WORST else _WORST.index(step.status)


def merged(one: StepRecord, other: StepRecord) -> StepRecord:
    """Merge the records of a step that two groups performed in parts."""
    worst = min(one, other, key=_rank)
    both = {name: getattr(one, name) + getattr(other, name) for name in StepFindings.__dataclass_fields__}
    like_it = [step for step in (one, other) if step.status == worst.status]
    both["devices"] = tuple(dict.fromkeys(both["devices"]))
    return replace(
        worst,
        reason="; ".join(dict.fromkeys(step.reason for step in like_it if step.reason)),
        seconds=one.seconds + other.seconds,
        waited=one.waited + other.waited,
        warnings=tuple(dict.fromkeys((*one.warnings, *other.warnings))),
        identical=one.identical and other.identical,
        **both,
    )
