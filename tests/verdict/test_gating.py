"""Which rows gate: the chosen clock, memory, guards and what is ignored; and how they share the false alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Criteria, MemoryThresholds, OwnThresholds, Thresholds, criteria_from_json
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.model.result import GatesBy, Result, Sample
from perfflow.report import terminal
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.verdict import gating
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.gating import choose_rows, compared, guarded_rows, memory_rows, two_stored, two_trees
from perfflow.verdict.judge import judge
from tests.verdict.comparisons import moved, shown_row, side
from tests.verdict.records import REVISIONS, beside, criteria, ended, judged, pairs, planned, record, row, scaled

EVEN = scaled(1.0)
FIRST_LOOK = SCHEDULES[Design.LOOKS][0][1]
OLD, NEW = Side


def taken(metrics: Mapping[str, float], runs: int = 11, wanted: Criteria | None = None, **keys: Any) -> Record:
    """Return pairs of a benchmark whose candidate changed each metric by a factor."""
    events = [
        event | {"design": "looks", "baseline": [], "candidate": []} for event in pairs("b", scaled(1.0, runs), None)
    ]
    for event, value in zip(events, scaled(1.0, runs), strict=True):
        for metric, factor in metrics.items():
            before = value * (1e8 if metric == "rss" else 1)
            beside([event], metric, before, factor * before)
    return record(*events, ended("b"), criteria=wanted or Criteria(), **keys)


# -- what is compared

STORED = {"kind": "stored", "revision": "d" * 40, "name": "run"}
FOLDER = {"kind": "folder", "revision": None, "dirty": None}


@pytest.mark.parametrize(
    ("before", "after", "of_trees", "of_stored"),
    [
        (REVISIONS["baseline"], REVISIONS["candidate"], True, False),
        (REVISIONS["baseline"], FOLDER, False, False),
        (STORED, REVISIONS["candidate"], False, False),
        (STORED, STORED, False, True),
    ],
)
def test_two_trees_and_two_stored_sets(before: Any, after: Any, *, of_trees: bool, of_stored: bool) -> None:
    made = taken({"time": 1.0}, trees={"baseline": before, "candidate": after})
    assert (two_trees(made), two_stored(made)) == (of_trees, of_stored)
    # Two stored sets have no verdict.
    result = judge(made, Criteria())
    assert (result.verdict, result.gate is None) == ((None, True) if of_stored else ("pass", False))


# -- the chosen clock and other rows


@pytest.mark.parametrize(("asked", "why"), [("auto", ""), (None, ""), ("cpu", "`cpu` was requested, but not measured")])
def test_a_clock_chosen_by_itself_was_not_asked_for(asked: str | None, why: str) -> None:
    made = taken({"time": 1.0}, steps=[planned("b", metric=asked)])
    assert choose_rows(made, compared(made, Criteria()), Criteria()).gating == {("b", "time"): ("chosen", why)}
    assert row(judge(made, Criteria())).why == why


@pytest.mark.parametrize(
    ("step", "wanted", "gates", "why", "verdict"),
    [
        # CPU time is chosen; wall time is only shown.
        ({}, {}, ["cpu"], {"time": "", "uncontended": ""}, "pass"),
        ({"metric": "time"}, {}, ["time"], {"time": "as asked for"}, "unproven"),
        ({}, {"b": {"time": "<10s"}}, ["time", "cpu"], {}, "unproven"),
    ],
)
def test_rows_that_do_not_gate(step: Any, wanted: Any, gates: list[str], why: Any, verdict: str) -> None:
    events = pairs("b", [1.0] * 20, [1.5 * (1 + 0.4 * (-1) ** number) for number in range(20)])
    for event, cpu in zip(events, EVEN, strict=True):
        for metric in ("cpu", "uncontended"):
            beside([event], metric, 1.0, cpu)
    result = judged(*events, ended("b"), wanted=criteria(wanted), steps=[planned("b", **step)])
    assert [item.metric for item in result.benchmarks if item.gating] == gates
    assert {metric: row(result, metric).why for metric in why} == why
    assert result.verdict == verdict


def test_unpaired_values_never_gate() -> None:
    step = planned("p", role="profile", benchmark="b")
    for metric, after, gates, decision, verdict in (
        ("cycles", 900.0, False, "unproven", "pass"),
        ("cycles", 107.0, False, "unproven", "pass"),
        ("heap_peak", 900.0, True, "regressed", "fail"),
    ):
        (event,) = pairs("p", [100.0], [after], metric)
        readings = {side: event[side] for side in ("baseline", "candidate")}
        result = judged(ended("p", readings=readings), steps=[step])
        found = row(result, metric)
        assert (found.decision, found.gating, found.paired, result.verdict) == (decision, gates, False, verdict)
        assert bool(result.reason_texts) is gates


# -- guards


def test_a_guard_is_about_no_other_clock() -> None:
    made = taken({"time": 1.0, "cpu": 1.0, "rss": 1.0})
    assert guarded_rows(made, compared(made, Criteria()), ["**"]) == [("b", "rss")]


@pytest.mark.parametrize(
    ("metric", "guard", "at_most", "gates"),
    [
        *[("rss", ["b"], False, True), ("rss", ["*"], False, True)],
        *[("rss", ["other"], False, False), ("rss", [], False, False), ("page_faults", ["b"], False, False)],
        # A candidate known only as an upper bound is not proven worse.
        ("rss", ["b"], True, False),
    ],
)
def test_a_guarded_metric_with_a_direction_gates(metric: str, guard: list[str], at_most: bool, gates: bool) -> None:
    keys = {"at_most": True} if at_most else {}
    events = [*pairs("b", EVEN, EVEN), ended("b"), ended("m")]
    events += pairs("m", scaled(1000), scaled(1200), metric, **keys)
    result = judged(*events, steps=(planned("b"), planned("m", benchmark="b")), guard=guard)
    assert (row(result, metric).gating, result.verdict) == (gates, "fail" if gates else "pass")
    assert result.run.guard == guard


# -- memory gates if two trees are compared, and is a concern otherwise

MIB = 2.0**20


def measured(
    metric: str,
    before: float,
    after: float,
    wanted: Criteria | None = None,
    *,
    gate: bool = True,
    own: bool = False,
    bound: bool = False,
) -> Result:
    """Return a benchmark ``b`` with unchanged time and one memory metric."""
    known = wanted or Criteria()
    events = beside(pairs("b", EVEN, EVEN), metric, before, None)
    beside(events, metric, None, after, at_most=bound)
    steps, trees = [planned("b", in_one_tree=own)], REVISIONS if gate else None
    return judge(record(*events, ended("b"), steps=steps, criteria=known, trees=trees), known)


WIDE = replace(criteria(action=0.01, concern=0.005), memory=MemoryThresholds(0.5, 1.0))
ALONE = replace(Criteria(), memory=None)
ONE_ALONE = replace(Criteria(), per_glob={"b": OwnThresholds(memory=None)})


@pytest.mark.parametrize(
    ("metric", "before", "after", "keys", "verdict", "level"),
    [
        ("rss", 40 * MIB, 120 * MIB, {}, "fail", "action"),
        ("rss", 40 * MIB, 43 * MIB, {}, "pass", "concern"),
        ("rss", 4 * MIB, 4.9 * MIB, {}, "pass", None),  # less than 1 MiB
        *[(metric, 1000.0, 1200.0, {}, "fail", "action") for metric in ("heap_peak", "alloc", "allocs")],  # exact
        ("rss", 120 * MIB, 40 * MIB, {}, "pass", None),
        ("leaked", 1000.0, 1200.0, {}, "pass", None),
        ("rss", 4 * MIB, 9 * MIB, {"bound": True}, "pass", None),  # no proof of growth
        # It has thresholds of its own, and can be left alone.
        ("rss", 40 * MIB, 56 * MIB, {"wanted": WIDE}, "pass", "ok"),
        ("rss", 40 * MIB, 120 * MIB, {"wanted": WIDE}, "fail", "action"),
        *[("rss", 40 * MIB, 120 * MIB, {"wanted": wanted}, "pass", None) for wanted in (ALONE, ONE_ALONE)],
    ],
)
def test_memory_gates(metric: str, before: float, after: float, keys: Any, verdict: str, level: str | None) -> None:
    result = measured(metric, before, after, **keys)
    found = row(result, metric)
    assert (result.verdict, found.gating) == (verdict, level is not None)
    if level:
        assert (found.level, found.gates_by) == (level, GatesBy.MEMORY)
    kinds = {"action": ["regressed"], "concern": ["concern"]}.get(str(level), [])
    assert [text.partition(":")[0] for text in result.reason_texts] == kinds


@pytest.mark.parametrize(("n", "verdict"), [(9, "unproven"), (11, "unproven"), (15, "fail")])
def test_memory_that_seems_to_have_grown_is_undecided_until_it_is_proven(n: int, verdict: str) -> None:
    # Two more clocks have a part of the false alarms.
    factors = {"time": 1.0, "cpu": 1.0, "uncontended": 1.0, "rss": 1.5}
    result = judge(taken(factors, n, trees=REVISIONS), Criteria())
    assert result.verdict == verdict
    assert (row(result, "rss").gating, row(result, "rss").decision) == (
        True,
        {"fail": "regressed"}.get(verdict, verdict),
    )


@pytest.mark.parametrize(("gate", "own"), [(False, False), (True, True)])
def test_where_no_trees_are_compared_it_is_a_concern_in_the_headline(gate: bool, own: bool) -> None:
    result = measured("rss", 40 * MIB, 120 * MIB, gate=gate, own=own)
    assert (result.verdict, row(result, "rss").gating) == ("pass", False)
    assert result.reason_texts == ["concern: b rss +200.0%, over the action threshold of 10%"]
    assert terminal.render_summary(result).splitlines()[0].endswith("; concern: rss +200.0%")
    assert "concern: rss +200.0%" in terminal.render(result, width=120, color=False, unicode=True).splitlines()[0]


@pytest.mark.parametrize("memory", [None, MemoryThresholds(), MemoryThresholds(0.2, 0.3)])
def test_the_thresholds_are_kept_with_the_run(memory: MemoryThresholds | None) -> None:
    known = replace(Criteria(), memory=memory)
    assert criteria_from_json(known.to_json()).memory == memory
    for own in (False, True):
        result = measured("rss", 40 * MIB, 50 * MIB, known, own=own)
        assert judge(record_of_result(result), known) == result


def test_one_upper_bound_among_the_candidates_figures_is_no_proof_of_growth() -> None:
    made = taken({"time": 1.0, "rss": 2.0}, trees=REVISIONS)
    rows = compared(made, Criteria())
    assert memory_rows(made, rows, Criteria()) == guarded_rows(made, rows, ["**"]) == [("b", "rss")]
    candidate = made.series["b", "rss"].sides[NEW]
    candidate[3] = replace(candidate[3], at_most=True)
    assert memory_rows(made, rows, Criteria()) == guarded_rows(made, rows, ["**"]) == []


@pytest.mark.parametrize(
    ("grown", "keys", "matters"),
    [
        (2**20, {}, False),
        (2**20 + 1, {}, True),
        (2**20, {"metric": replace(moved("rss", 0, 0, 0).metric, exact=True)}, True),
        (2**29, {"change": Interval(0.5, -0.1, 0.6)}, False),
        (2**29, {"baseline": None}, False),
        # By the floor of two builds.
        (2**29, {"change": Interval(0.06, 0.006, 0.2)}, False),
        (2**29, {"change": Interval(0.06, 0.021, 0.2)}, True),
    ],
)
def test_memory_matters_beyond_a_mebibyte(grown: int, keys: dict[str, Any], *, matters: bool) -> None:
    item = moved("rss", 0.5, 0.4, 0.6, baseline=side(1e6), candidate=side(1e6 + grown))
    assert gating.memory_has_grown(replace(item, **keys), Thresholds()) is matters


@pytest.mark.parametrize(
    ("before", "grown", "keys", "concerns"),
    [
        (1e6, 2**20, {}, False),
        (1e6, 2**20 + 1, {}, True),
        (0.0, 2**20, {}, False),
        (0.0, 2**20 + 0.5, {}, True),
        (1e6, 1.0, {"unit": "1"}, True),
        *[(1e6, 2**21, {key: value}, False) for key, value in (("decision", "unproven"), ("level", "ok"))],
        *[(1e6, 2**21, {key: value}, False) for key, value in (("metric", "time"), ("gating", True))],
    ],
)
def test_memory_that_is_a_concern(before: float, grown: float, keys: dict[str, Any], *, concerns: bool) -> None:
    sides = (Sample(value=value, low=None, high=None, n=1, samples=[]) for value in (before, before + grown))
    known = dict(zip(("baseline", "candidate"), sides, strict=True)) | {"metric": "rss", "unit": "B", "gating": False}
    item = shown_row("regressed", "concern", 0.5, 0.4, 0.6, **(known | keys))
    assert list(gating.memory_concerns([item], Criteria())) == ([item] if concerns else [])


# -- benchmarks under ``ignore`` are measured, judged and shown, but decide nothing


def ignoring(*ignore: str) -> Result:
    """Return a gate in which ``b`` regressed and missed its target, and ``other`` did not change."""
    wanted = replace(criteria({"b": {"time": "<0.5s"}, "*": {"time": "<3s"}}), ignore=ignore)
    events = [*pairs("b", EVEN, scaled(1.5)), *pairs("other", EVEN, EVEN), ended("b")]
    return judge(record(*events, criteria=wanted, trees=REVISIONS), wanted)


def test_an_ignored_benchmark_does_not_decide() -> None:
    assert ignoring().verdict == "fail"
    result = ignoring("b")
    assert (result.verdict, result.reason_texts) == ("pass", [])
    assert [target.benchmark for target in result.targets] == ["other"]
    ignored = row(result)
    assert (ignored.ignored, ignored.gating, ignored.decision, ignored.level) == (True, False, "regressed", "ok")
    assert judge(record_of_result(result), replace(criteria(), ignore=("b",))).verdict == "pass"
    text = terminal.render(result, width=120, color=False, unicode=True)
    assert "regressed (ignored)" in text
    assert "1 same" in text.splitlines()[0]


def test_a_name_that_looks_like_a_glob_ignores_itself_only() -> None:
    wanted = replace(criteria(), ignore=("mul(a*b)",))
    both = (*pairs("mul(a*b)", EVEN, EVEN), *pairs("mul(a+b)", EVEN, scaled(1.5)))
    result = judge(record(*both, ended("b"), criteria=wanted), wanted)
    assert {item.name: item.ignored for item in result.benchmarks} == {"mul(a*b)": True, "mul(a+b)": False}
    assert result.verdict == "fail"


# -- how rows share the false alarms


def alphas(made: Record, wanted: Criteria | None = None) -> dict[str, float]:
    """Return the share of the first look's false alarms that each row may have."""
    rows = compared(made, wanted or Criteria())
    return {metric: 1 - (item.confidence or math.nan) for (_, metric), item in rows.items() if not item.metric.exact}


