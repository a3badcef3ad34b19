"""Statistics on floats: the paired sign-flip test, permutation tests, confidence intervals and order statistics.

Let d_i = ln(candidate / baseline) of pair i, whose order was a coin flip. If the candidate is e^theta times the
baseline, the signs of ``d_i - theta`` are fair coin flips for any noise. So the sign-flip test is exact under drift,
bursts, autocorrelation and outliers. Each pair is weighted by the distance of its slower run from the best time; the
weight is symmetric in both sides, so the test stays exact.

``sign_flip_p`` is the p-value of a sum if the sign of each term is a fair coin flip. All assignments of signs are
counted. If there are many terms, the terms are first rounded to whole steps. This is an exact test as well, since
rounding does not change signs.

The last parts are the numbers of runs of the experimental designs, shared by sampling and analysis (``blocks_of``), and
smoothing, which estimates the level of a series at each point from the neighbouring values (``levels``).

numpy and scipy are not used, because start-up time matters and samples are small. The tests compare with scipy and full
enumeration.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations
from operator import mul
from statistics import NormalDist

ENUMERATED = 14
"""Most pairs for which the assignments are counted without rounding."""
COUNTED = 5000
"""Most pairs for which the assignments are counted, over scores rounded to whole steps. Beyond it the saddlepoint
approximation is used, which is too small with ties (times in whole clock ticks): by a fifth for 200 pairs."""
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


_NORMAL = NormalDist()
_WEIGHT_FLOOR = 0.005


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence bounds; ``low`` or ``high`` is infinite if the data cannot bound that side."""

    estimate: float
    low: float
    high: float


