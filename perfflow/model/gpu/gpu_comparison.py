"""One kernel on several GPUs: its time, and its share of each GPU's roof, which does not depend on the GPU's speed.

Differences between GPUs are reported, but they are never regressions, because the numbers are from different machines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class OnDevice:
    """A kernel's time on a device in seconds, and its share of that device's roof, None without a roof."""

    kernel: str
    device: str
    seconds: float
    share: float | None = None


@dataclass(frozen=True)
class Row:
    """A row of the table. ``slower``: time / fastest time; ``of_best``: share / best share."""

    kernel: str
    device: str
    seconds: float
    share: float | None
    slower: float
    of_best: float | None


def rows(measured: Iterable[OnDevice]) -> tuple[Row, ...]:
    """Sort each kernel's devices by their share of the roof, best first; those without a roof come last, by time.

    Kernels keep their order. ``of_best`` shows how well the code fits a device compared to the one that it fits best.
    """
    by_kernel: dict[str, list[OnDevice]] = {}
    for one in measured:
        by_kernel.setdefault(one.kernel, []).append(one)
    return tuple(row for group in by_kernel.values() for row in _of_one(group))


def _of_one(group: list[OnDevice]) -> list[Row]:
    fastest = min(one.seconds for one in group)
    best = max((one.share for one in group if one.share is not None), default=0.0)
    lines = [
        Row(
            one.kernel,
            one.device,
            one.seconds,
            one.share,
            one.seconds / fastest,
            None if one.share is None or not best else one.share / best,
        )
        for one in group
    ]
    return sorted(lines, key=lambda row: (row.share is None, -(row.share or 0.0), row.seconds, row.device))
