"""The sections that a gate adds to a report, and recommendations and routes, which every run may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import in_words
from perfflow.model.result import Attribution, Benchmark, Recommendation, Result
from perfflow.report.blame import (
    Action,
    GateBlame,
    GateSummary,
    Impact,
    Routed,
    actions_of,
    blame_of,
    commit_text,
    impact_of,
    is_gate,
    place_of,
    routed,
    share_text,
    summary_of,
)
from perfflow.report.by_cell import ByCell, by_cell
from perfflow.report.gate_table import GateLine, gates_of
from perfflow.report.red_gate import RedGate, red_gate
from perfflow.report.text_table import Truncated, truncated
from perfflow.verdict.row_text import estimate_of, failure


@dataclass(frozen=True)
class Culprit:
    """A failing benchmark, the function that is blamed with its share, and the last commit that touched it."""

    benchmark: str
    others: str
    """``and 3 more``: other failing benchmarks for which the same function is blamed."""
    change: str
    function: str
    place: str
    share: str
    commit: str


@dataclass(frozen=True)
class FindingSections:
    """The sections after the requirements; ``summary`` and ``blame`` are None unless two revisions were compared.

    ``culprits`` are for a short page; ``explained`` are the reasons of the verdict that they replace there.
    """

    summary: GateSummary | None
    blame: GateBlame | None
    impact: tuple[Impact, ...]
    recommendations: tuple[Recommendation, ...]
    actions: tuple[Action, ...]
    gates: tuple[GateLine, ...]
    routes: tuple[Routed, ...]
    culprits: tuple[Culprit, ...]
    explained: tuple[str, ...]
    by_cell: tuple[ByCell, ...]
    """What changed with which value of the key of ``compare``."""
    red: RedGate | None
    """The first lines of a gate that fails by its rows; None for other runs."""
    others: Mapping[str, int]
    """Number of rows left out of each long table, by the table's name."""


def findings_of(result: Result, criteria: Criteria) -> FindingSections:
    """Return the findings of a result."""
    advice = truncated(result.recommendations)
    routes = _routes(result)
    if not is_gate(result):
        others = {"recommendations": advice.others}
        return FindingSections(None, None, (), advice.shown, (), (), routes, (), (), (), None, others)

    summary, blame = summary_of(result, criteria), blame_of(result)
    impact, actions, gates = impact_of(result, criteria), actions_of(result, criteria), gates_of(result, criteria)
    failing = {(row.name, row.metric): row for row in result.benchmarks if row.gating and row.level == "action"}
    blamed = [item for item in result.attributions if (item.benchmark, item.metric) in failing]
    keys = dict.fromkeys((item.benchmark, item.metric) for item in blamed)
    causes: dict[tuple[str, str], list[Attribution]] = {}
    for item in blamed:
        causes.setdefault((item.function, place_of(item)), []).append(item)
    culprits = truncated(list(causes.values())).each(
        lambda items: _culprit(items, failing[items[0].benchmark, items[0].metric], criteria)
    )
    cells = truncated(list(by_cell(result, criteria)))
    tables: dict[str, Truncated[Any]] = {
        "by_cell": cells,
        "regressed": summary.regressed,
        "accepted": summary.accepted,
        "refuted": summary.refuted,
    }
    tables |= {
        "blamed": blame.functions,
        "unexplained": blame.unexplained,
        "areas": blame.areas,
        "impact": impact,
        "culprits": culprits,
    }
    tables |= {"recommendations": advice, "actions": actions, "gates": gates}
    return FindingSections(
        summary=summary,
        blame=blame,
        impact=impact.shown,
        recommendations=advice.shown,
        actions=actions.shown,
        gates=gates.shown,
        routes=routes,
        culprits=culprits.shown,
        explained=tuple(failure(failing[key], criteria) for key in keys),
        by_cell=cells.shown,
        red=red_gate(result, criteria),
        others={name: table.others for name, table in tables.items()},
    )


def _routes(result: Result) -> tuple[Routed, ...]:
    if not result.routes:
        return ()

    return tuple(map(routed, result.routes))


def _culprit(items: Sequence[Attribution], row: Benchmark, criteria: Criteria) -> Culprit:
    item, others = items[0], len({each.benchmark for each in items}) - 1
    return Culprit(
        others=f"and {others} more" if others else "",
        benchmark=item.benchmark if item.metric == "time" else f"{item.benchmark} {in_words(item.metric)}",
        change=estimate_of(row, criteria),
        function=item.function,
        place=place_of(item),
        share="" if item.share is None else share_text(item.share),
        commit=commit_text(item.commits[0]) if item.commits else "",
    )
