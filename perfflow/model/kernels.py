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
    cycles: float
    share: float = 0.0
    means: str = ""
    lowers: str = ""
    pressing: bool = False


class ToolAdvice(ResultPart):
    """Advice of a tool in its own words; ``gain`` is the speedup that it estimates, as a share."""

    rule: str
    text: str
    gain: Number = None


class Modelled(ResultPart):
    """The occupancy model of a kernel's launch on its architecture, and changes that would raise it, best first."""

    occupancy: float
    blocks: int
    limiters: list[str]
    lifts: list[str] = []


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
    benchmark: str = ""
    tree: Literal["baseline", "candidate"] = "baseline"
    name: str
    source: str
    device: str = ""
    capability: str = ""
    launches: int = 1
    seconds: Number = None
    share: Number = None
    grid: int | None = None
    threads: int | None = None
    registers: int | None = None
    shared_static: int | None = None
    shared_dynamic: int | None = None
    carveout: int | None = None
    barrier_blocks: int | None = None
    occupancy: Number = None
    occupancy_theoretical: Number = None
    limiters: list[str] = []
    sm_share: Number = None
    memory_share: Number = None
    issued: Number = None
    waves: Number = None
    uncoalesced: Number = None
    precision: str = ""
    model: Modelled | None = None
    bound: Literal["memory", "compute", "latency"] | None = None
    because: str = ""
    stalls: Annotated[list[Stall], BeforeValidator(_each_reason)] = []
    advice: list[ToolAdvice] = []
    warnings: list[str] = []


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
