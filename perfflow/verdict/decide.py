"""One comparison -> a decision, a level, and about how many more pairs would decide."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfflow.compare import Comparison
from perfflow.result import Decision, Level
from perfflow.samples.criteria import Thresholds
from perfflow.samples.metrics import Better
from perfflow.samples.readings import Side
from perfflow.statistics import Interval
from perfflow.units import significant

IDENTICAL_FLOOR = 0.005
"""Floor where the executed files are identical and for exact counts; a rebuild alone moves code layout by up to 2%."""
MAX_MORE = 100_000


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is said of one row. ``level`` is None where the row is neither ok nor a proven regression.

    ``more`` is about how many more pairs would decide; ``note`` is what else is known.
    """

    decision: Decision | None
    level: Level | None
    more: int | None = None
    note: str = ""


def rule(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Decide one comparison; the first decision that holds wins. Nothing is decided of a single measurement."""
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
        note = f"a change is proven, but not one above the floor of {_percent(floor)}"
        return Ruling("same", "ok", note=note if worse.low > 0 or worse.high < 0 else "")
    level: Level | None = "ok" if worse.high < thresholds.action else None
    return Ruling("unproven", level, _more(worse, comparison.pairs, floor, thresholds.concern))


def excludes_zero(comparison: Comparison) -> bool:
    """Whether a change of any size is proven."""
    change = comparison.change
    return change is not None and (change.low > 0 or change.high < 0)


PRECISION = 0.02
"""Half-width of a change's interval that is fine enough where no change is proven."""
_ON_A_CUT = 0.005


def settled(comparison: Comparison, ruling: Ruling, thresholds: Thresholds, *, identical: bool) -> bool:
    """Whether more pairs could say nothing that matters: the interval lies in one zone of the verdict table.

    An interval that straddles a threshold and is known to half a percent will go on straddling it; the concern
    threshold, which decides about a warning, is worth knowing to half of itself. ``same`` is not the last word
    where a change above the floor is as likely as none.
    """
    if comparison.change is None or ruling.decision in (None, "new", "removed"):
        return True
    worse = _worse(comparison.change, comparison.metric.better)
    half = (worse.high - worse.low) / 2
    if ruling.decision == "improved" or half <= _ON_A_CUT:
        return True
    if ruling.decision == "same":
        floor = _floor(comparison, thresholds, identical=identical)
        return half <= PRECISION and not abs(worse.estimate) > max(floor, half / 2)
    if ruling.decision == "regressed":
        straddled = [cut for cut in (thresholds.concern, thresholds.action) if worse.low < cut < worse.high]
        return not straddled or (half <= thresholds.concern / 2 and thresholds.action not in straddled)
    return False


def _floor(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> float:
    return min(thresholds.floor, IDENTICAL_FLOOR) if identical or comparison.metric.exact else thresholds.floor


def _percent(share: float) -> str:
    return f"{significant(share * 100).rstrip('0').rstrip('.')}%"


def _worse(change: Interval, better: Better) -> Interval:
    """The change oriented so that up is worse, as a share of the baseline."""
    if better is Better.HIGHER:
        return Interval(-change.estimate, -change.high, -change.low)
    return change


def _level(estimate: float, thresholds: Thresholds) -> Level:
    if estimate > thresholds.action:
        return "action"
    return "concern" if estimate > thresholds.concern else "ok"


def _more(worse: Interval, pairs: int, floor: float, concern: float) -> int | None:
    """Pairs until the interval fits a zone, its width shrinking with the square root of their number."""
    if not math.isfinite(worse.low) or not math.isfinite(worse.high) or pairs == 0:
        return None
    half = (worse.high - worse.low) / 2
    room = max(abs(worse.estimate) - floor, concern - abs(worse.estimate))
    if room <= 0 or half <= 0:
        return None
    needed = pairs * (half / room) ** 2
    return min(MAX_MORE, max(1, math.ceil(needed - pairs)))
