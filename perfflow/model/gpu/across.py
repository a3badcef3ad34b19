"""One kernel on several GPUs: its time, and its share of each one's roof, so that a slower board is no worse kernel.

What differs between GPUs is reported. It is never a regression: no two of these numbers are of the same machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from perfflow.model.later import dataclass


@dataclass(frozen=True)
class OnDevice:
    """A kernel's time on a device in seconds, and the share of that device's roof, None where it has none."""

    kernel: str
    device: str
    seconds: float
    share: float | None = None


@dataclass(frozen=True)
class Row:
    """A line of the table: ``slower`` is the time over the fastest's, ``of_best`` the share over the best share."""

    kernel: str
    device: str
    seconds: float
    share: float | None
    slower: float
    of_best: float | None


def rows(measured: Iterable[OnDevice]) -> tuple[Row, ...]:
    """Line up each kernel's devices, the best use of a roof first and those without a roof last, by time.

    Kernels keep their order. ``of_best`` says how well this code fits a device next to the one it fits best.
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
