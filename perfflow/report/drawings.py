"""Bars and distributions drawn with characters, for terminals, logs and Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.report.table import Bar, Density

_NONE, _BOUND, _CROSSED = "│", "┊", "┿"
_FIRST, _LINE, _LAST, _POINT = "├", "━", "┤", "●"
_BEFORE, _BEYOND = "◂", "▸"
_HEIGHTS = "▁▂▃▄▅▆▇█"
LETTERS = 21
"""Width of a drawing in a Markdown cell."""
BLANK = "·"
"""Background of a drawing in Markdown, whose renderers may drop blanks."""


def drawn(picture: Bar | Density, width: int, blank: str = " ") -> str:
    """Return the picture as ``width`` characters of one column each."""
    return _bar(picture, width, blank) if isinstance(picture, Bar) else _density(picture, width, blank)


def _bar(bar: Bar, width: int, blank: str) -> str:
    """Return ``├━●━┤`` with ``┊`` at bounds and ``│`` at no change, and an arrow if the interval leaves the axis.

    A bound outside of the interval is drawn outside of it, however close it is.
    """
    letters = [blank] * width
    low, high = _cell(bar.low, width), _cell(bar.high, width)
    for letter, places in ((_NONE, () if bar.none is None else (bar.none,)), (_BOUND, bar.bounds)):
        for place in places:
            cell = _cell(place, width)
            cell = max(cell, high + 1) if place > bar.high else min(cell, low - 1) if place < bar.low else cell
            if 0 <= cell < width:
                letters[cell] = letter
    for cell in range(low, high + 1):
        letters[cell] = _LINE if letters[cell] == blank else _CROSSED
    if low < high:
        letters[low], letters[high] = _FIRST, _LAST
    if bar.point is not None:
        letters[min(max(_cell(bar.point, width), low), high)] = _POINT
    if bar.low < 0:
        letters[low] = _BEFORE
    if bar.high > 1:
        letters[high] = _BEYOND
    return "".join(letters)


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the values as heights of characters, the newest last. If there are too many, a character shows a mean.

    The heights go from the lowest to the highest value, so they do not show how large the differences are.
    """
    groups = [
        values[len(values) * at // width : len(values) * (at + 1) // width] for at in range(min(width, len(values)))
    ]
    if len(values) <= width:
        groups = [[item] for item in values]
    means = [sum(group) / len(group) for group in groups]
    low, high = min(means), max(means)
    if low == high:
        return _HEIGHTS[len(_HEIGHTS) // 2] * len(means)
    return "".join(_HEIGHTS[round((mean - low) / (high - low) * (len(_HEIGHTS) - 1))] for mean in means)


def _cell(place: float, width: int) -> int:
    return round(min(1.0, max(0.0, place)) * (width - 1))


def _density(density: Density, width: int, blank: str) -> str:
    """Return the density of the values as heights of characters. Even a single value is visible."""
    counts = [0] * width
    for place in density.places:
        counts[min(width - 1, int(place * width))] += 1
    most = max(counts)
    return "".join(_HEIGHTS[-(-count * len(_HEIGHTS) // most) - 1] if count else blank for count in counts)
