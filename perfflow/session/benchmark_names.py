"""What a step calls the benchmarks that its tool found."""

from __future__ import annotations

from dataclasses import replace

from perfflow.model.readings import Reading
from perfflow.plan import matrix
from perfflow.plan.plan import Planned


def benchmark_name(planned: Planned, found: str) -> str:
    """The step's name for its benchmark, or a suite's own id with the step's prefix and the cell around it."""
    pattern = planned.pattern if planned.step.benchmark else "*" + matrix.suffix(planned.cell)
    return pattern.replace("*", found, 1) if found and "*" in pattern else planned.benchmark


def benchmark_of_kernel(planned: Planned, kernel: str) -> str:
    """The benchmark that has a kernel's figures: one of its own from a suite of kernels, else the step's."""
    return benchmark_name(planned, kernel if planned.tool and planned.tool.suite else "")


def named(planned: Planned, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
    """Give readings their benchmark."""
    return tuple(replace(reading, benchmark=benchmark_name(planned, reading.benchmark)) for reading in readings)
