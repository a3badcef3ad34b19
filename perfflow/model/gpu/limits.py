"""Limits of one multiprocessor (SM) by compute capability: threads, blocks, registers, shared memory.

Sources, in this order; figures that occur in two of them agree:
CUDA Programming Guide, appendix "Compute Capabilities", tables "Device and Streaming Multiprocessor (SM) Information",
"Memory Information" and "Shared Memory Capacity per Compute Capability" (7.5 and later; 7.0 and 7.2: CUDA C++
Programming Guide 12.9, table "Technical Specifications per Compute Capability"); ``cuda_occupancy.h`` of CUDA 13.5
(allocation units, sub-partitions, carveouts of shared memory, barriers); ``cuda/__device/arch_traits.h`` of CCCL
13.3 (limits, the memory that the driver reserves for each block).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfflow.model.errors import UserError

WARP = 32
"""Threads of a warp, on every GPU to date."""
_KIB = 1024


@dataclass(frozen=True)
class Limits:
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
) -> Limits:
    """Return one row. From 8.0 on, the driver reserves 1 KiB in each block, and shared memory has units of 128 B."""
    since_ampere = int(capability.split(".", maxsplit=1)[0]) >= 8
    return Limits(
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
ARCHITECTURES: Mapping[str, Limits] = {row.capability: row for row in _ROWS}


def limits_of(capability: str) -> Limits:
    """Return the limits of a compute capability, written as in ncu (``8.6``), or as ``sm_86`` or ``86``.

    Raises UserError for one that is not in the table, because limits of a similar one would give wrong occupancies.
    """
    digits = capability.lower().removeprefix("sm_").removeprefix("compute_").rstrip("af")
    wanted = digits if "." in digits else f"{digits[:-1]}.{digits[-1:]}"
    if wanted not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UserError.of(
            f"no limits are known for compute capability {capability}", f"measure on one of these: {known}"
        )
    return ARCHITECTURES[wanted]
