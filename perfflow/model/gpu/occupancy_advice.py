"""Find the smallest changes that raise a launch's theoretical occupancy to the next step.

Registers can be lowered by ``__launch_bounds__`` or ``-maxrregcount`` (and then spill), shared memory by smaller tiles,
the block size by the launch. Higher occupancy hides latency; it does not help a kernel with another bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from perfflow.model.gpu.limits import WARP, Limits
from perfflow.model.gpu.occupancy import Launch, Limiter, Occupancy, by_registers, by_shared_memory, occupancy


@dataclass(frozen=True)
class Lift:
    """A changed launch with more resident warps, and the names of the changed fields of ``Launch``."""

    changed: tuple[str, ...]
    reached: Occupancy

    @property
    def text(self) -> str:
        """Text such as ``at most 40 registers per thread: 75% occupancy``."""
        launch = self.reached.launch
        says = {
            "registers": f"at most {launch.registers} registers per thread",
            "shared": f"at most {launch.shared} B of shared memory per block",
            "carveout": f"shared memory set to {launch.carveout} B per SM",
            "threads": f"{launch.threads} threads per block",
        }
        return f"{' and '.join(says[name] for name in self.changed)}: {self.reached.share:.0%} occupancy"


def lifts(found: Occupancy) -> tuple[Lift, ...]:
    """Return changes of one kind each that raise occupancy; empty at 100%, or if none would help.

    First a smaller use per block (registers and shared memory together, if both limit), then a larger carveout of
    shared memory, then other block sizes: the nearest one that helps, and the one with the highest occupancy. A changed
    block size keeps the other numbers.
    """
    if found.warps >= found.limits.warps:
        return ()
    tried = (_smaller(found), _larger_setting(found), *_other_blocks(found))
    return tuple(lift for lift in tried if lift is not None)


def _smaller(found: Occupancy) -> Lift | None:
    """Return the largest registers and shared memory that leave room for one more block."""
    wanted = found.blocks + 1
    if any(found.allowed.get(fixed, wanted) < wanted for fixed in (Limiter.WARPS, Limiter.BLOCKS, Limiter.BARRIERS)):
        return None
    launch, limits, changed = found.launch, found.limits, []
    if found.allowed.get(Limiter.REGISTERS, wanted) < wanted:
        registers = _most(
            launch.registers, lambda n: _holds(by_registers, replace(launch, registers=n), limits, wanted)
        )
        if not registers:  # every kernel needs registers
            return None
        launch, changed = replace(launch, registers=registers), ["registers"]
    if found.allowed.get(Limiter.SHARED_MEMORY, wanted) < wanted:
        shared = _most(launch.shared, lambda n: _holds(by_shared_memory, replace(launch, shared=n), limits, wanted))
        if shared is None:
            return None
        launch, changed = replace(launch, shared=shared), [*changed, "shared"]
    return Lift(tuple(changed), occupancy(launch, limits))


def _larger_setting(found: Occupancy) -> Lift | None:
    """Return the smallest carveout of shared memory that holds more blocks, if a carveout is known."""
    carveout = found.launch.carveout
    if carveout is None or found.limiters != (Limiter.SHARED_MEMORY,):
        return None
    for size in found.limits.shared_sizes:
        reached = occupancy(replace(found.launch, carveout=size), found.limits)
        if size > carveout and reached.warps > found.warps:
            return Lift(("carveout",), reached)
    return None


def _other_blocks(found: Occupancy) -> list[Lift]:
    """Return the nearest block size (in whole warps) with more resident warps, then the nearest with the most.

    Ties go to more warps, then to the smaller size: while one block waits at a barrier, the others keep running.
    """
    present = found.launch.threads
    sizes = range(WARP, found.limits.threads_per_block + 1, WARP)
    reached = [occupancy(replace(found.launch, threads=size), found.limits) for size in sizes]
    better = [one for one in reached if one.warps > found.warps]
    better.sort(key=lambda one: (abs(one.launch.threads - present), -one.warps, one.launch.threads))
    most = max((one.warps for one in better), default=0)
    chosen = {one.launch.threads: one for one in (*better[:1], *[one for one in better if one.warps == most][:1])}
    return [Lift(("threads",), one) for one in chosen.values()]


def _holds(by: Callable[[Launch, Limits], int | None], launch: Launch, limits: Limits, wanted: int) -> bool:
    """Return whether a resource allows at least ``wanted`` blocks."""
    blocks = by(launch, limits)
    return blocks is None or blocks >= wanted


def _most(present: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number from 0 to ``present`` that fits; None if 0 does not. All smaller ones must fit too."""
    if not fits(0):
        return None
    low, high = 0, present
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