def quantile(values: Sequence[float], q: float) -> float:
    """Return the ``q`` quantile of at least one value by linear interpolation; 0 <= q <= 1.

    Source: Hyndman and Fan 1996, type 7.
    """
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    # Equal neighbours are returned exactly, also infinities and subnormals.
    return low if low == high else low + (position - below) * (high - low)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Logarithms of n positive pairs and their log ratios, computed once for all steps of an inversion."""

    baseline: list[float]
    candidate: list[float]
    ratios: list[float]

    @classmethod
    def of(cls, baseline: Sequence[float], candidate: Sequence[float]) -> Pairs:
        """Create it from n pairs. Raises ValueError if lengths differ or a value is not positive."""
        ratios = [_log_ratio(a, b) for a, b in zip(baseline, candidate, strict=True)]
        return cls(list(map(math.log, baseline)), list(map(math.log, candidate)), ratios)

    def weights(self, theta: float) -> list[float]:
        """Return n weights with the candidate scaled by ``e^-theta``; they are symmetric in the two sides."""
        candidate = [value - theta for value in self.candidate]
        slower = list(map(max, self.baseline, candidate))
        best = min(*self.baseline, *candidate)
        softening = max(_WEIGHT_FLOOR, quantile(slower, 0.25) - best)
        return [(value - best + softening) ** -2 for value in slower]

    def p(self, theta: float) -> float:
        """Return the two-sided p-value of "candidate = baseline times e^theta"."""
        return sign_flip_p(self._scores(self.weights(theta), theta))

    def _scores(self, weights: Sequence[float], theta: float) -> list[float]:
        return list(map(mul, weights, (ratio - theta for ratio in self.ratios)))

    def estimate(self) -> float:
        """Return the weighted mean of the log ratios, with the weights at the estimate itself (a fixed point)."""
        theta = quantile(self.ratios, 0.5)
        for _ in range(20):
            weights = self.weights(theta)
            better = math.fsum(map(mul, weights, self.ratios)) / math.fsum(weights)
            if abs(better - theta) < 1e-9:
                break
            theta = better
        return theta

    def standard_error(self, theta: float) -> float:
        """Return the standard error of the weighted mean (normal approximation), to start the search for bounds."""
        weights = self.weights(theta)
        return math.hypot(*self._scores(weights, theta)) / math.fsum(weights)


def _bisect(inside: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-9) -> float:
    """Return the point between ``low`` (where ``inside`` is false) and ``high`` (where it is true) where it changes."""
    for _ in range(60):
        middle = (low + high) / 2
        if inside(middle):
            high = middle
        else:
            low = middle
        if high - low <= tolerance * max(1.0, abs(high)):
            break
    return high


def _log_ratio(baseline: float, candidate: float) -> float:
    """Return ln(candidate / baseline), also if the quotient overflows or underflows."""
    ratio = candidate / baseline
    return math.log(ratio) if 0 < ratio < math.inf else math.log(candidate) - math.log(baseline)


def paired_p(baseline: Sequence[float], candidate: Sequence[float], theta: float = 0.0) -> float:
    """Return the two-sided p-value of "candidate = baseline times e^theta" by the sign-flip test.

    baseline, candidate: n positive values of the same unit, pair by pair; a coin flip decided the order of each pair.
    theta: log ratio under the null hypothesis. Raises ValueError if lengths differ or a value is not positive.
    """
    return Pairs.of(baseline, candidate).p(theta)


def paired_interval(baseline: Sequence[float], candidate: Sequence[float], confidence: float) -> Interval:
    """Return the interval of ln(candidate / baseline): all theta that the sign-flip test does not reject.

    baseline, candidate: n positive values of the same unit, pair by pair; a coin flip decided the order of each pair.
    confidence: 0 < confidence < 1. Both bounds are infinite if n pairs cannot reject: 2^(1 - n) > 1 - confidence.
    Raises ValueError if lengths differ or a value is not positive.
    """
    alpha = 1 - confidence
    pairs = Pairs.of(baseline, candidate)
    estimate = pairs.estimate()
    if 2.0 ** (1 - len(baseline)) > alpha:
        return Interval(estimate, -math.inf, math.inf)
    # For more than WHOLE pairs scores are rounded more coarsely, so the bounds are less precise.
    precision = _ROUNDED_PRECISION if WHOLE < len(baseline) <= COUNTED else _EDGE_PRECISION
    return _inverted(estimate, pairs.p, alpha, pairs.standard_error(estimate), precision)


_FIRST_REACH = 1e-3
_LAST_REACH = 2000.0
_EDGE_PRECISION, _ROUNDED_PRECISION = 2e-3, 6e-3
_RESOLUTION = 1e-7


def _inverted(
    estimate: float, p: Callable[[float], float], alpha: float, spread: float, precision: float = _EDGE_PRECISION
) -> Interval:
    """Return all theta around ``estimate`` with p(theta) > ``alpha``.

    spread: rough standard error of the estimate; a wrong one only costs time. precision: relative precision of the
    half-widths.
    """
    first = max(spread * _NORMAL.inv_cdf(1 - alpha / 2), _RESOLUTION) if spread > 0 else _FIRST_REACH

    def edge(direction: int) -> float:
        return estimate + direction * _edge(
            lambda distance: p(estimate + direction * distance), alpha, first, precision
        )

    return Interval(estimate, edge(-1), edge(+1))


def _edge(p: Callable[[float], float], alpha: float, first: float, precision: float) -> float:
    """Return the smallest distance at which p <= ``alpha``, or infinity.

    sqrt(-ln p) grows about linearly with the distance, as for a normal distribution, so interpolation needs five to
    ten evaluations on average, and bisection fourteen. p may have steps, so every third evaluation halves the bracket.
    """
    goal = math.sqrt(-math.log(alpha))
    inside, inside_height, outside, outside_height = 0.0, 0.0, math.inf, math.inf
    distance = first
    for number in range(1, 200):
        p_value = p(distance)
        height = math.sqrt(-math.log(p_value)) if p_value < 1 else 0.0
        if p_value <= alpha:
            outside, outside_height = distance, height
        else:
            inside, inside_height = distance, height
        if outside == math.inf:
            distance *= min(8.0, max(1.02, 1.01 * goal / height)) if height > 0 else 8.0
            if distance > _LAST_REACH:
                break
            continue
        if outside - inside <= precision * outside or outside <= _RESOLUTION:
            break
        width = outside - inside
        aim = inside + width * (goal - inside_height) / (outside_height - inside_height)
        # Aim just beyond the bound, on the side that closes the bracket.
        aim += 0.4 * precision * outside * (1 if distance == inside else -1)
        halved = number % 3 == 0 or not inside < aim < outside
        distance = (inside + outside) / 2 if halved else aim
    return outside


def permutation_p(
    baseline: Sequence[float], candidate: Sequence[float], theta: float = 0.0, blocks: Sequence[int] = ()
) -> float:
    """Return the two-sided p-value of "candidate = baseline times e^theta" by a permutation test of the mean logs.

    baseline, candidate: n positive values each, from runs in completely random order. All C(2n, n) assignments to the
    sides are counted, so use it for few expensive runs: 5 + 5 reach p = .0079, 4 + 4 cannot reach p < .01.
    blocks: runs of each side in each block, if the order was random only within blocks.
    """
    logs = [[math.log(value) for value in baseline], [math.log(value) - theta for value in candidate]]
    if len(blocks) > 1:
        return _blocked_p(logs, blocks)
    n, both = len(baseline), [*logs[0], *logs[1]]
    expected = math.fsum(both) * n / len(both)
    observed = abs(math.fsum(logs[0]) - expected) * (1 - 1e-12)
    sums = [math.fsum(chosen) for chosen in combinations(both, n)]
    return sum(abs(value - expected) >= observed for value in sums) / len(sums)


_BLOCK_STEPS = 4096


def _blocked_p(logs: Sequence[Sequence[float]], blocks: Sequence[int]) -> float:
    """Return the share of all orders within the blocks whose sums differ at least as much; logs are rounded to steps.

    Rounding is independent of the side, so the test stays exact. The number of orders with each sum is a digit of one
    long integer, which is multiplied by the integer of each block.
    """
    parts = [[side[end - size : end] for side in logs] for size, end in zip(blocks, accumulate(blocks), strict=True)]
    least = [min(map(min, part)) for part in parts]
    spread = math.fsum(value - low for part, low in zip(parts, least, strict=True) for side in part for value in side)
    if not 0 < spread < math.inf:
        return 1.0
    steps = [
        [[round((value - low) / spread * _BLOCK_STEPS) for value in side] for side in part]
        for part, low in zip(parts, least, strict=True)
    ]
    orders = math.prod(math.comb(2 * size, size) for size in blocks)
    bits = orders.bit_length() + 1
    ways = 1
    for ours, other in steps:
        ways_by_sum = Counter(map(sum, combinations([*ours, *other], len(ours))))
        ways = sum(count * ways << total * bits for total, count in ways_by_sum.items())
    first, second = (sum(sum(part[side]) for part in steps) for side in (0, 1))
    # As many orders have the mirrored sum. The remainder of division by the base minus 1 is the sum of the digits.
    as_far = (ways >> max(first, second) * bits) % ((1 << bits) - 1)
    return min(1.0, 2 * as_far / orders)


def permutation_interval(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float, blocks: Sequence[int] = ()
) -> Interval:
    """Return the interval of ln(candidate / baseline) by inverting ``permutation_p``; 0 < confidence < 1.

    baseline, candidate, blocks: as for ``permutation_p``. Both bounds are infinite if so few orders cannot reject.
    """
    logs = [[math.log(value) for value in side] for side in (baseline, candidate)]
    means = [math.fsum(side) / len(side) for side in logs]
    estimate = means[1] - means[0]
    alpha = 1 - confidence
    orders = math.comb(len(baseline) + len(candidate), len(baseline))
    if len(blocks) > 1:
        orders = math.prod(math.comb(2 * size, size) for size in blocks)
    if 2 / orders > alpha:
        return Interval(estimate, -math.inf, math.inf)
    errors = [math.hypot(*(value - mean for value in side)) / len(side) for side, mean in zip(logs, means, strict=True)]
    return _inverted(
        estimate, lambda theta: permutation_p(baseline, candidate, theta, blocks), alpha, math.hypot(*errors)
    )


Looks = tuple[tuple[int, float], ...]
"""Interim analyses ("looks") of a comparison: the number of pairs at each look, ascending, and its alpha. The sum of
the alphas is the largest probability of a false alarm."""


def look_confidence(pairs: int, looks: Looks) -> float:
    """Return the confidence (0 to 1) of the interval after ``pairs`` pairs, so that all looks together keep the error.

    Between two looks (if the budget ran out), the confidence of the next look applies.
    """
    return 1 - next((alpha for look, alpha in looks if pairs <= look), looks[-1][1])


def quantile_interval(values: Sequence[float], q: float, confidence: float, factor: float = 1.0) -> Interval:
    """Return quantile ``q`` with a distribution-free interval by order statistics.

    values: at least one, any unit. 0 <= q <= 1, 0 < confidence < 1; each tail gets (1 - confidence) / 2.
    A bound is infinite if no order statistic is far enough out. factor: above 1 for correlated samples; it multiplies
    the distance of each bound, in ranks as far as there are any, and at least in values.
    Source: David and Nagaraja 2003, section 7.1.
    """
    ordered = sorted(values)
    below, above = _ranks(len(ordered), q, (1 - confidence) / 2)
    middle = q * (len(ordered) - 1)
    low = ordered[max(0, math.floor(middle - (middle - below) * factor))] if below >= 0 else -math.inf
    high = ordered[min(len(ordered) - 1, math.ceil(middle + (above - middle) * factor))]
    interval = Interval(quantile(ordered, q), low, high if above < len(ordered) else math.inf)
    if factor == 1:
        return interval
    plain = quantile_interval(ordered, q, confidence)
    low, high = (_farther(interval.estimate, end, factor) for end in (plain.low, plain.high))
    return Interval(interval.estimate, min(low, interval.low), max(high, interval.high))


def _farther(start: float, end: float, factor: float) -> float:
    """Return the point ``factor`` times as far from ``start`` as ``end``; in ratios if both are positive."""
    if start > 0 and 0 < end < math.inf:
        return math.exp(min(700.0, math.log(start) + factor * _log_ratio(start, end)))
    return start + factor * (end - start)


@lru_cache(maxsize=1024)
def _ranks(n: int, q: float, tail: float) -> tuple[int, int]:
    """Return the ranks (from 0) of the order statistics that bound quantile ``q``; -1 or ``n`` if there is none."""
    below, above, mass = -1, n, 0.0
    for k in range(n + 1):
        mass += _binomial(n, k, q)
        if mass <= tail:
            below = k
        if mass >= 1 - tail - 1e-12:
            above = k
            break
    return below, above


def _binomial(n: int, k: int, p: float) -> float:
    log_choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p))


def samples_for_quantile(q: float, confidence: float) -> int:
    """Return the fewest samples for which ``quantile_interval`` is finite: at 95%, 72 for p95 and 368 for p99."""
    tail = (1 - confidence) / 2
    extreme = max(q, 1 - q)
    return math.ceil(math.log(tail) / math.log(extreme))


def mean_interval(values: Sequence[float], confidence: float, factor: float = 1.0) -> Interval:
    """Return the arithmetic mean with Student's t interval, ``factor`` times as wide; infinite bounds for one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(mean, -math.inf, math.inf)
    # hypot avoids the overflow and underflow of a sum of squares.
    deviation = math.hypot(*(value - mean for value in values)) / math.sqrt(n - 1)
    half = factor * student_t_quantile(1 - (1 - confidence) / 2, n - 1) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


