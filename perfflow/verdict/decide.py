"""Decide one comparison: a decision, a level, and about how many more pairs would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import Better
from perfflow.model.readings import Side
from perfflow.model.result import Decision, Level
from perfflow.model.units import format_interval, format_threshold
from perfflow.stats.paired_test import Interval
from perfflow.verdict.comparison import Comparison, Layouts

IDENTICAL_FLOOR = 0.005
"""Floor for identical executables and exact counts. A rebuild alone changes results by up to 2% through code layout."""
MAX_MORE = 100_000
ACCIDENT = "an accident of code layout"
SHOWN = 1.5
"""Factor on the half-width of a 99% interval: a change of this size is detected nine times out of ten."""


@dataclass(frozen=True)
class Ruling:
    """The decision on one row. ``level`` is None if the row is neither ok nor a proven regression.

    ``more`` is the approximate number of further pairs that would settle it; ``note`` is a remark for the report.
    """

    decision: Decision | None
    level: Level | None
    more: int | None = None
    note: str = ""

    @property
    def is_regression(self) -> bool:
        """Whether it is a proven regression of at least the concern level."""
        return self.decision == "regressed" and self.level in ("concern", "action")


def rule(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Decide one comparison. A single measurement has no decision.

    A change that needs a confirmation, or that one contradicts, is ``unproven``. Fresh code layouts of both sides
    decide if they were measured. The note then explains the change as built.
    """
    ruling = rule_unconfirmed(comparison, thresholds, identical=identical)
    proven = comparison.confirmations or ruling.decision in ("regressed", "improved")
    if comparison.layouts or comparison.is_confirmed or not proven:
        return ruling
    known = [
        worse_of(comparison),
        *(_worse(item.before, comparison.metric.better) for item in comparison.confirmations),
    ]
    return Ruling("unproven", "ok" if max(item.high for item in known) < thresholds.action else None)


