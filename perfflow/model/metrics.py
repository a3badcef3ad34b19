"""Built-in metrics and their statistics, and the optimization hierarchy.

A metric has a name, a dimension, a direction that is better, and is exact or not. The hierarchy lists techniques in the
order in which they should be tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfflow.model.similar import nearest_of
from perfflow.model.units import Dimension


class Better(StrEnum):
    """Which direction of a metric is an improvement; ``none`` for figures that are only shown."""

    LOWER = "lower"
    HIGHER = "higher"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of figure. ``exact`` ones are identical in every run, so one run is enough and there is no interval.

    ``total`` marks figures that add up over a run. ``ops`` divides them.
    """

    name: str
    dimension: Dimension
    better: Better
    exact: bool = False
    total: bool = False


def _metric(name: str, dimension: Dimension, better: Better, **marks: bool) -> tuple[str, Metric]:
    return name, Metric(name, dimension, better, **marks)


_LOW, _HIGH = Better.LOWER, Better.HIGHER

METRICS: Mapping[str, Metric] = dict(
    [
        _metric("time", Dimension.TIME, _LOW, total=True),
        _metric("cpu", Dimension.TIME, _LOW, total=True),
        _metric("user", Dimension.TIME, Better.NONE, total=True),
        _metric("system", Dimension.TIME, Better.NONE, total=True),
        _metric("uncontended", Dimension.TIME, _LOW, total=True),
        _metric("service_cpu", Dimension.TIME, _LOW),
        _metric("main_share", Dimension.RATIO, Better.NONE),
        _metric("turns", Dimension.RATIO, Better.NONE),
        _metric("rss", Dimension.BYTES, _LOW),
        _metric("rss_sampled", Dimension.BYTES, _LOW),
        _metric("heap_peak", Dimension.BYTES, _LOW, exact=True),
        _metric("alloc", Dimension.BYTES, _LOW, exact=True, total=True),
        _metric("allocs", Dimension.COUNT, _LOW, exact=True, total=True),
        _metric("temporary_allocs", Dimension.COUNT, _LOW, exact=True, total=True),
        _metric("ad_hoc_units", Dimension.COUNT, Better.NONE, exact=True, total=True),
        _metric("ad_hoc_events", Dimension.COUNT, Better.NONE, exact=True, total=True),
        _metric("object_size", Dimension.BYTES, _LOW),
        _metric("file_size", Dimension.BYTES, _LOW, exact=True),
        _metric("text_size", Dimension.BYTES, _LOW, exact=True),
        _metric("rodata_size", Dimension.BYTES, _LOW, exact=True),
        _metric("data_size", Dimension.BYTES, _LOW, exact=True),
        _metric("bss_size", Dimension.BYTES, _LOW, exact=True),
        _metric("unpacked_size", Dimension.BYTES, _LOW, exact=True),
        _metric("schedule_lag", Dimension.TIME, _LOW),
        _metric("leaked", Dimension.BYTES, _LOW, exact=True),
        _metric("instructions", Dimension.COUNT, _LOW, exact=True, total=True),
        _metric("cycles", Dimension.COUNT, _LOW, total=True),
        _metric("cache_misses", Dimension.COUNT, _LOW, total=True),
        _metric("cache_misses_i1", Dimension.COUNT, _LOW, total=True),
        _metric("cache_misses_d1", Dimension.COUNT, _LOW, total=True),
        _metric("cache_miss_rate", Dimension.RATIO, Better.NONE),
        _metric("cache_miss_rate_d1", Dimension.RATIO, Better.NONE),
        _metric("branch_miss_rate", Dimension.RATIO, Better.NONE),
        _metric("branch_misses", Dimension.COUNT, _LOW, total=True),
        _metric("page_faults", Dimension.COUNT, Better.NONE, total=True),
        _metric("context_switches", Dimension.COUNT, Better.NONE, total=True),
        _metric("syscalls", Dimension.COUNT, _LOW, total=True),
        _metric("syscall_errors", Dimension.COUNT, Better.NONE, total=True),
        _metric("file_opens", Dimension.COUNT, _LOW, total=True),
        _metric("disk_util", Dimension.RATIO, Better.NONE),
        _metric("disk_read", Dimension.THROUGHPUT, Better.NONE),
        _metric("disk_write", Dimension.THROUGHPUT, Better.NONE),
        _metric("cpu_user", Dimension.RATIO, Better.NONE),
        _metric("cpu_system", Dimension.RATIO, Better.NONE),
        _metric("cpu_iowait", Dimension.RATIO, Better.NONE),
        _metric("cpu_steal", Dimension.RATIO, Better.NONE),
        _metric("cpu_idle", Dimension.RATIO, Better.NONE),
        _metric("slow_callbacks", Dimension.COUNT, _LOW, total=True),
        _metric("slow_callback_max", Dimension.TIME, _LOW),
        _metric("sql_statements", Dimension.COUNT, _LOW, exact=True, total=True),
        _metric("sql_repeated", Dimension.COUNT, _LOW, exact=True, total=True),
        _metric("throughput", Dimension.THROUGHPUT, _HIGH),
        _metric("rate", Dimension.RATE, _HIGH),
        _metric("flops", Dimension.FLOPS, _HIGH),
        _metric("bandwidth", Dimension.THROUGHPUT, _HIGH),
        _metric("simd_share", Dimension.RATIO, _HIGH),
        _metric("vector_width", Dimension.COUNT, Better.NONE),
        _metric("occupancy", Dimension.RATIO, _HIGH),
        _metric("warp_efficiency", Dimension.RATIO, _HIGH),
        _metric("kernel_time", Dimension.TIME, _LOW),
        _metric("occupancy_theoretical", Dimension.RATIO, _HIGH, exact=True),
        _metric("sm_share", Dimension.RATIO, Better.NONE),
        _metric("memory_share", Dimension.RATIO, Better.NONE),
        _metric("dram_share", Dimension.RATIO, Better.NONE),
        _metric("l1_share", Dimension.RATIO, Better.NONE),
        _metric("l2_share", Dimension.RATIO, Better.NONE),
        _metric("tensor_share", Dimension.RATIO, Better.NONE),
        _metric("l1_hit_rate", Dimension.RATIO, Better.NONE),
        _metric("l2_hit_rate", Dimension.RATIO, Better.NONE),
        _metric("registers", Dimension.COUNT, Better.NONE, exact=True),
        _metric("waves", Dimension.COUNT, Better.NONE, exact=True),
        _metric("eligible_warps", Dimension.COUNT, Better.NONE),
        _metric("dataloader_fraction", Dimension.RATIO, _LOW),
        _metric("gil_share", Dimension.RATIO, Better.NONE),
        _metric("gpu_util", Dimension.RATIO, _HIGH),
        _metric("gpu_memory_peak", Dimension.BYTES, _LOW),
        _metric("tensor_memory_peak", Dimension.BYTES, _LOW),
        _metric("dataloader_wait", Dimension.RATIO, _LOW),
        _metric("compile_time", Dimension.TIME, _LOW),
        _metric("allreduce_fraction", Dimension.RATIO, _LOW),
        _metric("rank_skew", Dimension.RATIO, _LOW),
        _metric("gpu_time", Dimension.TIME, _LOW, total=True),
        _metric("gpu_idle", Dimension.RATIO, _LOW),
        _metric("kernel_time_sum", Dimension.TIME, _LOW, total=True),
        _metric("kernel_launches", Dimension.COUNT, _LOW, total=True),
        _metric("memcpy_time", Dimension.TIME, _LOW, total=True),
        _metric("memcpy_bytes", Dimension.BYTES, _LOW, total=True),
        _metric("memcpy_bandwidth", Dimension.THROUGHPUT, _HIGH),
        _metric("cuda_api_time", Dimension.TIME, _LOW, total=True),
        _metric("osrt_time", Dimension.TIME, Better.NONE, total=True),
        _metric("gpu_memory_util", Dimension.RATIO, Better.NONE),
        _metric("gpu_clock", Dimension.RATE, Better.NONE),
        _metric("gpu_memory_clock", Dimension.RATE, Better.NONE),
        _metric("gpu_throttled", Dimension.RATIO, _LOW),
        _metric("gpu_power_watts", Dimension.COUNT, Better.NONE),
        _metric("binary_size", Dimension.BYTES, _LOW, exact=True),
    ]
)
"""Built-in metrics by name; ``parse`` steps may add others with their own units."""


