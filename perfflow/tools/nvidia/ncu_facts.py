"""Kernels that Nsight Compute profiled as the facts that every profiler of GPUs tells in the same form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.samples.kernels import Advice, KernelFacts
from perfflow.tools.nvidia.ncu_kernels import SOURCE, Kernel, clean
from perfflow.tools.nvidia.ncu_launch import Measured
from perfflow.tools.tool_files import clean_name

_LONGEST_ADVICE = 1000
_FIGURES = ("occupancy", "occupancy_theoretical", "sm_share", "memory_share", "waves")
_COUNTS = {"grid": "grid_size", "threads": "block_size", "carveout": "shared_memory_setting"}
_COUNTS |= {"shared_static": "shared_memory_static", "shared_dynamic": "shared_memory_dynamic"}
_ADVISING = ("OPT", "WRN")
"""Kinds of rules that advise: OPT since 2023, and WRN before, when it was the only one that did."""


def facts(kernels: Sequence[Kernel]) -> Iterator[KernelFacts]:
    """What is known of every kernel: of its launch that took longest, with the median time of them all."""
    for kernel in kernels:
        longest = kernel.longest
        figures, more = longest.figures, longest.more
        told: dict[str, Any] = {key: figures.get(key) for key in _FIGURES}
        told |= {key: _whole(more.get(source)) for key, source in _COUNTS.items()}
        moved, ideal = more.get("global_sectors"), more.get("global_sectors_ideal")
        yield KernelFacts(
            name=kernel.name,
            source=SOURCE,
            device=longest.gpu,
            capability=longest.device.get("compute_capability", ""),
            launches=len(kernel.launches),
            seconds=kernel.median("kernel_time"),
            share=kernel.share,
            registers=_whole(figures.get("registers")),
            barrier_blocks=_whole(longest.limits.get("barriers")),
            limiters=kernel.limiters,
            issued=_issued(more),
            **told,
            uncoalesced=max(0.0, 1 - ideal / moved) if moved and ideal is not None else None,
            precision=max(longest.flops, key=lambda name: longest.flops[name]) if figures.get("flops") else "",
            stalls={name: value for name, value in longest.states.items() if value > 0},
            advice=tuple(_advice(longest)),
        )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _issued(more: Mapping[str, float]) -> float | None:
    """The share of cycles in which a scheduler issued, which is its instructions a cycle: it issues one at most."""
    if "no_eligible_share" in more:
        return max(0.0, 1 - more["no_eligible_share"])
    return min(1.0, more["issued_warps"]) if "issued_warps" in more else None


def _advice(launch: Measured) -> Iterator[Advice]:
    """What rules advise; those that only tell (INF), or that have nothing to say, are left out."""
    for rule in launch.rules:
        if rule.kind in _ADVISING and rule.text:
            yield Advice(clean_name(rule.name), clean(rule.text, _LONGEST_ADVICE), _gain(rule.speedup))


def _gain(text: str) -> float | None:
    """An estimated speedup in percent as a share; None where there is none, or nothing that is one."""
    found = re.fullmatch(r"(\d{1,9}(?:[.,]\d{1,9})?)%?", text.strip(), re.ASCII)
    return float(found[1].replace(",", ".")) / 100 if found else None
