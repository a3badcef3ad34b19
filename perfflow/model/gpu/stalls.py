"""Stall reasons of warps in Nsight Compute, ranked, with their meaning and the usual remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).parent / "data" / "stalls.yaml"
BUSY = 0.8
"""Share of cycles with an issued instruction from which stalls cost nothing (ncu's rule CPIStall.py)."""
PRESSING = 0.3
"""Share of a warp's time above which that rule names a reason."""
_METRIC = re.compile(
    r"^smsp__(?:average_warps?(?:_latency)?_issue_stalled|warps?_issue_stalled|pcsamp_warps_issue_stalled)"
    r"_(?P<reason>[a-z_]+?)(?:_(?:per_issue_active|per_warp_active))?(?:\.(?:ratio|pct|sum))?$"
)
_SPELLINGS = {"no_instructions": "no_instruction"}


@dataclass(frozen=True)
class StallMeaning:
    """A stall reason, its meaning, and the usual remedy. Reasons without ``trouble`` need no remedy."""

    name: str
    means: str
    lowers: str
    trouble: bool = True


@dataclass(frozen=True)
class Ranked:
    """A stall reason of one kernel: its cycles per issued instruction, and its share of all of them, 0 to 1."""

    stall: StallMeaning
    cycles: float
    share: float


@cache
def stalls() -> Mapping[str, StallMeaning]:
    """Return all known reasons by name."""
    table: dict[str, list[dict[str, Any]]] = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {entry["name"]: StallMeaning(**entry) for entry in table["stalls"]}


def reason_of(metric: str) -> str | None:
    """Return the stall reason in a metric id of Nsight Compute; None for any other id.

    Samples taken only while nothing was issued (``..._not_issued``) are another quantity, so the result is None too.
    """
    found = _METRIC.match(metric)
    if found is None or found["reason"].endswith("_not_issued"):
        return None
    return _SPELLINGS.get(found["reason"], found["reason"])


def ranked(cycles: Mapping[str, float]) -> tuple[Ranked, ...]:
    """Rank the reasons of one kernel by cycles or samples, the largest first, each with its share of the total.

    ``selected`` and ``not_selected`` are in the total but come last, because they need no remedy. A reason that is not
    in the table is ranked with a note; reasons of 0 cycles are left out.
    """
    whole = sum(value for value in cycles.values() if value > 0)
    rows = [Ranked(_known(name), value, value / whole) for name, value in cycles.items() if value > 0]
    return tuple(sorted(rows, key=lambda row: (not row.stall.trouble, -row.cycles, row.stall.name)))


def pressing(rows: tuple[Ranked, ...], issued: float) -> tuple[Ranked, ...]:
    """Return the reasons worth acting on by ncu's rule. ``issued``: share of cycles with an issued instruction.

    Empty if schedulers issue in most cycles, because stalls then cost nothing.
    """
    return () if issued >= BUSY else tuple(row for row in rows if row.stall.trouble and row.share > PRESSING)


def _known(name: str) -> StallMeaning:
    unknown = StallMeaning(
        name, "a reason that perfflow does not know", "see Nsight Compute's guide, Warp Stall Reasons"
    )
    return stalls().get(name, unknown)
