"""Estimate how much more measuring would settle a row, and the option that allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from perfflow.model.design import SCHEDULES, Design
from perfflow.model.result import Benchmark
from perfflow.model.result_samples import Bounds
from perfflow.model.units import format_change, format_interval

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
    told = f"{', '.join(names[:MOST_NAMED])}{more}"
    if stopped == "last look":
        return f"all pairs were taken, and more time will not settle them; use {_instead(*rows)}: {told}"
    cause = CAUSES.get(stopped, "too few pairs" if not stopped else "more pairs will not settle them")
    known = [seconds for row in rows if (seconds := seconds_to_settle(row)) is not None]
    if not known:
        return f"{cause}: {told}"
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
    return f"{cause}; {about} {_in_words(total)} more would settle them{grant}: {told}"


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
