"""Pictures as inline SVG, which work without JavaScript, on paper, and in the colours of the page's theme.

Lengths are in units of the picture's view box, which the page scales. Colours are classes of ``page.css``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from perfflow.report.sanitize import visible


@dataclass(frozen=True)
class Scale:
    """Maps values ``low`` .. ``high`` to lengths ``start`` .. ``end``; values outside are clamped."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the length of a value."""
        low, high, at = (self.low, self.high, value)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(value, math.ulp(0.0)))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def each(self, values: Iterable[float]) -> list[float]:
        """Return the lengths of many values, on a scale that is not logarithmic and without clamping."""
        low, span, start, length = self.low, self.high - self.low, self.start, self.end - self.start
        if span <= 0:
            return [start + 0.5 * length for _ in values]
        return [start + (value - low) / span * length for value in values]


ACROSS = 1000.0
"""Width of a stretched picture in its own units, however wide the page is."""
_SCROLLING = Markup('<div class="scroll" tabindex="0" role="group" aria-label="picture">{}</div>')


def picture(width: float, height: float, label: str, parts: Iterable[Markup], *, kind: str = "chart") -> Markup:
    """Return a picture with an alternative text. Without ``label`` it is hidden from screen readers.

    A picture with a label scrolls if it is wider than the page.
    """
    spoken = Markup('role="img" aria-label="{}"').format(visible(label)) if label else Markup('aria-hidden="true"')
    drawn = Markup('<svg class="{}" viewBox="0 0 {} {}" {}>{}</svg>').format(
        kind, _number(width), _number(height), spoken, Markup("").join(parts)
    )
    return _SCROLLING.format(drawn) if label else drawn


def stretched(height: float, parts: Iterable[Markup], kind: str) -> Markup:
    """Return a picture of lines that is as wide as the page lets it, `ACROSS` units; lengths downwards are pixels."""
    return Markup(
        '<svg class="{}" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">{}</svg>'
    ).format(kind, _number(height), _number(ACROSS), _number(height), Markup("").join(parts))


def wide(height: float, label: str, words: Iterable[Markup], plots: Iterable[Markup]) -> Markup:
    """Return a picture as wide as the page: ``words`` at pixels or shares of it, and ``plots``, which are stretched."""
    labels = Markup('<svg class="labels" height="{}" aria-hidden="true">{}</svg>').format(
        _number(height), Markup("").join(words)
    )
    return _SCROLLING.format(
        Markup('<div class="wide" role="img" aria-label="{}">{}</div>').format(
            visible(label), Markup("").join([labels, *plots])
        )
    )


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """Return a straight line."""
    left, top, right, bottom = map(_number, (x1, y1, x2, y2))
    end = f"V{bottom}" if left == right else f"H{right}" if top == bottom else f"L{right} {bottom}"
    return _element(f'<path class="{kind}" d="M{left} {top}{end}"/>')


def path(kind: str, points: Sequence[tuple[float, float]], tips: Iterable[str] = ()) -> Markup:
    """Return a line through points, with a tip for each of them or none."""
    drawn = "L".join([f"{_number(x)} {_number(y)}" for x, y in points])
    return _element(f'<path class="{kind}" d="M{drawn}"{_tips(tips)}/>')


def rules(kind: str, heights: Iterable[float]) -> Markup:
    """Return lines across a stretched picture, in one element."""
    return _element(f'<path class="{kind}" d="{"".join([f"M0 {_number(y)}H{ACROSS:g}" for y in heights])}"/>')


def strokes(kind: str, ends: Iterable[tuple[float, float, float]]) -> Markup:
    """Return vertical lines, each given as x, y, y, in one element, since a picture may have hundreds."""
    return _element(f'<path class="{kind}" d="{"".join([f"M{x:.4g} {y1:.4g}V{y2:.4g}" for x, y1, y2 in ends])}"/>')


def dots(kind: str, points: Iterable[tuple[float, float]], tips: Iterable[str] = ()) -> Markup:
    """Return points in one element: very short lines, whose class gives them ends and a width, even if stretched.

    ``tips``: what the page shows at each point if a pointer or the keyboard reaches it.
    """
    return _element(f'<path class="{kind}" d="{"".join([f"M{x:.4g} {y:.4g}h.01" for x, y in points])}"{_tips(tips)}/>')


def _tips(tips: Iterable[str]) -> str:
    told = escape("\n".join(map(visible, tips)))
    return f' data-tips="{told}"' if told else ""


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """Return a rectangle."""
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return _element(f'<rect class="{kind}" x="{_number(x)}" y="{_number(y)}" {size}/>')


def dot(kind: str, x: float, y: float, radius: float = 3, tip: str = "") -> Markup:
    """Return a disc."""
    place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
    return _element(f'<circle class="{kind}" {place}{_tips([tip])}/>')


def square(kind: str, x: float, y: float, size: float = 3, tip: str = "") -> Markup:
    """Return a square, which differs from a disc even without colours."""
    half, whole = _number(size), _number(2 * size)
    path = f"M{_number(x)} {_number(y - size)}h{half}v{whole}h-{whole}v-{whole}Z"
    return _element(f'<path class="{kind}" d="{path}"{_tips([tip])}/>')


def text(x: float | str, y: float, words: str, kind: str = "") -> Markup:
    """Return words at a point, aligned by their class. ``x`` may be a share of the picture, such as ``50%``."""
    place = x if isinstance(x, str) else _number(x)
    return _element(f'<text class="{kind}" x="{place}" y="{_number(y)}">{escape(words)}</text>')


def _element(text: str) -> Markup:
    """Return an element as markup: its class is perfflow's own, the rest are numbers and escaped words."""
    return Markup(text)  # noqa: S704


def _number(value: float) -> str:
    """Return a length with at most one decimal, so that equal data give equal bytes."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")
    )
