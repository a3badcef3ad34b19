"""A calibration as a table for a terminal: one block a benchmark, one line a metric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from perfflow.report.plain import ascii_text, cells, fitted, padded, shortened, visible, wrapped
from perfflow.report.rows import NOTHING
from perfflow.rundir.calibration import Finding
from perfflow.units import Dimension, format_quantity
from perfflow.verdict.expectation import percent

_HEAD = ("metric", "noise", "tells", "within", "alarms", "same", "takes", "pairs")
_DROPPED = ("pairs", "takes", "same", "within")
"""Columns that a narrow terminal goes without, the first one first."""
_LEGEND = (
    "noise: spread between the two runs of a pair. tells: the smallest change found in 9 of 10 replays of these pairs "
    "with what the step's budget affords, within that time. alarms: comparisons of the step with itself that proved a "
    "change, and the share this allows at most (95%). same, takes, pairs: how often `same` was proven, and what the "
    "median comparison took. * the verdict rests on it."
)
_PROSE = 100
"""Columns of the legend where the lines have no edge."""
Line = tuple[str, ...]


def render(findings: Sequence[Finding], *, width: int, unicode: bool) -> str:
    """Return the table with its legend, no line wider than ``width``; '' where nothing was found."""

    def plain(text: str) -> str:
        return visible(text) if unicode else ascii_text(visible(text))

    if not findings:
        return ""
    noisy = [tuple(plain(cell) for cell in _cells(item)) for item in findings if not item.exact]
    columns = _columns([_HEAD, *noisy], width)
    lines = [_line(_HEAD, columns)] if noisy else []
    rows = iter(noisy)
    name = ""
    for item in findings:
        if item.benchmark != name:
            name = item.benchmark
            lines.append(plain(shortened(name, width)))
        lines.append(plain(_exact(item)) if item.exact else _line(next(rows), columns))
        for said in () if item.exact else _remarks(item):
            lines += wrapped(f"    {plain(said)}", width, "    ")
    if noisy:
        lines += ["", *wrapped(_LEGEND, min(width, _PROSE))]
    return "\n".join(fitted(line, width, "…" if unicode else "...") for line in lines) + "\n"


def _remarks(item: Finding) -> Iterator[str]:
    if item.judged and item.why:
        yield f"judged by {item.metric}: {item.why}"
    if item.judged and not item.trials:
        yield "no comparison came to its end in the time given"


def _exact(item: Finding) -> str:
    return f"  {item.metric or 'all metrics'}: exact, needs no calibration"


def _cells(item: Finding) -> Iterator[str]:
    yield f"{'*' if item.judged else ' '} {item.metric}"
    yield NOTHING if item.noise is None else f"±{percent(math.expm1(item.noise))}"
    yield NOTHING if item.smallest_change is None else percent(item.smallest_change)
    yield _time(item.within)
    bound = f" ≤{percent(item.alarm_bound)}" if item.alarm_bound is not None else ""
    yield f"{item.alarms}/{item.trials}{bound}" if item.trials else NOTHING
    yield f"{item.same}/{item.trials}" if item.trials else NOTHING
    yield _time(item.seconds)
    yield NOTHING if item.pairs is None else f"{item.pairs:g}"


def _time(seconds: float | None) -> str:
    return NOTHING if seconds is None else format_quantity(seconds, Dimension.TIME)


def _columns(rows: Sequence[Line], width: int) -> list[tuple[int, int]]:
    """(index, width) of the columns that fit."""
    widths = [max(cells(cell) for cell in column) for column in zip(*rows, strict=True)]
    chosen = list(range(len(_HEAD)))
    for name in _DROPPED:
        if sum(widths[index] + 2 for index in chosen) <= width:
            break
        chosen.remove(_HEAD.index(name))
    return [(index, widths[index]) for index in chosen]


def _line(row: Line, columns: Sequence[tuple[int, int]]) -> str:
    first, *others = columns
    shown = [padded(row[first[0]], first[1]), *(padded(row[index], width) for index, width in others)]
    return "  ".join(shown).rstrip()
