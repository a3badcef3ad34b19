"""What a run shows of the kernels of a GPU for one condition of a rule, in words with its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perfflow.model.later import dataclass
from perfflow.model.result_kernels import KernelResult


@dataclass(frozen=True)
class LowOccupancy:
    """A kernel whose theoretical occupancy by the model is under a share, since a resource is short.

    Neither the SMs nor memory may be at ``busy`` of their peak or over: there more warps bring nothing. ``time`` is the
    least share of all kernels' time, here and below.
    """

    limiter: tuple[str, ...]
    occupancy: float
    busy: float
    time: float


@dataclass(frozen=True)
class Wasted:
    """A kernel of which more than a share of the sectors of global memory are moved by its access pattern alone."""

    uncoalesced: float
    time: float


@dataclass(frozen=True)
class Stalled:
    """A kernel whose warps wait for one of the reasons, worth acting on, for more than a share of their time."""

    stalls: tuple[str, ...]
    waiting: float
    time: float


KernelCondition = LowOccupancy | Wasted | Stalled


def current_kernels(kernels: Iterable[KernelResult]) -> list[KernelResult]:
    """Those of what was measured last: of a kernel on both sides the candidate's."""
    found: dict[tuple[str, str, str], KernelResult] = {}
    for item in kernels:
        key = (item.step, item.benchmark, item.name)
        if key not in found or item.tree == "candidate":
            found[key] = item
    return list(found.values())


def of_kernel(condition: KernelCondition, item: KernelResult) -> Iterator[str]:
    """What one kernel shows; nothing where the condition fails, or where its profiler does not tell."""
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
