"""Names that a step gives to the benchmarks of its tool."""

from __future__ import annotations

from dataclasses import replace

from perfflow.model.readings import Reading
from perfflow.plan import matrix
from perfflow.plan.plan import Planned


def benchmark_name(planned: Planned, found: str) -> str:
    """Return the step's name for its benchmark, or a suite's own id with the step's prefix and its matrix cell."""
    pattern = planned.pattern if planned.step.benchmark else "*" + matrix.suffix(planned.cell)
    return pattern.replace("*", found, 1) if found and "*" in pattern else planned.benchmark


def benchmark_of_kernel(planned: Planned, kernel: str) -> str:
    """Return the benchmark for a kernel's figures: the kernel's own in a suite of kernels, else the step's."""
    return benchmark_name(planned, kernel if planned.tool and planned.tool.suite else "")


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Return the readings with the step's benchmark names."""
    return tuple(replace(reading, benchmark=benchmark_name(planned, reading.benchmark)) for reading in readings)