SESSIONS = 3.0
"""Factor on the standard error when two separate sessions are compared, since drift between sessions does not show
within them."""


@dataclass(frozen=True, slots=True)
class LogMean:
    """The mean of the logs of ``size`` positive values; ``error`` is its squared standard error."""

    mean: float
    error: float
    size: int


def log_mean(values: Sequence[float]) -> LogMean:
    """Return the mean of the logs of positive values with its squared standard error, which is 0 for one value."""
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    # The mean of equal values may differ from them in its last digit, which must not count as spread.
    spread = len(logs) > 1 and min(logs) != max(logs)
    return LogMean(mean, _mean_variance(logs, mean) if spread else 0.0, len(logs))


def log_mean_of_summary(value: float, error: float, size: int) -> LogMean:
    """Return the same for a positive mean or median with its standard error, to first order in error / value."""
    return LogMean(math.log(value), (error / value) ** 2, size)


def interval_of_log_means(baseline: LogMean, candidate: LogMean, confidence: float) -> Interval:
    """Return the interval of ln(candidate / baseline) of two sets of positive values without pairs.

    It is the difference of the mean logs with ``SESSIONS`` times Welch's standard error, Student's t and the degrees of
    freedom of Welch and Satterthwaite. The bounds are infinite if a side has fewer than 2 values, or if neither side
    has any spread and there are too few values for a permutation test to reject.
    """
    estimate = candidate.mean - baseline.mean
    sizes = [baseline.size, candidate.size]
    if min(sizes) < 2:
        return Interval(estimate, -math.inf, math.inf)
    errors = [baseline.error, candidate.error]
    total = math.fsum(errors)
    if total == 0:
        enough = 2 / math.comb(sum(sizes), sizes[0]) <= 1 - confidence
        reach = 0.0 if enough else math.inf
        return Interval(estimate, estimate - reach, estimate + reach)
    # Relative to the total, since squares of small variances would underflow.
    shares = [(error / total) ** 2 / (size - 1) for error, size in zip(errors, sizes, strict=True)]
    half = SESSIONS * student_t_quantile(1 - (1 - confidence) / 2, 1 / math.fsum(shares)) * math.sqrt(total)
    return Interval(estimate, estimate - half, estimate + half)


