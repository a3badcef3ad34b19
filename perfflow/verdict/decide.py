"""One comparison -> a decision, a level, and about how many more pairs would decide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from perfflow.model.criteria import Thresholds
from perfflow.model.later import dataclass
from perfflow.model.metrics import Better
from perfflow.model.readings import Side
from perfflow.model.units import format_change, significant
from perfflow.stats.designs import PRECISE, SCREENING, SCREENING_PRECISE
from perfflow.stats.paired_test import Interval
from perfflow.verdict.comparison import Comparison, Layouts

if TYPE_CHECKING:
    from perfflow.model.result import Decision, Level

IDENTICAL_FLOOR = 0.005
"""Floor where the executed files are identical and for exact counts; a rebuild alone moves code layout by up to 2%."""
MAX_MORE = 100_000
ACCIDENT = "an accident of code layout"
SHOWN = 1.5
"""Times the half-width of an interval of 99%: a change of this size shows nine times out of ten."""


@dataclass(frozen=True)
class Ruling:
    """What is said of one row. ``level`` is None where the row is neither ok nor a proven regression.

    ``more`` is about how many more pairs would decide; ``note`` is what else is known.
    """

    decision: Decision | None
    level: Level | None
    more: int | None = None
    note: str = ""


def rule(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Decide one comparison. Nothing is decided of a single measurement.

    Where fresh code layouts of both sides decide, the ruling says what becomes of the comparison as built.
    """
    ruling = _ruled(comparison, thresholds, identical=identical)
    if comparison.layouts is None:
        return ruling
    return over_layouts(comparison, ruling, _ruled(comparison.layouts.built, thresholds, identical=identical))


def _ruled(comparison: Comparison, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """The first decision that holds wins."""
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
        note = f"a change is proven, but not that it exceeds the floor of {percent(floor)}"
        return Ruling("same", "ok", note=note if worse.low > 0 or worse.high < 0 else "")
    level: Level | None = "ok" if worse.high < thresholds.action else None
    return Ruling("unproven", level, _more(worse, comparison.pairs, floor, thresholds.concern, comparison.blur))


def excludes_zero(comparison: Comparison) -> bool:
    """Whether a change of any size is proven."""
    change = comparison.change
    return change is not None and (change.low > 0 or change.high < 0)


def seems_changed(comparison: Comparison, p: float, pairs: int) -> bool:
    """Whether a screened benchmark goes on after so many pairs; ``p`` is that of no change."""
    change = comparison.change
    precise = change is not None and change.low >= -PRECISE and change.high <= PRECISE
    return p <= (SCREENING_PRECISE if precise else SCREENING)[pairs]


PRECISION = 0.02
"""Half-width of a change's interval that is fine enough where no change is proven."""
_OF_ONE_FILE, _AFFORDED = 0.01, 90
"""The same of two runs of one file, up to so many pairs: a change of 1% can be told there in most cases, and should not
be missed by ending early. What needs more pairs for that is too noisy to be told a change of 1% in."""
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
    if comparison.blur and half - comparison.blur <= _ON_A_CUT:
        # What is left of its width are the steps in which the values come, which more pairs do not narrow.
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
    """What fresh layouts say, beside what the programs seemed to be as they were built.

    A change that was proven as built, and that these layouts refute, is an accident of code layout. So is a regression
    that they turn round. One that they prove stands, also where the first build seemed faster: it is the code's.
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
    as_built = told_change(built) if built else "differ"
    return f"{ACCIDENT}: as built {as_built}, over {layouts.n} fresh layouts of each side {told_change(change)}"


def told_change(change: Interval) -> str:
    """An estimate with its interval, signed."""
    return f"{format_change(change.estimate)} [{format_change(change.low)}, {format_change(change.high)}]"


def percent(share: float) -> str:
    """A share for a sentence."""
    return f"{significant(share * 100).rstrip('0').rstrip('.')}%"


def worse_of(comparison: Comparison) -> Interval:
    """The change oriented so that up is worse; unbounded where nothing is known of it."""
    if comparison.change is None or math.isnan(comparison.change.estimate):
        return Interval(math.nan, -math.inf, math.inf)
    return _worse(comparison.change, comparison.metric.better)


def _worse(change: Interval, better: Better) -> Interval:
    """The change oriented so that up is worse, as a share of the baseline."""
    if better is Better.HIGHER:
        return Interval(-change.estimate, -change.high, -change.low)
    return change


def _level(estimate: float, thresholds: Thresholds) -> Level:
    if estimate > thresholds.action:
        return "action"
    return "concern" if estimate > thresholds.concern else "ok"


def _more(worse: Interval, pairs: int, floor: float, concern: float, blur: float) -> int | None:
    """Pairs until the interval fits a zone, its width shrinking with the square root of their number.

    ``blur``, the part of its half that is due to coarse values, stays.
    """
    if not math.isfinite(worse.low) or not math.isfinite(worse.high) or pairs == 0:
        return None
    half = (worse.high - worse.low) / 2 - blur
    room = max(abs(worse.estimate) - floor, concern - abs(worse.estimate)) - blur
    if room <= 0 or half <= 0:
        return None
    needed = pairs * (half / room) ** 2
    return min(MAX_MORE, max(1, math.ceil(needed - pairs)))
