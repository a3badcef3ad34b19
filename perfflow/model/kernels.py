"""What a profiler knows of one kernel of a GPU: its launch, how it used the device, why its warps waited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from perfflow.model.later import dataclass
from perfflow.model.plain_data import FLAT, SPARSE

GPU = "GPU"
"""The device of what ran on a GPU whose name nobody tells; '' is the machine's own processor."""
SEVERAL = "several GPUs"
"""The device of what ran on GPUs of different names."""


@dataclass(frozen=True)
class Advice:
    """What a tool itself advises on a kernel, in its own words.

    ``gain`` is the speedup that it estimates, as a share of the kernel's time saved or of its rate won, whatever the
    tool calls so; None where it gives none.
    """

    rule: str
    text: str
    gain: float | None = None


@dataclass(frozen=True)
class KernelFacts:
    """One kernel, by its launch that took longest; None and '' stand for what the tool does not tell.

    ``device`` is the name that its driver reports, ``capability`` such as ``8.6``; ``seconds`` the median of a launch,
    ``share`` (0..1) of the time of all kernels. A launch has ``grid`` blocks of ``threads``, each thread ``registers``;
    shared memory is in bytes of a block, ``carveout`` what the SM's is set to;
    ``barrier_blocks`` are those of an SM that barriers allow, as the tool says. Occupancies, ``sm_share`` and
    ``memory_share`` (speed of light) are 0..1, as the tool says them, and so are its own ``limiters``. ``issued`` is
    the share of cycles in which a scheduler issued; ``stalls`` are cycles, samples or shares of what warps did, by
    reason; ``uncoalesced`` is the share of sectors of global memory that a perfect access pattern would not have moved.
    ``precision`` is that of most of its arithmetic.
    """

    name: str
    source: str
    device: str = ""
    capability: str = ""
    launches: int = 1
    seconds: float | None = None
    share: float | None = None
    grid: int | None = None
    threads: int | None = None
    registers: int | None = None
    shared_static: int | None = None
    shared_dynamic: int | None = None
    carveout: int | None = None
    barrier_blocks: int | None = None
    occupancy: float | None = None
    occupancy_theoretical: float | None = None
    limiters: tuple[str, ...] = ()
    sm_share: float | None = None
    memory_share: float | None = None
    issued: float | None = None
    waves: float | None = None
    uncoalesced: float | None = None
    precision: str = ""
    stalls: Mapping[str, float] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class KernelOf:
    """A kernel, whose benchmark its figures are, on which side, and the step that profiled it; '' in its own event."""

    facts: KernelFacts = field(metadata=FLAT)
    benchmark: str
    tree: str
    step: str = field(default="", metadata=SPARSE)


def together(devices: Iterable[str]) -> str:
    """The one device that all names are of; SEVERAL where they are of more, '' where there is none."""
    names = dict.fromkeys(name for name in devices if name)
    return SEVERAL if len(names) > 1 else next(iter(names), "")


def by_benchmark(kernels: Iterable[KernelOf]) -> dict[tuple[str, str], KernelFacts]:
    """The kernel that a benchmark's figures are of, by benchmark and side.

    Where a step has several for one benchmark they are nobody's; of several steps the first one stands.
    """
    groups: dict[tuple[str, str, str], list[KernelOf]] = {}
    for item in kernels:
        groups.setdefault((item.step, item.benchmark, item.tree), []).append(item)
    found: dict[tuple[str, str], KernelFacts] = {}
    for (_, benchmark, tree), group in groups.items():
        if len(group) == 1:
            found.setdefault((benchmark, tree), group[0].facts)
    return found
