"""``perfflow calibrate``: compare each measuring step with itself, and store its noise for later runs.

Beside that, ``disturbed`` measures whether the benchmarks of a suite disturb each other: each alone against each among
all in one process. ``write_page`` writes the page about this machine's calibration from the stored entries, without
measuring.
"""

from __future__ import annotations

import math
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.machine.facts import facts
from perfflow.model.criteria import Criteria
from perfflow.model.errors import UserError
from perfflow.model.readings import Design, Reading, Side
from perfflow.model.version import VERSION
from perfflow.plan.plan import Plan, Planned
from perfflow.report.html import document
from perfflow.sampling.pairs import BenchmarkToSample, LostError, Request, Take
from perfflow.sampling.sampling import MOST_ALONE, StepSampling
from perfflow.session.bench import Bench
from perfflow.session.open_workflow import Opened, select
from perfflow.session.perform import not_startable, schedule
from perfflow.session.progress import Began, Progress, StepEnded
from perfflow.session.session import Perform, RunSession, calibration_kept, pausing, users_tree
from perfflow.session.steps.by_role import performer_of
from perfflow.stats.paired_test import ENOUGH
from perfflow.store import calibrations, run_folder
from perfflow.store.calibrations import CalibrationEntry, CalibrationFinding
from perfflow.store.write_failure import exit_of_write_failure, write_remedy
from perfflow.tools.adapter import Role
from perfflow.verdict.calibration import FEWEST_PAIRS, Trial, findings
from perfflow.verdict.comparison import compare
from perfflow.verdict.gating import gating_rows


@dataclass(frozen=True)
class CalibrateRequest:
    """The user's options; ``budget`` is in seconds, for all steps together."""

    only: Sequence[str]
    trials: int
    budget: float
    seed: int | None = None
    lock_timeout: float = 1800.0


@dataclass(frozen=True)
class Calibration:
    """The result. ``failed`` and ``skipped`` are (step, reason). ``noise`` is the machine's class, '' if unknown."""

    workflow: str
    identity: str
    seed: int
    entries: tuple[CalibrationEntry, ...]
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]
    interrupted: bool
    noise: str
    path: Path
    page: Path | None
    """The page about this machine; None if nothing is known about it, or if the page could not be written."""


def calibrate(opened: Opened, request: CalibrateRequest, progress: Progress) -> Calibration:
    """Build, compare each measuring step with itself, and store the findings. ^C stores the findings so far.

    Raises UserError for bad usage before anything is executed.
    """
    steps = _measuring(opened.plan, request.only)
    identity = facts()["identity"]
    calibrations.load(opened.root, identity)
    folder = run_folder.create(opened.root, _folder(opened.root))
    with folder, calibration_kept(calibrations.path_of(opened.root, identity)):
        context = users_tree(opened, folder, request.seed)
        calibrator = _Calibrator(request, context.seed, steps)
        session = RunSession(context, folder, progress, calibrator.performer_of, request.lock_timeout)
        calibrating = _Calibrating(opened, session, calibrator)
        interrupted = calibrating.perform_steps()
        calibration = calibrating.concluded(interrupted=interrupted)
    if not calibration.failed:
        shutil.rmtree(folder.path, ignore_errors=True)
    return calibration


@dataclass
class _Calibrating:
    """One calibration in progress."""

    opened: Opened
    session: RunSession
    calibrator: _Calibrator
    entries: list[CalibrationEntry] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"))

    def perform_steps(self) -> bool:
        """Compare each step with itself, and store its findings when it ends. Return whether ^C stopped it."""
        session, plan = self.session, self.opened.plan
        selected = _with_work_before(plan, self.calibrator.steps)
        session.progress(Began(session.folder.path, [item for item in plan.steps if item.id in selected]))
        try:
            with pausing(session):
                for step in not_startable(session.context, selected) or schedule(session, selected):
                    session.progress(StepEnded(step))
                    self._ended(step)
        except KeyboardInterrupt:
            self._keep(self.calibrator.found())
            return True
        finally:
            session.close()
        return False

    def concluded(self, *, interrupted: bool) -> Calibration:
        """Return the result. A complete calibration replaces all earlier entries."""
        whole = not (interrupted or self.failed or self.skipped or self.calibrator.asked.only)
        root, context = self.opened.root, self.session.context
        identity = str(context.machine["identity"])
        path = (
            calibrations.store(root, identity, self.entries, whole=True)
            if whole and self.entries
            else calibrations.path_of(root, identity)
        )
        return Calibration(
            context.plan.workflow.name,
            identity,
            context.seed,
            tuple(self.entries),
            tuple(self.failed),
            tuple(self.skipped),
            interrupted,
            self._noise(),
            path,
            write_page(root, identity),
        )

    def _ended(self, step: StepRun) -> None:
        measured = step.planned.id in self.calibrator.steps
        kept = self._keep(self.calibrator.found()) if measured else 0
        if step.status in (StepStatus.FAILED, StepStatus.TIMEOUT):
            allowed = step.planned.step.continue_on_error
            (self.skipped if allowed else self.failed).append((step.planned.id, step.reason))
        elif step.status is StepStatus.SKIPPED and measured:
            self.skipped.append((step.planned.id, step.reason))
        elif measured and not kept:
            reason = f"the budget ran out before there were {FEWEST_PAIRS} pairs; raise it with --budget"
            self.skipped.append((step.planned.id, reason))
        self.calibrator.bench = None

    def _keep(self, new_findings: Iterator[CalibrationFinding]) -> int:
        """Store the findings of one step; return their number."""
        fresh = [
            CalibrationEntry(
                workflow=self.session.context.plan.workflow.name,
                params=dict(self.session.context.plan.params),
                calibrated=self.when,
                seed=self.session.context.seed,
                version=VERSION,
                machine=self._noise(),
                finding=finding,
            )
            for finding in new_findings
        ]
        self.entries += fresh
        if fresh:
            calibrations.store(self.opened.root, str(self.session.context.machine["identity"]), fresh, whole=False)
        return len(fresh)

    def _noise(self) -> str:
        return self.session.noise.kind.value if self.session.noise else ""


