"""The gating rows, their shares of the false alarms, and the notes on rows and targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.readings import BATCH, SCHEDULES, Design
from perfflow.model.result import GatesBy, Result
from perfflow.store.record import Record
from perfflow.verdict import acceptance
from perfflow.verdict.gating import (
    choose_rows,
    compared,
    guarded_rows,
    is_accepted,
    memory_rows,
    thresholds_for,
    two_stored,
)
from perfflow.verdict.gating import two_trees as compares_trees
from perfflow.verdict.judge import NOTHING, judge
from perfflow.verdict.targets import judge as judge_targets
from tests.report import optimized
from tests.verdict.records import END, criteria, ended, judged, pairs, planned, reading, record, row
from tests.verdict.test_bounds import row as shown
from tests.verdict.test_routing import REVISIONS

EVEN = [1 + 0.001 * (number % 3) for number in range(20)]
FIRST_LOOK = SCHEDULES[Design.LOOKS][0][1]


def taken(metrics: Mapping[str, float], runs: int = 11, wanted: Criteria | None = None, **keys: Any) -> Record:
    """Return pairs of a benchmark whose candidate changed each metric by a factor."""
    events: list[dict[str, Any]] = []
    for number in range(runs):
        sides: dict[str, list[Any]] = {"baseline": [], "candidate": []}
        for metric, factor in metrics.items():
            value = EVEN[number % 20] * (1e8 if metric == "rss" else 1)
            sides["baseline"].append(reading(metric, value))
            sides["candidate"].append(reading(metric, factor * value))
        events.append({"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline", **sides})
    return record(*events, ended("b"), criteria=wanted or Criteria(), **keys)


def trees(made: Record) -> Record:
    made.trees = dict(REVISIONS)
    return made


# -- which rows gate


def test_a_guard_is_about_no_other_clock() -> None:
    made = taken({"time": 1.0, "cpu": 1.0, "rss": 1.0})
    rows = compared(made, Criteria())
    assert guarded_rows(made, rows, ["**"]) == [("b", "rss")]


def test_one_upper_bound_among_the_candidates_figures_is_no_proof_of_growth() -> None:
    made = trees(taken({"time": 1.0, "rss": 2.0}))
    rows = compared(made, Criteria())
    assert memory_rows(made, rows, Criteria()) == guarded_rows(made, rows, ["**"]) == [("b", "rss")]
    found = next(iter(made.series["b", "rss"].sides.values()))
    candidate = made.series["b", "rss"].sides[list(made.series["b", "rss"].sides)[1]]
    candidate[3] = replace(candidate[3], at_most=True)
    assert not found[3].at_most
    assert memory_rows(made, rows, Criteria()) == guarded_rows(made, rows, ["**"]) == []


STORED = {"kind": "stored", "revision": "d" * 40, "name": "run"}
FOLDER = {"kind": "folder", "revision": None, "dirty": None}


@pytest.mark.parametrize(
    ("sides", "two_trees", "stored"),
    [
        ((REVISIONS["baseline"], REVISIONS["candidate"]), True, False),
        ((REVISIONS["baseline"], FOLDER), False, False),
        ((STORED, REVISIONS["candidate"]), False, False),
        ((STORED, STORED), False, True),
    ],
)
def test_two_trees_and_two_stored_sets(sides: Sequence[Any], *, two_trees: bool, stored: bool) -> None:
    made = taken({"time": 1.0})
    made.trees = dict(zip(("baseline", "candidate"), sides, strict=True))
    assert compares_trees(made) is two_trees
    assert two_stored(made) is stored


def test_two_stored_sets_have_no_verdict() -> None:
    made = taken({"time": 1.0})
    made.trees = {side: STORED | {"kind": "stored"} for side in ("baseline", "candidate")}
    result = judge(made, Criteria())
    assert (result.verdict, result.gate) == (None, None)
    made.trees = dict(REVISIONS)
    assert judge(made, Criteria()).verdict == "pass"


@pytest.mark.parametrize(("asked", "why"), [("auto", ""), (None, ""), ("cpu", "`cpu` was requested, but not measured")])
def test_a_clock_chosen_by_itself_was_not_asked_for(asked: str | None, why: str) -> None:
    made = taken({"time": 1.0}, steps=[planned("b", metric=asked)])
    assert choose_rows(made, compared(made, Criteria()), Criteria()).gating == {("b", "time"): ("chosen", why)}


@pytest.mark.parametrize(
    ("until", "action"), [("2026-01-01", 0.1), ("2026-01-02", 0.4), ("2026-01-03", 0.4), ("2025-12-31", 0.1)]
)
def test_an_accepted_regression_passes_to_the_end_of_its_day(until: str, action: float) -> None:
    item = Accepted("b", 0.4, "why", until)
    wanted = Criteria(accepted=(item,))
    made = taken({"time": 1.0}, wanted=wanted)
    assert thresholds_for(made, wanted, ("b", "time"), GatesBy.CHOSEN)[0].action == action
    assert is_accepted(replace(item, benchmark="c"), wanted, ("b", "time"), GatesBy.CHOSEN) is False
    failing = shown("regressed", "action", -0.5, -0.6, -0.4, better="higher")
    over = acceptance.lapsed_tradeoffs(made, failing, wanted)
    assert list(over) == []  # 50% is more than accepted
    less = failing.model_copy(update={"change": None})
    assert list(acceptance.lapsed_tradeoffs(made, less, wanted)) == []


# -- how rows share the false alarms


def alphas(made: Record, wanted: Criteria | None = None) -> dict[str, float]:
    rows = compared(made, wanted or Criteria())
    return {metric: 1 - (item.confidence or math.nan) for (_, metric), item in rows.items() if not item.metric.exact}


RSS = {"b": {"rss": "<1 TB"}}
COUNT = {"b": {"instructions": "<1000"}}


@pytest.mark.parametrize(
    ("metrics", "targets", "gate", "shares"),
    [
        # The chosen row alone; with other clocks or memory, which get a quarter of its weight.
        (("time",), None, False, {"time": 1.0}),
        (("cpu", "time"), None, False, {"cpu": 0.8, "time": 0.4}),
        (("cpu", "time", "uncontended"), None, False, {"cpu": 0.8, "time": 0.2, "uncontended": 0.2}),
        (("time", "rss"), None, False, {"time": 1.0, "rss": 1.0}),
        (("time", "rss"), None, True, {"time": 0.8, "rss": 0.4}),
        (("cpu", "time", "rss"), None, True, {"cpu": 0.8, "time": 0.2, "rss": 0.2}),
        # Two gating rows have equal shares; an exact row has no false alarms.
        (("time", "rss"), RSS, False, {"time": 0.5, "rss": 0.5}),
        (("cpu", "time", "rss"), RSS, False, {"cpu": 8 / 18, "rss": 8 / 18, "time": 4 / 18}),
        (("time", "instructions"), COUNT, False, {"time": 1.0}),
        (("time", "heap_peak"), None, True, {"time": 1.0}),
    ],
)
def test_the_rows_of_a_benchmark_share_its_false_alarms(
    metrics: Sequence[str], targets: Any, shares: Mapping[str, float], *, gate: bool
) -> None:
    made = taken(dict.fromkeys(metrics, 1.0), wanted=criteria(targets))
    if not any(metric in ("rss", "time", "cpu", "uncontended") for metric in metrics[1:]):
        for side in made.series["b", metrics[-1]].sides.values():
            side[:] = [replace(item, value=5.0) for item in side]
    made = trees(made) if gate else made
    expected = {metric: share * FIRST_LOOK for metric, share in shares.items()}
    assert alphas(made, criteria(targets)) == pytest.approx(expected)


def test_a_clock_that_proves_a_regression_has_the_share_of_a_witness() -> None:
    made = taken({"cpu": 1.0, "time": 1.1})
    assert list(choose_rows(made, compared(made, Criteria()), Criteria()).gating) == [("b", "cpu"), ("b", "time")]
    assert alphas(made) == pytest.approx({"cpu": 0.8 * FIRST_LOOK, "time": 0.4 * FIRST_LOOK})


def test_memory_that_provably_grew_has_no_more_of_the_alarms() -> None:
    found = alphas(trees(taken({"time": 1.0, "rss": 2.0})))
    assert found == pytest.approx({"time": 0.8 * FIRST_LOOK, "rss": 0.4 * FIRST_LOOK})
    left_alone = replace(Criteria(), memory=None)
    assert alphas(trees(taken({"time": 1.0, "rss": 2.0})), left_alone) == pytest.approx(
        dict.fromkeys(("time", "rss"), FIRST_LOOK)
    )


def test_memory_of_one_side_alone_has_no_share() -> None:
    made = trees(taken({"time": 1.0, "rss": 1.0}))
    old, new = made.series["b", "rss"].sides
    made.series["b", "rss"].lone[old] = list(made.series["b", "rss"].sides[old])
    for side in (old, new):
        made.series["b", "rss"].sides[side] = []
    rows = compared(made, Criteria())
    assert rows["b", "rss"].pairs == 0
    assert 1 - (rows["b", "time"].confidence or 0) == pytest.approx(FIRST_LOOK)


@pytest.mark.parametrize(
    ("runs", "targets", "share"), [(5, None, 1.0), (8, None, 0.8), (5, RSS, 8 / 18), (8, RSS, 8 / 18)]
)
def test_the_fewest_runs_in_random_order_keep_all_for_the_chosen_row(runs: int, targets: Any, share: float) -> None:
    metrics = {"cpu": 1.0, "time": 1.0, "rss": 1.0}
    made = taken(metrics, runs, criteria(targets))
    for series in made.series.values():
        series.design, series.paired = "few", False
    assert alphas(made, criteria(targets))["cpu"] == pytest.approx(share * dict(SCHEDULES[Design.FEW])[runs])


# -- the notes on a row


@pytest.mark.parametrize(("name", "branch"), [("perfflow/kept", "perfflow/kept"), ("", None)])
def test_the_branch_of_what_was_kept_is_named(name: str, branch: str | None) -> None:
    tries = [("one", "accepted"), ("two", "accepted"), ("three", "rejected")]
    steps = [planned("b"), *(optimized.candidate(each, "memory", "") for each, _ in tries)]
    events = [*pairs("b", EVEN, None), ended("b"), {"event": "branch", "name": name, "revision": ""}]
    for each, decision in tries:
        events.append(ended(each, optimizations=[optimized.attempt(each, decision, "why", technique="memory")]))
        events.append({"event": "kept", "id": each, "revision": each[1] * 40, "tree": each})
    found = judged(*events, steps=steps, accept=0.1).trees["candidate"]
    assert found == {"kind": "kept", "revision": "w" * 40, "branch": branch}


def with_layouts(as_built: float, over: float, design: str = "layouts", metrics: Sequence[str] = ("time",)) -> Record:
    """Return twenty pairs of the programs as built, then twenty (or six) code layouts of each side."""
    events: list[dict[str, Any]] = []
    for number in range(26 if design == "few layouts" else 40):
        layout, factor = max(0, number - 19), over if number > 19 else as_built
        sides = {"baseline": 1.0, "candidate": factor}
        for side in (("baseline",), ("candidate",)) if layout and design == "few layouts" else (tuple(sides),):
            found = {each: [reading(m, sides[each] * EVEN[number * 7 % 20]) for m in metrics] for each in side}
            event = {"event": "sample", "step": "b", "design": design if layout else "looks", "first": side[0], **found}
            events.append(event | {"pair": len(events)} | ({"layout": layout} if layout else {}))
    return record(*events, ended("b"))


@pytest.mark.parametrize("design", ["layouts", "few layouts"])
def test_a_row_over_layouts_keeps_what_was_seen_as_built(design: str) -> None:
    found = row(judge(with_layouts(1.2, 1.0, design), Criteria()))
    assert found.decision == "same"
    assert found.layouts
    assert found.layouts.n == (20 if design == "layouts" else 6)
    assert found.layouts.numbers == (None if design == "layouts" else [[1, 2, 3, 4, 5, 6]] * 2)
    built = found.layouts.built
    assert (built.design, built.paired) == ("looks", True)
    assert built.change
    assert built.change.value == pytest.approx(0.2, abs=0.01)
    assert built.baseline
    assert built.baseline.n == 20
    assert any(text.startswith("an accident of code layout") for text in found.warnings)


def test_the_accident_of_a_row_that_decides_nothing_is_not_told() -> None:
    result = judge(with_layouts(1.2, 1.0, metrics=("time", "cpu")), Criteria())
    assert {item.metric: item.gating for item in result.benchmarks} == {"time": False, "cpu": True}
    told = {item.metric: any("accident" in text for text in item.warnings) for item in result.benchmarks}
    assert told == {"time": False, "cpu": True}
    tiny = judge(taken({"time": 1.01, "cpu": 1.01}, 20), Criteria())
    notes = {item.metric: item.warnings for item in tiny.benchmarks}
    assert list(notes.values()) == [["a change is proven, but not that it exceeds the floor of 2%"]] * 2


def test_nothing_known_as_built_has_no_change_as_built() -> None:
    made = with_layouts(1.2, 1.0)
    built = made.series["b", "time"].built
    assert built
    old = next(iter(built.sides.values()))
    old[0] = replace(old[0], value=0.0)
    found = row(judge(made, Criteria())).layouts
    assert found
    assert found.built.change is None


@pytest.mark.parametrize(("factor", "told"), [(1.2, True), (0.8, True), (1.0, False)])
def test_a_change_of_one_code_layout_says_what_the_floor_stands_for(factor: float, *, told: bool) -> None:
    made = taken({"time": factor}, 20)
    made.without_layouts["b", ""] = "no linker"
    found = row(judge(made, Criteria()))
    text = "measured with one code layout per side: no linker; code layout alone can change the result by "
    assert found.warnings == ([text + "more than the floor of 2%"] if told else [])
    assert found.as_built == "no linker"


@pytest.mark.parametrize(("finished", "seconds"), [("03:04:05.500Z", 0.5), ("03:04:04.000Z", 0.0)])
def test_a_run_takes_no_time_where_the_clock_was_set_back(finished: str, seconds: float) -> None:
    found = judged(*pairs("b", EVEN, EVEN), ended("b"), end=END | {"time": f"2026-01-02T{finished}"})
    assert found.run.seconds == seconds


@pytest.mark.parametrize(("factor", "says"), [(1.0, False), (None, True)])
def test_only_what_is_unproven_says_that_its_time_was_spent(factor: float | None, *, says: bool) -> None:
    wild = [1.5**number for number in range(-10, 10)]
    events = pairs("b", EVEN, [value * (factor or wild[number]) for number, value in enumerate(EVEN)])
    stopped = {"event": "stopped", "step": "b", "benchmark": "", "reason": "budget"}
    result = judged(*events, stopped, ended("b"))
    assert row(result).decision == ("unproven" if says else "same")
    assert any("its budget ran out" in reason for reason in result.reason_texts) is says
    assert row(result).stopped == "budget"


def test_a_change_that_is_not_known_has_no_speedup_and_no_seconds_are_none() -> None:
    found = row(judged(*pairs("b", [0.0, *EVEN[1:]], EVEN), ended("b")))
    assert (found.change, found.speedup, found.seconds) == (None, None, None)
    events = [event | {"seconds": 0.25} for event in pairs("b", EVEN, EVEN)]
    assert row(judged(*events, ended("b"))).seconds == 5.0


def test_a_row_that_decides_nothing_has_no_reason() -> None:
    result = judge(taken({"cpu": 1.0, "time": 1.0}), Criteria())
    assert row(result, "time").why == ""
    assert row(result, "cpu").why.startswith("the program only computes")


def test_readings_are_kept_where_any_of_them_says_more_than_its_value() -> None:
    events = pairs("b", EVEN, None)
    events[3]["baseline"][0]["at_most"] = True
    found = row(judged(*events, ended("b"))).baseline
    assert found
    assert found.readings is not None
    plain = row(judged(*pairs("b", EVEN, None), ended("b"))).baseline
    assert plain
    assert plain.readings is None


def test_a_step_that_did_not_end_took_no_time() -> None:
    (step,) = judged(steps=[planned("b")]).steps
    assert (step.status, step.reason, step.seconds, step.ended) == (
        "skipped",
        "interrupted before it ended",
        0.0,
        False,
    )


def test_hotspots_and_profiles_without_a_benchmark_are_those_of_their_step() -> None:
    spots = [
        {"location": name, "share": share, "unit": "time", "source": "perf", "tree": "baseline", "benchmark": whose}
        for name, share, whose in (("f", 0.5, ""), ("g", 0.2, "own"), ("h", 0.05, ""))
    ]
    files = [
        {"path": "a", "kind": "perf", "tree": "baseline", "sha256": "0", "benchmark": whose} for whose in ("", "own")
    ]
    step = planned("p", role="profile", benchmark="sort")
    result = judged(ended("p", hotspots=spots, profiles=files), steps=[step])
    # Exactly 5% is not a hotspot.
    assert [(spot.location, spot.benchmark) for spot in result.hotspots] == [("f", "sort"), ("g", "own")]
    assert [item.benchmark for item in result.profiles] == ["sort", "own"]


def fresh(before: float, after: float, noise: float = 0.001, pairs: int = 6) -> Result:
    """Return what is judged of eleven pairs of many benchmarks, and of fresh pairs that confirm or refute them."""
    events = []
    for number in range(11 + pairs):
        factor = before if number < 11 else after
        sides = {
            "baseline": [reading("time", 1 + noise * (number * 7 % 5))],
            "candidate": [reading("time", factor * (1 + noise * (number * 3 % 5)))],
        }
        event = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline", "many": True}
        events.append(event | sides | ({"design": "confirm", "confirmation": 1} if number >= 11 else {}))
    return judged(*events, ended("b"))


def test_fresh_pairs_confirm_or_refute_a_change() -> None:
    result = fresh(1.2, 1.2)
    (found,) = result.confirmations
    assert (found["outcome"], found["pairs"], found["decision"]) == ("confirmed", 6, "regressed")
    (row,) = result.benchmarks
    assert (row.pairs, row.confidence, row.design, row.unconfirmed) == (17, 0.99, "looks", False)
    assert row.baseline is not None
    assert row.baseline.confirming == [0] * 11 + [1] * 6
    refuted = fresh(1.3, 1.0, pairs=11)
    assert [item["outcome"] for item in refuted.confirmations] == ["refuted"]
    (row,) = refuted.benchmarks
    assert (row.decision, row.level, row.unconfirmed) == ("unproven", None, True)
    (reason,) = refuted.reason_texts
    assert "changed by +30.0% [" in reason
    assert "at first, which 11 fresh pairs did not confirm: 0.0% [" in reason


def test_a_change_of_many_benchmarks_that_nothing_confirms_is_unproven() -> None:
    result = fresh(1.3, 1.0, pairs=0)
    (found,) = result.confirmations
    assert (found["outcome"], found["pairs"], found["decision"]) == ("open", 0, "unproven")
    assert "there was no time for fresh pairs to confirm it" in result.reason_texts[0]


def test_a_check_tells_what_it_found_or_else_why_it_failed() -> None:
    steps = [planned("b"), *(planned(name, role="check", benchmark="") for name in ("one", "two"))]
    found = judged(ended("one", "failed", "why", detail="what"), ended("two", "failed", "why"), steps=steps)
    assert [item.detail for item in found.verification] == ["what", "why"]


def test_nothing_that_was_skipped_measured_nothing() -> None:
    steps = [planned("b", selected=False), planned("c", selected=False)]
    assert NOTHING not in judged(ended("b", "skipped", "no tool"), steps=steps).reason_texts
    assert NOTHING in judged(ended("b"), steps=steps).reason_texts


# -- the details of a target


def one_target(wanted: Mapping[str, Any], *events: Any, own: Criteria | None = None, **keys: Any) -> Any:
    known = own or criteria({"b": wanted})
    made = record(*events, ended("b"), criteria=known, **keys)
    (found,) = judge_targets(known, compared(made, known), made)
    return found


def test_a_target_that_is_missed_is_named_with_its_statistic() -> None:
    wanted = criteria({"b": {"time p50": "<0.5 s", "heap_peak": "<1 KB"}})
    events = pairs("b", EVEN, None)
    for event in events:
        event["baseline"].append(reading("heap_peak", 2000.0))
    assert judged(*events, ended("b"), wanted=wanted).reason_texts == [
        "target not met: b time p50 <0.5 s",
        "target not met: b heap_peak <1 KB",
    ]


def test_a_step_that_expects_a_benchmark_says_why_it_is_missing() -> None:
    skipped = ended("suite", "skipped", "no compiler")
    steps = [planned("b"), planned("suite", expect=["c", "d"]), planned("check", role="check", benchmark="c")]
    own = criteria({"c": {"time": "<1 s"}})
    found = one_target({}, *pairs("b", EVEN, None), skipped, own=own, steps=steps)
    assert (found.status, found.detail) == ("not measured", "step suite: no compiler")


@pytest.mark.parametrize(
    ("metric", "detail"),
    [
        ("time", "no step measured this: `*` does not cross `/`; write `**`"),
        ("rss", "no step measured this"),
    ],
)
def test_a_glob_that_would_match_if_it_crossed_a_slash_is_told(metric: str, detail: str) -> None:
    events = pairs("b", EVEN, None, benchmark="a/b")
    found = one_target({}, *events, own=criteria({"*": {metric: "<1 TB" if metric == "rss" else "<9 s"}}))
    assert found.detail == detail


@pytest.mark.parametrize(("batch", "statistic", "told"), [(2.0, "p99", True), (1.0, "p99", False), (9.0, "p50", False)])
def test_a_percentile_of_batches_is_named_as_one(batch: float, statistic: str, *, told: bool) -> None:
    events = pairs("b", [1.0371] * 6, None, inner={"p50": 1.0, "p99": 2.0, "n": 1000.0, BATCH: batch})
    found = one_target({f"time {statistic}": "<9 s"}, *events)
    assert found.status == "met"
    assert found.detail == (f"p99 of averages over about {batch:.0f} calls each, not of single calls" if told else "")


@pytest.mark.parametrize(
    ("wanted", "status", "detail"),
    [
        ("<9%", "met", ""),
        ("<-9%", "not met", ""),
        ("<0%", "unproven", "the interval includes the limit"),
    ],
)
def test_a_change_that_crosses_its_requirement_says_so(wanted: str, status: str, detail: str) -> None:
    swings = [value * (1 + 0.01 * (-1) ** number) for number, value in enumerate(EVEN)]
    found = one_target({"time change": wanted}, *pairs("b", EVEN, swings))
    assert (found.status, found.detail) == (status, detail)


def test_all_pairs_on_one_side_of_a_requirement_decide() -> None:
    found = one_target({"time change": "<90%"}, *pairs("b", EVEN[:5], [1.2 * value for value in EVEN[:5]]))
    assert found.status == "met"
