"""The rows of the optimization ledger: each try, its decision at the time, and its final outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perfflow.model.plain_data import to_json
from perfflow.model.result import Optimization
from perfflow.store.record import Record
from perfflow.store.run_facts import Try
from perfflow.verdict.hierarchy import cheaper_than

_OTHER = "another alternative is better"
_LOST = "the run ended before it was kept"


def ledger(record: Record) -> Iterator[Optimization]:
    """Yield the tries in the order of the plan. A try that was accepted but not kept is reported as rejected."""
    kept_steps = {name.partition("[")[0] for name in record.kept}
    before: list[Try] = []
    for found in record.tried():
        decision, reason, name = found.decision, found.reason, found.id
        if decision == "accepted" and name not in record.kept:
            lost = name.partition("[")[0] in kept_steps
            decision, reason = "rejected", f"{_OTHER if lost else _LOST}: {reason}"
        revision = record.kept.get(name) if decision == "accepted" else None
        cheaper = cheaper_than(found, before, record.run.ruled_out or {})
        before.append(replace(found, decision=decision, reason=reason))
        yield Optimization(**to_json(before[-1]), revision=revision, cheaper=cheaper)
    if not record.ledger:
        yield from _untried(record)


def _untried(record: Record) -> Iterator[Optimization]:
    """Yield the candidates whose step was skipped, such as by `if`. The ledger lists all candidates."""
    for step_id, planned in record.planned.items():
        step = record.steps.get(step_id)
        if planned.role == "candidate" and step is not None and not step.optimizations:
            technique, why = planned.technique or "", planned.why or ""
            yield Optimization(id=step_id, decision="skipped", reason=step.reason, technique=technique, why=why)
