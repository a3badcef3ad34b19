"""Theoretical occupancy: the number of blocks of a launch that an SM holds at once, and the resource that limits it.

``ARCHITECTURES`` has the limits of one multiprocessor (SM) by compute capability: threads, blocks, registers, shared
memory. Sources, in this order; figures that occur in two of them agree:

- CUDA Programming Guide, appendix "Compute Capabilities", tables "Device and Streaming Multiprocessor (SM)
  Information", "Memory Information" and "Shared Memory Capacity per Compute Capability" (7.5 and later; 7.0 and 7.2:
  CUDA C++ Programming Guide 12.9, table "Technical Specifications per Compute Capability")
- ``cuda_occupancy.h`` of CUDA 13.5 (allocation units, sub-partitions, carveouts of shared memory, barriers)
- ``cuda/__device/arch_traits.h`` of CCCL 13.3 (limits, the memory that the driver reserves for each block)

``occupancy`` follows the algorithm that NVIDIA publishes in ``cuda_occupancy.h`` of the CUDA Toolkit (and, up to 8.6,
in its CUDA Occupancy Calculator spreadsheet): each resource alone allows a number of blocks, and the smallest of these
is the occupancy.

``lifts`` finds the smallest changes that raise it to the next step. Registers can be lowered by ``__launch_bounds__``
or ``-maxrregcount`` (and then spill), shared memory by smaller tiles, the block size by the launch. Higher occupancy
hides latency; it does not help a kernel with another bottleneck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from perfflow.model.errors import UserError

WARP = 32
"""Threads of a warp, on every GPU to date."""
_KIB = 1024


@dataclass(frozen=True)
class OccupancyLimits:
    """Limits of one compute capability, per SM unless stated otherwise; memory in bytes, registers of 32 bits."""

    capability: str
    architecture: str
    warps: int
    blocks: int
    shared_sizes: tuple[int, ...]
    """Possible carveouts of shared memory (the rest is L1 cache), ascending; the last one is all of it."""
    reserved_shared: int
    """Shared memory that the driver reserves in each block."""
    shared_unit: int
    f32_cores: int
    barriers: int | None
    """Hardware barriers that blocks share; None if they are never the limit."""
    threads_per_block: int = 1024
    registers: int = 65536
    """Registers of an SM; one block may use all of them."""
    registers_per_thread: int = 255
    register_unit: int = 256
    """Registers are allocated to a warp in multiples of this."""
    partitions: int = 4
    """Sub-partitions with their own scheduler and registers; a warp runs in one of them."""

    @property
    def shared(self) -> int:
        """Largest shared memory of an SM in bytes."""
        return self.shared_sizes[-1]

    @property
    def shared_per_block(self) -> int:
        """Largest shared memory (bytes) of a block, static and dynamic together, if the kernel opts in."""
        return self.shared - self.reserved_shared


def _limits(
    capability: str,
    architecture: str,
    warps: int,
    blocks: int,
    kibibytes: tuple[int, ...],
    f32_cores: int,
    barriers: int | None = None,
) -> OccupancyLimits:
    """Return one row. From 8.0 on, the driver reserves 1 KiB in each block, and shared memory has units of 128 B."""
    since_ampere = int(capability.split(".", maxsplit=1)[0]) >= 8
    return OccupancyLimits(
        capability,
        architecture,
        warps,
        blocks,
        tuple(size * _KIB for size in kibibytes),
        reserved_shared=_KIB if since_ampere else 0,
        shared_unit=128 if since_ampere else 256,
        f32_cores=f32_cores,
        barriers=barriers,
    )


_VOLTA = (0, 8, 16, 32, 64, 96)
_GA10X = (0, 8, 16, 32, 64, 100)
_GA100 = (*_GA10X, 132, 164)
_HOPPER = (*_GA100, 196, 228)

_ROWS = (
    _limits("7.0", "Volta", 64, 32, _VOLTA, 64),
    _limits("7.2", "Volta", 64, 32, _VOLTA, 64),
    _limits("7.5", "Turing", 32, 16, (32, 64), 64),
    _limits("8.0", "Ampere", 64, 32, _GA100, 64),
    _limits("8.6", "Ampere", 48, 16, _GA10X, 128),
    _limits("8.7", "Ampere", 48, 16, _GA100, 128),
    _limits("8.9", "Ada", 48, 24, _GA10X, 128),
    _limits("9.0", "Hopper", 64, 32, _HOPPER, 128, barriers=64),
    _limits("10.0", "Blackwell", 64, 32, _HOPPER, 128, barriers=64),
    _limits("10.3", "Blackwell", 64, 32, _HOPPER, 128, barriers=32),
    _limits("12.0", "Blackwell", 48, 24, _GA10X, 128, barriers=24),
    _limits("12.1", "Blackwell", 48, 24, _GA10X, 128, barriers=24),
)
ARCHITECTURES: Mapping[str, OccupancyLimits] = {row.capability: row for row in _ROWS}


def limits_of(capability: str) -> OccupancyLimits:
    """Return the limits of a compute capability, written as in ncu (``8.6``), or as ``sm_86`` or ``86``.

    Raises UserError for one that is not in the table, because limits of a similar one would give wrong occupancies.
    """
    digits = capability.lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    name = digits if "." in digits else f"{digits[:-1]}.{digits[-1:]}"
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UserError.of(
            f"no limits are known for compute capability {capability}", f"measure on one of these: {known}"
        )
    return ARCHITECTURES[name]


class Limiter(StrEnum):
    """A resource of an SM that can limit the number of blocks."""

    WARPS = "warps"
    """Slots for warps: the block size decides how many blocks fill them."""
    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"
    BLOCKS = "blocks"
    BARRIERS = "barriers"


@dataclass(frozen=True)
class LaunchShape:
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

    launch: LaunchShape
    limits: OccupancyLimits
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


def occupancy(launch: LaunchShape, limits: OccupancyLimits) -> Occupancy:
    """Return the number of blocks of a launch that an SM with these limits holds at once, and its limiters."""
    allowed = {Limiter.WARPS: _by_warps(launch, limits), Limiter.BLOCKS: limits.blocks}
    optional = {
        Limiter.REGISTERS: by_registers(launch, limits),
        Limiter.SHARED_MEMORY: by_shared_memory(launch, limits),
        Limiter.BARRIERS: _by_barriers(launch, limits),
    }
    allowed |= {limiter: blocks for limiter, blocks in optional.items() if blocks is not None}
    return Occupancy(launch, limits, allowed)


def _by_warps(launch: LaunchShape, limits: OccupancyLimits) -> int:
    return limits.warps // launch.warps if launch.threads <= limits.threads_per_block else 0


def by_registers(launch: LaunchShape, limits: OccupancyLimits) -> int | None:
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


def by_shared_memory(launch: LaunchShape, limits: OccupancyLimits) -> int | None:
    """Return the blocks that the shared memory allows, None if neither the kernel nor the driver uses any."""
    allocated = _up(launch.shared + limits.reserved_shared, limits.shared_unit)
    if allocated == 0:
        return None
    if allocated > limits.shared:
        return 0
    # If a block needs more than the carveout, the driver takes the next size that holds it.
    wanted = max(allocated, limits.shared if launch.carveout is None else min(launch.carveout, limits.shared))
    return min(size for size in limits.shared_sizes if size >= wanted) // allocated


def _by_barriers(launch: LaunchShape, limits: OccupancyLimits) -> int | None:
    return None if limits.barriers is None or launch.barriers == 0 else limits.barriers // launch.barriers


def waves(occupied: Occupancy, grid: int, sms: int) -> Waves:
    """Return the waves of a grid of ``grid`` blocks on a GPU with ``sms`` SMs; the launch must fit an SM.

    The tail share follows Nsight Compute's rule "Tail Effect" (LaunchStatistics.py): one wave of all waves.
    """
    if grid < 1 or sms < 1 or occupied.blocks < 1:
        raise UserError.of(
            f"no waves of {grid} blocks, {occupied.blocks} at once on each of {sms} SMs",
            "each number must be at least 1",
        )
    at_once = occupied.blocks * sms
    full, last = divmod(grid, at_once)
    return Waves(grid / at_once, full, last, last / at_once if last else 1.0, 1 / (full + 1) if last else 0.0)


def _up(value: int, unit: int) -> int:
    """Round ``value`` up to a multiple of ``unit``."""
    return math.ceil(value / unit) * unit


@dataclass(frozen=True)
class Lift:
    """A changed launch with more resident warps, and the names of the changed fields of ``LaunchShape``."""

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


def _smaller(occupied: Occupancy) -> Lift | None:
    """Return the largest registers and shared memory that leave room for one more block."""
    blocks = occupied.blocks + 1
    if any(occupied.allowed.get(fixed, blocks) < blocks for fixed in (Limiter.WARPS, Limiter.BLOCKS, Limiter.BARRIERS)):
        return None
    launch, limits, changed = occupied.launch, occupied.limits, []
    if occupied.allowed.get(Limiter.REGISTERS, blocks) < blocks:
        registers = _most(
            launch.registers, lambda n: _holds(by_registers, replace(launch, registers=n), limits, blocks)
        )
        if not registers:  # every kernel needs registers
            return None
        launch, changed = replace(launch, registers=registers), ["registers"]
    if occupied.allowed.get(Limiter.SHARED_MEMORY, blocks) < blocks:
        shared = _most(launch.shared, lambda n: _holds(by_shared_memory, replace(launch, shared=n), limits, blocks))
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


def _other_blocks(occupied: Occupancy) -> list[Lift]:
    """Return the nearest block size (in whole warps) with more resident warps, then the nearest with the most.

    Ties go to more warps, then to the smaller size: while one block waits at a barrier, the others keep running.
    """
    present = occupied.launch.threads
    sizes = range(WARP, occupied.limits.threads_per_block + 1, WARP)
    reached = [occupancy(replace(occupied.launch, threads=size), occupied.limits) for size in sizes]
    better = [one for one in reached if one.warps > occupied.warps]
    better.sort(key=lambda one: (abs(one.launch.threads - present), -one.warps, one.launch.threads))
    most = max((one.warps for one in better), default=0)
    chosen = {one.launch.threads: one for one in (*better[:1], *[one for one in better if one.warps == most][:1])}
    return [Lift(("threads",), one) for one in chosen.values()]


def _holds(
    by: Callable[[LaunchShape, OccupancyLimits], int | None], launch: LaunchShape, limits: OccupancyLimits, wanted: int
) -> bool:
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
