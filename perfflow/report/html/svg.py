"""Pictures as inline SVG: there without JavaScript, on paper, and in the colours of the page's theme.

Lengths are in units of the picture's own view box, which the page scales. Colours are classes of ``page.css``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from perfflow.model.later import dataclass
from perfflow.report.sanitize import visible


@dataclass(frozen=True)
class Scale:
    """From values ``low`` .. ``high`` to lengths ``start`` .. ``end``; what lies outside is cut to the end."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The length of a value."""
        low, high, at = (self.low, self.high, value)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(value, math.ulp(0.0)))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def each(self, values: Iterable[float]) -> list[float]:
        """The lengths of many values within a scale that is not logarithmic."""
        low, span, start, length = self.low, self.high - self.low, self.start, self.end - self.start
        if span <= 0:
            return [start + 0.5 * length for _ in values]
        return [start + (value - low) / span * length for value in values]


_SCROLLING = Markup('<div class="scroll" tabindex="0" role="group" aria-label="picture">{}</div>')


def picture(width: float, height: float, label: str, parts: Iterable[Markup], *, kind: str = "chart") -> Markup:
    """A picture with a text that says the same; without ``label`` it stands beside its figures and says nothing new.

    One with a text scrolls by itself where it is wider than the page.
    """
    spoken = Markup('role="img" aria-label="{}"').format(visible(label)) if label else Markup('aria-hidden="true"')
    drawn = Markup('<svg class="{}" viewBox="0 0 {} {}" {}>{}</svg>').format(
        kind, _number(width), _number(height), spoken, Markup("").join(parts)
    )
    return _SCROLLING.format(drawn) if label else drawn


def line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    """A straight line."""
    left, top, right, bottom = map(_number, (x1, y1, x2, y2))
    end = f"V{bottom}" if left == right else f"H{right}" if top == bottom else f"L{right} {bottom}"
    return _element(f'<path class="{kind}" d="M{left} {top}{end}"/>')


def path(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    """A line through points."""
    return _element(f'<path class="{kind}" d="M{"L".join([f"{_number(x)} {_number(y)}" for x, y in points])}"/>')


def strokes(kind: str, ends: Iterable[tuple[float, float, float]]) -> Markup:
    """Upright lines, each as x, y, y, in one element: a picture may have hundreds."""
    return _element(f'<path class="{kind}" d="{"".join([f"M{x:.4g} {y1:.4g}V{y2:.4g}" for x, y1, y2 in ends])}"/>')


def dots(kind: str, points: Iterable[tuple[float, float]]) -> Markup:
    """Discs in one element: lines of next to no length, whose class gives them round ends and their width."""
    return _element(f'<path class="{kind}" d="{"".join([f"M{x:.4g} {y:.4g}h.01" for x, y in points])}"/>')


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """A rectangle."""
    size = f'width="{_number(width)}" height="{_number(height)}"'
    return _element(f'<rect class="{kind}" x="{_number(x)}" y="{_number(y)}" {size}/>')


def dot(kind: str, x: float, y: float, radius: float = 3) -> Markup:
    """A disc."""
    return _element(f'<circle class="{kind}" cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"/>')


def triangle(kind: str, x: float, y: float, size: float = 3.4) -> Markup:
    """A triangle, to be told from a disc without its colour."""
    left, right, top, foot = map(_number, (x - size, x + size, y - size, y + size * 0.8))
    return _element(f'<path class="{kind}" d="M{_number(x)} {top}L{left} {foot}L{right} {foot}Z"/>')


def text(x: float, y: float, words: str, kind: str = "") -> Markup:
    """Words at a point, by the class's alignment."""
    return _element(f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}">{escape(words)}</text>')


def _element(text: str) -> Markup:
    """An element as it stands: its class is a word of perfflow's own, the rest are numbers and escaped words."""
    return Markup(text)  # noqa: S704


def _number(value: float) -> str:
    """A length with a decimal at most, so that the same data give the same bytes."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")
    )
