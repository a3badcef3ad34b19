"""Build the good revision in one slot, and measure other revisions in the other slot against it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from perfflow.execute.context import Settings, TreeContext
from perfflow.execute.deadline import Deadline, TotalBudget
from perfflow.execute.invoke import Failure
from perfflow.execute.schedule import StepRun
from perfflow.model.criteria import Criteria
from perfflow.model.readings import Side
from perfflow.model.targets import is_chosen
from perfflow.plan.plan import Planned
from perfflow.report.sanitize import shortened
from perfflow.session.bench import Bench
from perfflow.session.known_names import NothingChosenError
from perfflow.session.list_benchmarks import list_benchmarks
from perfflow.session.perform import perform_all
from perfflow.session.progress import on_revision
from perfflow.session.session import Perform, RunSession, shown_in
from perfflow.session.steps.by_role import performer_of
from perfflow.session.steps.measure import conclude, measure_over_layouts
from perfflow.store.run_folder import EventStore
from perfflow.tools.adapter import Role
from perfflow.trees.line_history import Described
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot, Slots
from perfflow.trees.snapshots import at
from perfflow.verdict.acceptance import Goal

SHORT = 9
"""Characters of a revision in a line of progress."""
_LONGEST_LINE = 120


class NotMeasuredError(Exception):
    """A revision cannot be built or measured. The text names the failed step and its error. ``good``: the good one."""

    def __init__(self, reason: str, *, good: bool = False) -> None:
        super().__init__(reason)
        self.good = good


@dataclass
class Measuring:
    """Performs the measuring steps of a bisection, limited to some benchmarks and one metric if they are set."""

    benchmarks: Sequence[str] = ()
    metric: str = ""
    attempt: int = 0
    """The number of the comparison. Each one has its own random order of sides."""
    spent: float = 0.0
    """Seconds of all measurements so far."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why benchmarks of a suite could not be measured, by name, if others of it were."""

    def __call__(self, session: RunSession, planned: Planned, run: StepRun) -> None:
        """Sample until every benchmark is decided. Raises Failure and PreparationError."""
        if self.metric:
            planned = replace(planned, step=planned.step.model_copy(update={"metric": self.metric}))
        try:
            list_benchmarks(session, planned, run)
            self._measure(session, planned, run)
        except NothingChosenError as error:
            raise Failure("it has none of the benchmarks of --benchmark") from error

    def _measure(self, session: RunSession, planned: Planned, run: StepRun) -> None:
        bench = Bench(session, planned, run)
        bench.start_over(session.context.seed + self.attempt)
        bench.note_files()
        benchmarks = bench.benchmarks()
        if len(benchmarks) > 1:
            chosen = [item for item in benchmarks if is_chosen(self.benchmarks, item.name)]
            benchmarks = chosen or benchmarks
        began = time.monotonic()
        try:
            ends = session.budget.ends(planned.id, len(benchmarks))
            bench.measure(benchmarks, ends)
            measure_over_layouts(bench, benchmarks, ends)
        finally:
            self.spent += time.monotonic() - began
        conclude(bench, benchmarks)
        if self.benchmarks or len(bench.failures) == len(benchmarks):
            bench.raise_failures()
        self.failures |= {name: failure.reason for name, failure in bench.failures.items()}


@dataclass(frozen=True)
class SamplingLimits:
    """When the sampling of one comparison stops: its criteria, a goal, and a limit in seconds (None for no limit)."""

    criteria: Criteria
    goal: Goal | None = None
    seconds: float | None = None


@dataclass
class SlotsInTurn:
    """Both slots of one bisection. The good revision stays in its slot after ``show_good``."""

    session: RunSession
    slots: Slots
    repository: Repository
    building: tuple[str, ...]
    measuring: Measuring = field(default_factory=Measuring)
    _good: TreeContext | None = None

    def show_good(self, commit: Described, store: EventStore) -> None:
        """Build the good revision. Raises NotMeasuredError and UserError."""
        self._good = self._built(self.slots.a, commit, store)

    def show(self, commit: Described, store: EventStore) -> TreeContext:
        """Build a revision in the other slot. Raises NotMeasuredError and UserError."""
        return self._built(self.slots.b, commit, store)

    def compare(
        self, context: TreeContext, commit: Described, store: EventStore, steps: Collection[str], limits: SamplingLimits
    ) -> None:
        """Measure a built revision in pairs with the good one. Raises NotMeasuredError."""
        if self._good is None:
            raise NotMeasuredError("the good revision is not built", good=True)
        own = replace(context, plan=replace(context.plan, criteria=limits.criteria))
        session = replace(
            self._session_in(own, commit, store),
            contexts={Side.BASELINE: self._good, Side.CANDIDATE: context},
            goal=limits.goal,
            budget=TotalBudget(Deadline(limits.seconds), steps),
        )
        self._perform(session, steps)

    def _built(self, slot: Slot, commit: Described, store: EventStore) -> TreeContext:
        state = at(self.repository, commit.revision)
        context = shown_in(slot, state, self.session.context, Settings(), self.building)
        self._perform(self._session_in(context, commit, store), self.building)
        return context

    def _session_in(self, context: TreeContext, commit: Described, store: EventStore) -> RunSession:
        told = on_revision(self.session.progress, commit.revision[:SHORT])
        return replace(self.session.nested(context, store, told), performer_of=self._performer_of)

    def _performer_of(self, planned: Planned) -> Perform:
        return self.measuring if planned.role is Role.MEASURE else performer_of(planned)

    def _perform(self, session: RunSession, steps: Collection[str]) -> None:
        _require_done(perform_all(session, steps))
        # The machine's noise is checked once, by the first session that measures.
        self.session.noise = self.session.noise or session.noise


def _require_done(runs: Iterable[StepRun]) -> None:
    for run in runs:
        if run.blocks:
            good = run.failing_side is Side.BASELINE
            raise NotMeasuredError(f"step {run.planned.id}: {run.reason}{_last_words(run)}", good=good)


def _last_words(run: StepRun) -> str:
    """Return the last line that a failed step printed, and its log; '' if it printed nothing."""
    said = [line.strip() for line in run.tail if line.strip()]
    return f': "{shortened(said[-1], _LONGEST_LINE)}" (log: {run.log})' if said else ""
