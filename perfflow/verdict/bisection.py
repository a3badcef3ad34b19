"""Choose the regression between two revisions, and decide on which side of it a commit between them is.

A commit has the regression if the whole interval of its change from the good revision is beyond half of the regression,
and lacks it if the whole interval is below. The cut is at half, where both outcomes are equally far away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.targets import is_chosen
from perfflow.model.units import format_interval
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.verdict.acceptance import Goal, effect_of
from perfflow.verdict.comparison import Comparison, compare
from perfflow.verdict.decide import Ruling, rule
from perfflow.verdict.gating import gating_rows
from perfflow.verdict.sharing import compared

_ALL = 0.75
"""Share of the regression below which a revision on the cut counts as having only a part of it."""
_MOST_TOLD = 4
"""Maximum number of unproven rows with a note."""
_FROM_NOTHING = 2.0
"""Size of a regression from zero, which has no relative change: any value above zero is beyond the cut."""


class Holds(StrEnum):
    """Whether a revision has the regression."""

    YES = "has it"
    NO = "lacks it"
    PART = "has part of it"
    UNPROVEN = "unproven"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Regression:
    """A proven regression of one metric of a benchmark; ``worse`` is its change as a share, up is worse."""

    benchmark: str
    metric: str
    step: str
    change: Interval
    worse: Interval
    confidence: float | None

    @property
    def size(self) -> float:
        """The estimate, replaced by a finite size if the good revision has a count of zero."""
        return self.worse.estimate if math.isfinite(self.worse.estimate) else _FROM_NOTHING

    @property
    def cut(self) -> float:
        """The change that separates the revisions that have the regression from those that lack it.

        Half of the estimate, or the lower bound of the interval if that is less.
        """
        return min(self.size / 2, self.worse.low)

    def goal(self) -> Goal:
        """Return the goal that ends the sampling of a revision: its whole interval is on one side of the cut."""
        return Goal(((self.benchmark, self.metric),), (), -self.cut)

    def criteria(self, criteria: Criteria) -> Criteria:
        """Return criteria in which only the cut matters."""
        thresholds = Thresholds(concern=self.cut, action=self.cut, floor=criteria.thresholds.floor)
        return replace(criteria, targets=(), thresholds=thresholds, per_glob={}, accepted=())


@dataclass(frozen=True)
class JudgedRow:
    """One row of good against bad, and its decision."""

    comparison: Comparison
    ruling: Ruling

    @property
    def key(self) -> tuple[str, str]:
        """Benchmark and metric."""
        return self.comparison.benchmark, self.comparison.metric.name


def judged_rows(record: Record, criteria: Criteria, benchmarks: Sequence[str], metric: str) -> list[JudgedRow]:
    """Return the requested rows of good against bad: the gating rows of each benchmark, or those of ``metric``.

    ``benchmarks`` are globs, () for all.
    """
    rows = compared(record, criteria)
    gating = gating_rows(record, rows, criteria)
    wanted = [key for key in rows if (key[1] == metric if metric else key in gating)]
    named = [key for key in wanted if is_chosen(benchmarks, key[0])]
    return [
        JudgedRow(rows[key], rule(rows[key], criteria.thresholds_of(*key), identical=_identical(record, rows[key])))
        for key in named
    ]


def regressions(found: list[JudgedRow], *, any_level: bool) -> list[Regression]:
    """Return the proven regressions, the worst first; of at least level concern unless ``any_level``."""
    proven = []
    for item in found:
        row, worse = item.comparison, _worse(item.comparison)
        if item.ruling.decision != "regressed" or worse is None or row.change is None:
            continue
        if any_level or item.ruling.level in ("concern", "action"):
            proven.append(Regression(*item.key, row.step, row.change, worse, row.confidence))
    return sorted(proven, key=lambda each: -each.size)


def nothing_proven(record: Record, rows: list[JudgedRow], wanted: str) -> tuple[str, str]:
    """Return ``not measured``, ``unproven`` or ``same`` with the reason, if no regression is proven.

    ``wanted`` names the requested rows.
    """
    if not rows:
        known = ", ".join(sorted({f"{name} {metric}" for name, metric in record.series})) or "nothing"
        missing = wanted or "the deciding metric"
        return "not measured", f"{missing} was not measured on both revisions; measured: {known}"
    unsure = undecided(rows)
    if unsure:
        return "unproven", f"a regression is neither proven nor excluded: {_names(unsure)}"
    gone = [item for item in rows if item.comparison.only is not None or item.comparison.change is None]
    if gone:
        return "not measured", f"not measured on both revisions: {_names(gone)}"
    if all(item.ruling.decision == "improved" for item in rows):
        return "same", "bad is better than good; were they swapped?"
    return "same", "bad is not worse than good in any deciding metric"


def undecided(rows: list[JudgedRow]) -> list[JudgedRow]:
    """Return the unproven rows, the one with the worst estimate first."""
    found = [item for item in rows if item.ruling.decision == "unproven"]
    return sorted(found, key=lambda item: -(_worse(item.comparison) or Interval(-math.inf, 0, 0)).estimate)


def what_to_raise(record: Record, rows: list[JudgedRow]) -> list[str]:
    """Return a line for each unproven row: its change, and how to get more pairs."""
    return [_raise(record, item) for item in undecided(rows)[:_MOST_TOLD]]


def _raise(record: Record, item: JudgedRow) -> str:
    row, ruling = item.comparison, item.ruling
    remedies = {
        "total budget": "give a larger --budget",
        "budget": f"raise `budget` of step {row.step}",
        "last look": f"make the program of step {row.step} do more work",
    }
    counted = f"{row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    more = f", about {ruling.more} more would settle it" if ruling.more else ""
    remedy = remedies.get(record.why_stopped(record.series[item.key]), f"raise `runs` of step {row.step}")
    return f"{' '.join(item.key)}: {change_text(row.change)} after {counted}{more}: {remedy}"


def change_text(change: Interval | None) -> str:
    """Return ``+27.1% [+25.0%, +29.3%]``, ``-`` without a change."""
    if change is None or math.isnan(change.estimate):
        return "-"
    return format_interval(change.estimate, change.low, change.high)


def _names(rows: list[JudgedRow]) -> str:
    return ", ".join(" ".join(item.key) for item in rows)


def row_of(record: Record, criteria: Criteria, regression: Regression) -> Comparison | None:
    """Return the row of one revision against the good one; None if it was not measured on both sides."""
    series = record.series.get((regression.benchmark, regression.metric))
    row = compare(series, criteria) if series else None
    return row if row and row.only is None and row.change is not None else None


def holds(row: Comparison, regression: Regression) -> Holds:
    """Return on which side of the cut a revision is.

    If the interval includes the cut but its lower bound is above half of the cut, the revision has at least a part of
    the regression. It has only a part if the interval excludes most of it: then it came in several steps.
    """
    worse = _worse(row)
    known = row.metric.exact or row.confidence is not None
    if worse is None or not known:
        return Holds.UNPROVEN
    if worse.low > regression.cut:
        return Holds.YES
    if worse.high < regression.cut:
        return Holds.NO
    if worse.low <= regression.cut / 2:
        return Holds.UNPROVEN
    return Holds.PART if worse.high < regression.size * _ALL else Holds.YES


def _worse(row: Comparison) -> Interval | None:
    """Return the change, up is worse; None if it is not known."""
    effect = effect_of(row)
    return None if effect is None else Interval(-effect.estimate, -effect.high, -effect.low)


def _identical(record: Record, row: Comparison) -> bool:
    return record.outcome_of(row.step).identical
