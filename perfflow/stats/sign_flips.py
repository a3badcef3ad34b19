"""The sign-flip test: how likely a sum is when the sign of each of its terms is a fair coin.

All assignments of signs are counted: as they are where they are few, else over terms rounded to whole steps, which is
itself an exact test, since rounding leaves the signs alone.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import mul
from statistics import NormalDist

ENUMERATED = 14
"""Up to this many pairs every sign assignment is counted as it is."""
COUNTED = 5000
"""Up to this many pairs the assignments are counted over scores rounded to whole steps; beyond it the saddlepoint
approximation is used, which with ties (times in whole clock ticks) is too small: by a fifth for 200 pairs."""

_NORMAL = NormalDist()
_STEPS = 2048
_STEPS_EACH = 6
"""Steps for each pair, where that makes more of them in all."""
WHOLE = 128
"""Up to this many pairs a number of assignments is kept to its last digit."""
_DIGIT, _DROPPED = 8, 2
"""Bytes of a number of assignments beyond that, and those of them that are dropped whenever it could overflow."""


def sign_flip_p(values: Sequence[float], counted: int = COUNTED) -> float:
    """Two-sided p of ``sum(values)`` when each sign is a fair coin. Zeros carry no information; no values give 1.

    ``counted``: up to this many values the assignments are counted.
    """
    kept = [value for value in values if value != 0]
    if not kept:
        return 1.0
    largest = max(map(abs, kept))
    scores = [value / largest for value in kept]
    n = len(scores)
    tail = _enumerated_tail if n <= ENUMERATED else _counted_tail if n <= counted else _saddlepoint_tail
    return min(1.0, 2 * tail(scores))


def _enumerated_tail(scores: Sequence[float]) -> float:
    """P(sum of +-scores >= the observed size), every assignment counted by splitting the list in two halves."""
    observed = abs(math.fsum(scores)) - 1e-12 * (math.fsum(map(abs, scores)) + 1)
    half = len(scores) // 2
    left, right = _signed_sums(scores[:half]), sorted(_signed_sums(scores[half:]))
    count = sum(len(right) - bisect_left(right, observed - value) for value in left)
    return float(count / 2 ** len(scores))


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [total + size for total in sums] + [total - size for total in sums]
    return sums


def _counted_tail(scores: Sequence[float]) -> float:
    """The same with the scores rounded to about ``_STEPS`` steps in all, every assignment counted.

    Rounding moves the weights a little and leaves the signs alone, so this is itself an exact sign-flip test, ties
    included. The number of ways to each sum is a digit of one long integer, and adding a score is a shift and a sum.
    """
    n = len(scores)
    per_unit = math.ceil(max(_STEPS, _STEPS_EACH * n) / math.fsum(map(abs, scores)))
    steps = [round(score * per_unit) for score in scores]
    # The smallest first: the integer stays short for longer.
    sizes = sorted(map(abs, steps))
    first = (abs(sum(steps)) + sum(sizes)) // 2
    if n > WHOLE:
        tail, error = _windowed_tail(sizes, first)
        return tail if tail > 100 * error else _saddlepoint_tail(scores)
    bits = n + 1
    ways = 1
    for size in sizes:
        ways += ways << size * bits
    return math.ldexp(_sum_of_digits(ways >> first * bits, bits), -n)


def _sum_of_digits(number: int, bits: int) -> int:
    """Dividing by the base less one leaves it, as casting out nines does."""
    return number % ((1 << bits) - 1)


def _windowed_tail(sizes: Sequence[int], first: int) -> tuple[float, float]:
    """P(sum of some of ``sizes`` >= ``first``), each being in or out by a fair coin, and by how much it may be less.

    ``first`` is half of all sizes or more.

    Digits of a fixed length: where they could overflow, all are divided by a power of two and rounded down, and those
    further from the middle than seven standard deviations, 5e-11 of all by Hoeffding's inequality, are dropped.
    """
    bits, dropped = 8 * _DIGIT, 8 * _DROPPED
    ways, doubled, lost, lowest = 1, 0, 0, 0
    middle = squares = 0.0
    for size in sizes:
        if doubled == bits - 1:
            reach = 3.5 * math.sqrt(squares)
            low, high = max(lowest, math.floor(middle - reach)), math.ceil(middle + reach) + 1
            kept = (b"\xff" * (_DIGIT - _DROPPED) + bytes(_DROPPED)) * (high - low)
            ways = ways >> (low - lowest) * bits + dropped & int.from_bytes(kept, "little")
            doubled -= dropped
            lost = (lost >> dropped) + (high - low) + (1 << doubled - 34)
            lowest = low
        ways += ways << size * bits
        doubled, lost = doubled + 1, 2 * lost
        middle, squares = middle + size / 2, squares + size * size
    count = _sum_of_digits(ways >> (first - lowest) * bits, bits)
    return math.ldexp(count + lost, -doubled), math.ldexp(lost, -doubled)


def _saddlepoint_tail(scores: Sequence[float]) -> float:
    """P(sum of +-scores >= the observed size) by Lugannani and Rice (1980), K(t) = sum ln cosh(t s)."""
    sizes, observed = [abs(score) for score in scores], abs(math.fsum(scores))
    # Beyond a thousand values it is smaller than any float.
    least = 2.0 ** -min(len(sizes), 1000)
    if observed >= math.fsum(sizes) * (1 - 1e-12):
        return least
    root = _saddlepoint(sizes, observed)
    curvature = math.fsum((size * _sech(root * size)) ** 2 for size in sizes)
    cumulant = math.fsum(_log_cosh(root * size) for size in sizes)
    exponent = root * observed - cumulant
    if exponent < 1e-6:
        # At the centre the formula is 0/0; the plain normal tail is its limit there.
        spread = math.sqrt(math.fsum(size * size for size in sizes))
        return 1 - _NORMAL.cdf(observed / spread)
    w = math.sqrt(2 * exponent)
    u = root * math.sqrt(curvature)
    density = math.exp(-exponent) / math.sqrt(2 * math.pi)
    return min(0.5, max(least, 0.5 * math.erfc(w / math.sqrt(2)) + density * (1 / u - 1 / w)))


def _saddlepoint(sizes: Sequence[float], observed: float) -> float:
    """The t with K'(t) = observed, by Newton's method: K' is concave, so from below it never steps beyond."""
    root = 0.0
    for _ in range(200):
        slopes = [math.tanh(root * size) for size in sizes]
        missing = observed - math.fsum(map(mul, sizes, slopes))
        curvature = math.fsum((size * _sech(root * size)) ** 2 for size in sizes)
        if missing <= 1e-12 * observed:
            break
        root += missing / curvature
    return root


def _sech(x: float) -> float:
    # cosh itself overflows from 711 on, which one pair far heavier than another reaches.
    small = math.exp(-abs(x))
    return 2 * small / (1 + small * small)


def _log_cosh(x: float) -> float:
    size = abs(x)
    return size + math.log1p(math.exp(-2 * size)) - math.log(2)