class _BudgetSpentError(Exception):
    """The step's share of the budget ran out during a comparison."""


@dataclass
class _Calibrator:
    """Compares steps with themselves, one at a time. ``trials`` are those of the current step."""

    asked: CalibrateRequest
    seed: int
    steps: Sequence[str]
    bench: Bench | None = None
    trials: list[Trial] = field(default_factory=list)
    alone: dict[str, float] = field(default_factory=dict)
    """How much longer each benchmark of the current step takes alone than among the others of its suite, as a share."""
    _ends: float = math.inf
    _step_ends: float = math.inf
    _spent: dict[str, float] = field(default_factory=dict)

    def __call__(self, session: RunSession, planned: Planned, run: StepRun) -> None:
        """Run trials until there are enough, or until this step's share of the budget is spent."""
        self.trials, self.alone = [], {}
        began = time.monotonic()
        self.bench = bench = Bench(session, planned, run)
        takes: dict[Take, Take] = {}
        benchmarks = [] if bench.deterministic else [self._alike(item, takes) for item in bench.benchmarks()]
        # The budget is for comparisons only, so the time to build a suite is added to it.
        self._ends += time.monotonic() - began
        self._start(session.context.plan, planned)
        run.exit_code = 0
        if bench.deterministic:
            return
        while len(self.trials) < self.asked.trials:
            bench.start_over(self.seed + len(self.trials))
            self._spent, complete = {}, False
            try:
                bench.measure(benchmarks)
                complete = True
            except _BudgetSpentError:
                break
            finally:
                self.trials.append(Trial(bench.sampling.stop_rule.record, self._spent, complete))
        bench.raise_failures()
        if len(self.trials) == self.asked.trials:
            with suppress(_BudgetSpentError):
                groups, criteria = bench.sampling.groups(benchmarks), session.context.plan.criteria
                bench.start_over(self.seed)
                self.alone = dict(disturbed(bench.sampling, groups, criteria))

    def performer_of(self, planned: Planned) -> Perform:
        """Return the function that performs a step: this object for measuring steps."""
        return self if planned.role is Role.MEASURE else performer_of(planned)

    def _start(self, plan: Plan, planned: Planned) -> None:
        """Divide the rest of the budget among the remaining steps. Deterministic steps need none."""
        now = time.monotonic()
        if self._ends == math.inf:
            self._ends = now + self.asked.budget
        tools = [plan.by_id[name].tool for name in self.steps[self.steps.index(planned.id) :]]
        left = max(1, sum(tool is None or not tool.deterministic for tool in tools))
        self._step_ends = now + max(0.0, self._ends - now) / left

    def _alike(self, benchmark: BenchmarkToSample, takes: dict[Take, Take]) -> BenchmarkToSample:
        """Return the benchmark with both sides running the baseline's command.

        ``takes``: the functions made so far. Benchmarks with the same one can share processes.
        """

        def take(request: Request) -> tuple[Reading, ...]:
            began = time.monotonic()
            if began >= self._step_ends:
                raise _BudgetSpentError
            readings = benchmark.take(replace(request, side=Side.BASELINE))
            for sampled in request.benchmarks:
                share = (time.monotonic() - began) / len(request.benchmarks)
                self._spent[sampled.name] = self._spent.get(sampled.name, 0.0) + share
            return readings

        return replace(benchmark, sides=tuple(Side), take=takes.setdefault(benchmark.take, take))

    def found(self) -> Iterator[CalibrationFinding]:
        """Yield the findings from the trials of the current step."""
        if self.bench is None:
            return
        planned = self.bench.planned
        if self.bench.deterministic:
            yield CalibrationFinding(
                planned.id, planned.benchmark, "", exact=True, why="its tool gives the same value every time"
            )
        else:
            criteria = self.bench.session.context.plan.criteria
            found = findings(planned.id, self.trials, criteria, self.bench.budget, self.seed)
            # A finding without a noise figure must not replace an earlier calibration's finding.
            for finding in found:
                if finding.exact or finding.noise is not None:
                    yield replace(finding, alone=self.alone.get(finding.benchmark) if finding.judged else None)


