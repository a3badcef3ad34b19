"""Report two steps that measure the same metric of one benchmark: it would be unclear which samples count."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.plan.coverage import metrics_of
from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.load import Draft

_HINT = "remove one of them, or give it another `benchmark`"


def check(draft: Draft, plan: Plan) -> None:
    """Report each step that is sure to measure the same metric of a benchmark as an earlier step."""
    for item, other, metric in found(plan):
        text = f"steps `{other.id}` and `{item.id}` both measure `{metric}` of `{item.benchmark}`"
        draft.complain(draft.steps[item.step.id], text, _HINT)


def found(plan: Plan) -> Iterator[tuple[Planned, Planned, str]]:
    """Yield each such step, the earlier step, and the metric."""
    seen: dict[tuple[str, str], Planned] = {}
    for item in plan.steps:
        for metric in sorted(_certain_metrics(item, plan), key=lambda name: (name != "time", name)):
            other = seen.setdefault((item.benchmark, metric), item)
            if other is item or not _both_yield(other, item, metric):
                continue
            yield item, other, metric
            break


def _certain_metrics(item: Planned, plan: Plan) -> frozenset[str]:
    """Return the metrics that a step is sure to measure; none if it may be skipped or its benchmark is unknown."""
    unsure = item.step.if_ is not None or item.step.requires is not None or plan.stage(item.stage).if_ is not None
    if item.role is not Role.MEASURE or unsure or not item.benchmark or "*" in item.benchmark:
        return frozenset()
    return metrics_of(item)


def _both_yield(one: Planned, other: Planned, metric: str) -> bool:
    """Return whether both steps produce the metric: tools may omit metrics, except time and those of ``parse``."""
    return metric == "time" or (one.tool is other.tool) or not (one.tool and other.tool)
