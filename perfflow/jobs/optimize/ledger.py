"""The ledger: one entry for each try of a candidate, with its change, figures, decision and reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from perfflow.jobs.optimize.apply_change import Change
from perfflow.model.units import format_change
from perfflow.plan.plan import Planned
from perfflow.store.run_facts import Effect, TriedChange, Try, TryFigures
from perfflow.verdict.acceptance import SAME_FILES, effect_of
from perfflow.verdict.comparison import Comparison

Decision = Literal["accepted", "rejected", "skipped"]
LONGEST_DIFF = 1 << 16
"""The most characters of a diff that a result contains. A longer diff is only in its file."""


def entry(
    planned: Planned,
    name: str,
    decision: Decision,
    reason: str,
    row: Comparison | None = None,
    bound: float | None = None,
) -> Try:
    """Return the entry of one try."""
    figures = _figures(row) if row else None
    return Try(name, planned.step.technique or "", planned.step.why or "", decision, reason, bound, figures)


def _figures(row: Comparison) -> TryFigures:
    effect = effect_of(row)
    return TryFigures(
        benchmark=row.benchmark,
        metric=row.metric.name,
        unit=row.metric.dimension.base_unit,
        pairs=row.pairs,
        before=row.baseline.value if row.baseline else None,
        after=row.candidate.value if row.candidate else None,
        effect=Effect(effect.estimate, effect.low, effect.high) if effect else None,
    )


def with_change(found: Try, change: Change, path: str) -> Try:
    """Add the change to an entry; ``path`` is that of the diff in the run's folder.

    If files changed but the same programs ran, the change was probably not built.
    """
    text, files = change.difference.text, change.difference.files
    reason, same = found.reason, f" ({SAME_FILES})"
    if files and reason.endswith(same):
        reason = f"{reason.removesuffix(')')}: was it built?)"
    made = TriedChange(
        diff=text if len(text) <= LONGEST_DIFF else "",
        diff_file=path if files else "",
        files=tuple(file.path for file in files),
        lines=change.difference.lines,
        env=dict(change.own.env),
        params=dict(change.own.params),
    )
    return replace(found, reason=reason, change=made)


def message_of(found: Try) -> str:
    """Return the commit message of an accepted change: ``perf: <change> (<effect>)``, and the reason below."""
    effect = format_change(found.effect.value) if found.effect else "effect unknown"
    change = " ".join((found.why or found.id).split())
    return f"perf: {change} ({effect})\n\n{found.id}: {found.reason}\n"
