"""Kernels and GPUs of a report of Nsight Systems, as the facts that every profiler of GPUs tells in the same form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from perfflow.samples.kernels import GPU, KernelFacts, together
from perfflow.tools.nvidia.nsys_report import Device, Report, Row

_SOURCE = "nsys"
_NANO = 1e9
# How readers write a launch into ``Row.launch``; of one that was launched in several ways the longest's.
_SHAPE = re.compile(r"grid (\d+)x(\d+)x(\d+), block (\d+)x(\d+)x(\d+)(?=,|\Z)", re.ASCII)
_REGISTERS = re.compile(r"(\d+) registers", re.ASCII)
_SHARED = re.compile(r"(\d+) B shared(?: \((\d+) B dynamic\))?", re.ASCII)
_CAPABILITY = re.compile(r"compute capability (\d{1,2}\.\d)", re.ASCII)


def device_of(report: Report) -> str:
    """The GPU of a report by its driver's name; '' where nothing ran on one."""
    names = [name_of(device) for device in report.devices]
    return together(names or ([GPU] if report.kernels or report.memory else []))


def name_of(device: Device) -> str:
    """A GPU's name without the number that tells it from others of its name."""
    return re.sub(r" \(\d+\)\Z", "", device.name) or GPU


def facts(report: Report, most: int) -> Iterator[KernelFacts]:
    """The kernels with the most time, and how most of each was launched."""
    whole = math.fsum(row.total for row in report.kernels)
    about = report.devices[0].about if len(report.devices) == 1 else ""
    capability = found[1] if (found := _CAPABILITY.search(about)) else ""
    for row in sorted(report.kernels, key=lambda row: (-row.total, row.name))[:most]:
        grid, threads = _shape(row)
        registers, shared = _REGISTERS.search(row.launch), _SHARED.search(row.launch)
        total, dynamic = (int(shared[1]), int(shared[2] or 0)) if shared else (0, 0)
        yield KernelFacts(
            name=row.name,
            source=_SOURCE,
            device=device_of(report),
            capability=capability,
            launches=row.calls,
            seconds=row.median / _NANO,
            share=row.total / whole if whole else None,
            grid=grid,
            threads=threads,
            registers=int(registers[1]) if registers else None,
            shared_static=max(0, total - dynamic) if registers else None,
            shared_dynamic=dynamic if registers else None,
        )


def _shape(row: Row) -> tuple[int | None, int | None]:
    """Blocks of a grid and threads of a block."""
    found = _SHAPE.search(row.launch)
    sizes = [int(size) for size in found.groups()] if found else []
    if not sizes or max(sizes) >= 2**31:
        return None, None
    return math.prod(sizes[:3]), math.prod(sizes[3:])
