"""Decide when to stop measuring a benchmark: its verdict is settled, the last look is done, or its budget is spent.

A look is an interim analysis of the samples taken so far.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.design import SCHEDULES, Design
from perfflow.model.metrics import COMPARED_STATISTICS, MEMORY, TIMES
from perfflow.model.readings import Side
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import Subject
from perfflow.stats.designs import CONFIRMING
from perfflow.store.record import Record, Series
from perfflow.store.run_facts import PlannedStep
from perfflow.verdict import targets
from perfflow.verdict.acceptance import Goal, clear, deciding_rows, is_reached
from perfflow.verdict.comparison import REPEATS, Comparison, p_of_no_change
from perfflow.verdict.decide import Ruling, excludes_zero, rule, seems_changed, settled, worse_of
from perfflow.verdict.gating import choose_rows, gating_rows
from perfflow.verdict.sharing import compared

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


_Rows = Mapping[tuple[str, str], Comparison]


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
    ) -> None:
        """Create the rule of one step.

        budget: for one benchmark (s). identical: returns whether both sides execute the same files, once both have run.
        goal: of the optimize stage; measuring stops when it is clear whether the candidate is kept, and targets are
        checked later, on the kept candidates. repeats: figures should be the same in every run, so two rounds are
        enough if they agree.
        """
        self._goal = goal
        self._criteria, self._budget, self._identical, self._clock = criteria, budget, identical, clock
        tool, role = planned.step.tool_name, planned.role.value
        step = PlannedStep(
            planned.id, planned.stage, tool, role, benchmark=planned.benchmark, metric=planned.step.metric
        )
        self._record = Record(planned={planned.id: step})
        # The report compares all metrics of a benchmark; between rounds only these are compared, to save time.
        targeted = (target.metric.name for target in criteria.targets)
        wanted = (metric for _, metric in goal.objectives) if goal else ()
        self._telling = {*TIMES, "main_share", "turns", *targeted, *wanted, planned.step.metric}
        self._ends = self._total_ends = math.inf
        self._single, self._repeats = True, repeats
        self.stopped: dict[str, Stop] = {}
        """Reason for which each stopped benchmark was stopped."""

    @property
    def record(self) -> Record:
        """The samples collected so far."""
        return self._record

    def start(self, subjects: Sequence[Subject], total_ends: float = math.inf, others: int = 0) -> None:
        """Start the clock. The benchmarks share the sum of their budgets, since their rounds alternate.

        ``total_ends``: time of the clock at which the step's share of the budget of the run is spent. ``others``:
        number of further benchmarks of the step.
        """
        self._ends, self._total_ends = self._clock() + self._budget * len(subjects), total_ends
        self._single = len(subjects) + others == 1

    def happened(self, event: Mapping[str, Any]) -> None:
        """Add the event of a sample."""
        self._record.fold(event)

    def decided(self, subject: Subject, finished: int, design: Design = Design.LOOKS, ahead: float = 0.0) -> bool:
        """Return whether the benchmark gets no further round, and store the reason in ``stopped``.

        ``ahead``: expected duration of the next round (s), if a round may start only when there is time for it.
        """
        if finished == 0:
            # Take one round even if there is no time left.
            return False
        why = None
        if self._repeats and finished <= REPEATS and self._clock() < self._total_ends:
            # Two rounds are always taken within the budget of the run, whatever the budget of the benchmark is.
            if finished == REPEATS and self._has_repeated(subject):
                why = Stop.SETTLED
        else:
            if self._is_looked_at(subject, finished, design):
                rows = compared(self._record, self._criteria, self._series_of(subject))
                why = self._why_known(subject, finished, rows, design)
            why = why or self._why_spent(ahead)
        if why:
            self.stopped[subject.name] = why
        return why is not None

    def _why_spent(self, ahead: float) -> Stop | None:
        if self._clock() + ahead < min(self._ends, self._total_ends):
            return None
        return Stop.TOTAL_BUDGET if self._total_ends < self._ends else Stop.BUDGET

    def _looks(self, subject: Subject, design: Design) -> list[int]:
        """Return the numbers of rounds after which a benchmark is judged; no comparison is settled after the last."""
        return [pairs for pairs, _ in SCHEDULES.get(design, ())] if len(subject.sides) == 2 else [ALONE]

    def _is_looked_at(self, subject: Subject, finished: int, design: Design) -> bool:
        """Return whether to judge now: only at the looks, since more analyses would raise more false alarms."""
        looks = self._looks(subject, design)
        # After the last look only targets are checked, each time after doubling the rounds, since each check may err.
        times, rest = divmod(finished, looks[-1])
        return finished in looks or (rest == 0 and times.bit_count() == 1)

    def _why_known(self, subject: Subject, finished: int, rows: _Rows, design: Design) -> Stop | None:
        two_sided, enough = len(subject.sides) == 2, finished >= self._looks(subject, design)[-1]
        is_settled = not two_sided or self._are_settled(subject, rows)
        if not (enough or is_settled) or not self._targets_settled(rows, values_only=two_sided and enough):
            return None
        return Stop.SETTLED if is_settled else Stop.LAST_LOOK

    def stands_out(self, subject: Subject, pairs: int) -> bool:
        """Return whether a benchmark screened with ``pairs`` pairs needs more.

        This is so if a metric that gates seems changed, or may have a regression beyond the action threshold.
        """
        return any(
            seems_changed(row, self._p(row, key), pairs) or (ruling.decision == "unproven" and ruling.level is None)
            for key, row, ruling in self._rulings(subject)
        )

    def shows_nothing(self, subject: Subject, pairs: int) -> bool:
        """Return whether ``pairs`` fresh pairs are enough because they show no change."""
        return all(self._p(row, key) > CONFIRMING[pairs] for key, row, _ in self._rulings(subject))

    def regressed(self, subject: Subject) -> bool:
        """Return whether pairs prove a regression beyond the concern threshold in a metric that gates."""
        return any(ruling.is_regression and not row.metric.exact for _, row, ruling in self._rulings(subject))

    def changed(self, subject: Subject) -> bool:
        """Return whether pairs or single runs prove a change in either direction in a metric that gates."""
        return any(
            ruling.decision in ("regressed", "improved") and not row.metric.exact
            for _, row, ruling in self._rulings(subject, paired=False)
        )

    def rests_on_layout(self, subject: Subject) -> bool:
        """Return whether the result may be an effect of code layout, so that it must be confirmed over layouts.

        This is so for a proven change beyond the concern threshold in either direction, or if a goal is reached.
        """
        rows, identical = compared(self._record, self._criteria, self._series_of(subject)), self._identical()
        if self._goal:
            told = deciding_rows(self._record, rows, self._criteria, self._goal)
            return any(is_reached(rows[key], self._goal) for key in told)
        gating = gating_rows(self._record, rows, self._criteria)
        noisy = [key for key in gating if not rows[key].metric.exact and key[1] not in MEMORY]
        return any(
            rule(rows[key], thresholds, identical=identical).decision in ("regressed", "improved")
            and abs(worse_of(rows[key]).estimate) > thresholds.concern
            for key, thresholds in ((key, self._criteria.thresholds_of(*key)) for key in noisy)
        )

    def _rulings(
        self, subject: Subject, *, paired: bool = True
    ) -> Iterator[tuple[tuple[str, str], Comparison, Ruling]]:
        """Yield the rows that gate with their rulings so far; ``paired`` excludes single runs in random order."""
        rows = compared(self._record, self._criteria, self._series_of(subject))
        for key in gating_rows(self._record, rows, self._criteria):
            if self._record.series[key].paired or not paired:
                thresholds = self._criteria.thresholds_of(*key)
                yield key, rows[key], rule(rows[key], thresholds, identical=self._identical())

    def _p(self, row: Comparison, key: tuple[str, str]) -> float:
        if row.only or row.metric.exact:
            return 0.0 if row.only or excludes_zero(row) else 1.0
        baseline, candidate = ([item.value for item in self._record.series[key].readings(side)] for side in Side)
        return p_of_no_change(baseline, candidate, row.metric)

    def confirmed(self, subject: Subject) -> bool:
        """Return whether the fresh pairs settle everything."""
        return self._are_settled(subject, compared(self._record, self._criteria, self._series_of(subject)))

    def _series_of(self, subject: Subject) -> dict[tuple[str, str], Series]:
        """Return the series of a benchmark that are compared while it is measured."""
        # The single subject of a step may report benchmarks of any name.
        own = {key: item for key, item in self._record.series.items() if self._single or key[0] == subject.name}
        timed = {name for name, metric in own if metric in TIMES}
        return {key: series for key, series in own.items() if key[0] not in timed or key[1] in self._telling}

    def _are_settled(self, subject: Subject, rows: _Rows) -> bool:
        goal = self._goal
        if goal:
            told = deciding_rows(self._record, rows, self._criteria, goal)
            return all(clear(rows[key], self._criteria.thresholds_of(subject.name, key[1]), goal) for key in told)
        choice = choose_rows(self._record, rows, self._criteria)
        if choice.undecided:
            return False
        identical = self._identical()
        for key in choice.gating:
            thresholds = self._criteria.thresholds_of(subject.name, key[1])
            ruling = rule(rows[key], thresholds, identical=identical)
            if not settled(rows[key], ruling, thresholds, identical=identical):
                return False
        return True

    def _has_repeated(self, subject: Subject) -> bool:
        """Return whether both rounds gave the same figures."""
        rows = compared(self._record, self._criteria, self._series_of(subject))
        return all(row.metric.exact for row in rows.values())

    def _targets_settled(self, rows: _Rows, *, values_only: bool) -> bool:
        """Return whether no target needs more samples. After the last look, targets on changes need none."""
        if not self._criteria.targets or self._goal:
            return True
        wanted = [
            target
            for target in self._criteria.targets
            if any(matches(target.benchmark, name) for name, _ in rows)
            and not (values_only and target.statistic in COMPARED_STATISTICS)
        ]
        if not wanted:
            return True
        judged = targets.judge(replace(self._criteria, targets=tuple(wanted)), rows, self._record, CLEAR)
        return not any(item.status == "unproven" for item in judged)
