"""Why warps wait: the stall reasons of Nsight Compute ranked, with what each means and what usually lowers it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from perfflow.model.later import dataclass, late_pattern

TABLE = Path(__file__).parent / "data" / "stalls.yaml"
BUSY = 0.8
"""Share of cycles with an instruction issued from which on stalls cost nothing: ncu's rule CPIStall.py."""
PRESSING = 0.3
"""Share of a warp's time from which on that rule names a reason."""
_METRIC = late_pattern(
    r"^smsp__(?:average_warps?(?:_latency)?_issue_stalled|warps?_issue_stalled|pcsamp_warps_issue_stalled)"
    r"_(?P<reason>[a-z_]+?)(?:_(?:per_issue_active|per_warp_active))?(?:\.(?:ratio|pct|sum))?$"
)
_SPELLINGS = {"no_instructions": "no_instruction"}


@dataclass(frozen=True)
class Stall:
    """A reason, what a warp does then, and what usually lowers it; without ``trouble`` nothing needs to."""

    name: str
    means: str
    lowers: str
    trouble: bool = True


@dataclass(frozen=True)
class Ranked:
    """A reason of one kernel: cycles of it for each instruction issued, and its share of them all, 0 to 1."""

    stall: Stall
    cycles: float
    share: float


@cache
def stalls() -> Mapping[str, Stall]:
    """Every known reason by name."""
    import yaml

    table: dict[str, list[dict[str, Any]]] = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {entry["name"]: Stall(**entry) for entry in table["stalls"]}


def reason_of(metric: str) -> str | None:
    """The reason in a metric id of Nsight Compute; None for an id of something else.

    Samples that count only while nothing was issued (``..._not_issued``) are another quantity, so None as well.
    """
    found = _METRIC.match(metric)
    if found is None or found["reason"].endswith("_not_issued"):
        return None
    return _SPELLINGS.get(found["reason"], found["reason"])


def ranked(cycles: Mapping[str, float]) -> tuple[Ranked, ...]:
    """Rank the reasons of one kernel by cycles, or by samples: the longest first, each with its share of all.

    ``selected`` and ``not_selected`` count in the whole and stand last, since they are no trouble. A reason that is
    not in the table is ranked too, and says so; one of 0 cycles is left out.
    """
    whole = sum(value for value in cycles.values() if value > 0)
    rows = [Ranked(_known(name), value, value / whole) for name, value in cycles.items() if value > 0]
    return tuple(sorted(rows, key=lambda row: (not row.stall.trouble, -row.cycles, row.stall.name)))


def pressing(rows: tuple[Ranked, ...], issued: float) -> tuple[Ranked, ...]:
    """The reasons worth acting on, as ncu's rule sees it, where ``issued`` is the share of cycles with an instruction.

    None where schedulers issue in most cycles: warps then wait at no cost.
    """
    return () if issued >= BUSY else tuple(row for row in rows if row.stall.trouble and row.share > PRESSING)


def _known(name: str) -> Stall:
    unknown = Stall(name, "a reason that perfflow does not know", "see Nsight Compute's guide, Warp Stall Reasons")
    return stalls().get(name, unknown)
