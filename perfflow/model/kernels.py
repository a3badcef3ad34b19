"""Facts that a profiler reports about one GPU kernel: its launch, its use of the device, and its stalls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfflow.model.plain_data import FLAT, SPARSE

GPU = "GPU"
"""Device name for a GPU whose name is unknown; '' is the machine's own processor."""
SEVERAL = "several GPUs"
"""Device name for several GPUs with different names."""


@dataclass(frozen=True)
class Advice:
    """Advice of a tool on a kernel, in its own words.

    ``gain`` is the speedup that the tool estimates, as a share of the kernel's time or of its rate, as the tool defines
    it; None if it gives none.
    """

    rule: str
    text: str
    gain: float | None = None


@dataclass(frozen=True)
class KernelFacts:
    """One kernel, described by its longest launch. None and '' mean that the tool does not report the value.

    ``device`` is the name from its driver, ``capability`` such as ``8.6``; ``seconds`` the median of a launch,
    ``share`` (0..1) of the time of all kernels. A launch has ``grid`` blocks of ``threads``, each thread ``registers``;
    shared memory is in bytes per block, ``carveout`` is the size set for the SM;
    ``barrier_blocks`` is the tool's number of blocks per SM that barriers allow. Occupancies, ``sm_share`` and
    ``memory_share`` (speed of light) are 0..1, as the tool reports them, and so are its own ``limiters``. ``issued`` is
    the share of cycles in which a scheduler issued; ``stalls`` are cycles, samples or shares of warp states by reason;
    ``uncoalesced`` is the share of sectors of global memory that a perfect access pattern would not have moved.
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
    """A kernel with its benchmark, its side, and the step that profiled it ('' in the step's own event)."""

    facts: KernelFacts = field(metadata=FLAT)
    benchmark: str
    tree: str
    step: str = field(default="", metadata=SPARSE)


def together(devices: Iterable[str]) -> str:
    """Return the only device among the names; SEVERAL if there are more, '' if there is none."""
    names = dict.fromkeys(name for name in devices if name)
    return SEVERAL if len(names) > 1 else next(iter(names), "")


def by_benchmark(kernels: Iterable[KernelOf]) -> dict[tuple[str, str], KernelFacts]:
    """Return the kernel that a benchmark measures, by benchmark and side.

    Left out if a step has several kernels for one benchmark. Of several steps the first one counts.
    """
    groups: dict[tuple[str, str, str], list[KernelOf]] = {}
    for item in kernels:
        groups.setdefault((item.step, item.benchmark, item.tree), []).append(item)
    found: dict[tuple[str, str], KernelFacts] = {}
    for (_, benchmark, tree), group in groups.items():
        if len(group) == 1:
            found.setdefault((benchmark, tree), group[0].facts)
    return found
