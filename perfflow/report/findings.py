"""What a gate adds to the page, and what any run may have: advice and a route. Empty parts are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.report.advice import Action, Routed, actions_of, routed
from perfflow.report.blame import Blame, blame_of, commit_text, place_of, share_text
from perfflow.report.gate_table import GateLine, gates_of
from perfflow.report.impact import Impact, impact_of
from perfflow.report.leading import Leading, leading
from perfflow.report.regressions import Summary, is_gate, summary_of
from perfflow.result import Attribution, Benchmark, Recommendation, Result
from perfflow.samples.criteria import Criteria
from perfflow.verdict.told import estimate_of, failure


@dataclass(frozen=True, slots=True)
class Culprit:
    """A benchmark that fails, a function that it fails for with its share of that, and who touched it last."""

    benchmark: str
    others: str
    """``and 3 more`` benchmarks that fail for the same function."""
    change: str
    function: str
    place: str
    share: str
    commit: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The sections after the requirements; ``summary`` and ``blame`` are None where no two revisions were compared.

    ``culprits`` are for a short page; ``explained`` are the reasons that they say all of.
    """

    summary: Summary | None
    blame: Blame | None
    impact: tuple[Impact, ...]
    recommendations: tuple[Recommendation, ...]
    actions: tuple[Action, ...]
    gates: tuple[GateLine, ...]
    routes: tuple[Routed, ...]
    culprits: tuple[Culprit, ...]
    explained: tuple[str, ...]
    others: Mapping[str, int]
    """How many rows of a long table are left out, by the table's name."""


def findings_of(result: Result, criteria: Criteria) -> Findings:
    """Everything that is known, from the result alone."""
    advice = leading(result.recommendations)
    routes = tuple(map(routed, result.routes))
    if not is_gate(result):
        others = {"recommendations": advice.others}
        return Findings(None, None, (), advice.shown, (), (), routes, (), (), others)
    summary, blame = summary_of(result, criteria), blame_of(result)
    impact, actions, gates = impact_of(result, criteria), actions_of(result, criteria), gates_of(result, criteria)
    failing = {(row.name, row.metric): row for row in result.benchmarks if row.gating and row.level == "action"}
    blamed = [item for item in result.attributions if (item.benchmark, item.metric) in failing]
    keys = dict.fromkeys((item.benchmark, item.metric) for item in blamed)
    causes: dict[tuple[str, str], list[Attribution]] = {}
    for item in blamed:
        causes.setdefault((item.function, place_of(item)), []).append(item)
    culprits = leading(list(causes.values())).each(
        lambda items: _culprit(items, failing[items[0].benchmark, items[0].metric], criteria)
    )
    tables: dict[str, Leading[Any]] = {
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
    return Findings(
        summary=summary,
        blame=blame,
        impact=impact.shown,
        recommendations=advice.shown,
        actions=actions.shown,
        gates=gates.shown,
        routes=routes,
        culprits=culprits.shown,
        explained=tuple(failure(failing[key], criteria) for key in keys),
        others={name: table.others for name, table in tables.items()},
    )


def _culprit(items: Sequence[Attribution], row: Benchmark, criteria: Criteria) -> Culprit:
    item, others = items[0], len({each.benchmark for each in items}) - 1
    return Culprit(
        others=f"and {others} more" if others else "",
        benchmark=item.benchmark if item.metric == "time" else f"{item.benchmark} {item.metric}",
        change=estimate_of(row, criteria),
        function=item.function,
        place=place_of(item),
        share="" if item.share is None else share_text(item.share),
        commit=commit_text(item.commits[0]) if item.commits else "",
    )
