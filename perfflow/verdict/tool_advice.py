"""A profiler's own advice on GPU kernels, verbatim, in addition to the advice of perfflow's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.result import Recommendation
from perfflow.model.result_kernels import KernelResult, ToolAdvice
from perfflow.verdict.kernel_evidence import current_kernels

MOST = 3
"""Maximum number of pieces of advice per kernel."""
LEAST_TIME = 0.05
"""Share of all kernels' time below which a kernel gets no advice."""


def advice_of_tools(kernels: Sequence[KernelResult]) -> Iterator[Recommendation]:
    """Yield the advice on each kernel that takes enough time, the largest expected gain first, then in tool order."""
    for item in current_kernels(kernels):
        if item.share is not None and item.share < LEAST_TIME:
            continue
        for found in sorted(item.advice, key=_gain, reverse=True)[:MOST]:
            yield Recommendation(
                finding=f"{item.source} advises on {item.name}",
                advice=found.text,
                evidence="",
                rule=found.rule,
                benchmark=item.benchmark,
                source=item.source,
                gain=found.gain,
            )


def _gain(found: ToolAdvice) -> float:
    return -1.0 if found.gain is None else found.gain
