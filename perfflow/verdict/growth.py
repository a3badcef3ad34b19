"""Growth with a size: the cells of ``scaling`` as one benchmark, its exponent on each side, and which grows faster.

``fitted_growth`` fits the growth of a value with a size: the exponent with its interval, and the class. The model is
``value = a + b * (size^p - 1) / p``, which includes the logarithm (p = 0), the line, the square and the cube (Box and
Cox 1964). ``a`` is the fixed cost of every run, such as the start of a process, which must not lower the exponent. For
each p the best a and b follow by weighted least squares. The interval contains every p whose sum of squares exceeds the
minimum by no more than the confidence allows (profile likelihood, Venzon and Moolgavkar 1988). If the points scatter
more than their errors explain, the errors are scaled by the Birge ratio, as the Particle Data Group does. numpy and
scipy are not used, because they start slowly; the tests use them as references.

``curve_of`` returns the curve of a fitted growth and its band, for charts, at sizes between the measured points. The
band contains the curves of all exponents in the interval, each with its best ``a`` and ``b``. It shows the uncertainty
of the exponent, not the range of a further measurement.

Over numbers of threads the work stays the same, and ``Sizes.efficiency`` says how well they share it.

``deciding_size`` finds a further size that would settle a growth, assuming that the fitted curve continues.

``grown`` judges the benchmarks of a run. A target judges the growth that it names. Growth that got worse between two
sides without a target is only a concern, because the largest sizes are rows of their own, which decide whether their
change passes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

from perfflow.model.criteria import Criteria, Thresholds
from perfflow.model.metrics import OF_SIZES, THREADS, Better, Metric, default_statistic, in_words
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, Bounds, Grown, Growth, Reason, ReasonKind, Scaling, SizePoint, reason
from perfflow.model.units import GROWTH_CLASSES, significant
from perfflow.stats.paired_test import Interval
from perfflow.store.record import MetricSeries, Record
from perfflow.verdict.comparison import RATES, VALUE_CONFIDENCE, summarise
from perfflow.verdict.decide import IDENTICAL_FLOOR

LEAST = 3
"""Least number of sizes for a fit: the model has three parameters."""
BEND = 0.1
"""Tolerance on the exponent of timed programs: caches and allocators bend the curve."""
EXACT_BEND = 0.02
"""Tolerance on the exponent of exact counts, which caches do not affect."""
SPAN = 10.0
"""Least factor between the smallest and the largest size for the class ``constant``."""
EXPONENTS = [step / 20 for step in range(-40, 121)]
_NORMAL = NormalDist()


@dataclass(frozen=True)
class GrowthPoint:
    """The value at one size, in its base unit, with its standard error."""

    size: float
    value: float
    error: float


@dataclass(frozen=True)
class FittedGrowth:
    """A fitted growth. ``rise`` is the share by which the last value exceeds that of the least size.

    ``low`` and ``high`` bound the class, as indices of ``GROWTH_CLASSES``; halves are between two classes.
    """

    exponent: Interval
    rise: Interval
    best: str
    """The class whose curve comes closest."""
    low: float
    high: float
    nlogn: float
    """The exponent of the power that is closest to n log n over these sizes."""

    @property
    def curve(self) -> str:
        """``n^1.02``, or ``constant``."""
        return "constant" if self.high == 0 else f"n^{self.exponent.estimate:.2f}"


@dataclass(frozen=True)
class Line:
    """The best fit ``a + b * f``, with its weighted sum of squares."""

    a: float
    b: float
    squares: float


def fitted_growth(
    points: Sequence[GrowthPoint], confidence: float, *, floor: float, flat: float, bend: float
) -> FittedGrowth:
    """Fit a growth to at least LEAST points of different positive sizes.

    ``floor`` is the share of a value that is uncertain in addition to its error, because two sizes use the caches
    differently and are not measured in pairs. A rise of at most ``flat`` over the sizes counts as none. For ``bend``
    see BEND.
    """
    points = sorted(points, key=lambda point: point.size)
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    rise = _rise_of_fit(points, z)
    least = points[0].size
    sizes = [point.size / min(1.0, least) for point in points]
    values, errors = [point.value for point in points], errors_of(points, floor)
    line = lines(values, [error**-2 for error in errors])
    exponent = _profiled(lambda p: line(power(p, sizes)).squares, z, max(0, len(points) - LEAST))
    best = min(_CURVES, key=lambda name: line(_CURVES[name](sizes)).squares)
    nlogn = _exponent_of_nlogn(sizes, values, errors)
    if rise.high <= flat:
        best = GROWTH_CLASSES[0]
        # A flat curve over a short range of sizes does not bound the growth.
        low, high = 0.0, math.inf
        if points[-1].size >= SPAN * least:
            # The offset explains a flat curve, so any exponent fits the rest. The plain slope is near 0.
            high, exponent = 0.0, _slope(points, errors, z)
    else:
        low = 0.0 if rise.low <= flat else class_of(exponent.low, nlogn, bend, least=True)
        high = max(low, class_of(exponent.high, nlogn, bend))
    return FittedGrowth(exponent, rise, best, low, high, nlogn)


def errors_of(points: Sequence[GrowthPoint], floor: float) -> list[float]:
    """Return the standard errors by which the points are weighted; for ``floor`` see ``fitted_growth``."""
    largest = max(abs(point.value) for point in points) or 1.0
    return [max(math.hypot(item.error, floor * item.value), 1e-9 * largest) for item in points]


def class_of(exponent: float, nlogn: float, bend: float, *, least: bool = False) -> float:
    """Return the index in ``GROWTH_CLASSES`` of an exponent; ``nlogn`` is the exponent of n log n over the sizes.

    Linear and n log n are close, and a bent line may look like n log n. So the ``least`` class is linear up to the
    tolerance of a line, and the greatest class is n log n from the midpoint between the two.
    """
    half_way = min(1 + BEND, (1 + nlogn) / 2)
    linear = max(1 + bend, half_way) if least else half_way
    bands = {
        "log": (-math.inf, bend),
        "linear": (1 - bend, linear),
        "nlogn": (linear, max(nlogn + bend, linear)),
        "quadratic": (2 - bend, 2 + bend),
        "cubic": (3 - bend, 3 + bend),
    }
    place = 0.5
    for name, (lower, upper) in bands.items():
        if exponent < lower:
            return place
        place = float(GROWTH_CLASSES.index(name))
        if exponent <= upper:
            return place
        place += 0.5
    return place


def _rise_of_fit(points: Sequence[GrowthPoint], z: float) -> Interval:
    """Return the share by which the last value exceeds the first; the upper bound is that of the highest value."""
    first, last = points[0], points[-1]
    if first.value <= 0:
        level = all(point.value == first.value for point in points)
        return Interval(0.0, 0.0, 0.0) if level else Interval(math.inf, -1.0, math.inf)

    def spread(point: GrowthPoint) -> float:
        return 0.0 if point is first else z * math.hypot(first.error / first.value, point.error / first.value)

    shares = [(point, point.value / first.value - 1) for point in points]
    high = max(share + spread(point) for point, share in shares)
    share = last.value / first.value - 1
    return Interval(share, share - spread(last), high)


def _slope(points: Sequence[GrowthPoint], errors: Sequence[float], z: float) -> Interval:
    """Return the slope of ln(value) over ln(size) by weighted least squares, with its normal interval."""
    if min(point.value for point in points) <= 0:
        return Interval(0.0, 0.0, 0.0)
    logs = [(math.log(point.size), math.log(point.value)) for point in points]
    weights = [(point.value / error) ** 2 for point, error in zip(points, errors, strict=True)]
    total = math.fsum(weights)
    middle = math.fsum(w * x for w, (x, _) in zip(weights, logs, strict=True)) / total
    spread = math.fsum(w * (x - middle) ** 2 for w, (x, _) in zip(weights, logs, strict=True))
    slope = math.fsum(w * (x - middle) * y for w, (x, y) in zip(weights, logs, strict=True)) / spread
    return Interval(slope, slope - z / math.sqrt(spread), slope + z / math.sqrt(spread))


def power(p: float, sizes: Sequence[float]) -> list[float]:
    """Return (size^p - 1) / p, divided by the power of the largest size to prevent overflow."""
    logs = [math.log(size) for size in sizes]
    if abs(p) < 1e-9:
        return logs
    top = max(p * log for log in logs) if p > 0 else 0.0
    return [(math.exp(p * log - top) - math.exp(-top)) / p for log in logs]


_CURVES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "constant": lambda sizes: [0.0 for _ in sizes],
    "log": lambda sizes: power(0.0, sizes),
    "linear": lambda sizes: power(1.0, sizes),
    "nlogn": lambda sizes: [size * math.log(size) / max(sizes) for size in sizes],
    "quadratic": lambda sizes: power(2.0, sizes),
    "cubic": lambda sizes: power(3.0, sizes),
}


def lines(values: Sequence[float], weights: Sequence[float]) -> Callable[[list[float]], Line]:
    """Return a function that fits ``a + b * f`` by weighted least squares, with a and b limited to 0 or more."""
    total = math.fsum(weights)
    level = math.fsum(w * y for w, y in zip(weights, values, strict=True)) / total

    def squares(a: float, b: float, curve: Sequence[float]) -> float:
        return math.fsum(w * (y - a - b * f) ** 2 for w, y, f in zip(weights, values, curve, strict=True))

    def line(curve: list[float]) -> Line:
        mean = math.fsum(w * f for w, f in zip(weights, curve, strict=True)) / total
        spread = math.fsum(w * (f - mean) ** 2 for w, f in zip(weights, curve, strict=True))
        if spread <= 0:
            return Line(level, 0.0, squares(level, 0.0, curve))
        b = math.fsum(w * (f - mean) * (y - level) for w, f, y in zip(weights, curve, values, strict=True)) / spread
        a = level - b * mean
        if b < 0:
            a, b = level, 0.0
        elif a < 0:
            whole = math.fsum(w * f * f for w, f in zip(weights, curve, strict=True))
            a, b = 0.0, math.fsum(w * f * y for w, f, y in zip(weights, curve, values, strict=True)) / whole
        return Line(a, b, squares(a, b, curve))

    return line


def _profiled(squares: Callable[[float], float], z: float, freedom: int) -> Interval:
    """Return the exponent with the least squares and its interval; bounds outside ``EXPONENTS`` are infinite."""
    fits = [(squares(p), p) for p in EXPONENTS]
    least, near = min(fits)
    estimate = _lowest(squares, near - 0.05, near + 0.05)
    least = min(least, squares(estimate))
    scatter = max(1.0, least / freedom) if freedom else 1.0
    limit = least + z * z * scatter
    inside = [p for value, p in fits if value <= limit] or [estimate]
    low, high = min(*inside, estimate), max(*inside, estimate)
    first, last = EXPONENTS[0], EXPONENTS[-1]
    return Interval(
        estimate,
        -math.inf if low <= first else _edge(squares, limit, low, low - 0.05),
        math.inf if high >= last else _edge(squares, limit, high, high + 0.05),
    )


def _lowest(squares: Callable[[float], float], low: float, high: float) -> float:
    """Return the exponent of the minimum between two exponents, by golden-section search."""
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(30):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if squares(left) < squares(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _edge(squares: Callable[[float], float], limit: float, inside: float, outside: float) -> float:
    """Return the exponent at which the sum of squares crosses the limit, by bisection."""
    for _ in range(30):
        middle = (inside + outside) / 2
        if squares(middle) <= limit:
            inside = middle
        else:
            outside = middle
    return inside


def _exponent_of_nlogn(sizes: Sequence[float], values: Sequence[float], errors: Sequence[float]) -> float:
    """Return the exponent of the power closest to n log n over these sizes, with these weights."""
    curve = _CURVES["nlogn"](sizes)
    weights = [error**-2 for error in errors]
    best = lines(values, weights)(curve)
    if best.b <= 0:
        # The values do not grow, so fit the shape of n log n alone.
        best, weights = Line(0.0, 1.0, 0.0), [1 / max(height, 1e-9) ** 2 for height in curve]
    line = lines([best.a + best.b * height for height in curve], weights)
    steps = [1 + step / 50 for step in range(51)]
    near = min(steps, key=lambda p: line(power(p, sizes)).squares)
    return max(1.0, _lowest(lambda p: line(power(p, sizes)).squares, near - 0.02, near + 0.02))


PLACES = 25
"""Number of sizes at which a curve is computed, evenly spaced on a logarithmic axis."""
_WITHIN = 9
"""Number of exponents of the interval whose curves form the band."""


def curve_of(points: Sequence[GrowthPoint], found: FittedGrowth, floor: float) -> list[tuple[float, Interval]]:
    """Return (size, value with its band) from the least size to the greatest, in the metric's base unit.

    ``points`` and ``floor`` are those that ``found`` was fitted to.
    """
    points = sorted(points, key=lambda point: point.size)
    least, greatest = points[0].size, points[-1].size
    places = [least * (greatest / least) ** (number / (PLACES - 1)) for number in range(PLACES)]
    own, *others = (_curve(p, points, places, floor, flat=found.high == 0) for p in _exponents(found.exponent))
    bands = zip(own, *others, strict=True)
    return [(place, Interval(values[0], min(values), max(values))) for place, values in zip(places, bands, strict=True)]


def _exponents(interval: Interval) -> list[float]:
    """Return the estimate, then exponents from one end of the interval to the other."""
    low, high = max(interval.low, EXPONENTS[0]), min(interval.high, EXPONENTS[-1])
    return [interval.estimate, *(low + (high - low) * number / (_WITHIN - 1) for number in range(_WITHIN))]


def _curve(
    p: float, points: Sequence[GrowthPoint], places: Sequence[float], floor: float, *, flat: bool
) -> list[float]:
    """Return the values of the best curve with one exponent; for a flat curve, of the line through the middle."""
    weights = [error**-2 for error in errors_of(points, floor)]
    if flat:
        total = math.fsum(weights)
        level = math.fsum(w * point.value for w, point in zip(weights, points, strict=True)) / total
        middle = math.fsum(w * math.log(point.size) for w, point in zip(weights, points, strict=True)) / total
        return [level * math.exp(p * (math.log(place) - middle)) for place in places]
    unit = min(1.0, points[0].size)
    line = lines([point.value for point in points], weights)(power(p, [point.size / unit for point in points]))
    # Powers are normalized by the largest size, which is the same here: the last place is the greatest size.
    return [line.a + line.b * height for height in power(p, [place / unit for place in places])]


def deciding_size(
    points: Sequence[GrowthPoint], fitted: FittedGrowth, decided: Callable[[FittedGrowth], bool], **how: float
) -> float:
    """Return approximately the least further size that would settle the growth; 0 if none would.

    Its relative error is assumed to be the median of the others. ``how`` are the arguments of ``fitted_growth``.
    """
    if not math.isfinite(fitted.exponent.estimate):
        return 0.0
    sizes = [point.size for point in points]
    least, largest = min(sizes), max(sizes)
    scaled = [size / min(1.0, least) for size in sizes]
    values = [point.value for point in points]
    share = sorted(point.error / abs(point.value) if point.value else 0.0 for point in points)[len(points) // 2]
    errors = [max(math.hypot(item.error, how["floor"] * item.value), 1e-9 * max(map(abs, values))) for item in points]
    line = lines(values, [error**-2 for error in errors])
    for times in (2, 4, 8, 16, 32, 64):
        further = [*scaled, largest * times / min(1.0, least)]
        # The curve is normalized by its largest size, so fit it again for a new largest size.
        curve = power(fitted.exponent.estimate, further)
        best = line(curve[:-1])
        guess = [best.a + best.b * height for height in curve]
        future = [GrowthPoint(size, value, share * value) for size, value in zip(further, guess, strict=True)]
        if guess[-1] > 0 and decided(fitted_growth(future, **how)):
            return largest * times
    return 0.0


@dataclass
class Sizes:
    """One metric of one benchmark at its sizes, smallest first; ``planned`` is the number of planned sizes."""

    key: str
    planned: int = 0
    series: dict[float, MetricSeries] = field(default_factory=dict)
    instead: str = ""
    """The metric whose values replace those of the requested metric; '' if none does."""

    @property
    def latest(self) -> Side:
        """The candidate if it was measured, else the baseline."""
        measured = any(series.readings(Side.CANDIDATE) for series in self.series.values())
        return Side.CANDIDATE if measured else Side.BASELINE

    def points(self, side: Side, metric: Metric, confidence: float) -> tuple[list[GrowthPoint], int]:
        """Return the medians of a side with standard errors, and the samples needed per size if some have no error."""
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        points, needs = [], 0
        for size in sorted(self.series):
            series = self.series[size]
            as_judged = metric if not series.exact else Metric(metric.name, metric.dimension, metric.better, exact=True)
            # The fit includes the scatter of the points, so their intervals are not widened for correlation.
            summary = summarise(
                series.readings(side), as_judged, default_statistic(as_judged), confidence, widened=False
            )
            if summary is None:
                continue
            if summary.low is None or summary.high is None:
                needs = max(needs, summary.needs)
                continue
            points.append(GrowthPoint(size, summary.value, (summary.high - summary.low) / (2 * z)))
        return points, needs

    def fit(
        self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE
    ) -> FittedGrowth | None:
        """Return the growth of a side; None if there are too few sizes or too few samples."""
        points, needs = self.points(side, metric, confidence)
        if needs or len(points) < LEAST:
            return None
        return fitted_growth(points, confidence, **self._how(metric, thresholds))

    def efficiency(
        self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE
    ) -> list[tuple[float, Interval]]:
        """Return (number of threads, efficiency) of a side for each number but the least; [] without samples.

        The speedup over the least number is that of the medians, whose errors are independent, because the cells are
        not measured in pairs.
        """
        points, needs = self.points(side, metric, confidence)
        if needs or not points or min(point.value for point in points) <= 0:
            return []
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        shares = [
            error / point.value
            for error, point in zip(errors_of(points, self.floor(metric, thresholds)), points, strict=True)
        ]
        first, *others = points
        found = []
        for share, point in zip(shares[1:], others, strict=True):
            faster = point.value / first.value if metric.better is Better.HIGHER else first.value / point.value
            estimate, factor = faster * first.size / point.size, math.exp(z * math.hypot(shares[0], share))
            found.append((point.size, Interval(estimate, estimate / factor, estimate * factor)))
        return found

    def deciding_size(
        self,
        side: Side,
        metric: Metric,
        thresholds: Thresholds,
        confidence: float,
        decided: Callable[[FittedGrowth], bool],
    ) -> str:
        """Return which further size would settle a growth, as text; '' if none would."""
        points, _ = self.points(side, metric, confidence)
        how = {"confidence": confidence, **self._how(metric, thresholds)}
        fitted = fitted_growth(points, **how)
        size = deciding_size(points, fitted, decided, **how)
        if size:
            return f"adding {self.key}={_number(size)} should settle it"
        neighbours = GROWTH_CLASSES.index("linear") <= fitted.low and fitted.high <= GROWTH_CLASSES.index("nlogn")
        exact = self._is_exact(metric)
        return _ALIKE if neighbours and not exact else "" if exact else "more samples may settle it"

    def detail(self, side: Side, metric: Metric, thresholds: Thresholds, confidence: float = VALUE_CONFIDENCE) -> str:
        """Return which class fits best over which sizes, or why there is no fit, as text."""
        points, needs = self.points(side, metric, confidence)
        sizes = [point.size for point in points]
        if needs:
            return f"fitting a growth needs {needs} samples of each size"
        if len(points) < LEAST:
            return f"{len(points)} of {self.planned} sizes measured; fitting a growth needs {LEAST}"
        fitted = fitted_growth(points, confidence, **self._how(metric, thresholds))
        text = f"{CLASS_NAMES[fitted.best]} fits best over {self.key}={_number(sizes[0])}..{_number(sizes[-1])}"
        if self.instead:
            text += f", by {in_words(self.instead)}"
        if len(points) < self.planned:
            text += f", {len(points)} of {self.planned} sizes"
        if fitted.high == 0:
            return f"{text}: {_rise(fitted.rise.high)}"
        if fitted.rise.high <= thresholds.concern:
            return f"{text}: {_rise(fitted.rise.high)}, but the sizes span less than a factor of {SPAN:g}"
        return text

    def floor(self, metric: Metric, thresholds: Thresholds) -> float:
        """Return the share of a value that is uncertain in addition to its error."""
        return min(thresholds.floor, IDENTICAL_FLOOR) if self._is_exact(metric) else thresholds.floor

    def _how(self, metric: Metric, thresholds: Thresholds) -> dict[str, float]:
        bend = EXACT_BEND if self._is_exact(metric) else BEND
        return {"floor": self.floor(metric, thresholds), "flat": thresholds.concern, "bend": bend}

    def _is_exact(self, metric: Metric) -> bool:
        return metric.exact or any(series.exact for series in self.series.values())


_ALIKE = "times rarely separate linear from n log n; counted instructions do (`uses: callgrind`)"
CLASS_NAMES = {"nlogn": "n log n"} | {name: name for name in ("constant", "log", "linear", "quadratic", "cubic")}


def _rise(share: float) -> str:
    """Return a note on the growth that a flat curve may hide."""
    return f"at most {max(share, 0.0):.1%} above the smallest size; a part of the cost below that may grow faster"


def _number(size: float) -> str:
    return str(int(size)) if size == int(size) and size < 1e15 else significant(size)


def scaled(record: Record, metric: str) -> Mapping[str, Sizes]:
    """Return the benchmarks with a metric that was measured at several sizes, in the order of the run."""
    by_name: dict[str, Sizes] = {}
    planned = _planned(record)
    for series in record.series.values():
        about = record.plan_of(series.step).scaling
        if about and series.metric == metric:
            name = _whole(series.benchmark, about)
            sizes = by_name.setdefault(name, Sizes(about.key, planned[about.of]))
            sizes.series[about.size] = series
    if metric == "time":
        for sizes in by_name.values():
            _undisturbed(record, sizes)
    return by_name


def _undisturbed(record: Record, sizes: Sizes) -> None:
    """Use time without queueing for a core if all sizes have it.

    On a busy machine wall time grows faster than the program, because a short process is disturbed less than a long
    one: a linear loop had a measured exponent of 1.15, and its interval excluded 1.
    """
    by_size = {size: record.series.get((series.benchmark, "uncontended")) for size, series in sizes.series.items()}
    known = {size: series for size, series in by_size.items() if series}
    if len(known) == len(sizes.series) and all(
        len(known[size].readings(side)) == len(series.readings(side))
        for size, series in sizes.series.items()
        for side in Side
    ):
        sizes.series, sizes.instead = known, "uncontended"


def _planned(record: Record) -> Mapping[str, int]:
    """Return the number of sizes of each benchmark, by the name in its steps."""
    counts: dict[str, set[float]] = defaultdict(set)
    for step in record.planned.values():
        if step.scaling:
            counts[step.scaling.of].add(step.scaling.size)
    return {name: len(sizes) for name, sizes in counts.items()}


def _whole(benchmark: str, about: Scaling) -> str:
    """Return the common name of all sizes, with the suite's own id if the cell's name contains one."""
    before, star, after = about.cell.partition("*")
    if not star:
        return about.of
    return about.of.replace("*", benchmark.removeprefix(before).removesuffix(after), 1)


def grown(record: Record, rows: Iterable[Benchmark], criteria: Criteria) -> Iterator[Growth]:
    """Yield the growth of the gating rows and of rows with a growth target."""
    wanted = {row.metric for row in rows if row.gating or row.leading}
    wanted |= {target.metric.name for target in criteria.targets if target.statistic in OF_SIZES}
    gating = {(row.name, row.metric) for row in rows if row.gating or row.leading}
    for name in sorted(wanted):
        metric = criteria.metric(name)
        targeted = any(target.statistic in OF_SIZES and target.metric.name == name for target in criteria.targets)
        for benchmark, sizes in scaled(record, name).items():
            # Only these metrics get better with more threads.
            fits = sizes.key not in THREADS or name in ("time", *RATES)
            if fits and (targeted or any((series.benchmark, name) in gating for series in sizes.series.values())):
                yield _growth(benchmark, metric, sizes, criteria.thresholds_of(benchmark))


def _growth(benchmark: str, metric: Metric, sizes: Sizes, thresholds: Thresholds) -> Growth:
    decision: Literal["worse", "better", "same", "unproven"] | None = None
    if sizes.key in THREADS:
        shares = {side: sizes.efficiency(side, metric, thresholds) for side in Side}
        shown = {side: _shared(found) for side, found in shares.items() if found}
        detail = f"efficiency, compared with {sizes.key}={_number(min(sizes.series))}"
    else:
        fits = {side: sizes.fit(side, metric, thresholds) for side in Side}
        shown = {
            side: _grown(item, sizes.points(side, metric, VALUE_CONFIDENCE)[0], sizes.floor(metric, thresholds))
            for side, item in fits.items()
            if item
        }
        before, after = fits[Side.BASELINE], fits[Side.CANDIDATE]
        decision = _decision(before, after) if before and after else None
        detail = sizes.detail(sizes.latest, metric, thresholds)
    return Growth(
        benchmark=benchmark,
        metric=metric.name,
        key=sizes.key,
        baseline=shown.get(Side.BASELINE),
        candidate=shown.get(Side.CANDIDATE),
        decision=decision,
        detail=detail,
    )


def _shared(found: Sequence[tuple[float, Interval]]) -> Grown:
    """Return one side as it is stored: the efficiency of each number of threads."""
    points = [SizePoint(size=size, value=share.estimate, low=share.low, high=share.high) for size, share in found]
    return Grown(exponent=None, best="", sizes=[point.size for point in points], efficiency=points)


def _grown(fitted: FittedGrowth, points: Sequence[GrowthPoint], floor: float) -> Grown:
    """Return one side as it is stored: its exponent, the measured points, and the fitted curve."""
    z = NormalDist().inv_cdf(0.5 + VALUE_CONFIDENCE / 2)
    measured = [(item.size, item.value, item.value - z * item.error, item.value + z * item.error) for item in points]
    curve = [(size, height.estimate, height.low, height.high) for size, height in curve_of(points, fitted, floor)]
    points_of, curve_told = (
        [SizePoint(size=size, value=value, low=low, high=high) for size, value, low, high in each]
        for each in (measured, curve)
    )
    return Grown(
        exponent=Bounds(value=fitted.exponent.estimate, low=fitted.exponent.low, high=fitted.exponent.high),
        best=fitted.best,
        sizes=[point.size for point in points],
        points=points_of,
        curve=curve_told,
    )


def _decision(before: FittedGrowth, after: FittedGrowth) -> Literal["worse", "better", "same", "unproven"]:
    if _beyond(after, before):
        return "worse"
    if _beyond(before, after):
        return "better"
    told = before.low == before.high == after.low == after.high
    return "same" if told else "unproven"


def _beyond(one: FittedGrowth, other: FittedGrowth) -> bool:
    """Return whether ``one`` is proven to grow faster: a higher class, and a separate interval of the exponent."""
    apart = other.high == 0 or one.exponent.low > other.exponent.high
    return apart and one.low > other.high and math.isfinite(other.high)


def concerns(found: Iterable[Growth]) -> Iterator[Reason]:
    """Yield a warning for each benchmark that grows faster than before."""
    for item in found:
        if item.decision == "worse" and item.baseline and item.candidate:
            sides = " → ".join(_told(side) for side in (item.baseline, item.candidate))
            text = f"concern: {item.benchmark} {item.metric} grows faster with {item.key}: {sides}"
            yield reason(ReasonKind.GROWTH, text, item.benchmark, metric=item.metric, key=item.key)


def _told(side: Grown) -> str:
    value = side.exponent.value if side.exponent else None
    return (
        CLASS_NAMES[side.best]
        if side.best == "constant" or value is None
        else f"{CLASS_NAMES[side.best]} (n^{value:.2f})"
    )
