"""The sections that a gate adds to a report, and recommendations and routes, which every run may have.

The functions that are blamed are in ``FindingSections.culprits``, one for each function, however many rows it made
slower. ``by_cell`` sums up the cells of steps with ``compare: KEY`` in a gate: what changed with which value, such as a
compiler. ``red_gate`` makes the first lines of a gate that fails: the worst rows, what to run to find the commit, and
how to accept the change.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import TIMES, in_words
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
    worst_first,
)
from perfflow.report.gate_table import GateLine, gates_of
from perfflow.report.text_table import Truncated, truncated
from perfflow.verdict.comparison import without_inverse_rates
from perfflow.verdict.row_text import estimate_of


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

    ``culprits`` are for a short page; ``blamed`` are benchmark and metric of the rows
    whose reasons they replace there.
    """

    summary: GateSummary | None
    blame: GateBlame | None
    impact: tuple[Impact, ...]
    recommendations: tuple[Recommendation, ...]
    actions: tuple[Action, ...]
    gates: tuple[GateLine, ...]
    routes: tuple[Routed, ...]
    culprits: tuple[Culprit, ...]
    blamed: tuple[tuple[str, str], ...]
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
        blamed=tuple(keys),
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


@dataclass(frozen=True)
class ByCell:
    """One metric of one benchmark over the values of a key: ``faster with clang (-5.0%), slower with g++ (+21%)``."""

    key: str
    benchmark: str
    text: str


def by_cell(result: Result, criteria: Criteria) -> Iterator[ByCell]:
    """Yield the benchmarks that changed with at least one value of their key, in the order of the result."""
    steps = {step.id: step.axis for step in result.steps if step.axis}
    groups: dict[tuple[str, str, str], list[tuple[str, Benchmark]]] = {}
    for row in without_inverse_rates(result.benchmarks) if steps else ():
        axis = steps.get(row.step)
        if axis and row.gating and row.decision:
            before, star, after = axis.cell.partition("*")
            cell = row.name.removeprefix(before).removesuffix(after) if star else ""
            name = axis.of.replace("*", cell, 1) if star else axis.of
            metric = "" if row.metric in TIMES else in_words(row.metric)
            groups.setdefault((axis.key, name, metric), []).append((axis.value, row))
    for (key, name, metric), cells in groups.items():
        if any(row.decision in ("improved", "regressed") for _, row in cells):
            words = ", ".join(_told(row, value, criteria) for value, row in cells)
            yield ByCell(key, f"{name} {metric}".rstrip(), words)


def _told(row: Benchmark, value: str, criteria: Criteria) -> str:
    timed = row.metric in TIMES
    better, worse = ("faster", "slower") if timed else ("better", "worse")
    word = {"improved": better, "regressed": worse, "same": "the same"}.get(row.decision or "", row.decision or "")
    change = f" ({estimate_of(row, criteria)})" if row.decision in ("improved", "regressed") else ""
    return f"{word} with {value}{change}"


ACCEPTED_DAYS = 90
"""Days until which a proposed entry of ``accepted`` is in force."""
MOST_ENTRIES = 4
"""Most proposed entries of ``accepted``; further rows are counted."""
_LONGEST_ENTRY = 300
_PARTS = re.compile(r"::|/")


@dataclass(frozen=True)
class RedGate:
    """What a reader of a failed gate needs first.

    ``unexplained`` are failing rows, the worst first, for which no function is blamed: title and change. ``bisect`` is
    the command that finds the commit, '' if there is none. ``accept`` are the lines for the workflow that accept the
    rows, and ``beyond`` counts the rows that they leave out. ``unprofiled`` are failing benchmarks without a profile.
    """

    unexplained: tuple[tuple[str, str], ...]
    bisect: str
    accept: tuple[str, ...]
    beyond: int
    unprofiled: tuple[str, ...]


def red_gate(result: Result, criteria: Criteria) -> RedGate | None:
    """Return the first lines of a gate in which rows got worse than a gate allows; None if there are none."""
    rows = [row for row in worst_first(result.benchmarks) if row.level == "action"]
    if not rows:
        return None
    blamed = {(item.benchmark, item.metric) for item in result.attributions}
    profiled = {spot.benchmark for spot in result.hotspots} | {item.benchmark for item in result.attributions}
    entries = sorted(_entries(rows, result), key=lambda item: len(item[0]) > _LONGEST_ENTRY)
    shown = [item for item in entries[:MOST_ENTRIES] if len(item[0]) <= _LONGEST_ENTRY]
    return RedGate(
        unexplained=tuple(
            (row.name if row.metric == "time" else f"{row.name} {in_words(row.metric)}", estimate_of(row, criteria))
            for row in rows
            if (row.name, row.metric) not in blamed
        ),
        bisect=next(
            (text for item in result.routes for text in item.brief.commands if text.startswith("perfflow bisect ")), ""
        ),
        accept=("accepted:", *(entry for entry, _ in shown)) if shown else (),
        beyond=sum(len(covered) for _, covered in entries[len(shown) :]),
        unprofiled=tuple(dict.fromkeys(row.name for row in rows if row.name not in profiled)),
    )


def _entries(rows: Sequence[Benchmark], result: Result) -> Iterator[tuple[str, list[str]]]:
    """Yield entries of ``accepted`` that cover the failing rows and no other row, with the names that each covers."""
    until = date.fromisoformat(result.run.started[:10]) + timedelta(days=ACCEPTED_DAYS)
    for metric in dict.fromkeys(row.metric for row in rows):
        worst = {row.name: least for row in rows if row.metric == metric and (least := _limit(row)) is not None}
        others = {row.name for row in result.benchmarks if row.metric == metric} - set(worst)
        left = dict(worst)
        while left:
            glob, covered = _widest(next(iter(left)), left, others)
            limit = max(left.pop(name) for name in covered)
            keys = {"benchmark": json.dumps(glob, ensure_ascii=False), "metric": metric, "change": f"{limit}%"}
            keys |= {"why": json.dumps("say what it is worth"), "until": until.isoformat()}
            yield f"  - {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}", covered


def _limit(row: Benchmark) -> int | None:
    """Return the percentage up to which a row must be accepted: the far end of its interval; None if it has none."""
    change = row.change
    if change is None or change.value is None:
        return None
    ends = [end for end in (change.value, change.low, change.high) if end is not None]
    return math.ceil(100 * (-min(ends) if row.better == "higher" else max(ends)) + 0.5)


def _widest(name: str, failing: Collection[str], others: Collection[str]) -> tuple[str, list[str]]:
    """Return the widest glob for a name and at least one more failing row but no other row, and what it matches.

    If there is none, it is the name.
    """
    # A part of a name with a wildcard would match more than its beginning.
    for part in () if {"*", "?"} & set(name) else _PARTS.finditer(name):
        start = name[: part.end()]
        covered = [each for each in failing if each.startswith(start)]
        if len(covered) > 1 and not any(each.startswith(start) for each in others):
            return f"{start}**", covered
    return name, [name]
