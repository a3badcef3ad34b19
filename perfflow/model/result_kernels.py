"""The parts of result.json about kernels of GPUs, in base units."""

from typing import Any, Literal

from pydantic import BaseModel

from perfflow.model.result_base import PART, Number


class KernelPart(BaseModel):
    """Base of every part here."""

    model_config = PART


class Stall(KernelPart):
    """A reason for which warps of a kernel waited, with its share (0..1) of all that they did.

    ``cycles`` are what the tool counted: cycles, samples or shares. ``pressing`` ones are worth acting on.
    """

    reason: str
    cycles: float
    share: float
    means: str
    lowers: str
    pressing: bool = False


class ToolAdvice(KernelPart):
    """What a tool itself advises, in its own words; ``gain`` is the speedup that it estimates, as a share."""

    rule: str
    text: str
    gain: Number = None


class Modelled(KernelPart):
    """The occupancy model of a kernel's launch on its architecture, and what would raise it, the first thing first."""

    occupancy: float
    blocks: int
    limiters: list[str]
    lifts: list[str] = []


class KernelResult(KernelPart):
    """One kernel of a GPU on one side; what its tool does not tell is null or empty.

    ``occupancy``, ``occupancy_theoretical`` and ``limiters`` are the tool's own figures, ``model`` is perfflow's, null
    where the launch or the architecture is not known. ``because`` says how ``bound`` was told.
    """

    step: str
    benchmark: str
    tree: Literal["baseline", "candidate"]
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
    stalls: list[Stall] = []
    advice: list[ToolAdvice] = []
    warnings: list[str] = []


class OnGpu(KernelPart):
    """A kernel on one of the GPUs that it ran on: its time in s, and its share of that GPU's roof, null without one.

    ``slower`` is the time over the fastest GPU's, ``of_best`` the share over the best share.
    """

    kernel: str
    device: str
    seconds: float
    share: Number
    slower: float
    of_best: Number


_OF_JUDGING = {"step", "model", "bound", "because", "stalls", "warnings"}
"""What judging adds to a kernel."""


def measured_of(kernel: KernelResult) -> dict[str, Any]:
    """What a profiler measured of a kernel, as its step's event has it."""
    stalls = {stall.reason: stall.cycles for stall in kernel.stalls}
    return kernel.model_dump(exclude=_OF_JUDGING) | {"stalls": stalls}
