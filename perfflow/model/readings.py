"""Types that tools, measuring and judging share: readings, profiles, hotspots, checks.

Then what the values of a benchmark allow to conclude:

- ``is_summary``: whether a series is one value that summarizes many samples which were not stored; ``inner`` of its
  reading has its standard error and their number.
- ``tick_of``: the resolution (tick) of values, that of a coarse clock, or of the digits that a program prints.
- ``serial_factor``: serial dependence of samples by drift, clock states, or bursts of other work.
- ``Design``: how the samples of a benchmark were taken, which determines their analysis.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from itertools import pairwise
from operator import mul
from types import MappingProxyType
from typing import TYPE_CHECKING

from perfflow.model.errors import ToolOutputError
from perfflow.model.memory_curve import MemoryCurve
from perfflow.model.metrics import METRICS, QUANTILES, Better
from perfflow.model.units import Dimension
from perfflow.stats.paired_test import LogMean, Looks, log_mean, log_mean_of_summary, quantile

if TYPE_CHECKING:
    # Drivers import this module without the packages that perfflow needs.
    from perfflow.model.kernels import KernelResult


PREPARED = "prepared"
"""The folder of a step with what it makes before it measures, such as builds of a suite, and their logs."""


class Side(StrEnum):
    """The two sides of a comparison. A single measurement has only the baseline."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


BATCH = "batch"
"""Key in ``inner`` beside the statistics: number of iterations per value, if single iterations are not timed."""
LARGEST = 2.0**63
"""Figures beyond this are rejected as errors: 2**63 ns are 292 years, 2**63 B are 8 EiB."""
MEAN, CAPPED = "mean", "capped mean"
CAP = 1.5
"""Cap of a value inside a process in a capped mean, as a multiple of the median."""
NO_INNER: Mapping[str, float] = MappingProxyType({})
"""Shared by all stored readings of one value, because a long run has millions of them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one process for one metric of one benchmark, in base units.

    ``value`` represents the process. ``inner`` holds the statistics of the values taken inside it, if there were many,
    and ``statistic`` names the one that is ``value``: '' for a single value.
    ``at_most`` marks an upper bound, below which the tool cannot measure: max RSS under the spawner's own, or the time
    without core waits of a benchmark in a process that waits. ``exact`` marks values of a deterministic tool for any
    metric: simulated cache misses have no noise, counted ones do.
    ``tick`` is the step of the last printed digit, 0 if it is unknown or irrelevant.
    """

    metric: str
    value: float
    benchmark: str = ""
    inner: Mapping[str, float] = field(default_factory=dict)
    at_most: bool = False
    exact: bool = False
    statistic: str = ""
    tick: float = 0.0


_IN_ORDER = ("min", *QUANTILES, "max")
IN_DISTRIBUTION = (*_IN_ORDER, MEAN, "n")
"""What ``inner`` may have of a distribution."""


def reading_of_many(metric: str, values: Sequence[float], benchmark: str = "") -> Reading:
    """Combine the values taken inside one process into one reading: the median, with the distribution in ``inner``."""
    inner = _distribution(values)
    return Reading(metric, inner["p50"], benchmark, inner, statistic="p50")


def reading_of_process(metric: str, values: Sequence[float], benchmark: str = "", batch: float = 1.0) -> Reading:
    """Combine the values taken inside one process, in base units, into their capped mean, with the distribution.

    Each value counts for at most ``CAP`` medians. This limits the effect of other load on a few values, but the figure
    still moves if any part of the operations gets slower. For rates, the times are capped. Each value is the mean of
    ``batch`` iterations.
    """
    if not is_rate(metric):
        capped = _capped(values)
    else:
        # Total work over total time, just as a mean time is total time over all operations.
        capped = 1 / _capped([1 / value for value in values]) if min(values) > 0 else 0.0
    # The mean of equal values may differ from them in its last digit.
    capped = max(min(values), min(capped, max(values)))
    inner = _distribution(values) | ({BATCH: batch} if batch > 1 else {})
    return Reading(metric, capped, benchmark, inner, statistic=CAPPED)


