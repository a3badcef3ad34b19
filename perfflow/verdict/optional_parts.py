"""Parts of a result that few runs have. Their modules are imported only for runs that have them, to start faster.

This module decides nothing. Each function calls the module of its part.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.criteria import Criteria
from perfflow.model.peaks import Peaks
from perfflow.model.result import (
    Attribution,
    Benchmark,
    Growth,
    Optimization,
    Recommendation,
    RooflinePoint,
)
from perfflow.model.result_kernels import KernelResult, OnGpu
from perfflow.model.result_nodes import NodeResult
from perfflow.store.record import Record
from perfflow.verdict.across_gpus import on_each_gpu, without_decisions
from perfflow.verdict.findings import Findings
from perfflow.verdict.growth import concerns, grown
from perfflow.verdict.kernels import judged_kernels
from perfflow.verdict.ledger import ledger
from perfflow.verdict.recommendations import recommendations
from perfflow.verdict.tool_advice import advice_of_tools


def on_one_gpu(record: Record, rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the rows, without decisions for rows whose sides ran on different GPUs."""
    if not rows:
        return []

    return list(without_decisions(record, rows))


def nodes(record: Record) -> list[NodeResult]:
    """Return the other machines that measured parts of the run."""
    if not record.jobs:
        return []
    from perfflow.verdict.nodes import nodes

    return list(nodes(record))


def growth(record: Record, rows: Sequence[Benchmark], criteria: Criteria) -> tuple[list[Growth], list[str]]:
    """Return the growth of benchmarks with several sizes, and warnings for those that grow faster than before."""
    if not record.series:
        return [], []

    found = list(grown(record, rows, criteria))
    return found, list(concerns(found))


def attributions(record: Record, rows: Sequence[Benchmark]) -> list[Attribution]:
    """Return the functions that made benchmarks slower."""
    if not any(row.decision == "regressed" for row in rows):
        return []
    from perfflow.verdict.attribution import attributions

    return list(attributions(record, rows))


def kernels(record: Record, points: Sequence[RooflinePoint], peaks: Peaks) -> list[KernelResult]:
    """Return the GPU kernels that steps profiled."""
    if not any(step.kernels for _, step in record.ended_steps()):
        return []

    return list(judged_kernels(record, points, peaks))


def across_gpus(
    found: Sequence[KernelResult], rows: Sequence[Benchmark], points: Sequence[RooflinePoint], peaks: Peaks
) -> list[OnGpu]:
    """Return a line for each side of the kernels that ran on two GPUs."""
    if not found:
        return []

    return list(on_each_gpu(found, rows, points, peaks))


def advice(found: Findings) -> list[Recommendation]:
    """Return the advice of perfflow's rules, followed by the tools' own advice on kernels."""
    if not (found.rows or found.hotspots or found.kernels):
        return []

    return [*recommendations(found), *advice_of_tools(found.kernels)]


def optimizations(record: Record) -> list[Optimization]:
    """Return the candidates of the optimize stage."""
    if not record.ledger and not any(planned.role == "candidate" for planned in record.planned.values()):
        return []

    return list(ledger(record))
