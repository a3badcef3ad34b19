"""Hand-made events of steps that profiled GPU kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfflow.model.kernels import KernelResult
from perfflow.model.result import Result
from tests.verdict.records import criteria, ended, judged, planned, reading

L4 = "NVIDIA L4"
# On compute capability 8.9 an SM holds 48 warps: 5 blocks of 8 warps with 48 registers a thread.
KERNEL: dict[str, Any] = {"name": "gemm", "source": "ncu", "benchmark": "gemm", "tree": "baseline", "precision": "f32"}
KERNEL |= {"device": L4, "capability": "8.9", "launches": 3, "seconds": 1e-3, "share": 1.0, "grid": 580, "threads": 256}
KERNEL |= {"registers": 48, "shared_static": 0, "shared_dynamic": 0, "occupancy": 0.7, "limiters": ["registers"]}
KERNEL |= {"occupancy_theoretical": 40 / 48, "sm_share": 0.3, "memory_share": 0.8, "issued": 0.2, "waves": 2.0}


def kernel(**keys: Any) -> dict[str, Any]:
    return {**KERNEL, **keys}


def figures(kernels: Sequence[Mapping[str, Any]], flops: float, bandwidth: float) -> dict[str, Any]:
    """Return the readings of each side's benchmarks, as in the event of a profile."""
    return {
        tree: [
            reading(metric, value, benchmark=name)
            for name in dict.fromkeys(item["benchmark"] for item in kernels if item["tree"] == tree)
            for metric, value in (("flops", flops), ("bandwidth", bandwidth))
        ]
        for tree in dict.fromkeys(item["tree"] for item in kernels)
    }


def profiled(
    *kernels: Mapping[str, Any],
    flops: float = 1e12,
    bandwidth: float = 2e11,
    targets: Mapping[str, Mapping[str, str]] | None = None,
    peaks: Mapping[str, float] | None = None,
    **step: Any,
) -> Result:
    """Return a run whose step ``ncu`` profiled these kernels, each as its own benchmark."""
    step = {"kernels": list(kernels), "devices": list(dict.fromkeys(item["device"] for item in kernels)), **step}
    event = ended("ncu", readings=figures(kernels, flops, bandwidth), **step)
    steps = [planned("ncu", role="profile", tool="ncu", benchmark="*")]
    return judged(event, steps=steps, wanted=criteria(targets, peaks=peaks))


def only(result: Result) -> KernelResult:
    (found,) = result.kernels
    return found