def reading_of_distribution(
    metric: str, figures: Mapping[str, float], benchmark: str = "", statistic: str = "p50"
) -> Reading:
    """Return the reading of a process that reports the distribution of its values, in base units, not the values.

    ``figures`` has some of ``min``, ``p50``, ``p90``, ``p95``, ``p99``, ``p999``, ``max``, ``mean``, and ``n``, their
    number.
    ``statistic`` names the one that represents the process. Raises ToolOutputError if they contradict each other.
    """
    if set(figures) - set(IN_DISTRIBUTION) or statistic not in figures:
        raise ToolOutputError(f"a distribution has {', '.join(IN_DISTRIBUTION)}, not {', '.join(figures)}")
    ordered = [figures[name] for name in _IN_ORDER if name in figures]
    mean = figures.get(MEAN, figures[statistic])
    # The mean of equal values may differ from them in its last digit.
    inside = all(
        math.isclose(mean, figures[end], rel_tol=1e-9) or (mean > figures[end]) == (end == "min")
        for end in ("min", "max")
        if end in figures
    )
    if any(map(math.isnan, figures.values())) or ordered != sorted(ordered) or not inside or figures.get("n", 1) < 1:
        raise ToolOutputError(f"the distribution of {metric} contradicts itself: {dict(figures)}")
    return Reading(metric, figures[statistic], benchmark, dict(figures), statistic=statistic)


_BEYOND = 10
_RARE = "p999"


def are_enough(count: float, statistic: str) -> bool:
    """Return whether so many values have a percentile: ten of them lie beyond it. The median needs one value."""
    share = 1 - QUANTILES.get(statistic, 0.0)
    return statistic not in QUANTILES or statistic == "p50" or round(count * share, 6) >= _BEYOND


def fewest_without(readings: Iterable[Reading], statistic: str) -> int:
    """Return the fewest values of a process that has no such percentile for want of values; 0 if there is none."""
    counts = (item.inner["n"] for item in readings if "n" in item.inner and statistic not in item.inner)
    return min((int(count) for count in counts if not are_enough(count, statistic)), default=0)


def is_rate(metric: str) -> bool:
    """Return whether higher values of a metric are better, for example a throughput."""
    known = METRICS.get(metric)
    return known is not None and known.better is Better.HIGHER


def _capped(values: Sequence[float]) -> float:
    limit = CAP * quantile(values, 0.5)
    return sum(min(value, limit) for value in values) / len(values)


def _distribution(values: Sequence[float]) -> dict[str, float]:
    inner = {name: quantile(values, q) for name, q in QUANTILES.items()}
    if not are_enough(len(values), _RARE):
        del inner[_RARE]
    return inner | {"min": min(values), "max": max(values), MEAN: sum(values) / len(values), "n": float(len(values))}


MOST_HOTSPOTS = 20
"""Number of hotspots that are kept of a profile, the largest ones."""
HOTSPOT = 0.05
"""The share above which a place is a hotspot."""
NEARLY_ALL = 0.99
"""The share from which a bound of hundreds of times says no more than that."""


