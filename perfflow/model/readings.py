"""The common tongue between tools, measuring and judging: readings, profiles, hotspots, checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from perfflow.model.errors import ToolOutputError
from perfflow.model.kernels import KernelFacts
from perfflow.model.later import dataclass
from perfflow.model.metrics import METRICS, QUANTILES, Better
from perfflow.stats.paired_test import quantile

if TYPE_CHECKING:
    from perfflow.model.memory_curve import MemoryCurve


class Side(StrEnum):
    """The two sides that are compared; a single measurement is the baseline alone."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


BATCH = "batch"
"""Beside the statistics in ``inner``: how many iterations each value is the mean of, where single ones are not timed.
"""
LARGEST = 2.0**63
"""Figures beyond this are no measurement: 2**63 ns are 292 years, 2**63 B are 8 EiB."""
MEAN, CAPPED = "mean", "capped mean"
CAP = 1.5
"""How many medians a value inside a process counts for at the most in a capped mean."""
NO_INNER: Mapping[str, float] = MappingProxyType({})
"""Shared by all stored readings of one value: a long run has millions."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """What one process said about one metric of one benchmark, in base units.

    ``value`` stands for the process. ``inner`` holds the statistics of the many values taken inside it, if any, and
    ``statistic`` says which of them ``value`` is: '' where there was one value only, or version 0.1.0 did not say.
    ``at_most`` marks an upper bound: the tool could not see below it (max RSS under the spawner's own). ``exact`` marks
    what a deterministic tool says, whatever the metric is: simulated cache misses have no noise, counted ones do.
    ``tick`` is the step of the last digit that was printed, 0 where it is unknown or does not matter.
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
    """Fold the values taken inside one process into one reading: its median, with the distribution beside it."""
    inner = _distribution(values)
    return Reading(metric, inner["p50"], benchmark, inner, statistic="p50")


def reading_of_process(metric: str, values: Sequence[float], benchmark: str = "", batch: float = 1.0) -> Reading:
    """Fold values taken inside one process, in base units, into their capped mean, with the distribution beside it.

    No value counts for more than ``CAP`` medians, so that what the rest of the machine adds to a few of them stays
    small, and yet whatever part of the operations got slower moves the figure. Of rates the times are capped. Each
    value is the mean of ``batch`` iterations.
    """
    if not is_rate(metric):
        capped = _capped(values)
    else:
        # All work by all time, as a time is all time by all operations.
        capped = 1 / _capped([1 / value for value in values]) if min(values) > 0 else 0.0
    # Equal values have a mean that may differ from them in its last digit.
    capped = max(min(values), min(capped, max(values)))
    inner = _distribution(values) | ({BATCH: batch} if batch > 1 else {})
    return Reading(metric, capped, benchmark, inner, statistic=CAPPED)


def is_rate(metric: str) -> bool:
    """Whether more of a metric is better, as of a throughput."""
    known = METRICS.get(metric)
    return known is not None and known.better is Better.HIGHER


def _capped(values: Sequence[float]) -> float:
    limit = CAP * quantile(values, 0.5)
    return sum(min(value, limit) for value in values) / len(values)


def _distribution(values: Sequence[float]) -> dict[str, float]:
    inner = {name: quantile(values, q) for name, q in QUANTILES.items()}
    return inner | {"min": min(values), "max": max(values), MEAN: sum(values) / len(values), "n": float(len(values))}


MOST_HOTSPOTS = 20
"""The hotspots that are kept of a profile: the largest ones."""
HOTSPOT = 0.05
"""The share above which a place is a hotspot."""


UNREAD_OUTPUT = "behaves differently when its output goes to /dev/null"
"""In the warning of a program whose figures are those of other work than is meant."""


FEW_SAMPLES = "samples are few"
"""In the warning of a sampling profiler whose shares do not mean much."""


@dataclass(frozen=True)
class Hotspot:
    """A place in the code with its share (0..1) of ``unit``.

    Units are ``time``, ``device time``, ``instructions``, ``bytes`` and ``stalls``.
    ``cause`` is what the tool measured about it, or a supposition marked as such; ``source`` names the tool. Beside
    ``share``, by which hotspots are ranked, ``self_share`` is what the function spent without anything it calls, and
    ``inclusive_share`` with all it calls, where the tool tells. ``benchmark`` is whose place it is, where a step
    profiles several.
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
    """What one function cost in one call of a profiler: its own share, with what it called in libraries.

    ``count`` is in the profiler's unit: samples or seconds for ``time``, else the base unit of ``metric``.
    """

    metric: str
    function: str
    count: float
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class StackCounts:
    """What the counts of a file of folded stacks are.

    ``unit``: ``samples``, ``ns``, ``instructions``, ``bytes``, ``allocations``, or what a processor's event is called.
    ``metric`` is the metric of which they are all there is, so that a share of them is a share of its figure; '' where
    they are of a part. ``by_thread``: the first frame of each stack is the name of its thread. ``is_call_pairs``: the
    tool knows who calls a function, but not who called that one, so longer stacks are a guess.
    """

    unit: str
    metric: str = ""
    by_thread: bool = False
    is_call_pairs: bool = False


@dataclass(frozen=True)
class Profile:
    """A profile on disk: ``path`` relative to the step's folder, and what it is; ``stacks`` where those are folded."""

    path: str
    kind: str
    stacks: StackCounts | None = None


@dataclass(frozen=True)
class Peak:
    """The most that the machine, or a device of it, can do: what the figures of a kernel are held against.

    ``metric`` is ``bandwidth`` (B/s) or ``flops`` (FLOP/s); with flops goes the ``precision``, such as ``f32``. ``how``
    says how it was found: what was measured, or the document it is from. ``device`` is the GPU's name, '' for the
    machine's own processor and memory.
    """

    metric: str
    value: float
    precision: str = ""
    how: str = ""
    device: str = ""


@dataclass(frozen=True)
class Check:
    """The outcome of a correctness step: what was checked, whether it held, and the first difference if not."""

    passed: bool
    detail: str


@dataclass(frozen=True)
class Parsed:
    """Everything an adapter read from the files of one process.

    Raises ToolOutputError for a figure that cannot be: what a file says is checked as it is read, and again here, since
    a unit may have made it too large.
    """

    readings: tuple[Reading, ...] = ()
    hotspots: tuple[Hotspot, ...] = ()
    profiles: tuple[Profile, ...] = ()
    warnings: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()
    """Every function, where hotspots are the largest; each once a metric."""
    peaks: tuple[Peak, ...] = ()
    device: str = ""
    """The GPU on which all of it was measured, by its driver's name; '' is the machine's own processor."""
    kernels: tuple[KernelFacts, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Benchmarks of a suite that failed, with the reason; those beside them have readings."""
    memory: MemoryCurve | None = None
    """What the process with the highest peak held over its run."""

    def __post_init__(self) -> None:
        """Check the figures, in base units."""
        found = [(item, value) for item in self.readings for value in (item.value, *item.inner.values())]
        for item, value in found:
            if not -LARGEST < value < LARGEST:
                of = f" of {item.benchmark[:80]}" if item.benchmark else ""
                raise ToolOutputError(f"{item.metric}{of} is {value:.3g} in base units, which cannot be")


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """What one child process used, in s, bytes and counts, by wait4(2) and proc(5).

    ``queued`` is the time its main thread was runnable but waited for a core (schedstat), None where the kernel does
    not tell. ``main_cpu`` is the CPU time of the main thread alone: less than user + system when the program has
    threads or children. ``rss_floor`` is the spawner's own high-water mark, which exec hands down: a ``max_rss`` near
    it only says "not above".
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
