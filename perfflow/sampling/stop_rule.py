"""Decide when to stop measuring a benchmark: its verdict is settled, the last analysis is done, or time is up.

An interim analysis judges the samples taken so far. ``StopRule`` uses the same rules as the report.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import COMPARED_STATISTICS, MEMORY, METRICS, TIMES
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.model.result import PlannedStep
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.stats.paired_test import ENOUGH
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict import targets
from perfflow.verdict.acceptance import Goal, clear, deciding_rows, is_near, is_reached
from perfflow.verdict.comparison import REPEATS, ComparedMetric, Confirmation
from perfflow.verdict.decide import Ruling, rule, rule_unconfirmed, settled, worse_of
from perfflow.verdict.gating import choose_rows, compared, gating_rows, two_trees

BUDGET = 20.0
"""Default budget of one benchmark (s)."""
ALONE = 14
"""Samples of a benchmark that is not compared: enough for a 95% interval of its median."""
CLEAR = 0.99
"""Confidence of the intervals with which a target stops the measuring. It is higher than the final 95%, because the
target is checked more than once."""


class Stop(StrEnum):
    """Reason for which a benchmark was stopped."""

    SETTLED = "settled"
    LAST_LOOK = "last look"
    BUDGET = "budget"
    TOTAL_BUDGET = "total budget"


_Rows = Mapping[tuple[str, str], ComparedMetric]


class StopRule:
    """Collects the samples of one step from the stored events, and judges them by the same rules as the report."""

    def __init__(
        self,
        criteria: Criteria,
        planned: Planned,
        budget: float,
        identical: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        goal: Goal | None = None,
        *,
        repeats: bool = False,
        trees: Mapping[str, Any] | None = None,
    ) -> None:
        """Create the rule of one step.

        budget: for one benchmark (s). identical: returns whether both sides execute the same files, once both have run.
        goal: of the optimize stage; measuring stops when it is clear whether the candidate is kept, and targets are
        checked later, on the kept candidates. repeats: figures should be the same in every run, so two rounds are
        enough if they agree. trees: the `trees` of the result; memory gates only if they are two
        revisions.
        """
        self._goal = goal
        self._criteria, self._budget, self._identical, self.clock = criteria, budget, identical, clock
        tool, role = planned.step.tool_name, planned.role.value
        step = PlannedStep(
            id=planned.id,
            stage=planned.stage,
            tool=tool,
            role=role,
            benchmark=planned.benchmark,
            metric=planned.step.metric,
            in_one_tree=planned.in_one_tree,
        )
        self._record = Record(planned={planned.id: step}, trees=dict(trees or {}))
        # The report compares all metrics of a benchmark. Between rounds, those that cannot gate are left out to save
        # time. What can gate has its part of the false alarms, and leaves less of them to the others.
        targeted = (target.metric.name for target in criteria.targets)
        objectives = (metric for _, metric in goal.objectives) if goal else ()
        memory = MEMORY if two_trees(self._record) else ()
        self._telling = {*TIMES, *memory, "main_share", "turns", *targeted, *objectives, planned.step.metric}
        self._ends = self._total_ends = math.inf
        self._single, self._repeats, self._coarsely = True, repeats, False
        self._looked_again = False
        self._rows: dict[str, _Rows] = {}
        """The comparisons of each benchmark that has no sample since."""
        self.stopped: dict[str, Stop] = {}
        """Reason for which each stopped benchmark was stopped."""

    @property
    def record(self) -> Record:
        """The samples collected so far."""
        return self._record

    def start(
        self,
        benchmarks: Sequence[BenchmarkToSample],
        total_ends: float = math.inf,
        others: int = 0,
        *,
        coarsely: bool = False,
    ) -> None:
        """Start the clock. The benchmarks share the sum of their budgets, since their rounds alternate.

        ``total_ends``: time of the clock at which the step's share of the budget of the run is spent. ``others``:
        number of further benchmarks of the step. ``coarsely``: an interval within the concern threshold is enough.
        """
        self._ends, self._total_ends = self.clock() + self._budget * len(benchmarks), total_ends
        self._single, self._coarsely = len(benchmarks) + others == 1, coarsely
        self._rows.clear()

    @property
    def ends(self) -> float:
        """Time of the clock at which the budget of the benchmarks is spent."""
        return min(self._ends, self._total_ends)

    def stop(self, benchmarks: Iterable[BenchmarkToSample], why: Stop | None) -> None:
        """Set the reason for which benchmarks get no further samples; None: they continue."""
        for item in benchmarks:
            if why is None:
                self.stopped.pop(item.name, None)
            else:
                self.stopped[item.name] = why

    def stop_for_time(self, benchmarks: Iterable[BenchmarkToSample], ends: float) -> None:
        """Stop benchmarks because the time ``ends`` is reached."""
        self.stop(benchmarks, Stop.BUDGET if ends >= self._ends else Stop.TOTAL_BUDGET)

    def happened(self, event: Mapping[str, Any]) -> None:
        """Add the event of a sample."""
        self._record.fold(event)
        if self._single:
            # Its process may report benchmarks of any name.
            self._rows.clear()
        for reading in (reading for side in Side for reading in event.get(side.value, ())):
            self._rows.pop(reading.get("benchmark", ""), None)

    def decided(
        self, benchmark: BenchmarkToSample, finished: int, design: Design = Design.LOOKS, ahead: float = 0.0
    ) -> bool:
        """Return whether the benchmark gets no further round, and store the reason in ``stopped``.

        ``ahead``: expected duration of the next round (s), if a round may start only when there is time for it.
        """
        if finished == 0:
            # Take one round even if there is no time left.
            return False
        why = None
        if self._repeats and finished <= REPEATS and self.clock() < self._total_ends:
            # Two rounds are always taken within the budget of the run, whatever the budget of the benchmark is.
            if finished == REPEATS and self._has_repeated(benchmark):
                why = Stop.SETTLED
        else:
            if self._is_analysed(benchmark, finished, design):
                rows = self._rows_of(benchmark)
                why = self._why_known(benchmark, finished, rows, design)
            why = why or self._why_spent(ahead)
            if why is Stop.BUDGET and self._looks_again(benchmark):
                why = None
        if why:
            self.stopped[benchmark.name] = why
        return why is not None

    def _why_spent(self, ahead: float) -> Stop | None:
        if self.clock() + ahead < self.ends:
            return None
        return Stop.TOTAL_BUDGET if self._total_ends < self._ends else Stop.BUDGET

    def _looks_again(self, benchmark: BenchmarkToSample) -> bool:
        """Give the benchmarks their budget once more if the interval of an objective ends near the goal.

        The pairs before count, and the analyses that follow have their part of the false alarms.
        """
        if self._goal is None or self._looked_again:
            return False
        goal, rows = self._goal, self._rows_of(benchmark)
        deciding = deciding_rows(self._record, rows, self._criteria, goal)
        self._looked_again = any(is_objective and is_near(rows[key], goal) for key, is_objective in deciding.items())
        if self._looked_again:
            self._ends = self.clock() + self._budget
        return self._looked_again

    def _analyses(self, benchmark: BenchmarkToSample, design: Design) -> list[int]:
        """Return the numbers of rounds after which a benchmark is judged; no comparison is settled after the last."""
        return [pairs for pairs, _ in SCHEDULES.get(design, ())] if len(benchmark.sides) == 2 else [ALONE]

    def _is_analysed(self, benchmark: BenchmarkToSample, finished: int, design: Design) -> bool:
        """Return whether to judge now: only at planned numbers, since more analyses would raise more false alarms."""
        planned = self._analyses(benchmark, design)
        # After the last one, only targets are checked, each time after doubling the rounds, since each check may err.
        times, rest = divmod(finished, planned[-1])
        return finished in planned or (rest == 0 and times.bit_count() == 1)

    def _why_known(self, benchmark: BenchmarkToSample, finished: int, rows: _Rows, design: Design) -> Stop | None:
        two_sided, enough = len(benchmark.sides) == 2, finished >= self._analyses(benchmark, design)[-1]
        is_settled = not two_sided or self._are_settled(benchmark, rows)
        if not (enough or is_settled) or not self._targets_settled(rows, values_only=two_sided and enough):
            return None
        return Stop.SETTLED if is_settled else Stop.LAST_LOOK

    def changed(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether the samples prove a change in either direction in a metric that gates."""
        return any(ruling.decision in ("regressed", "improved") for _, _, ruling in self._rulings(benchmark))

    def regressed(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether the samples prove a regression beyond the concern threshold in a metric that gates."""
        return any(ruling.is_regression for _, _, ruling in self._rulings(benchmark))

    def fails(self, benchmark: BenchmarkToSample) -> float:
        """Return by how much the worst row got worse that would fail a gate; 0 if none would."""
        rulings = self._rulings(benchmark)
        return max((worse_of(row).estimate for _, row, ruling in rulings if ruling.level == "action"), default=0.0)

    def has_confirmation(self, benchmark: BenchmarkToSample, pairs: int) -> bool:
        """Return whether the ``pairs`` fresh pairs of a confirmation are enough: they confirm, or will hardly do so.

        A change that took many pairs to prove may take as many to confirm. Where fresh pairs agree, but were so noisy
        that all pairs together prove nothing, more of them are taken too.
        """
        confirming = [
            (row, ruling, row.confirmations[-1])
            for _, row, ruling in self._rulings(benchmark)
            if ruling.decision != "same" and row.confirmations and row.confirmations[-1].seemed_changed
        ]
        if all(fresh.agrees and ruling.decision != "unproven" for _, ruling, fresh in confirming):
            return True
        unlikely = any(fresh.is_unlikely for _, _, fresh in confirming)
        return pairs >= ENOUGH and (unlikely or pairs >= max(row.pairs - pairs for row, _, _ in confirming))

    def contradicted(self, benchmark: BenchmarkToSample) -> Confirmation | None:
        """Return a confirmation of which the interval excludes that of the pairs before, None if there is none."""
        found = (item for _, row, _ in self._rulings(benchmark) for item in row.confirmations)
        apart = (item for item in found if item.change.high < item.before.low or item.before.high < item.change.low)
        return next(apart, None)

    def rests_on_layout(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether the result may be an effect of code layout, so that it must be confirmed over layouts.

        This is so for a proven change beyond the concern threshold in either direction, or if a goal is reached.
        """
        rows, identical = self._rows_of(benchmark), self._identical()
        if self._goal:
            deciding = deciding_rows(self._record, rows, self._criteria, self._goal)
            return any(is_objective and is_reached(rows[key], self._goal) for key, is_objective in deciding.items())
        gating = gating_rows(self._record, rows, self._criteria)
        noisy = [key for key in gating if not rows[key].metric.exact and key[1] not in MEMORY]
        for key in noisy:
            thresholds = self._criteria.thresholds_of(*key)
            # Layouts are fresh pairs, which confirm a change as well. One that fresh pairs did not confirm is unproven.
            decide = rule if rows[key].confirmations else rule_unconfirmed
            decision = decide(rows[key], thresholds, identical=identical).decision
            if decision in ("regressed", "improved") and abs(worse_of(rows[key]).estimate) > thresholds.concern:
                return True
        return False

    def _rulings(self, benchmark: BenchmarkToSample) -> Iterator[tuple[tuple[str, str], ComparedMetric, Ruling]]:
        """Yield the inexact rows that gate with their rulings so far, whether they are confirmed or not."""
        rows = self._rows_of(benchmark)
        for key in gating_rows(self._record, rows, self._criteria):
            if not rows[key].metric.exact:
                thresholds = self._criteria.thresholds_of(*key)
                yield key, rows[key], rule_unconfirmed(rows[key], thresholds, identical=self._identical())

    def confirmed(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether the pairs settle everything."""
        return self._are_settled(benchmark, self._rows_of(benchmark))

    def _rows_of(self, benchmark: BenchmarkToSample) -> _Rows:
        """Compare a benchmark, once after each sample: with many benchmarks, this takes longer than their processes."""
        rows = self._rows.get(benchmark.name)
        if rows is None:
            rows = self._rows[benchmark.name] = compared(self._record, self._criteria, self._series_of(benchmark))
        return rows

    def _series_of(self, benchmark: BenchmarkToSample) -> dict[tuple[str, str], MetricSeries]:
        """Return the series of a benchmark that are compared while it is measured."""
        # The single benchmark of a step may report benchmarks of any name.
        own = {key: item for key, item in self._record.series.items() if self._single or key[0] == benchmark.name}
        timed = {name for name, metric in own if metric in TIMES}
        return {
            key: series
            for key, series in own.items()
            if key[0] not in timed or key[1] in self._telling or key[1] not in METRICS
        }

    def _are_settled(self, benchmark: BenchmarkToSample, rows: _Rows) -> bool:
        goal = self._goal
        if goal:
            deciding = deciding_rows(self._record, rows, self._criteria, goal)
            if not all(
                clear(
                    rows[key],
                    self._criteria.thresholds_of(benchmark.name, key[1]),
                    goal,
                    is_objective=is_objective,
                )
                for key, is_objective in deciding.items()
            ):
                return False
            reached = [
                key
                for key, is_objective in deciding.items()
                if is_objective and goal.attempts > 1 and is_reached(rows[key], goal)
            ]
            surely = (
                compared(self._record, self._criteria, self._series_of(benchmark), goal.attempts) if reached else {}
            )
            return all(is_reached(surely[key], goal) for key in reached)
        choice = choose_rows(self._record, rows, self._criteria)
        if choice.undecided:
            return False
        identical = self._identical()
        for key in choice.gating:
            thresholds = self._criteria.thresholds_of(benchmark.name, key[1])
            ruling = rule_unconfirmed(rows[key], thresholds, identical=identical)
            done = self._coarsely and ruling.decision == "same"
            if not done and not settled(rows[key], ruling, thresholds, identical=identical):
                return False
        return True

    def _has_repeated(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether both rounds gave the same figures."""
        rows = self._rows_of(benchmark)
        return all(row.metric.exact for row in rows.values())

    def _targets_settled(self, rows: _Rows, *, values_only: bool) -> bool:
        """Return whether no target needs more samples. After the last look, targets on changes need none."""
        if not self._criteria.targets or self._goal:
            return True
        own_targets = [
            target
            for target in self._criteria.targets
            if any(matches(target.benchmark, name) for name, _ in rows)
            and not (values_only and target.statistic in COMPARED_STATISTICS)
        ]
        if not own_targets:
            return True
        judged = targets.judge(replace(self._criteria, targets=tuple(own_targets)), rows, self._record, CLEAR)
        return not any(item.status == "unproven" for item in judged)
