"""``gate --base-results NAME``: measure head alone and compare it with a stored set, without pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.jobs.compare.compare_stored import CompareOptions, ComparisonNames, compare_stored, require_comparable
from perfflow.jobs.run.run import FinishedRun
from perfflow.machine.facts import facts
from perfflow.model.targets import is_chosen
from perfflow.model.version import VERSION
from perfflow.session.open_workflow import Opened
from perfflow.store.history.stored import OWN, Stored, ending_of, stored_of
from perfflow.store.receipts import manifest as receipt_files
from perfflow.tools.adapter import Role

_LEFT_OUT = (Role.CANDIDATE, Role.COMPARE)


@dataclass(frozen=True)
class StoredBase:
    """The stored set to compare head with, the command line, and the comparison's folder (None for a new run)."""

    base: Stored
    command: Sequence[str]
    out: Path | None = None
    across_machines: bool = False


def require_usable(opened: Opened, asked: StoredBase) -> None:
    """Raise UserError if a comparison with head would, as far as this is known before head is measured."""
    data = opened.plan.workflow.data
    head = Stored("head", OWN, VERSION, {}, facts())
    head = replace(head, data=receipt_files.data_hashes(opened.root, data))
    head = replace(head, data_missing=tuple(receipt_files.unmatched(opened.root, data)))
    require_comparable(asked.base, head, across_machines=asked.across_machines)


def measured_steps(opened: Opened, selected: Collection[str]) -> list[str]:
    """Return the steps that measure head: as in any gate, no candidates and no comparisons of candidates."""
    return [item.id for item in opened.plan.steps if item.id in selected and item.role not in _LEFT_OUT]


def compare_head(opened: Opened, head: FinishedRun, asked: StoredBase) -> FinishedRun:
    """Compare a run of head with the stored set. The result has no verdict and is marked as unpaired.

    Raises UserError as ``compare_stored`` does.
    """
    stored_head = stored_of(head.result, head.result.run.id)
    # The comparison does not show failures of head itself, so they become a warning.
    ended = ending_of(head.result) if head.result.verdict == "fail" else ""
    stored_head = replace(stored_head, warnings=(*stored_head.warnings, *([ended] if ended else ())))
    workflow = opened.plan.workflow
    names = ComparisonNames(workflow.name, workflow.component or workflow.name, tuple(asked.command))
    chosen = head.result.run.chosen
    series = {key: readings for key, readings in asked.base.series.items() if is_chosen(chosen, key[0])}
    base = replace(asked.base, series=series)
    return compare_stored(base, stored_head, CompareOptions(asked.out, asked.across_machines, opened.root, names))