def builtin_metrics(*names: str) -> Mapping[str, Metric]:
    """Return built-in metrics by name, for an adapter's declaration. Raises KeyError for other names."""
    return {name: METRICS[name] for name in names}


TIMES = ("time", "cpu", "uncontended", "service_cpu")
"""The ways to time one run; one of them decides per benchmark."""

_IN_WORDS = {"uncontended": "time without core waits", "service_cpu": "CPU time of the service per request"}


def in_words(metric: str) -> str:
    """Return the name of a metric for people: its own, unless that needs an explanation."""
    return _IN_WORDS.get(metric, metric)


MEMORY = ("rss", "heap_peak", "alloc", "allocs")
"""Memory metrics, which have their own thresholds."""

_OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("latency", "duration", "elapsed", "wall", "walltime", "runtime", "seconds"), ("time",)),
    **dict.fromkeys(("cputime", "usertime"), ("cpu",)),
    **dict.fromkeys(("mem", "memory", "ram", "peakmemory", "memorypeak"), ("rss", "heap_peak")),
    **dict.fromkeys(("maxrss", "peakrss", "residentmemory"), ("rss",)),
    **dict.fromkeys(("heap", "peakheap"), ("heap_peak",)),
    **dict.fromkeys(("allocated", "allocatedbytes"), ("alloc",)),
    **dict.fromkeys(("allocations", "mallocs"), ("allocs",)),
    **dict.fromkeys(("ops", "opspersecond", "qps", "rps", "tps", "iops", "frequency"), ("rate",)),
    **dict.fromkeys(("bytespersecond", "mbps"), ("throughput",)),
    **dict.fromkeys(("size", "filesize", "binsize"), ("binary_size", "file_size")),
    **dict.fromkeys(("insns", "instrs", "instructioncount"), ("instructions",)),
}
"""Other names of a metric, without separators -> perfflow's. Similarity of letters would suggest `time` for `mem`."""
_NEAR = 0.6
"""Least similarity of two names for a suggestion: `latency` must not suggest `rate`."""


