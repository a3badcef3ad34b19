"""Decide one comparison: a decision, a level, and about how many more pairs would settle it.

``remaining`` and ``together`` tell how much more measuring would settle rows, and the option that allows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfflow.model.criteria import Thresholds
from perfflow.model.metrics import Better
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.model.result import Benchmark, Bounds, Decision, Level
from perfflow.model.units import format_change, format_interval, format_threshold
from perfflow.stats.paired_test import Interval
from perfflow.verdict.comparison import ComparedMetric, Layouts

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
    is_accident: bool = False
    """Whether the programs as built differ only by an accident of code layout."""

    @property
    def is_regression(self) -> bool:
        """Whether it is a proven regression of at least the concern level."""
        return self.decision == "regressed" and self.level in ("concern", "action")


def rule(comparison: ComparedMetric, thresholds: Thresholds, *, identical: bool) -> Ruling:
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


def rule_unconfirmed(comparison: ComparedMetric, thresholds: Thresholds, *, identical: bool) -> Ruling:
    """Decide one comparison as ``rule`` does, whether a change is confirmed or not."""
    ruling = _ruled(comparison, thresholds, identical=identical)
    if comparison.layouts is None:
        return ruling
    return over_layouts(comparison, ruling, _ruled(comparison.layouts.built, thresholds, identical=identical))


def _ruled(comparison: ComparedMetric, thresholds: Thresholds, *, identical: bool) -> Ruling:
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


def after_rebuild(comparison: ComparedMetric, ruling: Ruling, thresholds: Thresholds) -> Ruling:
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


def excludes_zero(comparison: ComparedMetric) -> bool:
    """Return whether a change of any size is proven."""
    change = comparison.change
    return change is not None and (change.low > 0 or change.high < 0)


PRECISION = 0.02
"""Half-width of the interval of a change that is sufficient if no change is proven."""
_OF_ONE_FILE, _AFFORDED = 0.01, 90
"""The half-width for identical executables, up to so many pairs. A change of 1% can usually be detected there and
should not be missed by stopping early. A benchmark that needs more pairs is too noisy for a change of 1%."""
_ON_A_CUT = 0.005


def settled(comparison: ComparedMetric, ruling: Ruling, thresholds: Thresholds, *, identical: bool) -> bool:
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


def _floor(comparison: ComparedMetric, thresholds: Thresholds, *, identical: bool) -> float:
    known = identical or comparison.metric.exact or comparison.layouts is not None
    return min(thresholds.floor, IDENTICAL_FLOOR) if known else thresholds.floor


def over_layouts(comparison: ComparedMetric, ruling: Ruling, built: Ruling) -> Ruling:
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
        return Ruling("same", "ok", note=_accident(comparison.layouts, change), is_accident=True)
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


def worse_of(comparison: ComparedMetric) -> Interval:
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


_PLAUSIBLE = 3600.0
"""Seconds. A longer time for one benchmark is not worth proposing as a budget."""
MOST_NAMED = 4
"""Rows that a text names."""
SPARE = 1.25
"""Factor on the estimate, because the interval of a later interim analysis is a little wider."""
_SECOND, _MINUTE, _HOUR = (1.0, "second", "s"), (60.0, "minute", "m"), (3600.0, "hour", "h")


def not_settled(row: Benchmark) -> str:
    """Return the number of pairs and the interval of an unproven row, as text."""
    if row.unconfirmed:
        return _not_confirmed(row)
    after = f"not settled after {row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    change = row.change
    if change is None or change.low is None or change.high is None:
        return f"{after}, too few to tell"
    return f"{after}: the change is between {format_change(change.low)} and {format_change(change.high)}"


def _not_confirmed(row: Benchmark) -> str:
    found = next((item for item in row.confirmations if not item.agrees), None)
    if found is None:
        return (
            f"changed by {_of(row.change)} after {row.pairs} pairs, but there was no time for fresh pairs to confirm it"
        )
    pairs = f"{found.pairs} fresh {'pair' if found.pairs == 1 else 'pairs'}"
    return f"changed by {_of(found.before)} at first, which {pairs} did not confirm: {_of(found.change)}"


def _of(change: Bounds | None) -> str:
    if change is None or change.value is None:
        return "an unknown amount"
    low, high = (math.inf if bound is None else bound for bound in (change.low, change.high))
    return format_interval(change.value, -low if change.low is None else low, high)


def remaining(row: Benchmark, *, options: bool = False, grants: bool = True) -> str:
    """Return what would settle an unproven row, as text; '' if more of the same measurements would not.

    ``options``: name command-line options instead of keys of the step. ``grants``: name the key or option that allows
    it.
    """
    if row.stopped == "settled" or row.unconfirmed:
        return ""
    if not row.more:
        return _first_look(row, options=options, grants=grants)
    if row.stopped == "last look":
        return f"more time will not settle it; use {_instead(row)}"
    seconds = _seconds(row, row.more)
    if seconds is not None and seconds > _PLAUSIBLE:
        return f"about {_in_words(seconds)} more would settle it; {_instead(row)} would need less time"
    much = _pairs(row, row.more) if seconds is None else f"{_in_words(seconds)} more"
    return f"about {much} would settle it{_grant(row, row.more, options=options) if grants else ''}"


def _instead(*rows: Benchmark) -> str:
    """Return what helps more than time does. CPU time does not help a row that it decides already."""
    cpu = "" if all(row.metric == "cpu" for row in rows) else ", metric: cpu"
    return f"a quieter machine{cpu} or more work in each run"


def seconds_to_settle(row: Benchmark) -> float | None:
    """Return the seconds that would about settle an unproven row, or that it needs at least; None if nobody knows."""
    if row.stopped in ("settled", "last look"):
        return None
    more = row.more or _before_first_look(row)
    return _seconds(row, more) if more else None


CAUSES = {"budget": "the budget of each ran out", "total budget": "the run's total budget ran out"}
"""Why rows are undecided, by the limit that ended their measuring."""


def together(rows: Sequence[Benchmark], budget: float | None) -> str:
    """Return why several rows with one cause are undecided, and the time that would settle them, as text.

    ``budget``: seconds of the whole run, None without a limit.
    """
    stopped = rows[0].stopped
    names = list(dict.fromkeys(row.title for row in rows))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    named = f"{', '.join(names[:MOST_NAMED])}{more}"
    if stopped == "last look":
        return f"all pairs were taken, and more time will not settle them; use {_instead(*rows)}: {named}"
    cause = CAUSES.get(stopped, "too few pairs" if not stopped else "more pairs will not settle them")
    known = [seconds for row in rows if (seconds := seconds_to_settle(row)) is not None]
    if not known:
        return f"{cause}: {named}"
    total = sum(known)
    about = "at least" if len(known) < len(rows) else "about"
    grant = ""
    if stopped == "total budget" and budget is not None and total <= _PLAUSIBLE:
        grant = f" (--budget {_as_option(budget + total * SPARE)})"
    elif stopped == "budget" and total <= _PLAUSIBLE:
        # Rows of one step share the sum of their budgets.
        each = max((row.seconds or 0.0) + (seconds_to_settle(row) or 0.0) * SPARE for row in rows)
        grant = f" (budget: {_as_option(each)})"
    elif total > _PLAUSIBLE:
        grant = f" ({_instead(*rows)} would need less)"
    return f"{cause}; {about} {_in_words(total)} more would settle them{grant}: {named}"


def _before_first_look(row: Benchmark) -> int:
    """Return the pairs that are missing for the first interim analysis of a row; 0 if it had one."""
    looks = SCHEDULES.get(row.design, ())
    unknown = row.change is None or row.change.low is None or row.change.high is None
    missing = looks[0][0] - row.pairs if looks else 0
    return missing if unknown and row.stopped and row.pairs and missing > 0 else 0


def _first_look(row: Benchmark, *, options: bool, grants: bool) -> str:
    """Return what a row needs whose measuring ended before its first interim analysis; '' for other rows."""
    missing = _before_first_look(row)
    if not missing:
        return ""
    return f"at least {_pairs(row, missing)} needed{_grant(row, missing, options=options) if grants else ''}"


def _pairs(row: Benchmark, more: int) -> str:
    few = row.design == Design.FEW
    return f"{more} more {'run' if few else 'pair'}{'' if more == 1 else 's'}{' of each side' if few else ''}"


def _seconds(row: Benchmark, more: int) -> float | None:
    return more * row.seconds / row.pairs if row.seconds and row.pairs else None


def _grant(row: Benchmark, more: int, *, options: bool) -> str:
    seconds = _seconds(row, more)
    if not row.stopped:
        runs = row.pairs + more
        return f" (--runs {runs})" if options else f" (runs: {runs})"
    # A comparison of two commands has one row, so its budget is that of the run.
    if row.stopped == "total budget" and not options:
        return f" (a --budget of {_as_option(seconds * SPARE)} more)" if seconds else " (a larger --budget)"
    if seconds is None or row.seconds is None:
        return " (a larger --budget)" if options else " (a larger budget)"
    budget = _as_option(row.seconds + seconds * SPARE)
    return f" (--budget {budget})" if options else f" (budget: {budget})"


def _in_units(seconds: float) -> tuple[float, str, str]:
    size, word, letter = next((unit for unit in (_HOUR, _MINUTE) if seconds > 1.5 * unit[0]), _SECOND)
    return seconds / size, word, letter


def _in_words(seconds: float) -> str:
    number, word, _ = _in_units(seconds)
    count = max(1, round(number))
    return f"{count} {word if count == 1 else f'{word}s'}"


def _as_option(seconds: float) -> str:
    number, _, letter = _in_units(seconds)
    return f"{math.ceil(number)}{letter}"


def by_cpu(row: Benchmark, rows: Iterable[Benchmark]) -> str:
    """Return advice to judge by CPU time if a row is unproven but its CPU time is settled; else ''."""
    settled = (
        other.decision
        for other in rows
        if (other.name, other.step, other.metric) == (row.name, row.step, "cpu")
        and other.decision in ("same", "improved", "regressed")
    )
    decision = next(settled, None) if row.metric in ("time", "uncontended") else None
    return f"its CPU time is settled ({decision}): judge by CPU time (metric: cpu)" if decision else ""
