"""Pure statistics on floats: the paired sign-flip test, intervals, order statistics.

Under "no change by a factor e^theta" the signs of ``d_i - theta`` of pairs in coin-flip order are fair coins whatever
the noise does, so the sign-flip test is exact under drift, bursts, autocorrelation and outliers. Each pair is weighted
by how far its slower run lies above the best time seen; the weight is symmetric in both sides, so the test stays exact.

No numpy or scipy: start-up counts, and the samples are small. scipy and full enumeration are the oracles in the tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, combinations
from operator import mul
from statistics import NormalDist

from perfflow.stats.sign_flips import COUNTED, WHOLE, sign_flip_p

_NORMAL = NormalDist()
_WEIGHT_FLOOR = 0.005


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds; ``low`` or ``high`` is infinite where the data cannot bound that side."""

    estimate: float
    low: float
    high: float


def quantile(values: Sequence[float], q: float) -> float:
    """Return the ``q`` quantile by linear interpolation (type 7 of Hyndman and Fan 1996)."""
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    # The branch keeps equal neighbours exact, also for infinities and subnormals.
    return low if low == high else low + (position - below) * (high - low)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Logarithms of positive pairs, taken once: each step of an inversion needs them again."""

    baseline: list[float]
    candidate: list[float]
    ratios: list[float]

    @classmethod
    def of(cls, baseline: Sequence[float], candidate: Sequence[float]) -> Pairs:
        """Raises ValueError for sides of different length or values that are not positive."""
        ratios = [_log_ratio(a, b) for a, b in zip(baseline, candidate, strict=True)]
        return cls(list(map(math.log, baseline)), list(map(math.log, candidate)), ratios)

    def weights(self, theta: float) -> list[float]:
        """Weights with the candidate scaled by ``e^-theta``, the same whichever side of a pair is called which."""
        candidate = [value - theta for value in self.candidate]
        slower = list(map(max, self.baseline, candidate))
        best = min(*self.baseline, *candidate)
        softening = max(_WEIGHT_FLOOR, quantile(slower, 0.25) - best)
        return [(value - best + softening) ** -2 for value in slower]

    def p(self, theta: float, counted: int = COUNTED) -> float:
        """Two-sided p of "candidate = baseline times e^theta"."""
        return sign_flip_p(self._scores(self.weights(theta), theta), counted)

    def _scores(self, weights: Sequence[float], theta: float) -> list[float]:
        return list(map(mul, weights, (ratio - theta for ratio in self.ratios)))

    def estimate(self) -> float:
        """Weighted mean of the log ratios, its weights taken at the estimate itself."""
        theta = quantile(self.ratios, 0.5)
        for _ in range(20):
            weights = self.weights(theta)
            better = math.fsum(map(mul, weights, self.ratios)) / math.fsum(weights)
            if abs(better - theta) < 1e-9:
                break
            theta = better
        return theta

    def standard_error(self, theta: float) -> float:
        """Standard error of the weighted mean by the normal approximation: where the search for an end begins."""
        weights = self.weights(theta)
        return math.hypot(*self._scores(weights, theta)) / math.fsum(weights)


def _bisect(inside: Callable[[float], bool], low: float, high: float, tolerance: float = 1e-9) -> float:
    """The point between ``low`` (where ``inside`` is false) and ``high`` (where it is true) at which it changes."""
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
    """ln(candidate/baseline), also where the quotient itself would overflow or vanish."""
    ratio = candidate / baseline
    return math.log(ratio) if 0 < ratio < math.inf else math.log(candidate) - math.log(baseline)


def paired_p(baseline: Sequence[float], candidate: Sequence[float], theta: float = 0.0) -> float:
    """Two-sided p of "candidate = baseline times e^theta" from positive pairs taken in coin-flip order."""
    return Pairs.of(baseline, candidate).p(theta)


def paired_interval(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float, counted: int = COUNTED
) -> Interval:
    """Interval of ln(candidate/baseline): all theta that the sign-flip test does not reject at ``1 - confidence``.

    ``baseline`` and ``candidate`` are positive values of the same unit, pair by pair. With too few pairs to reject
    anything (2^(1-n) > 1 - confidence) both bounds are infinite. ``counted``: see ``sign_flip_p``.
    """
    alpha = 1 - confidence
    pairs = Pairs.of(baseline, candidate)
    estimate = pairs.estimate()
    if 2.0 ** (1 - len(baseline)) > alpha:
        return Interval(estimate, -math.inf, math.inf)
    # Beyond, the scores are rounded so far that the ends are not known any finer.
    precision = _ROUNDED_PRECISION if WHOLE < len(baseline) <= counted else _EDGE_PRECISION
    return _inverted(estimate, lambda theta: pairs.p(theta, counted), alpha, pairs.standard_error(estimate), precision)


_FIRST_REACH = 1e-3
_LAST_REACH = 2000.0
_EDGE_PRECISION, _ROUNDED_PRECISION = 2e-3, 6e-3
_RESOLUTION = 1e-7


def _inverted(
    estimate: float, p: Callable[[float], float], alpha: float, spread: float, precision: float = _EDGE_PRECISION
) -> Interval:
    """All theta around ``estimate`` that a test does not reject, the ends to ``precision`` times the half-width.

    ``spread`` is about the standard error of the estimate; a wrong one only costs time.
    """
    first = max(spread * _NORMAL.inv_cdf(1 - alpha / 2), _RESOLUTION) if spread > 0 else _FIRST_REACH

    def edge(direction: int) -> float:
        return estimate + direction * _edge(
            lambda distance: p(estimate + direction * distance), alpha, first, precision
        )

    return Interval(estimate, edge(-1), edge(+1))


def _edge(p: Callable[[float], float], alpha: float, first: float, precision: float) -> float:
    """The least distance at which p is ``alpha`` or less, infinite where there is none.

    sqrt(-ln p) grows about linearly with the distance, as it does for a normal distribution, so interpolating in it
    takes four evaluations where bisection takes fourteen. p may have steps, so every third try halves the bracket.
    """
    goal = math.sqrt(-math.log(alpha))
    inside, inside_height, outside, outside_height = 0.0, 0.0, math.inf, math.inf
    distance = first
    for number in range(1, 200):
        found = p(distance)
        height = math.sqrt(-math.log(found)) if found < 1 else 0.0
        if found <= alpha:
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
        # Aimed just beyond the end, on the side that closes the bracket.
        aim += 0.4 * precision * outside * (1 if distance == inside else -1)
        halved = number % 3 == 0 or not inside < aim < outside
        distance = (inside + outside) / 2 if halved else aim
    return outside


def permutation_p(
    baseline: Sequence[float], candidate: Sequence[float], theta: float = 0.0, blocks: Sequence[int] = ()
) -> float:
    """Two-sided p of "candidate = baseline times e^theta" from n + n runs in completely random order.

    Every way to call n of the runs baseline is as likely as the one that happened; all C(2n, n) are counted. For few
    expensive runs: 5 + 5 reach p = .0079, 4 + 4 can never reach p < .01.

    ``blocks``: the runs of each side in each block, where the order was random within blocks alone.
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
    """Share of all orders within the blocks whose sums differ by as much, the logs rounded to whole steps.

    Rounding does not look at the side, so this is itself an exact test. The number of orders with each sum is a digit
    of one long integer, and each block multiplies it by its own.
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
    for own, other in steps:
        found = Counter(map(sum, combinations([*own, *other], len(own))))
        ways = sum(count * ways << total * bits for total, count in found.items())
    first, second = (sum(sum(part[side]) for part in steps) for side in (0, 1))
    # As many orders have the mirrored sum. Dividing by the base less one adds up the digits, as casting out nines does.
    as_far = (ways >> max(first, second) * bits) % ((1 << bits) - 1)
    return min(1.0, 2 * as_far / orders)


def permutation_interval(
    baseline: Sequence[float], candidate: Sequence[float], confidence: float, blocks: Sequence[int] = ()
) -> Interval:
    """Interval of ln(candidate/baseline) by inverting ``permutation_p``; infinite where nothing can be rejected."""
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
"""Interim analyses of an adaptive comparison: the number of pairs at each, ascending, and its share of the false alarms
that all of them may raise together."""
# Most of it goes to the first look: with 11 pairs, and less, all but one of them would have to agree.
SIX_LOOKS: Looks = ((11, 0.0059), (15, 0.0015), (20, 0.0010), (28, 0.0006), (40, 0.0005), (64, 0.0005))
LAYOUT_LOOKS: Looks = ((11, 0.0020), (15, 0.0010), (20, 0.0010), (28, 0.0010), (40, 0.0010), (64, 0.0040))
"""Of pairs that have fresh code layouts, which scatter more: more is left for the last look."""


def look_confidence(pairs: int, looks: Looks) -> float:
    """Return the confidence of the interval at a look, so that all looks together keep their error.

    Stopped between two looks (a budget ran out), the data are judged as the next look would have been.
    """
    return 1 - next((alpha for look, alpha in looks if pairs <= look), looks[-1][1])


def quantile_interval(values: Sequence[float], q: float, confidence: float, factor: float = 1.0) -> Interval:
    """Quantile ``q`` with a distribution-free interval by order statistics (David and Nagaraja 2003, 7.1).

    Each tail gets ``(1 - confidence) / 2``; a side on which no order statistic is far enough out is infinite. A
    ``factor`` above 1, of samples that depend on each other, moves the ends that many times as far out, counted in
    ranks as long as there are any, and in values.
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
    """The point ``factor`` times as far from ``start`` as ``end``; by ratios, which keep a positive value positive."""
    if start > 0 and 0 < end < math.inf:
        return math.exp(min(700.0, math.log(start) + factor * _log_ratio(start, end)))
    return start + factor * (end - start)


