"""Two steps that measure the same metric of one benchmark: whose samples would count is nobody's guess."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.plan.coverage import metrics_of
from perfflow.plan.plan import Plan, Planned
from perfflow.tools.adapter import Role
from perfflow.workflow.load import Draft

_HINT = "leave one of them out, or give it another `benchmark`"


def check(draft: Draft, plan: Plan) -> None:
    """Complain of a step that measures what an earlier one does, where both are known to before they run."""
    for item, other, metric in found(plan):
        text = f"step `{item.id}` measures `{metric}` of `{item.benchmark}`, as step `{other.id}` does"
        draft.complain(draft.steps[item.step.id], text, _HINT)


def found(plan: Plan) -> Iterator[tuple[Planned, Planned, str]]:
    """Each step that measures what an earlier one does, that one, and the metric."""
    seen: dict[tuple[str, str], Planned] = {}
    for item in plan.steps:
        for metric in sorted(_certain(item, plan), key=lambda name: (name != "time", name)):
            other = seen.setdefault((item.benchmark, metric), item)
            if other is item or not _both_yield(other, item, metric):
                continue
            yield item, other, metric
            break


def _certain(item: Planned, plan: Plan) -> frozenset[str]:
    """What a step measures of a benchmark whose name is known; nothing of one that may be left out by a condition."""
    unsure = item.step.if_ is not None or item.step.requires is not None or plan.stage(item.stage).if_ is not None
    if item.role is not Role.MEASURE or unsure or not item.benchmark or "*" in item.benchmark:
        return frozenset()
    return metrics_of(item)


def _both_yield(one: Planned, other: Planned, metric: str) -> bool:
    """Whether both surely do: tools leave out what they cannot see, but not the time, nor what the author declares."""
    return metric == "time" or (one.tool is other.tool) or not (one.tool and other.tool)