def shares(**of_rows: float) -> Any:
    return pytest.approx({metric: share * FIRST_LOOK for metric, share in of_rows.items()})


RSS = criteria({"b": {"rss": "<1 TB"}})
COUNT = criteria({"b": {"instructions": "<1000"}})


@pytest.mark.parametrize(
    ("metrics", "wanted", "gate", "expected"),
    [
        # The chosen row alone; with other clocks or memory, which get a quarter of its weight.
        (("time",), None, False, shares(time=1.0)),
        (("cpu", "time"), None, False, shares(cpu=0.8, time=0.4)),
        (("cpu", "time", "uncontended"), None, False, shares(cpu=0.8, time=0.2, uncontended=0.2)),
        (("time", "rss"), None, False, shares(time=1.0, rss=1.0)),
        (("time", "rss"), None, True, shares(time=0.8, rss=0.4)),
        (("cpu", "time", "rss"), None, True, shares(cpu=0.8, time=0.2, rss=0.2)),
        # Two gating rows have equal shares; an exact row has no false alarms.
        (("time", "rss"), RSS, False, shares(time=0.5, rss=0.5)),
        (("cpu", "time", "rss"), RSS, False, shares(cpu=8 / 18, rss=8 / 18, time=4 / 18)),
        (("time", "instructions"), COUNT, False, shares(time=1.0)),
        (("time", "heap_peak"), None, True, shares(time=1.0)),
    ],
)
def test_shares_of_the_false_alarms(metrics: Any, wanted: Criteria | None, expected: Any, gate: bool) -> None:
    made = taken(dict.fromkeys(metrics, 1.0), wanted=wanted, trees=REVISIONS if gate else None)
    if metrics[-1] in ("instructions", "heap_peak"):
        for values in made.series["b", metrics[-1]].sides.values():
            values[:] = [replace(item, value=5.0) for item in values]
    assert alphas(made, wanted) == expected


