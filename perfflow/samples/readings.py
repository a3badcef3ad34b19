"""The common tongue between tools, measuring and judging: readings, profiles, hotspots, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from perfflow.samples.kernels import KernelFacts
from perfflow.samples.metrics import METRICS, QUANTILES, Better
from perfflow.statistics import quantile


class Side(StrEnum):
    """The two sides that are compared; a single measurement is the baseline alone."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


BATCH = "batch"
"""Beside the statistics in ``inner``: how many iterations each value is the mean of, where single ones are not timed.
"""
NO_INNER: Mapping[str, float] = MappingProxyType({})
"""Shared by all stored readings of one value: a long run has millions."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one process said about one metric of one benchmark, in base units.

    ``value`` stands for the process. ``inner`` holds the statistics of the many values taken inside it, if any.
    ``at_most`` marks an upper bound: the tool could not see below it (max RSS under the spawner's own). ``exact`` marks
    what a deterministic tool says, whatever the metric is: simulated cache misses have no noise, counted ones do.
    """

    metric: str
    value: float
    benchmark: str = ""
    inner: Mapping[str, float] = field(default_factory=dict)
    at_most: bool = False
    exact: bool = False


def reading_of_many(metric: str, values: Sequence[float], benchmark: str = "") -> Reading:
    """Fold the values taken inside one process into one reading: its median, with the distribution beside it."""
    inner = _distribution(values)
    return Reading(metric, inner["p50"], benchmark, inner)


def reading_of_undisturbed(metric: str, values: Sequence[float], benchmark: str = "") -> Reading:
    """Fold values taken inside one process into its better quartile, with the distribution beside it.

    For times of a millisecond or less: the rest of the machine only ever adds to them, and to the best quarter of so
    short ones next to nothing. The better quartile is the lower one, but the upper one of rates.
    """
    known = METRICS.get(metric)
    q = 0.75 if known and known.better is Better.HIGHER else 0.25
    return Reading(metric, quantile(values, q), benchmark, _distribution(values))


def _distribution(values: Sequence[float]) -> dict[str, float]:
    inner = {name: quantile(values, q) for name, q in QUANTILES.items()}
    return inner | {"min": min(values), "max": max(values), "mean": sum(values) / len(values), "n": float(len(values))}


HOTSPOT = 0.05
"""The share above which a place is a hotspot."""


FEW_SAMPLES = "samples are few"
"""In the warning of a sampling profiler whose shares do not mean much."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Cost:
    """What one function cost in one call of a profiler: its own share, with what it called in libraries.

    ``count`` is in the profiler's unit: samples or seconds for ``time``, else the base unit of ``metric``.
    """

    metric: str
    function: str
    count: float
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile on disk: ``path`` relative to the step's folder, and what it is."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of a correctness step: what was checked, whether it held, and the first difference if not."""

    passed: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """Everything an adapter read from the files of one process."""

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


@dataclass(frozen=True, slots=True)
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
