"""The evidence of GPU kernels for one condition of a rule, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from perfflow.model.result_kernels import KernelResult


@dataclass(frozen=True)
class LowOccupancy:
    """A kernel whose theoretical occupancy by the model is under a share because of a limited resource.

    Neither the SMs nor memory may reach ``busy`` of their peak, because more warps bring nothing then. ``time`` is the
    least share of all kernels' time, here and below.
    """

    limiter: tuple[str, ...]
    occupancy: float
    busy: float
    time: float


@dataclass(frozen=True)
class Wasted:
    """A kernel with more than a share of needless global memory sectors, due to its access pattern."""

    uncoalesced: float
    time: float


@dataclass(frozen=True)
class Stalled:
    """A kernel whose warps wait for one of the reasons for more than a share of their time."""

    stalls: tuple[str, ...]
    waiting: float
    time: float


KernelCondition = LowOccupancy | Wasted | Stalled


def current_kernels(kernels: Iterable[KernelResult]) -> list[KernelResult]:
    """Return the latest kernels: for a kernel on both sides, that of the candidate."""
    found: dict[tuple[str, str, str], KernelResult] = {}
    for item in kernels:
        key = (item.step, item.benchmark, item.name)
        if key not in found or item.tree == "candidate":
            found[key] = item
    return list(found.values())


def of_kernel(condition: KernelCondition, item: KernelResult) -> Iterator[str]:
    """Yield the evidence of one kernel; nothing if the condition does not hold or its data is missing."""
    if item.share is None or item.share < condition.time:
        return
    match condition:
        case LowOccupancy():
            yield from _low(condition, item)
        case Wasted():
            if item.uncoalesced is not None and item.uncoalesced > condition.uncoalesced:
                wasted = f"{item.uncoalesced:.0%} of the global memory sectors it moves are not needed for its data"
                yield f"{_whose(item)}: {wasted}"
        case Stalled():
            for stall in item.stalls:
                if stall.reason in condition.stalls and stall.pressing and stall.share > condition.waiting:
                    issued = f", schedulers issue in {item.issued:.0%} of cycles" if item.issued is not None else ""
                    yield f"{_whose(item)}: {stall.share:.0%} of its warps' time is spent in {stall.reason}{issued}"


def _low(condition: LowOccupancy, item: KernelResult) -> Iterator[str]:
    model = item.model
    if model is None or item.sm_share is None or item.memory_share is None:
        return
    busy = max(item.sm_share, item.memory_share) >= condition.busy
    if not busy and model.occupancy < condition.occupancy and set(model.limiters) & set(condition.limiter):
        achieved = f", {item.occupancy:.0%} achieved" if item.occupancy is not None else ""
        lift = f"; {model.lifts[0]}" if model.lifts else ""
        possible = f"{model.occupancy:.0%} occupancy possible, limited by {' and '.join(model.limiters)}{achieved}"
        yield f"{_whose(item)}: {possible}, SM {item.sm_share:.0%} and memory {item.memory_share:.0%} busy{lift}"


def _whose(item: KernelResult) -> str:
    return f"{item.source}: {item.name} ({item.share or 0.0:.0%} of device time)"