def test_what_provably_regressed_has_no_more_of_the_alarms() -> None:
    # A clock that proves a regression has the share of a witness.
    made = taken({"cpu": 1.0, "time": 1.1})
    assert list(choose_rows(made, compared(made, Criteria()), Criteria()).gating) == [("b", "cpu"), ("b", "time")]
    assert alphas(made) == shares(cpu=0.8, time=0.4)
    grown = taken({"time": 1.0, "rss": 2.0}, trees=REVISIONS)
    assert alphas(grown) == shares(time=0.8, rss=0.4)
    assert alphas(grown, ALONE) == shares(time=1.0, rss=1.0)


def test_memory_of_one_side_alone_has_no_share() -> None:
    made = taken({"time": 1.0, "rss": 1.0}, trees=REVISIONS)
    memory = made.series["b", "rss"]
    memory.lone[OLD] = memory.sides[OLD]
    memory.sides = {OLD: [], NEW: []}
    rows = compared(made, Criteria())
    assert rows["b", "rss"].pairs == 0
    assert 1 - (rows["b", "time"].confidence or 0) == pytest.approx(FIRST_LOOK)


@pytest.mark.parametrize(
    ("runs", "wanted", "share"), [(5, None, 1.0), (8, None, 0.8), (5, RSS, 8 / 18), (8, RSS, 8 / 18)]
)
def test_the_fewest_runs_are_for_the_chosen_row(runs: int, wanted: Criteria | None, share: float) -> None:
    made = taken({"cpu": 1.0, "time": 1.0, "rss": 1.0}, runs, wanted)
    for series in made.series.values():
        series.design, series.paired = "few", False
    assert alphas(made, wanted)["cpu"] == pytest.approx(share * dict(SCHEDULES[Design.FEW])[runs])
