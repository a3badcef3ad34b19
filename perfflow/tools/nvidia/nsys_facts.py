"""Kernels and GPUs of a report of Nsight Systems, as the facts that every profiler of GPUs tells in the same form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from perfflow.samples.kernels import GPU, KernelFacts, together
from perfflow.tools.nvidia.nsys_report import Device, Report

_SOURCE = "nsys"
_NANO = 1e9
# How readers write a launch into ``Row.launch``; of one that was launched in several ways the longest's.
_SHAPE = r"(?:grid (\d{1,10})x(\d{1,10})x(\d{1,10}), block (\d{1,10})x(\d{1,10})x(\d{1,10}))?"
_SHARED = r"(?:(\d{1,10}) B shared(?: \((\d{1,10}) B dynamic\))?)?"
_LAUNCH = re.compile(rf"{_SHAPE}(?:, )?(?:(\d{{1,10}}) registers)?(?:, )?{_SHARED}", re.ASCII)
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
        launch = _LAUNCH.match(row.launch)
        *sizes, registers, total, dynamic = [int(size) if size else None for size in launch.groups()] if launch else []
        told = registers is not None
        known = [size for size in sizes if size is not None and size < 2**31]
        grid, threads = (math.prod(known[:3]), math.prod(known[3:])) if len(known) == 6 else (None, None)
        yield KernelFacts(
            *(row.name, _SOURCE, device_of(report), capability, row.calls, row.median / _NANO),
            *(row.total / whole if whole else None, grid, threads, registers),
            shared_static=max(0, (total or 0) - (dynamic or 0)) if told else None,
            shared_dynamic=dynamic or 0 if told else None,
        )
