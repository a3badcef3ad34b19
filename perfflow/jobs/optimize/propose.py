"""A proposer's brief: the JSON that a proposing program reads before it edits the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.plan.optimize_stage import StagePlan
from perfflow.plan.plan import Planned
from perfflow.store.record import Record

BRIEF = "PERFFLOW_BRIEF"
"""Environment variable with the path of the brief, which is also the proposer's standard input."""
SCHEMA = "perfflow.brief/1"
TOP = 5
"""The most hotspots of each profile in a brief."""
_AROUND = 5
"""Source lines shown before and after a hotspot's line."""


def proposing(planned: Planned, brief: Path) -> Planned:
    """Return the candidate as a command that reads the brief."""
    text = f'exec < "${BRIEF}"\n{planned.step.propose}'
    step = planned.step.model_copy(
        update={"run": text, "propose": None, "env": {**planned.step.env, BRIEF: str(brief)}}
    )
    return replace(planned, step=step)


def brief_of(
    stage: StagePlan,
    record: Record,
    targets: Iterable[Mapping[str, Any]],
    ledger: Iterable[Mapping[str, Any]],
    tree: Path,
    attempt: int,
) -> dict[str, Any]:
    """Return the brief as JSON data: shares from 0 to 1, values in base units, files relative to the tree."""
    own = stage.own
    return {
        "schema": SCHEMA,
        "tree": str(tree),
        "attempt": attempt,
        "attempts": stage.attempts,
        "targets": list(targets),
        "objectives": [{"benchmark": name, "metric": metric or "time"} for name, metric in stage.goal.objectives],
        "hotspots": [_hotspot(item, tree) for item in _top(record)],
        "ledger": list(ledger),
        "constraints": {
            "accept": stage.goal.accept,
            "forbid": own.forbid or [],
            "max_diff": own.max_diff,
            "check": [own.check] if isinstance(own.check, str) else own.check or [],
            "guard": list(stage.goal.guards),
        },
    }


def _top(record: Record) -> list[dict[str, Any]]:
    """Return the largest hotspots of each profile, since shares of time and of bytes cannot be compared."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for step_id, hotspot in record.hotspots():
        spot = hotspot.spot
        benchmark = spot.benchmark or record.planned[step_id].benchmark
        item = {"step": step_id, "benchmark": benchmark, "spot": spot}
        found.setdefault((step_id, benchmark), []).append(item)
    return [item for items in found.values() for item in sorted(items, key=lambda item: -item["spot"].share)[:TOP]]


def _hotspot(item: Mapping[str, Any], tree: Path) -> dict[str, Any]:
    spot = item["spot"]
    found = {"step": item["step"], "benchmark": item["benchmark"], "location": spot.location}
    found |= {"file": spot.file, "line": spot.line, "share": spot.share, "unit": spot.unit}
    return found | {"source": _source(tree, spot.file, spot.line)}


def _source(tree: Path, file: str, line: int | None) -> list[dict[str, Any]]:
    """Return the numbered lines around a line; none if the file is outside the tree."""
    place = tree / file if file else tree
    if not file or not line or not place.resolve().is_relative_to(tree.resolve()):
        return []
    try:
        text = place.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    first = max(0, line - 1 - _AROUND)
    return [{"line": first + number, "text": content} for number, content in enumerate(text[first : line + _AROUND], 1)]
