"""When measuring a benchmark is enough: its verdict is settled, the last look is done, or its budget is spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from perfflow.compare import REPEATS, Comparison, p_of_no_change
from perfflow.measure import Design, Subject
from perfflow.plan.plan import Planned
from perfflow.rundir.record import Record
from perfflow.samples.criteria import Criteria
from perfflow.samples.metrics import COMPARED_STATISTICS, MEMORY, TIMES
from perfflow.samples.readings import Side
from perfflow.samples.targets import matches
from perfflow.verdict import targets
from perfflow.verdict.acceptance import Goal, clear, is_reached, telling_rows
from perfflow.verdict.decide import Ruling, excludes_zero, rule, settled, worse_of
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


class Decider:
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
        step: dict[str, Any] = {
            "metric": planned.step.metric,
            "benchmark": planned.benchmark,
            "tool": planned.step.uses,
        }
        step |= {"role": planned.role.value, "selected": True}
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
        why = self._why_enough(subject, finished, design, ahead)
        if why:
            self.stopped[subject.name] = why
        return why is not None

    def _why_enough(self, subject: Subject, finished: int, design: Design, ahead: float) -> Stop | None:
        """Judged at the looks alone: peeking would raise alarms. One round is taken even without any time left.

        What should be the same every time has two rounds within the run's budget, whatever its own budget is.
        """
        if finished == 0:
            return None
        if self._repeats and finished <= REPEATS and self._clock() < self._total_ends:
            return Stop.SETTLED if finished == REPEATS and self._has_repeated(subject) else None
        return self._why_known(subject, finished, design) or self._why_spent(ahead)

    def _why_spent(self, ahead: float) -> Stop | None:
        if self._clock() + ahead < min(self._ends, self._total_ends):
            return None
        return Stop.TOTAL_BUDGET if self._total_ends < self._ends else Stop.BUDGET

    def _why_known(self, subject: Subject, finished: int, design: Design) -> Stop | None:
        two_sided = len(subject.sides) == 2
        looks = [pairs for pairs, _ in self._criteria.rules.schedule(design)]
        enough = looks[-1] if two_sided else ALONE
        if finished < enough and not (two_sided and finished in looks):
            return None
        # Then for the sake of targets alone, each time as many again: few looks, since each may be wrong.
        if finished > enough and (finished % enough or (finished // enough).bit_count() != 1):
            return None
        compared = not two_sided or self._comparisons_settled(subject)
        last = two_sided and finished >= enough
        if (finished < enough and not compared) or not self._targets_settled(subject, values_only=last):
            return None
        return Stop.SETTLED if compared else Stop.LAST_LOOK

    def stands_out(self, subject: Subject, alpha: float) -> bool:
        """Whether a screened benchmark needs more pairs, by a metric that counts.

        It seems changed (p is ``alpha`` or less), or a regression beyond the action threshold is not excluded.
        """
        return any(
            self._p(row, key) <= alpha or (ruling.decision == "unproven" and ruling.level is None)
            for key, row, ruling in self._rulings(subject)
        )

    def regressed(self, subject: Subject) -> bool:
        """Whether pairs prove a regression by more than the concern threshold in a metric that counts."""
        return any(
            ruling.decision == "regressed" and ruling.level in ("concern", "action") and not row.metric.exact
            for _, row, ruling in self._rulings(subject)
        )

    def rests_on_layout(self, subject: Subject) -> bool:
        """Whether something would be decided of a benchmark that an accident of code layout may have made.

        That is a proven change over the concern threshold to either side, or, with a goal, that it is reached.
        """
        rows, identical = self._comparisons(subject), self._identical()
        if self._goal:
            told = telling_rows(self._record, rows, self._criteria, self._goal)
            return any(is_reached(rows[key], self._goal) for key in told)
        gating = gating_rows(self._record, rows, self._criteria)
        noisy = [key for key in gating if not rows[key].metric.exact and key[1] not in MEMORY]
        return any(
            rule(rows[key], thresholds, identical=identical).decision in ("regressed", "improved")
            and abs(worse_of(rows[key]).estimate) > thresholds.concern
            for key, thresholds in ((key, self._criteria.thresholds_of(*key)) for key in noisy)
        )

    def _rulings(self, subject: Subject) -> Iterator[tuple[tuple[str, str], Comparison, Ruling]]:
        """What the verdict will rest on so far. Few runs without pairs are as many as they will be."""
        rows = self._comparisons(subject)
        for key in gating_rows(self._record, rows, self._criteria):
            if self._record.series[key].paired:
                thresholds = self._criteria.thresholds_of(*key)
                yield key, rows[key], rule(rows[key], thresholds, identical=self._identical())

    def _p(self, row: Comparison, key: tuple[str, str]) -> float:
        if row.only or row.metric.exact:
            return 0.0 if row.only or excludes_zero(row) else 1.0
        baseline, candidate = ([item.value for item in self._record.series[key].readings(side)] for side in Side)
        return p_of_no_change(baseline, candidate, row.metric)

    def confirmed(self, subject: Subject) -> bool:
        """Whether the fresh pairs of what stood out leave nothing open."""
        return self._comparisons_settled(subject)

    def _comparisons(self, subject: Subject) -> dict[tuple[str, str], Comparison]:
        # A step that is one subject may report benchmarks of any name from its one process.
        own = {key: item for key, item in self._record.series.items() if self._single or key[0] == subject.name}
        timed = {name for name, metric in own if metric in TIMES}
        wanted = {key: series for key, series in own.items() if key[0] not in timed or key[1] in self._telling}
        return compared(self._record, self._criteria, wanted)

    def _comparisons_settled(self, subject: Subject) -> bool:
        rows = self._comparisons(subject)
        goal = self._goal
        if goal:
            told = telling_rows(self._record, rows, self._criteria, goal)
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
        return all(row.metric.exact for row in self._comparisons(subject).values())

    def _targets_settled(self, subject: Subject, *, values_only: bool) -> bool:
        """Whether no target needs more samples. A change is known as well as it will be after the last look."""
        if not self._criteria.targets or self._goal:
            return True
        rows = self._comparisons(subject)
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
