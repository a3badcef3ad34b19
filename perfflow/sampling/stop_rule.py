"""When measuring a benchmark is enough: its verdict is settled, the last look is done, or its budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import COMPARED_STATISTICS, MEMORY, TIMES
from perfflow.model.readings import Side
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import Design, Subject
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
"""Seconds for one benchmark, where the workflow does not say."""
ALONE = 14
"""Samples of a benchmark that is not compared: enough for a 95% interval of its median."""
CLEAR = 0.99
"""Confidence of the intervals by which a target ends the measuring: it is looked at more than once, so it must be
clearer than at the end, where one interval of 95% is judged."""


class Stop(StrEnum):
    """Why the measuring of a benchmark ended."""

    SETTLED = "settled"
    LAST_LOOK = "last look"
    BUDGET = "budget"
    TOTAL_BUDGET = "total budget"


_Rows = Mapping[tuple[str, str], Comparison]


class StopRule:
    """Follows the samples of one step by the same events that are stored, and judges them as the report will."""

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
        """``identical`` says whether both sides execute the same files, once both have been run.

        ``repeats``: the figures should be the same every time, so two rounds are enough where they are.

        With a ``goal``, enough is known when a candidate's fate is clear, and targets wait for what is kept in the end.
        """
        self._goal = goal
        self._criteria, self._budget, self._identical, self._clock = criteria, budget, identical, clock
        tool, role = planned.step.uses or "run", planned.role.value
        step = PlannedStep(
            planned.id, planned.stage, tool, role, benchmark=planned.benchmark, metric=planned.step.metric
        )
        self._record = Record(planned={planned.id: step})
        # Beside what times a benchmark, other metrics are compared in the report; between rounds they would cost time.
        targeted = (target.metric.name for target in criteria.targets)
        wanted = (metric for _, metric in goal.objectives) if goal else ()
        self._telling = {*TIMES, "main_share", *targeted, *wanted, planned.step.metric}
        self._ends = self._total_ends = math.inf
        self._single, self._repeats = True, repeats
        self.stopped: dict[str, Stop] = {}
        """Why the measuring of each benchmark ended."""

    @property
    def record(self) -> Record:
        """What was taken in."""
        return self._record

    def start(self, subjects: Sequence[Subject], total_ends: float = math.inf, others: int = 0) -> None:
        """Start the clock; the budgets of all benchmarks are one, since their rounds alternate.

        ``total_ends``: the moment by the clock at which the step's share of the run's budget is spent. ``others``: how
        many more benchmarks the step has.
        """
        self._ends, self._total_ends = self._clock() + self._budget * len(subjects), total_ends
        self._single = len(subjects) + others == 1

    def happened(self, event: Mapping[str, Any]) -> None:
        """Take in a sample."""
        self._record.fold(event)

    def decided(self, subject: Subject, finished: int, design: Design = Design.LOOKS, ahead: float = 0.0) -> bool:
        """Whether the benchmark needs no further round, or gets none; ``stopped`` says why.

        ``ahead``: the seconds that the next round will take, where one is not begun without time for it.
        """
        if finished == 0:
            # One round is taken even without any time left.
            return False
        why = None
        if self._repeats and finished <= REPEATS and self._clock() < self._total_ends:
            # What should be the same every time has two rounds within the run's budget, whatever its own budget is.
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
        """After how many rounds it is judged; after the last one no further round can settle what is compared."""
        return [pairs for pairs, _ in self._criteria.rules.schedule(design)] if len(subject.sides) == 2 else [ALONE]

    def _is_looked_at(self, subject: Subject, finished: int, design: Design) -> bool:
        """Judged at the looks alone: peeking would raise alarms."""
        looks = self._looks(subject, design)
        # Then for the sake of targets alone, each time as many again: few looks, since each may be wrong.
        times, rest = divmod(finished, looks[-1])
        return finished in looks or (rest == 0 and times.bit_count() == 1)

    def _why_known(self, subject: Subject, finished: int, rows: _Rows, design: Design) -> Stop | None:
        two_sided, enough = len(subject.sides) == 2, finished >= self._looks(subject, design)[-1]
        is_settled = not two_sided or self._are_settled(subject, rows)
        if not (enough or is_settled) or not self._targets_settled(rows, values_only=two_sided and enough):
            return None
        return Stop.SETTLED if is_settled else Stop.LAST_LOOK

    def stands_out(self, subject: Subject, pairs: int) -> bool:
        """Whether a benchmark that was screened with so many pairs needs more, by a metric that counts.

        It seems changed, or a regression beyond the action threshold is not excluded.
        """
        return any(
            seems_changed(row, self._p(row, key), pairs) or (ruling.decision == "unproven" and ruling.level is None)
            for key, row, ruling in self._rulings(subject)
        )

    def shows_nothing(self, subject: Subject, pairs: int) -> bool:
        """Whether so many fresh pairs of what stood out are enough, since they show no change."""
        return all(self._p(row, key) > CONFIRMING[pairs] for key, row, _ in self._rulings(subject))

    def regressed(self, subject: Subject) -> bool:
        """Whether pairs prove a regression by more than the concern threshold in a metric that counts."""
        return any(
            ruling.decision == "regressed" and ruling.level in ("concern", "action") and not row.metric.exact
            for _, row, ruling in self._rulings(subject)
        )

    def changed(self, subject: Subject) -> bool:
        """Whether a change to either side is proven in a metric that counts, by whatever was taken."""
        return any(
            ruling.decision in ("regressed", "improved") and not row.metric.exact
            for _, row, ruling in self._rulings(subject, paired=False)
        )

    def rests_on_layout(self, subject: Subject) -> bool:
        """Whether something would be decided of a benchmark that an accident of code layout may have made.

        That is a proven change over the concern threshold to either side, or, with a goal, that it is reached.
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
        """What the verdict will rest on so far; ``paired`` leaves out few runs in random order."""
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
        """Whether the fresh pairs of what stood out leave nothing open."""
        return self._are_settled(subject, compared(self._record, self._criteria, self._series_of(subject)))

    def _series_of(self, subject: Subject) -> dict[tuple[str, str], Series]:
        """What is compared of a benchmark while it is measured."""
        # A step that is one subject may report benchmarks of any name from its one process.
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
        """Whether both rounds gave the same figures."""
        rows = compared(self._record, self._criteria, self._series_of(subject))
        return all(row.metric.exact for row in rows.values())

    def _targets_settled(self, rows: _Rows, *, values_only: bool) -> bool:
        """Whether no target needs more samples. A change is known as well as it will be after the last look."""
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
