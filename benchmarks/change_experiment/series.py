"""Simulated histories of a benchmark: shapes of the level, each under eight kinds of noise, and two that change.

Between runs the noise has a standard deviation of 2%; each run reports a standard error of its own, 0.5%.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

POINTS = 200
SPREAD = 0.02
STEP = 0.05
NOISES: Mapping[str, str] = {
    "gauss": "normal",
    "t3": "Student's t with 3 degrees of freedom and the quartiles of the normal noise",
    "ar3": "autoregressive, correlation of neighbours 0.3",
    "ar6": "autoregressive, correlation of neighbours 0.6",
    "nights": "5% of the points have five times the noise, which their standard errors do not show",
    "quant2": "normal, values in steps of 2%",
    "quant5": "normal, values in steps of 5%",
    "sevar": "standard errors of the runs differ: lognormal, median 1%",
}
CHANGING: Mapping[str, str] = {
    "calmer": "normal, 2% up to point 120, 0.5% from there on",
    "louder": "normal, 0.5% up to point 120, 2% from there on",
}
"""Kinds of noise whose size changes once."""
_QUIETER, _TURN = 0.25, 120
_CORRELATION = {"ar3": 0.3, "ar6": 0.6}
_ROUNDED = {"quant2": 0.02, "quant5": 0.05}
_QUARTILES_OF_T3 = 0.882
"""What brings the quartiles of Student's t with 3 degrees of freedom to those of the standard normal."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the level moves. ``changes`` draws the places and sizes of its steps; a drift has none."""

    title: str
    changes: Callable[[random.Random], Sequence[tuple[int, float]]]
    is_drift: bool = False


SHAPES: Mapping[str, Shape] = {
    "quiet": Shape("no change", lambda _: []),
    "step": Shape("one step of 5% at point 40 to 160", lambda chance: [(chance.randint(40, 160), STEP)]),
    "newest": Shape("a step of 5%, 10 points follow", lambda _: [(POINTS - 10, STEP)]),
    "latest": Shape("a step of 5%, 5 points follow", lambda _: [(POINTS - 5, STEP)]),
    "several": Shape("steps of +5%, +5% and -8% at 50, 90 and 140", lambda _: [(50, STEP), (90, STEP), (140, -0.08)]),
    "small": Shape("a step of 2% at point 100", lambda _: [(100, 0.02)]),
    "drift": Shape("0.1% a point over 100 points", lambda _: [], is_drift=True),
    "spike": Shape("5 points 5% higher", lambda _: [(100, STEP), (105, -STEP)]),
    "high spike": Shape("5 points 20% higher", lambda _: [(100, 0.2), (105, -0.2)]),
}


@dataclass(frozen=True, slots=True)
class History:
    """Logarithms of the values, their standard errors, and the first points after the true steps."""

    values: list[float]
    errors: list[float]
    steps: list[int]


def history(shape: str, noise: str, seed: int, points: int = POINTS) -> History:
    """Return the series with this seed, always the same one."""
    chance = random.Random(f"{shape} {noise} {seed}")
    steps = SHAPES[shape].changes(chance)
    median = 0.01 if noise == "sevar" else 0.005
    errors = [median * (math.exp(chance.gauss(0, 0.8)) if noise == "sevar" else 1) for _ in range(points)]
    between = _between(noise, chance, points)
    values = []
    for index in range(points):
        level = sum(size for at, size in steps if index >= at)
        if SHAPES[shape].is_drift:
            level += 0.001 * min(max(index - 50, 0), 100)
        values.append(level + SPREAD * between[index] + errors[index] * chance.gauss(0, 1))
    if grain := _ROUNDED.get(noise):
        values = [round(value / grain) * grain for value in values]
    return History(values, errors, [at for at, _ in steps])


def _between(noise: str, chance: random.Random, points: int) -> list[float]:
    """The noise between runs, in units of its standard deviation."""
    drawn = [chance.gauss(0, 1) for _ in range(points)]
    if noise == "t3":
        return [_QUARTILES_OF_T3 * one / math.sqrt(chance.gammavariate(1.5, 2) / 3) for one in drawn]
    if noise == "nights":
        return [one * (5 if chance.random() < 0.05 else 1) for one in drawn]
    if noise in CHANGING:
        return [one * (_QUIETER if (at >= _TURN) == (noise == "calmer") else 1) for at, one in enumerate(drawn)]
    rho = _CORRELATION.get(noise, 0.0)
    found = [drawn[0]]
    for one in drawn[1:]:
        found.append(rho * found[-1] + math.sqrt(1 - rho * rho) * one)
    return found
