"""Estimate how much more measuring would settle a row, and the option that allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from perfflow.model.design import SCHEDULES, Design
from perfflow.model.result import Benchmark
from perfflow.model.units import format_change

_PLAUSIBLE = 3600.0
"""Seconds. A longer time for one benchmark is not worth proposing as a budget."""
_SPARE = 1.25
"""Factor on the estimate, because the interval of a later interim analysis is a little wider."""
_INSTEAD = "a quieter machine, metric: cpu or more work in each run"
_SECOND, _MINUTE, _HOUR = (1.0, "second", "s"), (60.0, "minute", "m"), (3600.0, "hour", "h")


def not_settled(row: Benchmark) -> str:
    """Return the number of pairs and the interval of an unproven row, as text."""
    after = f"not settled after {row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    change = row.change
    if change is None or change.low is None or change.high is None:
        return f"{after}, too few to tell"
    return f"{after}: the change is between {format_change(change.low)} and {format_change(change.high)}"


def remaining(row: Benchmark, *, options: bool = False) -> str:
    """Return what would settle an unproven row, as text; '' if more of the same measurements would not.

    ``options``: name command-line options instead of keys of the step.
    """
    if row.stopped == "settled":
        return ""
    if not row.more:
        return _first_look(row, options=options)
    if row.stopped == "last look":
        return f"more time will not settle it; use {_INSTEAD}"
    seconds = _seconds(row, row.more)
    if seconds is not None and seconds > _PLAUSIBLE:
        return f"about {_in_words(seconds)} more would settle it; {_INSTEAD} would need less time"
    much = _pairs(row, row.more) if seconds is None else f"{_in_words(seconds)} more"
    return f"about {much} would settle it{_grant(row, row.more, options=options)}"


def _first_look(row: Benchmark, *, options: bool) -> str:
    """Return what a row needs whose measuring ended before its first interim analysis; '' for other rows."""
    looks = SCHEDULES.get(row.design, ())
    unknown = row.change is None or row.change.low is None or row.change.high is None
    missing = looks[0][0] - row.pairs if looks else 0
    if not (unknown and row.stopped and row.pairs and missing > 0):
        return ""
    return f"at least {_pairs(row, missing)} needed{_grant(row, missing, options=options)}"


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
        return f" (a --budget of {_as_option(seconds * _SPARE)} more)" if seconds else " (a larger --budget)"
    if seconds is None or row.seconds is None:
        return " (a larger --budget)" if options else " (a larger budget)"
    budget = _as_option(row.seconds + seconds * _SPARE)
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
