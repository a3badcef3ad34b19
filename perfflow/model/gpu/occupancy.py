"""Theoretical occupancy: how many blocks of a launch an SM holds at once, and which resource sets that number.

The algorithm is the one NVIDIA publishes in ``cuda_occupancy.h`` of the CUDA Toolkit (and, up to 8.6, in its CUDA
Occupancy Calculator spreadsheet): each resource alone allows so many blocks, the least of these is the occupancy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from perfflow.model.errors import UserError
from perfflow.model.gpu.limits import WARP, Limits
from perfflow.model.later import dataclass


class Limiter(StrEnum):
    """A resource of an SM that can run out."""

    WARPS = "warps"
    """Places for warps: the block size decides how many blocks fill them."""
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    BLOCKS = "blocks"
    BARRIERS = "barriers"


@dataclass(frozen=True)
class Launch:
    """How a kernel is launched: threads of a block, registers of a thread, bytes of shared memory of a block.

    ``shared`` is static and dynamic together, without what the driver reserves. ``carveout`` is what the SM's shared
    memory is set to in bytes (ncu: ``launch__shared_mem_config_size``); None stands for all there is, since the driver
    enlarges it when blocks would otherwise wait for it.
    """

    threads: int
    registers: int
    shared: int = 0
    barriers: int = 1
    carveout: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError for what no launch can have."""
        least = {"threads": 1, "registers": 0, "shared": 0, "barriers": 0}
        for name, lowest in least.items():
            if getattr(self, name) < lowest:
                raise UserError.of(f"a launch cannot have {getattr(self, name)} {name}", f"at least {lowest}")

    @property
    def warps(self) -> int:
        """Warps of a block; a last one that is not full takes a whole place."""
        return -(-self.threads // WARP)


@dataclass(frozen=True)
class Occupancy:
    """Blocks that an SM holds at once, by resource and over all; with 0 blocks the launch fails."""

    launch: Launch
    limits: Limits
    allowed: Mapping[Limiter, int]
    """Blocks that each resource allows; one that the launch does not use is not in it."""

    @property
    def blocks(self) -> int:
        """Blocks at once on an SM."""
        return min(self.allowed.values())

    @property
    def limiters(self) -> tuple[Limiter, ...]:
        """The resources that set the number of blocks; several where they run out together."""
        return tuple(limiter for limiter, blocks in self.allowed.items() if blocks == self.blocks)

    @property
    def warps(self) -> int:
        """Warps at once on an SM."""
        return self.blocks * self.launch.warps

    @property
    def share(self) -> float:
        """Theoretical occupancy: warps at once, as a share of the places for them, 0 to 1."""
        return self.warps / self.limits.warps


@dataclass(frozen=True)
class Waves:
    """A grid's blocks in rounds of as many as the whole GPU holds at once."""

    count: float
    full: int
    last_blocks: int
    """Blocks of the round that is not full; 0 where all are."""
    last_share: float
    """How full that round is, 0 to 1; 1 where there is none."""
    tail_share: float
    """The part of the run that the last round may take at most, if blocks take equally long, 0 to 1."""


def occupancy(launch: Launch, limits: Limits) -> Occupancy:
    """Work out how many blocks of a launch an SM of these limits holds at once."""
    allowed = {Limiter.WARPS: _by_warps(launch, limits), Limiter.BLOCKS: limits.blocks}
    optional = {
        Limiter.REGISTERS: by_registers(launch, limits),
        Limiter.SHARED_MEMORY: by_shared_memory(launch, limits),
        Limiter.BARRIERS: _by_barriers(launch, limits),
    }
    allowed |= {limiter: blocks for limiter, blocks in optional.items() if blocks is not None}
    return Occupancy(launch, limits, allowed)


def _by_warps(launch: Launch, limits: Limits) -> int:
    return limits.warps // launch.warps if launch.threads <= limits.threads_per_block else 0


def by_registers(launch: Launch, limits: Limits) -> int | None:
    """Blocks that the registers allow, None without any.

    Each warp gets its registers in whole units and from one partition. The header also checks that a block's warps, as
    many in each partition, fit the registers of a block; what this allows fits them wherever a block may have them all.
    """
    per_warp = _up(launch.registers * WARP, limits.register_unit)
    if per_warp == 0:
        return None
    if launch.registers > limits.registers_per_thread:
        return 0
    return limits.registers // limits.partitions // per_warp * limits.partitions // launch.warps


def by_shared_memory(launch: Launch, limits: Limits) -> int | None:
    """Blocks that the shared memory allows, None where neither the kernel nor the driver takes any."""
    allocated = _up(launch.shared + limits.reserved_shared, limits.shared_unit)
    if allocated == 0:
        return None
    if allocated > limits.shared:
        return 0
    # A block that needs more than the setting makes the driver take the next size that holds it.
    wanted = max(allocated, limits.shared if launch.carveout is None else min(launch.carveout, limits.shared))
    return min(size for size in limits.shared_sizes if size >= wanted) // allocated


def _by_barriers(launch: Launch, limits: Limits) -> int | None:
    return None if limits.barriers is None or launch.barriers == 0 else limits.barriers // launch.barriers


def waves(found: Occupancy, grid: int, sms: int) -> Waves:
    """Work out the rounds of a grid of so many blocks on a GPU of so many SMs; the launch must fit an SM.

    The share of the tail is that of Nsight Compute's rule "Tail Effect" (LaunchStatistics.py): one round of all.
    """
    if grid < 1 or sms < 1 or found.blocks < 1:
        raise UserError.of(
            f"no waves of {grid} blocks, {found.blocks} at once on each of {sms} SMs", "each of them is at least 1"
        )
    at_once = found.blocks * sms
    full, last = divmod(grid, at_once)
    return Waves(grid / at_once, full, last, last / at_once if last else 1.0, 1 / (full + 1) if last else 0.0)


def _up(value: int, unit: int) -> int:
    """``value`` rounded up to a multiple of ``unit``."""
    return math.ceil(value / unit) * unit
