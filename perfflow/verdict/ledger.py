"""Record → the rows of the optimization ledger: each try, judged when it was made, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfflow.result import Optimization
from perfflow.rundir.record import Record
from perfflow.verdict.hierarchy import cheaper_than

_OTHER = "another alternative is better"
_LOST = "the run ended before it was built on"


def ledger(record: Record) -> Iterator[Optimization]:
    """Yield the tries in the order of the plan. What was accepted and is not kept lost to a better alternative."""
    kept_steps = {name.partition("[")[0] for name in record.kept}
    before: list[dict[str, Any]] = []
    for found in record.tried():
        decision, reason = found["decision"], found["reason"]
        name = found["id"]
        if decision == "accepted" and name not in record.kept:
            lost = name.partition("[")[0] in kept_steps
            decision, reason = "rejected", f"{_OTHER if lost else _LOST}: {reason}"
        revision = record.kept.get(name) if decision == "accepted" else None
        cheaper = cheaper_than(found, before, record.run.get("ruled_out") or {})
        decided = {**found, "decision": decision, "reason": reason, "revision": revision, "cheaper": cheaper}
        before.append(decided)
        yield Optimization.model_validate(decided)
    if not record.ledger:
        yield from _untried(record)


def _untried(record: Record) -> Iterator[Optimization]:
    """Candidates whose step was skipped, such as by `if`: the ledger names every one of them."""
    for step_id, planned in record.planned.items():
        step = record.steps.get(step_id)
        if planned["role"] == "candidate" and step is not None and not step.get("optimizations"):
            told = {key: planned.get(key) or "" for key in ("technique", "why")}
            yield Optimization(id=step_id, decision="skipped", reason=step["reason"], **told)