@dataclass(frozen=True)
class Hotspot:
    """A place in the code with its share (0..1) of ``unit``.

    Units are ``time``, ``device time``, ``instructions``, ``bytes`` and ``stalls``.
    ``cause`` is a fact that the tool measured, or an assumption marked as such; ``source`` names the tool. Hotspots are
    ranked by ``share``. ``self_share`` excludes all callees of the function, and ``inclusive_share`` includes them, if
    the tool reports them. ``benchmark`` is set if a step profiles several.
    """

    location: str
    share: float
    unit: str
    source: str
    file: str = ""
    line: int = 0
    cause: str = ""
    self_share: float | None = None
    inclusive_share: float | None = None
    benchmark: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one function in one call of a profiler: its own, including its calls into libraries.

    ``count`` is in the profiler's unit: samples or seconds for ``time``, else the base unit of ``metric``.
    """

    metric: str
    function: str
    count: float
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class StackCounts:
    """Meaning of the counts in a file of folded stacks.

    ``unit``: ``samples``, ``ns``, ``instructions``, ``bytes``, ``allocations``, or the name of a processor's event.
    ``metric``: the metric that the counts cover completely, so that a share of the counts is a share of its figure; ''
    if they cover a part. ``by_thread``: the first frame of each stack is the name of its thread. ``is_call_pairs``: the
    tool knows the direct caller of a function only, so longer stacks are estimates.
    """

    unit: str
    metric: str = ""
    by_thread: bool = False
    is_call_pairs: bool = False


@dataclass(frozen=True)
class Profile:
    """A profile on disk: ``path`` relative to the step's folder, its kind, and ``stacks`` if it has folded stacks."""

    path: str
    kind: str
    stacks: StackCounts | None = None


@dataclass(frozen=True)
class Peak:
    """The peak performance of the machine or one of its devices, with which figures of a kernel are compared.

    ``metric`` is ``bandwidth`` (B/s) or ``flops`` (FLOP/s); flops have a ``precision``, such as ``f32``. ``how`` is the
    source: the measurement or the document. ``device`` is the GPU's name, '' for the machine's own processor and
    memory.
    """

    metric: str
    value: float
    precision: str = ""
    how: str = ""
    device: str = ""


