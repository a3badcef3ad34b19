"""The ledger: what was tried, measured, kept and reverted, and why; one entry a try, as plain data for events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from perfflow.compare import Comparison
from perfflow.flow.optimize.changes import Change
from perfflow.plan.plan import Planned
from perfflow.verdict.acceptance import SAME_FILES, effect_of

Decision = Literal["accepted", "rejected", "skipped"]
Entry = dict[str, Any]
LONGEST_DIFF = 1 << 16
"""Characters of a diff that a result holds itself; a longer one is in its file alone."""


def entry(
    planned: Planned,
    name: str,
    decision: Decision,
    reason: str,
    row: Comparison | None = None,
    bound: float | None = None,
) -> Entry:
    """One try. ``effect`` is a share of the baseline, ``before`` and ``after`` are in base units."""
    found: Entry = {"id": name, "technique": planned.step.technique or "", "why": planned.step.why or ""}
    found |= {"decision": decision, "reason": reason, "bound": bound}
    if row is not None:
        effect = effect_of(row)
        found |= {
            "benchmark": row.benchmark,
            "metric": row.metric.name,
            "unit": row.metric.dimension.base_unit,
            "pairs": row.pairs,
            "before": row.baseline.value if row.baseline else None,
            "after": row.candidate.value if row.candidate else None,
        }
        if effect:
            found["effect"] = {"value": effect.estimate, "low": effect.low, "high": effect.high}
    return found


def with_change(found: Entry, change: Change, path: str) -> Entry:
    """Add what was changed: the diff and its file in the run's folder, its size, and the settings.

    A changed tree of which nothing else is executed looks like one that was not built.
    """
    text = change.difference.text
    same = f" ({SAME_FILES})"
    reason = found["reason"]
    if change.difference.files and reason.endswith(same):
        reason = f"{reason.removesuffix(')')}: was it built?)"
    return found | {
        "reason": reason,
        "diff": text if len(text) <= LONGEST_DIFF else "",
        "diff_file": path if change.difference.files else "",
        "files": [file.path for file in change.difference.files],
        "lines": change.difference.lines,
        "env": dict(change.own.env),
        "params": dict(change.own.params),
    }


def message_of(found: Mapping[str, Any]) -> str:
    """The commit message of an accepted change: ``perf: <change> (<effect>)`` and where it was proven."""
    from perfflow.units import format_change

    effect = format_change(found["effect"]["value"]) if found.get("effect") else "effect unknown"
    change = " ".join(str(found["why"] or found["id"]).split())
    return f"perf: {change} ({effect})\n\n{found['id']}: {found['reason']}\n"