def _folder(root: Path) -> Path:
    """Create a folder for the files of the steps. It is kept if a step fails."""
    try:
        folder = run_folder.home(root) / "calibration" / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        folder.mkdir(parents=True)
    except OSError as error:
        text = f"cannot write {error.filename or root}: {error.strerror}"
        hint = f"{write_remedy(error)}; calibrations are kept in the project"
        raise UserError.of(text, hint, exit_of_write_failure(error)) from error
    return folder


def _measuring(plan: Plan, only: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of the measuring steps, or of those that the user names. Raises UserError if there are none."""
    selected = select(plan, (), only, None)
    found = tuple(item.id for item in plan.steps if item.id in selected and item.role is Role.MEASURE)
    if found:
        return found
    known = [item.id for item in plan.steps if item.role is Role.MEASURE]
    hint = f"measuring steps: {', '.join(known)}" if known else "only measuring steps can be calibrated"
    what = f"`{', '.join(only)}` measures nothing" if only else "the workflow measures nothing"
    raise UserError.of(what, hint)


def _with_work_before(plan: Plan, steps: Sequence[str]) -> frozenset[str]:
    """Return the steps, all work of setup and build, and the work of other stages that they depend on."""
    wanted = {item.id for item in plan.steps if item.role is Role.WORK and item.stage in ("setup", "build")}
    waiting = [*steps, *wanted]
    before: set[str] = set()
    while waiting:
        item = plan.by_id[waiting.pop()]
        fresh = {name for name in (*item.needs, *item.after) if name in plan.by_id} - before
        before |= fresh
        waiting += fresh
    return frozenset({*steps, *wanted, *(name for name in before if plan.by_id[name].role is Role.WORK)})


def disturbed(
    sampling: StepSampling, groups: Iterable[Sequence[BenchmarkToSample]], criteria: Criteria
) -> Iterator[tuple[str, float]]:
    """Yield benchmarks that take another time alone than among the others of their suite, and their change alone.

    ``groups``: those that one process measures together. At most MOST_ALONE of each are measured. A change is yielded
    if it is proven beyond the concern threshold.
    """
    measured = [item for group in groups if len(group) > 1 for item in _beside_others(group)]
    sampling.take_rounds(measured, Design.FIXED, ENOUGH, math.inf)
    record = sampling.stop_rule.record
    rows = {key: compare(series, criteria) for key, series in record.series.items()}
    for key in gating_rows(record, rows, criteria):
        change, concern = rows[key].change, criteria.thresholds_of(*key).concern
        if change and (change.low > concern or change.high < -concern):
            yield key[0], change.estimate


def _beside_others(group: Sequence[BenchmarkToSample]) -> Iterator[BenchmarkToSample]:
    """Yield some benchmarks of a suite, with the same code on both sides: among all as baseline, alone as candidate."""
    among: dict[tuple[int, bool], tuple[Reading, ...]] = {}

    def take(request: Request) -> tuple[Reading, ...]:
        (item,) = request.benchmarks
        if request.side is Side.CANDIDATE:
            return group[0].take(Request((by_name[item.name],), Side.BASELINE, request.number, warming=request.warming))
        # One process measures the whole suite once a round, for all benchmarks of it that are compared.
        key = request.number, request.warming
        if key not in among:
            among[key] = group[0].take(Request(tuple(group), Side.BASELINE, request.number, warming=request.warming))
        readings = tuple(reading for reading in among[key] if reading.benchmark == item.name)
        if not readings:
            raise LostError
        return readings

    by_name = {item.name: item for item in group}
    step = max(1, len(group) // MOST_ALONE)
    for item in group[::step][:MOST_ALONE]:
        yield BenchmarkToSample(item.name, tuple(Side), take)


def known_of_this_machine(root: Path) -> tuple[str, list[CalibrationEntry]]:
    """Return this machine's identity and its stored entries. Raises UserError if there are none."""
    identity = str(facts()["identity"])
    entries = calibrations.load(root, identity)
    if not entries:
        text = f"{calibrations.path_of(root, identity)}: this machine is not calibrated"
        raise UserError.of(text, "run `perfflow calibrate WORKFLOW` first")
    return identity, entries


def write_page(root: Path, identity: str) -> Path | None:
    """Write the page of a machine; return None if it has no entries or the folder cannot be written."""
    entries = calibrations.load(root, identity)
    if not entries:
        return None

    page = calibrations.page_of(root)
    try:
        run_folder.write_text(page, document.render_calibration(entries, identity))
    except OSError:
        # The entries are stored, so the page can be written at any later time.
        return None
    return page
