"""Theoretical occupancy: the number of blocks of a launch that an SM holds at once, and the resource that limits it.

NVIDIA publishes the algorithm in ``cuda_occupancy.h`` of the CUDA Toolkit (and, up to 8.6, in its CUDA Occupancy
Calculator spreadsheet): each resource alone allows a number of blocks, and the smallest of these is the occupancy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfflow.model.errors import UserError
from perfflow.model.gpu.limits import WARP, Limits


class Limiter(StrEnum):
    """A resource of an SM that can limit the number of blocks."""

    WARPS = "warps"
    """Slots for warps: the block size decides how many blocks fill them."""
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    BLOCKS = "blocks"
    BARRIERS = "barriers"


@dataclass(frozen=True)
class Launch:
    """A kernel launch: threads per block, registers per thread, bytes of shared memory per block.

    ``shared`` is static and dynamic together, without the part that the driver reserves. ``carveout`` is the size in
    bytes to which the SM's shared memory is set (ncu: ``launch__shared_mem_config_size``). None means the largest one,
    since the driver enlarges it if blocks would otherwise wait for shared memory.
    """

    threads: int
    registers: int
    shared: int = 0
    barriers: int = 1
    carveout: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError for impossible values."""
        least = {"threads": 1, "registers": 0, "shared": 0, "barriers": 0}
        for name, lowest in least.items():
            if getattr(self, name) < lowest:
                raise UserError.of(f"a launch cannot have {getattr(self, name)} {name}", f"at least {lowest}")

    @property
    def warps(self) -> int:
        """Warps of a block; a partial last warp takes a whole slot."""
        return -(-self.threads // WARP)


@dataclass(frozen=True)
class Occupancy:
    """Blocks that an SM holds at once, by resource and overall. With 0 blocks the launch fails."""

    launch: Launch
    limits: Limits
    allowed: Mapping[Limiter, int]
    """Blocks that each resource allows, without resources that the launch does not use."""

    @property
    def blocks(self) -> int:
        """Resident blocks of an SM."""
        return min(self.allowed.values())

    @property
    def limiters(self) -> tuple[Limiter, ...]:
        """The resources that limit the number of blocks; several if they allow the same number."""
        return tuple(limiter for limiter, blocks in self.allowed.items() if blocks == self.blocks)

    @property
    def warps(self) -> int:
        """Resident warps of an SM."""
        return self.blocks * self.launch.warps

    @property
    def share(self) -> float:
        """Theoretical occupancy: resident warps as a share of the warp slots, 0 to 1."""
        return self.warps / self.limits.warps


@dataclass(frozen=True)
class Waves:
    """The blocks of a grid in waves of as many as the whole GPU holds at once."""

    count: float
    full: int
    last_blocks: int
    """Blocks of the partial last wave; 0 if all waves are full."""
    last_share: float
    """How full the last wave is, 0 to 1."""
    tail_share: float
    """Largest share of the run that the partial wave may take if all blocks take equally long, 0 to 1."""


def occupancy(launch: Launch, limits: Limits) -> Occupancy:
    """Return the number of blocks of a launch that an SM with these limits holds at once, and its limiters."""
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
    """Return the blocks that the registers allow, None if the launch uses none.

    Each warp gets its registers in whole units and from one partition. The header also checks that a block's warps fit
    the registers of a block. That always holds here, because a block may use all registers of an SM.
    """
    per_warp = _up(launch.registers * WARP, limits.register_unit)
    if per_warp == 0:
        return None
    if launch.registers > limits.registers_per_thread:
        return 0
    return limits.registers // limits.partitions // per_warp * limits.partitions // launch.warps


def by_shared_memory(launch: Launch, limits: Limits) -> int | None:
    """Return the blocks that the shared memory allows, None if neither the kernel nor the driver uses any."""
    allocated = _up(launch.shared + limits.reserved_shared, limits.shared_unit)
    if allocated == 0:
        return None
    if allocated > limits.shared:
        return 0
    # If a block needs more than the carveout, the driver takes the next size that holds it.
    wanted = max(allocated, limits.shared if launch.carveout is None else min(launch.carveout, limits.shared))
    return min(size for size in limits.shared_sizes if size >= wanted) // allocated


def _by_barriers(launch: Launch, limits: Limits) -> int | None:
    return None if limits.barriers is None or launch.barriers == 0 else limits.barriers // launch.barriers


def waves(found: Occupancy, grid: int, sms: int) -> Waves:
    """Return the waves of a grid of ``grid`` blocks on a GPU with ``sms`` SMs; the launch must fit an SM.

    The tail share follows Nsight Compute's rule "Tail Effect" (LaunchStatistics.py): one wave of all waves.
    """
    if grid < 1 or sms < 1 or found.blocks < 1:
        raise UserError.of(
            f"no waves of {grid} blocks, {found.blocks} at once on each of {sms} SMs", "each number must be at least 1"
        )
    at_once = found.blocks * sms
    full, last = divmod(grid, at_once)
    return Waves(grid / at_once, full, last, last / at_once if last else 1.0, 1 / (full + 1) if last else 0.0)


def _up(value: int, unit: int) -> int:
    """Round ``value`` up to a multiple of ``unit``."""
    return math.ceil(value / unit) * unit
