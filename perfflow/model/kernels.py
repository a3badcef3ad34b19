"""Facts that a profiler reports about one GPU kernel: its launch, its use of the device, and its stalls."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator

from perfflow.model.result_part import Number, ResultPart

GPU = "GPU"
"""Device name for a GPU whose name is unknown; '' is the machine's own processor."""
SEVERAL = "several GPUs"
"""Device name for several GPUs with different names."""


class Stall(ResultPart):
    """A stall reason of a kernel's warps, with its share (0..1) of all reasons, which judging adds.

    ``cycles`` is the count of the tool: cycles, samples or a share. ``pressing`` reasons are worth acting on.
    """

    reason: str
    """The tool's name of the reason, what the warp does, and what usually lowers it."""
    cycles: float
    """The tool's count (cycles, samples or shares), and its part of all that warps did."""
    share: float = 0.0
    """See `cycles`."""
    means: str = ""
    """See `reason`."""
    lowers: str = ""
    """See `reason`."""
    pressing: bool = False
    """Whether it is worth acting on: a large share, while schedulers issue in few cycles."""


class ToolAdvice(ResultPart):
    """Advice of a tool in its own words; ``gain`` is the speedup that it estimates, as a share."""

    rule: str
    """The tool's rule, and its text."""
    text: str
    """See `rule`."""
    gain: Number = None
    """Estimated speedup as a share; null without an estimate."""


class Modelled(ResultPart):
    """The occupancy model of a kernel's launch on its architecture, and changes that would raise it, best first."""

    occupancy: float
    """Theoretical occupancy (0..1), and blocks at once on an SM."""
    blocks: int
    """See `occupancy`."""
    limiters: list[str]
    """The resources that limit it, several if they run out together; empty if all places are taken."""
    lifts: list[str] = []
    """Changes that would raise it and by how much, the smallest change first."""


def _each_reason(found: object) -> object:
    """Return the reasons as stalls; an adapter gives the count of each."""
    if isinstance(found, Mapping):
        return [Stall(reason=reason, cycles=cycles) for reason, cycles in found.items()]
    return found


class KernelResult(ResultPart):
    """One GPU kernel on one side, described by its longest launch.

    None and '' mean that the tool does not report the value. An adapter gives what it measured; the step adds its side,
    and judging ``model`` (perfflow's own occupancy), ``bound`` with the reason ``because``, and shares of ``stalls``.


    ``device`` is the name from its driver, ``capability`` such as ``8.6``; ``seconds`` the median of a launch,
    ``share`` (0..1) of the time of all kernels. A launch has ``grid`` blocks of ``threads``, each thread ``registers``;
    shared memory is in bytes per block, ``carveout`` is the size set for the SM;
    ``barrier_blocks`` is the tool's number of blocks per SM that barriers allow. Occupancies, ``sm_share`` and
    ``memory_share`` (speed of light) are 0..1, as the tool reports them, and so are its own ``limiters``. ``issued`` is
    the share of cycles in which a scheduler issued; ``stalls`` are cycles, samples or shares of warp states by reason;
    ``uncoalesced`` is the share of sectors of global memory that a perfect access pattern would not have moved.
    ``precision`` is that of most of its arithmetic.
    """

    step: str = ""
    """The step, the benchmark that has its figures, and the tool."""
    benchmark: str = ""
    """See `step`."""
    tree: Literal["baseline", "candidate"] = "baseline"
    """The side: `baseline` or `candidate`."""
    name: str
    """The name of the kernel, in the shortest form that distinguishes it from the others."""
    source: str
    """See `step`."""
    device: str = ""
    """The GPU by the name of its driver, and its compute capability."""
    capability: str = ""
    """See `device`."""
    launches: int = 1
    """Number of launches, median time of a launch, and share (0..1) of all kernels' time."""
    seconds: Number = None
    """See `launches`."""
    share: Number = None
    """See `launches`."""
    grid: int | None = None
    """Blocks of the grid and threads of a block; like all following fields, of the launch that took longest."""
    threads: int | None = None
    """See `grid`."""
    registers: int | None = None
    """Registers of a thread, bytes of shared memory of a block."""
    shared_static: int | None = None
    """See `registers`."""
    shared_dynamic: int | None = None
    """See `registers`."""
    carveout: int | None = None
    """Bytes of an SM's shared memory as configured, and blocks that its barriers allow."""
    barrier_blocks: int | None = None
    """See `carveout`."""
    occupancy: Number = None
    """Achieved and possible warps as shares of the SM's places, and what limits them, as the tool reports."""
    occupancy_theoretical: Number = None
    """See `occupancy`."""
    limiters: list[str] = []
    """See `occupancy`."""
    sm_share: Number = None
    """Throughput of the SMs and of memory as shares of their peaks (speed of light)."""
    memory_share: Number = None
    """See `sm_share`."""
    issued: Number = None
    """Share of cycles in which a scheduler issued; rounds of blocks for the grid."""
    waves: Number = None
    """See `issued`."""
    uncoalesced: Number = None
    """Share of the sectors of global memory that a perfect access pattern would not have moved."""
    precision: str = ""
    """Precision of most of its arithmetic."""
    model: Modelled | None = None
    """The same by perfflow's model; null if launch or architecture is unknown."""
    bound: Literal["memory", "compute", "latency"] | None = None
    """The limit: `memory`, `compute` or `latency`."""
    because: str = ""
    """The figures behind the bound."""
    stalls: Annotated[list[Stall], BeforeValidator(_each_reason)] = []
    """Why its warps waited, the largest share first."""
    advice: list[ToolAdvice] = []
    """Advice of the tool, in its words."""
    warnings: list[str] = []
    """Doubts, such as a model that does not agree with the tool."""


def measured_of(kernel: KernelResult) -> KernelResult:
    """Return what was measured of a kernel, without what judging added."""
    stalls = [Stall(reason=item.reason, cycles=item.cycles) for item in kernel.stalls]
    judged = {"model": None, "bound": None, "because": "", "warnings": [], "stalls": stalls}
    return kernel.model_copy(update=judged)


def together(devices: Iterable[str]) -> str:
    """Return the only device among the names; SEVERAL if there are more, '' if there is none."""
    names = dict.fromkeys(name for name in devices if name)
    return SEVERAL if len(names) > 1 else next(iter(names), "")


def by_benchmark(kernels: Iterable[KernelResult]) -> dict[tuple[str, str], KernelResult]:
    """Return the kernel that a benchmark measures, by benchmark and side.

    Left out if a step has several kernels for one benchmark. Of several steps the first one counts.
    """
    groups: dict[tuple[str, str, str], list[KernelResult]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.step, kernel.benchmark, kernel.tree), []).append(kernel)
    measured: dict[tuple[str, str], KernelResult] = {}
    for (_, benchmark, tree), group in groups.items():
        if len(group) == 1:
            measured.setdefault((benchmark, tree), group[0])
    return measured
