"""Types that tools, measuring and judging share: readings, profiles, hotspots, checks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from perfflow.model.errors import ToolOutputError
from perfflow.model.kernels import KernelFacts
from perfflow.model.memory_curve import MemoryCurve
from perfflow.model.metrics import METRICS, QUANTILES, Better
from perfflow.stats.paired_test import quantile


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


def is_rate(metric: str) -> bool:
    """Return whether higher values of a metric are better, for example a throughput."""
    known = METRICS.get(metric)
    return known is not None and known.better is Better.HIGHER


def _capped(values: Sequence[float]) -> float:
    limit = CAP * quantile(values, 0.5)
    return sum(min(value, limit) for value in values) / len(values)


def _distribution(values: Sequence[float]) -> dict[str, float]:
    inner = {name: quantile(values, q) for name, q in QUANTILES.items()}
    return inner | {"min": min(values), "max": max(values), MEAN: sum(values) / len(values), "n": float(len(values))}


MOST_HOTSPOTS = 20
"""Number of hotspots that are kept of a profile, the largest ones."""
HOTSPOT = 0.05
"""The share above which a place is a hotspot."""


UNREAD_OUTPUT = "behaves differently when its output goes to /dev/null"
"""Part of the warning about a program that does less work if its output is not read."""
BASH_START = "the start of bash itself"
"""Part of the note that says how long bash took to start, which no figure contains."""


FEW_SAMPLES = "samples are few"
"""Part of the warning about a sampling profile with unreliable shares."""


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
class Check:
    """The outcome of a correctness step: whether it passed, and what was checked or the first difference."""

    passed: bool
    detail: str


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
    kernels: tuple[KernelFacts, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Failed benchmarks of a suite with the reason. The others have readings."""
    memory: MemoryCurve | None = None
    """Heap memory of the process with the highest peak over its run."""

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
