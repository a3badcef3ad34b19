"""Parts of result.json about GPU kernels, in base units."""

from typing import Any, Literal

from pydantic import BaseModel

from perfflow.model.result_base import PART, Number


class KernelPart(BaseModel):
    """Base of all parts in this module."""

    model_config = PART


class Stall(KernelPart):
    """A stall reason of a kernel's warps, with its share (0..1) of all reasons.

    ``cycles`` is the count of the tool: cycles, samples or a share. ``pressing`` reasons are worth acting on.
    """

    reason: str
    cycles: float
    share: float
    means: str
    lowers: str
    pressing: bool = False


class ToolAdvice(KernelPart):
    """Advice of a tool in its own words; ``gain`` is the speedup that it estimates, as a share."""

    rule: str
    text: str
    gain: Number = None


class Modelled(KernelPart):
    """The occupancy model of a kernel's launch on its architecture, and changes that would raise it, best first."""

    occupancy: float
    blocks: int
    limiters: list[str]
    lifts: list[str] = []


class KernelResult(KernelPart):
    """One GPU kernel on one side; values that its tool does not report are null or empty.

    ``occupancy``, ``occupancy_theoretical`` and ``limiters`` are the tool's own figures, ``model`` is perfflow's, null
    if the launch or the architecture is unknown. ``because`` is the reason for ``bound``.
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
    """A kernel on one of several GPUs: its time in s, and its share of that GPU's roof, null without a roof.

    ``slower`` is time / fastest time, ``of_best`` is share / best share.
    """

    kernel: str
    device: str
    seconds: float
    share: Number
    slower: float
    of_best: Number


_OF_JUDGING = {"step", "model", "bound", "because", "stalls", "warnings"}
"""Fields that judging adds to a kernel."""


def measured_of(kernel: KernelResult) -> dict[str, Any]:
    """Return the measured part of a kernel, as in the event of its step."""
    stalls = {stall.reason: stall.cycles for stall in kernel.stalls}
    return kernel.model_dump(exclude=_OF_JUDGING) | {"stalls": stalls}