@lru_cache(maxsize=1024)
def _ranks(n: int, q: float, tail: float) -> tuple[int, int]:
    """Ranks (from 0) of the order statistics that bound quantile ``q``; -1 or ``n`` where none is far enough out."""
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
    """The fewest samples with which both sides of ``quantile_interval`` are finite: 72 for p95, 368 for p99 at 95%."""
    tail = (1 - confidence) / 2
    extreme = max(q, 1 - q)
    return math.ceil(math.log(tail) / math.log(extreme))


def mean_interval(values: Sequence[float], confidence: float, factor: float = 1.0) -> Interval:
    """Arithmetic mean with Student's t interval, ``factor`` times as wide; one value gives an unbounded interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Interval(mean, -math.inf, math.inf)
    # hypot neither overflows nor vanishes where a plain sum of squares would.
    deviation = math.hypot(*(value - mean for value in values)) / math.sqrt(n - 1)
    half = factor * student_t_quantile(1 - (1 - confidence) / 2, n - 1) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


SESSIONS = 3.0
"""By how much the standard error within two sessions is multiplied when they are compared: drift between sessions is
not seen inside them."""


def unpaired_interval(baseline: Sequence[float], candidate: Sequence[float], confidence: float) -> Interval:
    """Interval of ln(candidate/baseline) from two sets of positive values without pairs.

    The difference of the mean logs with ``SESSIONS`` times Welch's standard error, Student's t and the degrees of
    freedom of Welch and Satterthwaite. Unbounded with fewer than 2 values on a side, and where neither side has any
    spread and a permutation of so few values could not reject anything either.
    """
    return interval_of_log_means(log_mean(baseline), log_mean(candidate), confidence)


@dataclass(frozen=True, slots=True)
class LogMean:
    """The mean of the logs of ``size`` positive values, and its squared standard error."""

    mean: float
    error: float
    size: int


def log_mean(values: Sequence[float]) -> LogMean:
    """Mean and error of the logs of positive values; the error of one value is 0."""
    logs = [math.log(value) for value in values]
    mean = math.fsum(logs) / len(logs)
    # Equal values have a mean that may differ from them in its last digit, which is not a spread.
    spread = len(logs) > 1 and min(logs) != max(logs)
    return LogMean(mean, _mean_variance(logs, mean) if spread else 0.0, len(logs))


def log_mean_of_summary(value: float, error: float, size: int) -> LogMean:
    """The same of a positive mean or median with its standard error, to the first order of error by value."""
    return LogMean(math.log(value), (error / value) ** 2, size)


def interval_of_log_means(baseline: LogMean, candidate: LogMean, confidence: float) -> Interval:
    """Interval of the difference of two log means; see ``unpaired_interval``."""
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
    # As shares of the whole: squares of small variances would vanish.
    shares = [(error / total) ** 2 / (size - 1) for error, size in zip(errors, sizes, strict=True)]
    half = SESSIONS * student_t_quantile(1 - (1 - confidence) / 2, 1 / math.fsum(shares)) * math.sqrt(total)
    return Interval(estimate, estimate - half, estimate + half)


def _mean_variance(values: Sequence[float], mean: float) -> float:
    """Squared standard error of a mean."""
    n = len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n


def student_t_quantile(p: float, freedom: float) -> float:
    """Quantile ``p`` > 0.5 of Student's t, ``freedom`` being whole or not, by bisection of its tail."""

    def reached(t: float) -> bool:
        return 0.5 * _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) <= 1 - p

    high = 1.0
    while not reached(high):
        high *= 2
    return _bisect(reached, 0.0, high, tolerance=1e-10)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Regularized incomplete beta function by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    # Below that place no denominator comes near to zero.
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
    """The exact one-sided upper bound of a share of which ``found`` of ``trials`` were seen (Clopper, Pearson 1934)."""
    if found >= trials:
        return 1.0
    return _bisect(lambda p: _incomplete_beta(p, found + 1, trials - found) >= confidence, 0.0, 1.0, tolerance=1e-12)


def pair_spread(baseline: Sequence[float], candidate: Sequence[float]) -> float:
    """Robust standard deviation of ln(candidate/baseline) over positive pairs: 1.4826 times the median deviation."""
    logs = [_log_ratio(a, b) for a, b in zip(baseline, candidate, strict=True)]
    middle = quantile(logs, 0.5)
    return _TO_SIGMA * quantile([abs(value - middle) for value in logs], 0.5)


_TO_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