def meant_by(name: str, known: Collection[str]) -> str:
    """Return a hint with the known metric that ``name`` probably means; '' if there is none."""
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    others = [word for word in _OTHER_WORDS.get(plain, ()) if word in known]
    near = others or nearest_of(name, known, 1, _NEAR)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


STATISTICS = (
    *("p50", "mean", "min", "max", "p90", "p95", "p99", "p999", "value"),
    *("change", "speedup", "growth", "efficiency"),
)
COMPARED_STATISTICS = ("change", "speedup")
"""Statistics that exist only if two sides are compared."""
OF_SIZES = ("growth", "efficiency")
"""Statistics over the sizes of ``scaling``: over numbers of threads the efficiency, over any others the growth."""
THREADS = ("threads", "cores", "workers", "processes", "jobs", "ranks")
"""Matrix keys over which ``scaling`` divides the same work."""
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def default_statistic(metric: Metric) -> str:
    """Return ``value`` for exact metrics, else the median."""
    return "value" if metric.exact else "p50"


def is_exact(statistic: str) -> bool:
    """Return whether the statistic of a row means that its figures are exact."""
    return statistic == "value"


def statistic_dimension(metric: Metric, statistic: str) -> Dimension:
    """Return the dimension of a statistic: those that compare are ratios for every metric."""
    return Dimension.RATIO if statistic in (*COMPARED_STATISTICS, *OF_SIZES) else metric.dimension


TECHNIQUES = ("algorithm", "data-structure", "io", "memory", "concurrency", "vectorization", "compute", "caching")
"""The cheapest techniques with the largest effect come first."""
OUTSIDE = "configuration"
"""The technique outside of the hierarchy."""


def rank(technique: str) -> int:
    """Return the position of a technique in the hierarchy; techniques outside of it, and unknown ones, come last."""
    return TECHNIQUES.index(technique) if technique in TECHNIQUES else len(TECHNIQUES)
