"""Triton's own do_bench over functions on the CPU: the driver's events are a clock's, so that no GPU is needed."""

from __future__ import annotations

import sys
import time
from typing import Any

import triton  # type: ignore[import-not-found, unused-ignore]
import triton.testing  # type: ignore[import-not-found, unused-ignore]


class Event:
    def __init__(self, enable_timing: bool) -> None:
        self.at = 0.0 if enable_timing else float("nan")

    def record(self) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) * 1e3


class Interface:
    Event = Event

    @staticmethod
    def synchronize() -> None:
        """Nothing runs by itself."""


class Clock:
    """What do_bench asks a driver for."""

    @staticmethod
    def get_device_interface() -> type[Interface]:
        return Interface

    @staticmethod
    def get_empty_cache_for_benchmark() -> None:
        """There is none."""

    @staticmethod
    def clear_cache(cache: None) -> None:
        """There is none."""


def total() -> int:
    return sum(range(20_000))


def sizes(n: int, how: str) -> Any:
    return triton.testing.do_bench(lambda: sum(range(n)), rep=2, quantiles=[0.5, 0.2, 0.8])


triton.runtime.driver.set_active(Clock())
chart = triton.testing.Benchmark(["n"], [5_000, 50_000], "how", ["loop"], ["loop"], plot_name="sizes", args={})
marked = triton.testing.perf_report(chart)(sizes)
found = [
    triton.testing.do_bench(total, rep=2),
    triton.testing.do_bench(total, rep=2, return_mode="median"),
    triton.testing.do_bench(lambda: sum(range(3_000)), rep=1, return_mode="min"),
    # As perf_report runs them, without the drawing, which takes matplotlib.
    *(marked.fn(n=n, how="loop") for n in marked.benchmarks.x_vals),
]
sys.stdout.write(f"{found}\n")