def rule_unconfirmed(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Decide one comparison as ``rule`` does, whether a change is confirmed or not."""
    ruling = _ruled(comparison, thresholds, identical=identical)
    if comparison.layouts is None:
        return ruling
    return over_layouts(comparison, ruling, _ruled(comparison.layouts.built, thresholds, identical=identical))


def _ruled(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Return the first decision that applies."""
    if comparison.only:
        return Ruling("removed", None) if comparison.only is Side.BASELINE else Ruling("new", "ok")
    if comparison.change is None:
        return Ruling(None, "ok")
    worse = _worse(comparison.change, comparison.metric.better)
    if comparison.pairs and comparison.confidence is None and not comparison.metric.exact:
        return Ruling("unproven", None)
    floor = _floor(comparison, thresholds, identical=identical)
    if worse.low > floor:
        return Ruling("regressed", _level(worse.estimate, thresholds))
    if worse.high < -floor:
        return Ruling("improved", "ok")
    if -thresholds.concern <= worse.low and worse.high <= thresholds.concern:
        note = f"a change is proven, but not that it exceeds the floor of {format_threshold(floor)}"
        return Ruling("same", "ok", note=note if worse.low > 0 or worse.high < 0 else "")
    level: Level | None = "ok" if worse.high < thresholds.action else None
    return Ruling("unproven", level, _more(worse, comparison.pairs, floor, thresholds.concern, comparison.blur))


def after_rebuild(comparison: Comparison, ruling: Ruling, thresholds: Thresholds) -> Ruling:
    """Return the ruling on one build of each side, without fresh code layouts.

    A rebuild alone changes a program by more than the floor now and then: rows that execute the same code differed by
    3%. Fresh layouts are drawn beyond ``concern`` only, so a smaller change is not known to be one of the code.
    """
    change, exact = comparison.change, comparison.metric.exact
    if change is None or exact or comparison.layouts or ruling.decision not in ("regressed", "improved"):
        return ruling
    worse = _worse(change, comparison.metric.better)
    if abs(worse.estimate) > thresholds.concern:
        return ruling
    note = f"{_with_interval(change)} is proven, which a rebuild alone can do"
    if -thresholds.concern <= worse.low and worse.high <= thresholds.concern:
        return Ruling("same", "ok", note=note)
    return replace(ruling, note=note)


def excludes_zero(comparison: Comparison) -> bool:
    """Return whether a change of any size is proven."""
    change = comparison.change
    return change is not None and (change.low > 0 or change.high < 0)


PRECISION = 0.02
"""Half-width of the interval of a change that is sufficient if no change is proven."""
_OF_ONE_FILE, _AFFORDED = 0.01, 90
"""The half-width for identical executables, up to so many pairs. A change of 1% can usually be detected there and
should not be missed by stopping early. A benchmark that needs more pairs is too noisy for a change of 1%."""
_ON_A_CUT = 0.005


def settled(comparison: Comparison, ruling: Ruling, thresholds: Thresholds, *, identical: bool) -> bool:
    """Return whether more pairs could not change the outcome: the interval lies in one zone of the verdict table.

    An interval that includes a threshold and has a half-width of 0.5% will go on including it. For the concern
    threshold, which only decides about a warning, half of the threshold is precise enough. ``same`` is not final if a
    change above the floor is as likely as none.
    """
    if comparison.change is None or ruling.decision in (None, "new", "removed"):
        return True
    worse = _worse(comparison.change, comparison.metric.better)
    half = (worse.high - worse.low) / 2
    if comparison.blur and half - comparison.blur <= _ON_A_CUT:
        # The remaining width is due to the resolution of the values, which more pairs do not narrow.
        return True
    if ruling.decision == "same":
        floor = _floor(comparison, thresholds, identical=identical)
        on_the_floor = half <= min(_ON_A_CUT, max(floor, IDENTICAL_FLOOR) / 2)
        fine = half <= (_OF_ONE_FILE if identical and comparison.pairs < _AFFORDED else PRECISION)
        return on_the_floor or (fine and not abs(worse.estimate) > max(floor, half / 3))
    if ruling.decision == "improved" or half <= _ON_A_CUT:
        return True
    if ruling.decision == "regressed":
        straddled = [cut for cut in (thresholds.concern, thresholds.action) if worse.low < cut < worse.high]
        return not straddled or (half <= thresholds.concern / 2 and thresholds.action not in straddled)
    return False


def _floor(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> float:
    known = identical or comparison.metric.exact or comparison.layouts is not None
    return min(thresholds.floor, IDENTICAL_FLOOR) if known else thresholds.floor


def over_layouts(comparison: Comparison, ruling: Ruling, built: Ruling) -> Ruling:
    """Return the ruling by fresh layouts, given the ruling on the programs as built.

    A change that was proven as built but that fresh layouts refute is an accident of code layout. So is a regression
    as built that fresh layouts show as an improvement. A regression that fresh layouts prove stands, even if the
    programs as built seemed faster: the code causes it.
    """
    change = comparison.change
    if comparison.layouts is None or change is None:
        return ruling
    if ruling.decision == "unproven":
        return replace(ruling, note=_undecided(comparison.layouts, change))
    if (ruling.decision, built.decision) == ("regressed", "improved"):
        return replace(ruling, note=f"in spite of {_accident(comparison.layouts, change)}")
    turned = (ruling.decision, built.decision) == ("improved", "regressed")
    if turned or (ruling.decision == "same" and built.decision in ("regressed", "improved")):
        return Ruling("same", "ok", note=_accident(comparison.layouts, change))
    return ruling


def _undecided(layouts: Layouts, change: Interval) -> str:
    told = f"between layouts ±{layouts.deviation:.0%}: {layouts.n} code layouts of each side do not decide this"
    least = SHOWN * (change.high - change.low) / 2
    return f"{told}; they would show a change of about {least:.0%}" if math.isfinite(least) else told


def _accident(layouts: Layouts, change: Interval) -> str:
    built = layouts.built.change
    as_built = _with_interval(built) if built else "differ"
    return f"{ACCIDENT}: as built {as_built}, over {layouts.n} fresh layouts of each side {_with_interval(change)}"


def _with_interval(change: Interval) -> str:
    return format_interval(change.estimate, change.low, change.high)


def worse_of(comparison: Comparison) -> Interval:
    """Return the change with the sign that up is worse; unbounded if it is not known."""
    if comparison.change is None or math.isnan(comparison.change.estimate):
        return Interval(math.nan, -math.inf, math.inf)
    return _worse(comparison.change, comparison.metric.better)


def _worse(change: Interval, better: Better) -> Interval:
    """Return the change with the sign that up is worse, as a share of the baseline."""
    if better is Better.HIGHER:
        return Interval(-change.estimate, -change.high, -change.low)
    return change


def _level(estimate: float, thresholds: Thresholds) -> Level:
    if estimate > thresholds.action:
        return "action"
    return "concern" if estimate > thresholds.concern else "ok"


def _more(worse: Interval, pairs: int, floor: float, concern: float, blur: float) -> int | None:
    """Return how many more pairs the interval needs to fit a zone. Its width shrinks with the square root of the pairs.

    ``blur``, the part of its half-width that is due to the resolution of the values, does not shrink.
    """
    if not math.isfinite(worse.low) or not math.isfinite(worse.high) or pairs == 0:
        return None
    half = (worse.high - worse.low) / 2 - blur
    room = max(abs(worse.estimate) - floor, concern - abs(worse.estimate)) - blur
    if room <= 0 or half <= 0:
        return None
    needed = pairs * (half / room) ** 2
    return min(MAX_MORE, max(1, math.ceil(needed - pairs)))
