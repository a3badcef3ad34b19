"""Which regression is looked for between two revisions, and on which side of it a commit between them is.

A commit has the regression when the whole interval of its change from the good revision is beyond half of it, and
lacks it when the whole interval is below: the cut lies where both are equally far away, whatever the size.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.later import dataclass
from perfflow.model.targets import matches
from perfflow.model.units import UNBOUNDED, format_change
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.verdict.acceptance import Goal, effect_of
from perfflow.verdict.comparison import Comparison, compare
from perfflow.verdict.decide import Ruling, rule
from perfflow.verdict.gating import gating_rows
from perfflow.verdict.sharing import compared

_ALL = 0.75
"""Share of the regression up to which a revision on the cut is said to have a part of it alone."""
_MOST_TOLD = 4
"""How many unproven rows get a note."""
_FROM_NOTHING = 2.0
"""Size of a regression from zero, of which no share is known: what is not zero is beyond the cut."""


class Holds(StrEnum):
    """What is known of one revision."""

    YES = "has it"
    NO = "lacks it"
    PART = "has part of it"
    UNPROVEN = "unproven"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Regression:
    """A proven regression of one metric of a benchmark; ``worse`` is its size with up being worse, a share."""

    benchmark: str
    metric: str
    step: str
    change: Interval
    worse: Interval
    confidence: float | None

    @property
    def size(self) -> float:
        """Its estimate, finite also where the good revision has none of what is counted."""
        return self.worse.estimate if math.isfinite(self.worse.estimate) else _FROM_NOTHING

    @property
    def cut(self) -> float:
        """The change that divides the revisions that have it from those that lack it.

        Half of it, or its lower bound where it is known so badly that it may be less than half of its estimate.
        """
        return min(self.size / 2, self.worse.low)

    def goal(self) -> Goal:
        """What ends the sampling of a revision: its interval lies wholly on one side of the cut."""
        return Goal(((self.benchmark, self.metric),), (), -self.cut)

    def criteria(self, criteria: Criteria) -> Criteria:
        """Criteria by which nothing but the cut matters."""
        thresholds = Thresholds(concern=self.cut, action=self.cut, floor=criteria.thresholds.floor)
        return replace(criteria, targets=(), thresholds=thresholds, per_glob={}, accepted=())


@dataclass(frozen=True)
class Standing:
    """One row of good against bad, and how it was ruled."""

    comparison: Comparison
    ruling: Ruling

    @property
    def key(self) -> tuple[str, str]:
        """Benchmark and metric."""
        return self.comparison.benchmark, self.comparison.metric.name


def standings(record: Record, criteria: Criteria, benchmark: str, metric: str) -> list[Standing]:
    """The rows of good against bad that are asked for: of each benchmark what a verdict rests on, or ``metric``.

    ``benchmark`` is a glob, '' for all.
    """
    rows = compared(record, criteria)
    gating = gating_rows(record, rows, criteria)
    wanted = [key for key in rows if (key[1] == metric if metric else key in gating)]
    named = [key for key in wanted if not benchmark or key[0] == benchmark or matches(benchmark, key[0])]
    return [
        Standing(rows[key], rule(rows[key], criteria.thresholds_of(*key), identical=_identical(record, rows[key])))
        for key in named
    ]


def regressions(found: list[Standing], *, any_level: bool) -> list[Regression]:
    """What is proven to have regressed, the worst first; to level concern at the least unless ``any_level``."""
    proven = []
    for item in found:
        row, worse = item.comparison, _worse(item.comparison)
        if item.ruling.decision != "regressed" or worse is None or row.change is None:
            continue
        if any_level or item.ruling.level in ("concern", "action"):
            proven.append(Regression(*item.key, row.step, row.change, worse, row.confidence))
    return sorted(proven, key=lambda each: -each.size)


def nothing_proven(record: Record, rows: list[Standing], wanted: str) -> tuple[str, str]:
    """Without a proven regression: ``not measured``, ``unproven`` or ``same``, and why; ``wanted`` was asked for."""
    if not rows:
        known = ", ".join(sorted({f"{name} {metric}" for name, metric in record.series})) or "nothing"
        missing = wanted or "the deciding metric"
        return "not measured", f"{missing} was not measured on both revisions; measured: {known}"
    unsure = undecided(rows)
    if unsure:
        return "unproven", f"no regression is proven and none is excluded: {_names(unsure)}"
    gone = [item for item in rows if item.comparison.only is not None or item.comparison.change is None]
    if gone:
        return "not measured", f"not measured on both revisions: {_names(gone)}"
    if all(item.ruling.decision == "improved" for item in rows):
        return "same", "bad is better than good; were they swapped?"
    return "same", "bad is not worse than good in any deciding metric"


def undecided(rows: list[Standing]) -> list[Standing]:
    """Return the unproven rows, the one that seems worst first."""
    found = [item for item in rows if item.ruling.decision == "unproven"]
    return sorted(found, key=lambda item: -(_worse(item.comparison) or Interval(-math.inf, 0, 0)).estimate)


def what_to_raise(record: Record, rows: list[Standing]) -> list[str]:
    """Say of each unproven row what was found, and what would take more pairs."""
    return [_raise(record, item) for item in undecided(rows)[:_MOST_TOLD]]


def _raise(record: Record, item: Standing) -> str:
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
    """``+27.1% [+25.0%, +29.3%]``; of exact figures, which have no interval, the value alone."""
    if change is None or math.isnan(change.estimate):
        return "-"
    value = format_change(change.estimate)
    if change.low == change.high:
        return value
    if change.low <= -1 and not math.isfinite(change.high):
        return f"{value} (no interval yet)"
    low, high = (format_change(end) if math.isfinite(end) else UNBOUNDED for end in (change.low, change.high))
    return f"{value} [{low}, {high}]"


def _names(rows: list[Standing]) -> str:
    return ", ".join(" ".join(item.key) for item in rows)


def row_of(record: Record, criteria: Criteria, regression: Regression) -> Comparison | None:
    """The row of one revision against the good one; None where it was not measured on both sides."""
    series = record.series.get((regression.benchmark, regression.metric))
    row = compare(series, criteria) if series else None
    return row if row and row.only is None and row.change is not None else None


def holds(row: Comparison, regression: Regression) -> Holds:
    """On which side of the cut a revision is.

    Of one that stays on the cut, though none of the regression is excluded, it depends on whether all of it is, too:
    then it came in several steps.
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
    """The change with up being worse; None where nothing is known of it."""
    effect = effect_of(row)
    return None if effect is None else Interval(-effect.estimate, -effect.high, -effect.low)


def _identical(record: Record, row: Comparison) -> bool:
    return record.outcome_of(row.step).identical
