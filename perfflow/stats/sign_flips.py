"""The sign-flip test: the p-value of a sum if the sign of each term is a fair coin flip.

All assignments of signs are counted. If there are many terms, the terms are first rounded to whole steps. This is an
exact test as well, since rounding does not change signs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import mul
from statistics import NormalDist

ENUMERATED = 14
"""Most pairs for which the assignments are counted without rounding."""
COUNTED = 5000
"""Most pairs for which the assignments are counted, over scores rounded to whole steps. Beyond it the saddlepoint
approximation is used, which is too small with ties (times in whole clock ticks): by a fifth for 200 pairs."""

_NORMAL = NormalDist()
_STEPS = 2048
_STEPS_EACH = 6
"""Steps per pair, if that gives more steps in total."""
WHOLE = 128
"""Most pairs for which numbers of assignments are exact integers."""
_DIGIT, _DROPPED = 8, 2
"""Bytes of a number of assignments for more pairs, and the low bytes that are dropped when it could overflow."""


def sign_flip_p(values: Sequence[float]) -> float:
    """Return the two-sided p-value of ``sum(values)`` if each sign is a fair coin flip, 0 to 1.

    values: finite scores of any unit. Zeros carry no information and are dropped; without other values p is 1.
    """
    kept = [value for value in values if value != 0]
    if not kept:
        return 1.0
    largest = max(map(abs, kept))
    scores = [value / largest for value in kept]
    n = len(scores)
    tail = _enumerated_tail if n <= ENUMERATED else _counted_tail if n <= COUNTED else _saddlepoint_tail
    return min(1.0, 2 * tail(scores))


def _enumerated_tail(scores: Sequence[float]) -> float:
    """Return P(sum of +-scores >= the observed absolute sum), counting every assignment over two halves of the list."""
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
    """Return the same for scores rounded to about ``_STEPS`` steps in total, counting every assignment.

    Rounding changes the weights slightly but not the signs, so this is an exact sign-flip test, also with ties. The
    number of ways to reach each sum is a digit of one long integer; adding a score is a shift and an addition.
    """
    n = len(scores)
    per_unit = math.ceil(max(_STEPS, _STEPS_EACH * n) / math.fsum(map(abs, scores)))
    steps = [round(score * per_unit) for score in scores]
    # Smallest first, so that the integer stays short for longer.
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
    """Return the sum of the digits of ``bits`` bits: the remainder of division by the base minus 1."""
    return number % ((1 << bits) - 1)


def _windowed_tail(sizes: Sequence[int], first: int) -> tuple[float, float]:
    """Return P(sum of a random subset of ``sizes`` >= ``first``) and the largest error by which it may be too large.

    Each size is in the subset by a fair coin flip. ``first`` is at least half of the sum of all sizes.

    Digits have a fixed length. When they could overflow, all are divided by a power of two and rounded down, and digits
    more than seven standard deviations from the middle, 5e-11 of all by Hoeffding's inequality, are dropped.
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
    """Return P(sum of +-scores >= the observed absolute sum) by Lugannani and Rice (1980), K(t) = sum ln cosh(t s)."""
    sizes, observed = [abs(score) for score in scores], abs(math.fsum(scores))
    # For more than 1000 values the smallest p is below the smallest float.
    least = 2.0 ** -min(len(sizes), 1000)
    if observed >= math.fsum(sizes) * (1 - 1e-12):
        return least
    root = _saddlepoint(sizes, observed)
    curvature = math.fsum((size * _sech(root * size)) ** 2 for size in sizes)
    cumulant = math.fsum(_log_cosh(root * size) for size in sizes)
    exponent = root * observed - cumulant
    if exponent < 1e-6:
        # At the centre the formula is 0/0; its limit is the tail of the normal distribution.
        spread = math.sqrt(math.fsum(size * size for size in sizes))
        return 1 - _NORMAL.cdf(observed / spread)
    w = math.sqrt(2 * exponent)
    u = root * math.sqrt(curvature)
    density = math.exp(-exponent) / math.sqrt(2 * math.pi)
    return min(0.5, max(least, 0.5 * math.erfc(w / math.sqrt(2)) + density * (1 / u - 1 / w)))


def _saddlepoint(sizes: Sequence[float], observed: float) -> float:
    """Return the t with K'(t) = observed by Newton's method; K' is concave, so from below it never overshoots."""
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
    # cosh overflows above 710, which is reached if one pair has a much larger weight than another.
    small = math.exp(-abs(x))
    return 2 * small / (1 + small * small)


def _log_cosh(x: float) -> float:
    size = abs(x)
    return size + math.log1p(math.exp(-2 * size)) - math.log(2)
