"""Analyse each GPU kernel: its occupancy by the model, what bounds it, and why its warps waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.errors import UserError
from perfflow.model.gpu.limits import Limits, limits_of
from perfflow.model.gpu.occupancy import Launch, Occupancy, occupancy
from perfflow.model.gpu.occupancy_advice import lifts
from perfflow.model.gpu.roof import Bound, bound_under, bound_without_roof
from perfflow.model.gpu.stalls import pressing, ranked
from perfflow.model.kernels import KernelFacts, KernelOf, by_benchmark
from perfflow.model.peaks import Peaks
from perfflow.model.result import RooflinePoint
from perfflow.model.result_kernels import KernelResult, Modelled, Stall, ToolAdvice
from perfflow.model.roofline import Roof
from perfflow.store.record import Record
from perfflow.verdict.device import evidence_of

TOLERANCE = 0.02
"""Difference between the model's occupancy and the tool's, as a share of the tool's, above which a warning is given."""
_OF_FACTS = (
    *("name", "source", "device", "capability", "launches", "seconds", "share", "grid", "threads", "registers"),
    *("shared_static", "shared_dynamic", "carveout", "barrier_blocks", "occupancy", "occupancy_theoretical"),
    *("sm_share", "memory_share", "issued", "waves", "uncoalesced", "precision"),
)


def judged_kernels(record: Record, points: Sequence[RooflinePoint], peaks: Peaks) -> Iterator[KernelResult]:
    """Yield every kernel that a step profiled, on each side, in the order of the steps."""
    kernels = record.kernels()
    own = by_benchmark(kernels)
    placed: dict[tuple[str, str], RooflinePoint] = {(point.benchmark, point.tree): point for point in points}
    for found in kernels:
        # The values of a benchmark with several kernels are totals, which are not the intensity of any one kernel.
        place = (found.benchmark, found.tree)
        yield _judged(found, placed.get(place) if own.get(place) == found.facts else None, peaks)


def _judged(found: KernelOf, point: RooflinePoint | None, peaks: Peaks) -> KernelResult:
    facts = found.facts
    model, warnings = _modelled(facts)
    bound, because = _bound(facts, point, peaks)
    return KernelResult(
        step=found.step,
        benchmark=found.benchmark,
        tree=found.tree,
        **{name: getattr(facts, name) for name in _OF_FACTS},
        limiters=list(facts.limiters),
        model=model,
        bound=bound,
        because=because,
        stalls=list(_stalls(facts)),
        advice=[ToolAdvice(rule=item.rule, text=item.text, gain=item.gain) for item in facts.advice],
        warnings=warnings,
    )


def _modelled(facts: KernelFacts) -> tuple[Modelled | None, list[str]]:
    """Return the occupancy by the model, None if it cannot be computed, and warnings."""
    lacking = [name for name in ("threads", "registers") if getattr(facts, name) is None]
    if len(lacking) == 2:
        return None, []  # the tool reports times and no launches
    if lacking or not facts.capability:
        missing = " and ".join([*lacking, *([] if facts.capability else ["compute capability"])])
        return None, [f"no occupancy model: {facts.source} does not report the {missing}"]
    try:
        limits = limits_of(facts.capability)
        found = occupancy(_launch(facts, limits), limits)
    except UserError as error:
        return None, [f"no occupancy model: {error.problems[0].message}"]
    shown = Modelled(
        occupancy=found.share,
        blocks=found.blocks,
        limiters=[limiter.value for limiter in found.limiters] if found.warps < limits.warps else [],
        lifts=[lift.text for lift in lifts(found)],
    )
    return shown, list(_doubts(facts, found))


def _launch(facts: KernelFacts, limits: Limits) -> Launch:
    """Return the launch for the model. The barriers of a block follow from the number of blocks that they allow."""
    barriers = 1
    if limits.barriers and facts.barrier_blocks:
        barriers = max(1, limits.barriers // facts.barrier_blocks)
    shared = (facts.shared_static or 0) + (facts.shared_dynamic or 0)
    return Launch(facts.threads or 0, facts.registers or 0, shared, barriers, facts.carveout)


def _doubts(facts: KernelFacts, found: Occupancy) -> Iterator[str]:
    """Yield a warning if the model and the tool disagree, or if the launch is impossible by the model."""
    told = facts.occupancy_theoretical
    if not found.blocks:
        yield f"according to the model, no block of this launch fits an SM of compute capability {facts.capability}"
    elif told and abs(found.share - told) > TOLERANCE * told:
        yield f"the theoretical occupancy is {found.share:.1%} by the model, {told:.1%} by {facts.source}"


def _bound(facts: KernelFacts, point: RooflinePoint | None, peaks: Peaks) -> tuple[Bound | None, str]:
    """Return what bounds a kernel: by its intensity under a roof, else by its speed-of-light shares."""
    evidence = evidence_of(facts)
    if point is None or point.attainable is None:
        return bound_without_roof(evidence) if evidence else (None, "")
    memory, arithmetic = peaks.of("bandwidth", "", point.device), peaks.of("flops", point.precision, point.device)
    if memory is None or arithmetic is None:
        return point.bound, ""
    bound, because = bound_under(Roof(memory.peak.value, arithmetic.peak.value), point.intensity, evidence)
    if evidence and bound != "latency":
        by_units, shares = bound_without_roof(evidence)
        # The roof does not include caches and other precisions, whose units may be the busy ones.
        because += f"; {shares}" + ("" if by_units == bound else f", which suggests {by_units}")
    return bound, because


def _stalls(facts: KernelFacts) -> Iterator[Stall]:
    """Yield the reasons why warps waited, the most frequent first; harmless ones are last."""
    # Sorted, because sums of floats depend on their order, and data read back may be in another order.
    rows = ranked(dict(sorted(facts.stalls.items())))
    urgent = pressing(rows, facts.issued) if facts.issued is not None else ()
    for row in rows:
        yield Stall(
            reason=row.stall.name,
            cycles=row.cycles,
            share=row.share,
            means=row.stall.means,
            lowers=row.stall.lowers,
            pressing=row in urgent,
        )
