"""Pictures as inline SVG: there without JavaScript, on paper, and in the colours of the page's theme.

Lengths are in units of the picture's own view box, which the page scales. Colours are classes of ``page.css``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

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
    return Markup('<path class="{}" d="M{} {}L{} {}"/>').format(kind, *map(_number, (x1, y1, x2, y2)))


def path(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    """A line through points."""
    return Markup('<path class="{}" d="M{}"/>').format(
        kind, Markup("L").join(f"{_number(x)} {_number(y)}" for x, y in points)
    )


def rectangle(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """A rectangle."""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, *map(_number, (x, y, width, height))
    )


def dot(kind: str, x: float, y: float, radius: float = 3) -> Markup:
    """A disc."""
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(kind, *map(_number, (x, y, radius)))


def triangle(kind: str, x: float, y: float, size: float = 3.4) -> Markup:
    """A triangle, to be told from a disc without its colour."""
    left, right, foot = x - size, x + size, y + size * 0.8
    return Markup('<path class="{}" d="M{} {}L{} {}L{} {}Z"/>').format(
        kind, *map(_number, (x, y - size, left, foot, right, foot))
    )


def text(x: float, y: float, words: str, kind: str = "") -> Markup:
    """Words at a point, by the class's alignment."""
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, _number(x), _number(y), words)


def _number(value: float) -> str:
    """A length with a decimal at most, so that the same data give the same bytes."""
    return (
        f"{value:.1f}".removesuffix(".0").replace("-0", "0") if abs(value) < 0.05 else f"{value:.1f}".removesuffix(".0")
    )