@dataclass(frozen=True)
class Parsed:
    """Everything that an adapter read from the files of one process.

    Raises ToolOutputError for an impossible figure. Figures are checked when they are read, and again here, because a
    conversion of units may have made them too large.
    """

    readings: tuple[Reading, ...] = ()
    hotspots: tuple[Hotspot, ...] = ()
    profiles: tuple[Profile, ...] = ()
    warnings: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()
    """Costs of all functions (hotspots are only the largest), one per function and metric."""
    peaks: tuple[Peak, ...] = ()
    device: str = ""
    """Driver's name of the GPU on which everything was measured; '' is the machine's own processor."""
    kernels: tuple[KernelResult, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Failed benchmarks of a suite with the reason. The others have readings."""
    memory: MemoryCurve | None = None
    """Heap memory of the process with the highest peak over its run."""
    few_samples: bool = False
    """Whether a profiler took too few samples for reliable shares; a warning says so."""

    def __post_init__(self) -> None:
        """Check the figures, in base units."""
        found = [(item, value) for item in self.readings for value in (item.value, *item.inner.values())]
        for item, value in found:
            if not -LARGEST < value < LARGEST:
                of = f" of {item.benchmark[:80]}" if item.benchmark else ""
                raise ToolOutputError(f"{item.metric}{of} is {value:.3g} in base units, which is not valid")


ONE_THREAD = 0.95
# The two clocks of main_share differ by up to a tick.
_TICK = 0.001
WAITED = 0.1


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """Resource usage of one child process in s, bytes and counts, from wait4(2) and proc(5).

    ``queued`` is the time that its main thread was runnable but waited for a core (schedstat), None if the kernel does
    not report it. ``main_cpu`` is the CPU time of the main thread alone: less than user + system if the program has
    threads or children. ``rss_floor`` is the spawner's own high-water mark, which exec passes on: a ``max_rss`` near it
    is only an upper bound. ``shell_start`` is how long bash took to start, which the other times do not contain; None
    if they contain it, or the program is not bash. ``rest`` has the usages of the further processes of the same call.
    """

    wall: float
    user: float = 0.0
    system: float = 0.0
    max_rss: int = 0
    rss_floor: int = 0
    page_faults: int = 0
    context_switches: int = 0
    queued: float | None = None
    main_cpu: float | None = None
    shell_start: float | None = None
    rest: tuple[Usage, ...] = ()

    @property
    def main_share(self) -> float | None:
        """Share (0 to 1) of the CPU time in the main thread, None if the kernel does not report it.

        Less than ONE_THREAD means threads or children, whose waiting for a core is not in ``queued``.
        """
        cpu = self.user + self.system
        if self.queued is None or self.main_cpu is None:
            return None
        return min(1.0, (self.main_cpu + _TICK) / cpu) if cpu else 1.0

    @property
    def uncontended(self) -> float | None:
        """Wall time (s) without waiting for a core; None if the program has threads or children, or it is unknown."""
        if self.queued is None or (self.main_share or 0.0) < ONE_THREAD:
            return None
        return max(self.wall - self.queued, self.user + self.system)

    @property
    def only_computes(self) -> bool:
        """Whether each process of the call has one thread, and waited for more than a core for at most WAITED.

        WAITED is a share of its CPU time.
        """
        factor = self.uncontended_factor(self.user + self.system)
        return factor is not None and factor <= 1 + WAITED and all(each.only_computes for each in self.rest)

    def uncontended_factor(self, computed: float, elapsed: float = math.inf) -> float | None:
        """Return an upper bound of time without core waits as a multiple of CPU time, for a part of a process.

        ``computed`` and ``elapsed`` are the CPU time and wall time (s) of that part. Whatever else than a core the
        process waited for is charged to the part in full, as far as the part waited at all. None if it is unknown.
        """
        if self.uncontended is None or not computed:
            return None
        waited = self.uncontended - self.user - self.system
        return 1 + max(0.0, min(waited, elapsed - computed)) / computed


ERROR, COUNT = "stderr", "n"


def is_summary(readings: Sequence[Reading]) -> bool:
    """Return whether a series is one value that summarizes many samples."""
    return len(readings) == 1 and ERROR in readings[0].inner


def log_mean_of(readings: Sequence[Reading]) -> LogMean:
    """Return the mean of the logarithms of positive values, or of one value that summarizes many."""
    first = readings[0]
    if is_summary(readings):
        return log_mean_of_summary(first.value, first.inner[ERROR], int(first.inner[COUNT]))
    return log_mean([reading.value for reading in readings])


COARSE = 0.005
"""Share of a value above which a tick matters: the floor of changes of identical files."""
_TIES = _DIFFERENT = 2


def printed_tick(value: float, steps: Sequence[float]) -> float:
    """Return the median step of the last digit of one process's figures, 0 if it is too fine to matter.

    Most formats print a fixed number of digits. A format that drops trailing zeros still prints most values in full.
    """
    tick = sorted(steps)[len(steps) // 2]
    return tick if tick > abs(value) * COARSE / 10 else 0.0


def tick_of(sides: Sequence[Sequence[Reading]], dimension: Dimension) -> float:
    """Return the tick of the values of one or two sides in base units; 0 if it is too fine to matter.

    It is the step of the printed digits, or for times a coarser step that the values show. Counts have no tick, because
    they are whole numbers by nature.
    """
    values = [[item.value for item in readings] for readings in sides if readings]
    middle = min((abs(quantile(of_side, 0.5)) for of_side in values), default=0.0)
    if middle == 0 or dimension is Dimension.COUNT:
        return 0.0
    printed = max(sorted(item.tick for item in readings)[len(readings) // 2] for readings in sides if readings)
    shown = max(map(_shown_step, values)) if dimension is Dimension.TIME else 0.0
    tick = max(printed, shown)
    return tick if tick >= COARSE * middle else 0.0


def _shown_step(values: Sequence[float]) -> float:
    """Return the largest step of which all values are multiples; 0 without ties or without different values."""
    noise = 1e-9 * max(map(abs, values))
    ordered = sorted(values)
    # Differences of a clock's floats are equal except for noise. If all values are, their step is unknown.
    distinct = [ordered[0], *(value for before, value in pairwise(ordered) if value - before > noise)]
    if len(distinct) < _DIFFERENT or len(values) - len(distinct) < _TIES:
        return 0.0
    return reduce(lambda a, b: _common_divisor(a, b, noise), map(abs, distinct))


def _common_divisor(a: float, b: float, noise: float) -> float:
    """Return the common divisor by Euclid's algorithm, for floats that are multiples of a step except for ``noise``."""
    while b > noise:
        a, b = b, abs(math.remainder(a, b))
    return a


_FEWEST_IN_ORDER = 6
_NORMAL_95 = 1.645
_STRONGEST = 0.95


def serial_factor(values: Sequence[float]) -> float:
    """Return the factor by which serial dependence increases the standard error; 1 if no dependence is visible.

    ``values`` are in the order taken. The model is a first-order autoregression. Its correlation is the larger of that
    of the ranks and that of the values (logarithms, if all are positive), corrected for the bias of short series
    (Marriott and Pope 1954). A correlation that 5% of independent series reach counts as chance, and gives 1.
    """
    n = len(values)
    if n < _FEWEST_IN_ORDER:
        return 1.0
    positions: dict[float, list[int]] = {}
    for position, value in enumerate(sorted(values)):
        positions.setdefault(value, []).append(position)
    ranks = [(positions[value][0] + positions[value][-1]) / 2 for value in values]
    plain = list(map(math.log, values)) if min(values) > 0 else values
    lag_one = max(_lag_one(ranks), _lag_one(plain))
    if (lag_one + 1 / n) * math.sqrt(n) < _NORMAL_95:
        return 1.0
    correlation = min(_STRONGEST, (n * lag_one + 1) / (n - 4))
    return math.sqrt((1 + correlation) / (1 - correlation))


def _lag_one(values: Sequence[float]) -> float:
    """Return the correlation of neighbouring values; 0 if all are equal."""
    # In units of the largest value, because squares of huge values are infinite.
    unit = max(map(abs, values)) or 1.0
    scaled = [value / unit for value in values]
    mean = math.fsum(scaled) / len(scaled)
    moved = [value - mean for value in scaled]
    total = math.fsum(value * value for value in moved)
    return math.fsum(map(mul, moved, moved[1:])) / total if total > 0 else 0.0


class Design(StrEnum):
    """How the samples of one benchmark were taken; it determines the analysis."""

    LOOKS = "looks"
    FIXED = "fixed"
    FEW = "few"
    """A few runs of each side in random order."""
    CONFIRM = "confirm"
    """Fresh pairs that confirm a change of the pairs before. All of them decide."""
    LAYOUTS = "layouts"
    FIXED_LAYOUTS = "fixed layouts"
    FEW_LAYOUTS = "few layouts"
    """A few code layouts of each side, with several runs of each layout."""
    UNPAIRED = "unpaired"
    """Combined from two stored sets."""


SCHEDULES: Mapping[str, Looks] = {
    # More than half is spent at the first analysis, so that 9 pairs that all agree, with a part of it, prove a change.
    Design.LOOKS: (
        *((11, 0.0056), (15, 0.0012), (20, 0.0008), (28, 0.0005), (40, 0.0004), (64, 0.0004), (90, 0.0002)),
        *((128, 0.0002), (180, 0.0001), (256, 0.0001), (360, 0.0001), (512, 0.0001), (720, 0.00005)),
        *((1024, 0.00005), (1440, 0.00005), (2048, 0.00005), (2900, 0.00005), (4096, 0.00005)),
    ),
    # In runs of each side. The smallest p-value of 5 + 5 runs in random order is 2/252 = .00794.
    Design.FEW: (
        *((5, 0.00794), (8, 0.0004), (11, 0.0004), (14, 0.0003), (20, 0.0003), (26, 0.0002), (35, 0.00016)),
        *((50, 0.0001), (71, 0.0001), (98, 0.0001)),
    ),
    # Pairs with fresh code layouts vary more, so the last analysis has a larger part.
    Design.LAYOUTS: ((11, 0.0020), (15, 0.0010), (20, 0.0010), (28, 0.0010), (40, 0.0010), (64, 0.0040)),
}
"""Interim analyses of the designs that have them: numbers of pairs, each with its part of the 1% of false alarms."""