def _mean_variance(values: Sequence[float], mean: float) -> float:
    """Return the squared standard error of a mean."""
    n = len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n


def student_t_quantile(p: float, freedom: float) -> float:
    """Return quantile ``p`` (0.5 < p < 1) of Student's t by bisection; ``freedom`` > 0 need not be whole."""

    def reached(t: float) -> bool:
        return 0.5 * _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) <= 1 - p

    high = 1.0
    while not reached(high):
        high *= 2
    return _bisect(reached, 0.0, high, tolerance=1e-10)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    # Below this x no denominator comes near zero.
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / (1 + numerator * d)
            c = 1 + numerator / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction


def clopper_pearson_upper(found: int, trials: int, confidence: float) -> float:
    """Return the exact one-sided upper bound of a proportion for ``found`` of ``trials`` (Clopper and Pearson 1934)."""
    if found >= trials:
        return 1.0
    return _bisect(lambda p: _incomplete_beta(p, found + 1, trials - found) >= confidence, 0.0, 1.0, tolerance=1e-12)


_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation (MAD)."""


def pair_spread(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """Return a robust standard deviation of ln(candidate / baseline) over positive pairs: 1.4826 times the MAD."""
    logs = [_log_ratio(a, b) for a, b in zip(baseline, candidate, strict=True)]
    middle = quantile(logs, 0.5)
    return _TO_SIGMA * quantile([abs(value - middle) for value in logs], 0.5)


FEW = 5
"""Runs of each side of an expensive command: 5 + 5 are the fewest with which a change can be proven at 1%."""
FEW_MORE = 3
"""Runs of each side in each further block of an expensive command."""
MANY = 12
"""If more benchmarks than this are compared, or several by one process, changes are confirmed by fresh pairs."""
CONFIRMING = (6, 8, 11, 15, 20, 28, 40, 64, 90, 128)
"""Numbers of fresh pairs after which a confirmation is analysed; with 6, the smallest p-value is 1/32."""
ENOUGH = 11
"""Fresh pairs that a confirmation has at least before it is given up."""
CONFIRMED, UNLIKELY = 0.05, 0.2
"""The p-value up to which fresh pairs confirm a change, and the one above which more of them would hardly do so."""


def blocks_of(runs: int) -> list[int]:
    """Return the block sizes, in runs of each side, of ``runs`` runs of an expensive command.

    The first block has 5 runs and each further one 3; fewer than 5 runs are one block.
    """
    return [FEW, *[FEW_MORE] * ((runs - FEW) // FEW_MORE)] if runs >= FEW else [runs]


_REACH = 2
_FEW, _TOO_FEW = 8, 3


def levels(values: Sequence[float]) -> list[float]:
    """Return the running median of ``values``, as many as there are values.

    The window has two neighbours on each side, one if there are fewer than 8 values, and none if there are fewer than
    3. At the ends it has neighbours on one side only.
    values: one for each revision, in order, in any unit.
    Source: Tukey, Exploratory Data Analysis, chapter 7 (running medians).
    """
    reach = 0 if len(values) < _TOO_FEW else 1 if len(values) < _FEW else _REACH
    return [quantile(values[max(0, at - reach) : at + reach + 1], 0.5) for at in range(len(values))]
