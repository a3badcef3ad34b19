"""Judging a record: rows, verdict, gate, reasons, warnings of runs that pass, and runs that measured nothing."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import Better, Metric
from perfflow.model.result import Gate, PlannedStep, Result
from perfflow.model.units import Dimension
from perfflow.report import markdown, terminal
from perfflow.store.record import Record
from perfflow.store.result_file import to_text
from perfflow.verdict import judge as judging
from perfflow.verdict.judge import NO_STEP_MEASURES, NOTHING, judge
from tests.verdict.comparisons import known
from tests.verdict.records import END, beside, criteria, ended, judged, pairs, planned, reading, record, row, scaled

FLAT = [1.0371] * 20
BASE = scaled(1.0)
MEASURED = [*pairs("b", FLAT, None), ended("b")]
Events = Sequence[Mapping[str, Any]]


def noisy(factor: float, spread: float, count: int = 20) -> list[float]:
    coin = random.Random(5)
    return [factor * math.exp(coin.gauss(0, spread)) for _ in range(count)]


def shown(result: Result) -> str:
    return terminal.render(result, width=100, color=False, unicode=True)


# -- rows


@pytest.mark.parametrize(
    ("candidate", "decision", "level", "verdict"),
    [
        (scaled(1.20), "regressed", "action", "fail"),
        (scaled(1.07), "regressed", "concern", "pass"),
        (scaled(1.03), "regressed", "ok", "pass"),
        (scaled(1.01), "same", "ok", "pass"),
        (scaled(0.80), "improved", "ok", "pass"),
        (noisy(1.0, 0.4), "unproven", None, "unproven"),
        (noisy(0.97, 0.08), "unproven", "ok", "pass"),
    ],
)
def test_rows_and_the_verdict_they_give(candidate: list[float], decision: str, level: str | None, verdict: str) -> None:
    result = judged(*pairs("b", BASE, candidate), ended("b"))
    found = row(result)
    assert (found.decision, found.level, found.gating, result.verdict) == (decision, level, True, verdict)
    assert result.gate == Gate(name="review:gate:perf", status="pass" if verdict == "pass" else "fail")
    assert bool(result.reason_texts) == (verdict != "pass" or level == "concern")


STRICT = criteria(per_glob={"*": {"action": 0.5}, "b": {"action": 0.03, "concern": 0.025}})


@pytest.mark.parametrize(
    ("factor", "step", "wanted", "decision", "level"),
    [
        # Identical files lower the floor; of a rebuilt program a small change is told as what it is.
        (1.012, {}, None, "same", "ok"),
        (1.012, {"identical": True}, None, "regressed", "ok"),
        (1.03, {"rebuilt": True}, None, "same", "ok"),
        # The thresholds of the most specific glob hold.
        (1.04, {}, STRICT, "regressed", "action"),
    ],
)
def test_floors_and_thresholds(factor: float, step: Any, wanted: Criteria | None, decision: str, level: str) -> None:
    found = row(judged(*pairs("b", BASE, scaled(factor)), ended("b", **step), wanted=wanted))
    assert (found.decision, found.level) == (decision, level)
    assert any("which a rebuild alone can do" in text for text in found.warnings) is ("rebuilt" in step)


def test_one_side_that_lost_a_benchmark_is_an_error() -> None:
    events = beside(pairs("b", BASE, BASE), "time", 2.0, None, benchmark="gone")
    beside(events, "time", None, 3.0, benchmark="fresh")
    result = judged(*events, ended("b"), wanted=criteria({name: {"time": "<10s"} for name in ("gone", "fresh")}))
    assert [row(result, "time", name).decision for name in ("gone", "fresh")] == ["removed", "new"]
    assert [target.status for target in result.targets] == ["not measured", "met"]
    assert result.verdict == "error"
    assert "no longer measured: gone time" in result.reason_texts
    assert result.evidence[1:] == ["perf: fresh: 3.00 s; Δ vs baseline: n/a"]


@pytest.mark.parametrize(
    ("metric", "before", "after", "keys", "evidence"),
    [
        # A first run is told from what has no share.
        ("allocs", [1.0], None, {}, "b allocs: 1; Δ vs baseline: none"),
        ("allocs", [0.0], [1.0], {}, "b allocs: 1; Δ vs baseline: n/a"),
        ("rss", [9e6] * 6, None, {"at_most": True}, "b rss: ≤8.58 MiB; Δ vs baseline: none"),
        ("rss", [9e6] * 6, [8e6] * 6, {"at_most": True}, "b rss: ≤7.63 MiB; Δ vs baseline: n/a"),
    ],
)
def test_evidence(metric: str, before: list[float], after: list[float] | None, keys: Any, evidence: str) -> None:
    assert judged(*pairs("b", before, after, metric, **keys), ended("b")).evidence == [f"perf: {evidence}"]


def test_metrics_of_the_workflow_and_unknown_ones() -> None:
    wanted = criteria(metrics=[Metric("frames", Dimension.COUNT, Better.HIGHER)])
    result = judged(*pairs("b", BASE, scaled(0.5), metric="frames"), ended("b"), wanted=wanted)
    assert (row(result, "frames").decision, result.verdict) == ("regressed", "fail")
    result = judged(*pairs("b", BASE, scaled(0.5), metric="mystery"), ended("b"))
    found = row(result, "mystery")
    assert (found.decision, found.gating, result.verdict) == (None, False, "pass")


def test_a_metric_that_never_meets_its_partner_is_left_out() -> None:
    first, second, *rest = pairs("b", FLAT, FLAT)
    beside([first], "uncontended", 1.0, None)
    beside([second], "uncontended", None, 1.0)
    assert [item.metric for item in judged(first, second, *rest, ended("b")).benchmarks] == ["time"]


def test_ends_that_are_not_known_are_null_and_said() -> None:
    found = row(judged(*pairs("b", [8.01, 8.2, 7.93], [1.02, 1.0, 1.04]), ended("b")))
    for bounds in (known(found.change), known(found.speedup)):
        assert (bounds.low, bounds.high) == (None, None)
    assert "too few pairs for a confidence interval of the change; raise `runs` or `budget`" in found.warnings


def test_a_change_that_is_not_known_has_no_speedup_and_no_seconds_are_none() -> None:
    found = row(judged(*pairs("b", [0.0, *BASE[1:]], BASE), ended("b")))
    assert (found.change, found.speedup, found.seconds) == (None, None, None)
    events = [event | {"seconds": 0.25} for event in pairs("b", BASE, BASE)]
    assert row(judged(*events, ended("b"))).seconds == 5.0


@pytest.mark.parametrize("at_most", [False, True])
def test_readings_are_kept_where_any_of_them_says_more_than_its_value(*, at_most: bool) -> None:
    events = pairs("b", BASE, None)
    events[3]["baseline"][0] |= {"at_most": True} if at_most else {}
    assert (known(row(judged(*events, ended("b"))).baseline).readings is not None) is at_most


@pytest.mark.parametrize("unproven", [False, True])
def test_only_what_is_unproven_says_that_its_time_was_spent(*, unproven: bool) -> None:
    wild = [value * 1.5**number for number, value in enumerate(BASE, -10)]
    stopped = {"event": "stopped", "step": "b", "benchmark": "", "reason": "budget"}
    result = judged(*pairs("b", BASE, wild if unproven else BASE), stopped, ended("b"))
    assert (row(result).decision, row(result).stopped) == ("unproven" if unproven else "same", "budget")
    assert any("its budget ran out" in reason for reason in result.reason_texts) is unproven


# -- code layouts


def with_layouts(design: str = "layouts", metrics: Sequence[str] = ("time",)) -> Record:
    """Return twenty pairs of the programs as built, 20% slower, then twenty (or six) code layouts of each side."""
    events: list[dict[str, Any]] = []
    for number in range(26 if design == "few layouts" else 40):
        layout, factor = max(0, number - 19), 1.0 if number > 19 else 1.2
        sides = {"baseline": 1.0, "candidate": factor}
        for side in (("baseline",), ("candidate",)) if layout and design == "few layouts" else (tuple(sides),):
            found = {each: [reading(m, sides[each] * BASE[number * 7 % 20]) for m in metrics] for each in side}
            event = {"event": "sample", "step": "b", "design": design if layout else "looks", "first": side[0], **found}
            events.append(event | {"pair": len(events)} | ({"layout": layout} if layout else {}))
    return record(*events, ended("b"))


@pytest.mark.parametrize(
    ("design", "count", "numbers"), [("layouts", 20, None), ("few layouts", 6, [[1, 2, 3, 4, 5, 6]] * 2)]
)
def test_a_row_over_layouts_keeps_what_was_seen_as_built(design: str, count: int, numbers: Any) -> None:
    found = row(judge(with_layouts(design), Criteria()))
    over = known(found.layouts)
    assert (found.decision, over.n, over.numbers, over.built.design) == ("same", count, numbers, "looks")
    assert (known(over.built.baseline).n, over.built.paired) == (20, True)
    assert known(over.built.change).value == pytest.approx(0.2, abs=0.01)
    assert any(text.startswith("an accident of code layout") for text in found.warnings)


def test_the_accident_of_a_row_that_decides_nothing_is_not_told() -> None:
    result = judge(with_layouts(metrics=("time", "cpu")), Criteria())
    told = {item.metric: (item.gating, any("accident" in text for text in item.warnings)) for item in result.benchmarks}
    assert told == {"time": (False, False), "cpu": (True, True)}
    tiny = judged(*beside(pairs("b", BASE, scaled(1.01)), "cpu", 1.0, 1.01), ended("b"))
    notes = [item.warnings for item in tiny.benchmarks]
    assert notes == [["a change is proven, but not that it exceeds the floor of 2%"]] * 2


def test_nothing_known_as_built_has_no_change_as_built() -> None:
    made = with_layouts()
    old = next(iter(known(made.series["b", "time"].built).sides.values()))
    old[0] = replace(old[0], value=0.0)
    assert known(row(judge(made, Criteria())).layouts).built.change is None


@pytest.mark.parametrize(("factor", "told"), [(1.2, True), (0.8, True), (1.0, False)])
def test_a_change_of_one_code_layout_says_what_the_floor_stands_for(factor: float, *, told: bool) -> None:
    made = record(*pairs("b", BASE, scaled(factor)), ended("b"))
    made.without_layouts["b", ""] = "no linker"
    found = row(judge(made, Criteria()))
    text = "measured with one code layout per side: no linker; code layout alone can change the result by "
    assert found.warnings == ([text + "more than the floor of 2%"] if told else [])
    assert found.as_built == "no linker"


# -- fresh pairs


def fresh(before: float, after: float, fresh_pairs: int) -> Result:
    """Return what is judged of eleven pairs of many benchmarks, and of fresh pairs that confirm or refute them."""
    events = []
    for number in range(11 + fresh_pairs):
        factor = before if number < 11 else after
        (event,) = pairs("b", [1 + 0.001 * (number * 7 % 5)], [factor * (1 + 0.001 * (number * 3 % 5))])
        event |= {"design": "looks", "pair": number, "many": True}
        events.append(event | ({"design": "confirm", "confirmation": 1} if number >= 11 else {}))
    return judged(*events, ended("b"))


@pytest.mark.parametrize(
    ("after", "count", "outcome", "decision", "level"),
    [
        (1.3, 6, "confirmed", "regressed", "action"),
        (1.0, 11, "refuted", "unproven", None),
        (1.0, 0, "open", "unproven", None),
    ],
)
def test_fresh_pairs_of_a_change(after: float, count: int, outcome: str, decision: str, level: str | None) -> None:
    result = fresh(1.3, after, count)
    (told,) = result.confirmations
    assert (told["outcome"], told["pairs"], told["decision"]) == (outcome, count, decision)
    (found,) = result.benchmarks
    assert (found.decision, found.level, found.unconfirmed) == (decision, level, outcome != "confirmed")
    (reason,) = result.reason_texts
    if outcome == "confirmed":
        assert (found.pairs, found.confidence, found.design) == (17, 0.99, "looks")
        assert known(found.baseline).confirming == [0] * 11 + [1] * 6
    elif outcome == "refuted":
        assert "changed by +30.0% [" in reason
        assert "at first, which 11 fresh pairs did not confirm: 0.0% [" in reason
    else:
        assert "there was no time for fresh pairs to confirm it" in reason


# -- concerns and notes of a run that passes

OVER = "over the concern threshold of 5% (action threshold 300%)"


@pytest.mark.parametrize(
    ("metric", "factor", "said"),
    [("time", 1.87, f"concern: b time +87.0%, {OVER}"), ("throughput", 0.5, f"concern: b throughput -50.0%, {OVER}")],
)
def test_a_concern_passes_and_is_said(metric: str, factor: float, said: str) -> None:
    result = judged(*pairs("b", BASE, scaled(factor), metric=metric), ended("b"), wanted=criteria(action=3.0))
    assert (result.verdict, result.reason_texts, result.gate) == ("pass", [said], Gate(status="pass"))
    assert f"\n  note: {said}\n" in shown(result)
    assert "why:" not in shown(result)
    page = markdown.render(result)
    assert "### Warnings" in page
    assert "### Why" not in page


def test_beside_a_failure_a_concern_is_a_note_and_no_reason() -> None:
    events = [*pairs("a", BASE, scaled(1.2)), *pairs("b", BASE, scaled(1.07)), ended("a"), ended("b")]
    result = judged(*events, steps=[planned("a"), planned("b")])
    assert result.verdict == "fail"
    assert re.findall(r"(why|note): (\w+)", shown(result)) == [("why", "regressed"), ("note", "concern")]


def test_a_regression_from_nothing_says_both_values() -> None:
    result = judged(*pairs("b", [0.0], [1.0], metric="allocs"), ended("b"))
    assert result.reason_texts == ["regressed: b allocs 0 → 1, over the action threshold of 10%"]


# -- steps


def test_fail_before_error_before_unproven_and_all_reasons_are_named() -> None:
    steps = [planned("b"), planned("gone"), planned("t", role="check", benchmark="", stage="verify")]
    events = [*pairs("b", BASE, noisy(1.0, 0.5)), ended("b")]
    failed = [ended(name, "failed", f"{name} exited with 1") for name in ("gone", "t")]
    results = [judged(*events, *failed[:count], steps=steps) for count in (2, 1, 0)]
    assert [result.verdict for result in results] == ["fail", "error", "unproven"]
    reasons = [reason.split(":")[0] for reason in results[0].reason_texts]
    assert reasons == ["correctness step failed", "step gone", "unproven"]


@pytest.mark.parametrize(
    ("role", "status", "keys", "verdict"),
    [
        *[("work", "failed", {}, "error"), ("work", "timeout", {}, "error"), ("work", "skipped", {}, "pass")],
        *[("measure", "failed", {}, "error"), ("profile", "failed", {}, "pass"), ("machine", "failed", {}, "pass")],
        *[("check", "failed", {}, "fail"), ("check", "timeout", {}, "error"), ("check", "skipped", {}, "pass")],
        ("check", "failed", {"not_started": True}, "error"),
        ("check", "done", {}, "pass"),
    ],
)
def test_failed_steps_by_role(role: str, status: str, keys: dict[str, Any], verdict: str) -> None:
    events = [*MEASURED, ended("t", status, "exited with 3", **keys)]
    step = planned("t", role=role, benchmark="")
    assert judged(*events, steps=[planned("b"), step]).verdict == verdict
    # An allowed failure passes and is named.
    allowed = judged(*events, steps=[planned("b"), step | {"allowed": True}])
    said = ["failed (allowed): t: exited with 3"] if verdict in ("error", "fail") else []
    assert allowed.verdict == "pass"
    assert role in ("profile", "machine") or allowed.reason_texts == said
    assert ("failed (allowed)" in shown(allowed)) == bool(allowed.reason_texts)


@pytest.mark.parametrize(
    ("role", "other", "allowed", "verdict"),
    [
        ("profile", None, False, "error"),
        ("machine", None, False, "error"),
        ("profile", ("profile", "failed"), False, "error"),
        ("profile", ("profile", "done"), False, "pass"),
        ("profile", ("check", "done"), False, "pass"),
        ("profile", ("work", "done"), False, "error"),
        ("profile", None, True, "pass"),
    ],
)
def test_a_failed_profile_and_nothing_else(role: str, other: Any, verdict: str, allowed: bool) -> None:
    steps = [planned("p", role=role, benchmark="", allowed=allowed)]
    events = [ended("p", "failed", "why")]
    if other:
        steps.append(planned("o", role=other[0], benchmark=""))
        events.append(ended("o", other[1], "why"))
    result = judged(*events, steps=steps)
    assert result.verdict == verdict
    assert other or allowed or result.reason_texts == ["step p: why"]


WORK, CHECK = planned("w", role="work"), planned("c", role="check")
MEASURE, PROFILE = planned("b"), planned("p", role="profile")
LEFT_OUT = {"selected": False}
NO_STEP = f"nothing was measured: {NO_STEP_MEASURES}"
OTHER_STAGE = "nothing was measured: the steps that measure are in the stage `baseline`"


@pytest.mark.parametrize(
    ("steps", "events", "verdict", "reasons"),
    [
        ([WORK], [ended("w")], "error", [NO_STEP]),
        ([CHECK], [ended("c")], "error", [NO_STEP]),
        ([WORK, CHECK], [ended("w"), ended("c", "skipped")], "error", [NO_STEP]),
        ([PROFILE], [ended("p", "skipped")], "error", [NOTHING]),
        ([PROFILE], [ended("p")], "pass", []),
        ([WORK, CHECK, MEASURE | LEFT_OUT], [ended("w"), ended("c")], "error", [OTHER_STAGE]),
        ([WORK, MEASURE], [ended("w"), ended("b", "skipped")], "error", [NOTHING]),
        ([MEASURE], [ended("b")], "error", [NOTHING]),
        ([MEASURE, WORK], [*MEASURED, ended("w")], "pass", []),
    ],
)
def test_a_run_without_figures(steps: list[Any], events: list[Any], verdict: str, reasons: list[str]) -> None:
    result = judged(*events, steps=steps)
    assert (result.verdict, result.reason_texts) == (verdict, reasons)
    if reasons:
        assert "nothing measured" in shown(result).splitlines()[0]


def test_nothing_that_was_skipped_measured_nothing() -> None:
    assert NOTHING == "nothing was measured"
    steps = [planned("b", **LEFT_OUT), planned("c", **LEFT_OUT)]
    found = [judged(event, steps=steps).reason_texts for event in (ended("b", "skipped", "no tool"), ended("b"))]
    assert [NOTHING in reasons for reasons in found] == [False, True]
    assert judged(steps=steps[:1]).verdict == "error"


def test_a_run_says_what_is_missing() -> None:
    steps = [planned("b", expect=["b", "other", "c*"]), planned("d", expect=["d"])]
    result = judged(*MEASURED, ended("d", "skipped", "no"), steps=steps)
    missing = [text for text in result.reason_texts if text.startswith("expected")]
    names = ("other (step b)", "c* (step b)", "d (step d)")
    assert missing == [f"expected benchmark did not appear: {name}" for name in names]
    lone = [event | {"alone": True} for event in pairs("b", BASE, None)]
    steps = [planned("b"), planned("c")]
    lost = judged(*lone, *pairs("c", BASE, BASE), ended("b"), ended("c"), steps=steps)
    assert "no longer measured: b time" in lost.reason_texts


def test_what_is_measured_twice_is_an_error() -> None:
    events = [event for name in "bc" for event in (*pairs(name, BASE, BASE), ended(name))]
    result = judged(*events, steps=[planned("b"), planned("c", benchmark="b")])
    assert result.verdict == "error"
    assert result.reason_texts[0].startswith("step c: measured twice: `time` of `b` was already measured by step `b`")


@pytest.mark.parametrize(
    ("end", "reason", "interrupted", "seconds"),
    [
        (None, "the run did not finish (was it killed?)", True, None),
        ({"event": "interrupted", "time": "2026-01-02T03:04:06.500Z"}, "the run was interrupted", True, 1.5),
        (END, None, False, 10.0),
        (END | {"time": "2026-01-02T03:04:05.500Z"}, None, False, 0.5),
        (END | {"time": "2026-01-02T03:04:04.000Z"}, None, False, 0.0),  # the clock was set back
    ],
)
def test_a_run_without_its_end(end: Any | None, reason: str | None, interrupted: bool, seconds: float | None) -> None:
    result = judged(*MEASURED, steps=[planned("b"), planned("c", selected=False)], end=end)
    assert (result.run.interrupted, result.run.seconds) == (interrupted, seconds)
    assert (result.verdict, result.reason_texts) == (("error", [reason]) if reason else ("pass", []))
    assert result.steps[1].reason == "not selected"


def test_a_step_that_did_not_end_took_no_time() -> None:
    (step,) = judged(steps=[planned("b")]).steps
    found = (step.status, step.reason, step.seconds, step.ended)
    assert found == ("skipped", "interrupted before it ended", 0.0, False)


def test_a_check_tells_what_it_found_or_else_why_it_failed() -> None:
    steps = [planned("b"), *(planned(name, role="check", benchmark="") for name in ("one", "two"))]
    found = judged(ended("one", "failed", "why", detail="what"), ended("two", "failed", "why"), steps=steps)
    assert [item.detail for item in found.verification] == ["what", "why"]


@pytest.mark.parametrize(
    ("name", "reason", "role", "told"),
    [
        ("sort", "it failed", "measure", " (sort)"),
        ("sort", "sort failed", "measure", ""),
        ("step", "it failed", "measure", ""),
        ("so*", "it failed", "measure", ""),
        ("sort", "it failed", "profile", ""),
    ],
)
def test_a_failure_names_its_benchmark_once(name: str, reason: str, role: str, told: str) -> None:
    step = PlannedStep(id="step", stage="baseline", tool="command", role=role, benchmark=name)
    assert judging._about("step", step, reason) == told


# -- hotspots


def test_what_removing_a_place_can_bring_is_bounded() -> None:
    assert judging._impact(0.999, "time") == "nearly all of the time"
    assert judging._impact(0.25, "allocations") == "at most 25% fewer allocations without it"
    # A function that is not called at all saves what it calls, too.
    assert judging._impact(0.1, "time", 0.77) == "77% with what it calls: at most 4.35x faster without it"
    assert judging._impact(0.5, "time", 0.5) == "at most 2.00x faster without it"


def test_a_place_is_also_shown_for_what_it_calls() -> None:
    known = {"share": 0.01, "unit": "time", "source": "perf", "tree": "baseline"}
    spots = [
        {**known, "location": "parse", "file": "a.py", "inclusive_share": 0.77},
        {**known, "location": "main", "file": "a.py", "inclusive_share": 1.0},
        {**known, "location": "decode", "file": "/usr/lib/python3.11/json/decoder.py", "inclusive_share": 0.6},
        {**known, "location": "few", "file": "a.py", "inclusive_share": 0.05},
    ]
    result = judged(ended("p", hotspots=spots), steps=[planned("p", role="profile", benchmark="sort")])
    assert [spot.location for spot in result.hotspots] == ["parse"]


def test_hotspots_and_profiles_are_ranked_and_without_a_benchmark_those_of_their_step() -> None:
    spots = [
        {"location": name, "share": share, "unit": unit, "source": "perf", "tree": tree, "benchmark": whose}
        for name, share, unit, tree, whose in (
            *[("f", 0.5, "time", "baseline", ""), ("g", 0.2, "time", "baseline", "own")],
            # Exactly 5% is not a hotspot.
            *[("i", 0.05, "time", "baseline", ""), ("f", 1.0, "time", "candidate", "")],
            ("h", 0.36, "bytes", "candidate", ""),
        )
    ]
    of_file = {"path": "a", "kind": "perf", "tree": "baseline", "sha256": "0"}
    files = [of_file | {"benchmark": whose} for whose in ("", "own")]
    step = planned("p", role="profile", benchmark="sort")
    result = judged(ended("p", hotspots=spots, profiles=files), steps=[step])
    assert [(spot.rank, spot.tree, spot.location, spot.benchmark, spot.impact) for spot in result.hotspots] == [
        (1, "baseline", "f", "sort", "at most 2.00x faster without it"),
        (1, "baseline", "g", "own", "at most 1.25x faster without it"),
        (1, "candidate", "f", "sort", "all of the time"),
        (1, "candidate", "h", "sort", "at most 36% fewer bytes without it"),
    ]
    assert [item.benchmark for item in result.profiles] == ["sort", "own"]


# -- any record

VALUES = st.floats(1e-9, 1e9) | st.just(0.0) | st.sampled_from([1e-300, 1e300])
METRIC_NAMES = st.sampled_from(
    ["time", "cpu", "uncontended", "rss", "heap_peak", "allocs", "throughput", "user", "odd"]
)
READINGS = st.lists(st.tuples(METRIC_NAMES, VALUES, st.booleans(), st.sampled_from(["", "x", "x/y"])), max_size=5)


@given(st.lists(st.tuples(READINGS, READINGS), max_size=12), st.booleans(), st.booleans())
def test_any_result_is_json_and_judged_again_alike(rounds: list[tuple[Any, Any]], two_sided: bool, end: bool) -> None:
    wanted = criteria({"**": {"time p99": "<1s", "rss": "<1GB", "speedup": "≥1x", "allocs": 0, "throughput": "≥1GB/s"}})
    events = []
    for number, sides in enumerate(rounds):
        event: dict[str, Any] = {"event": "sample", "step": "b", "pair": number, "first": "baseline"}
        for side, found in zip(("baseline", "candidate") if two_sided else ("baseline",), sides, strict=False):
            event[side] = [
                reading(metric, value, benchmark=name, at_most=at_most) for metric, value, at_most, name in found
            ]
        events.append(event)
    made = record(*events, ended("b"), criteria=wanted, end=END if end else None)
    text = to_text(judge(made, wanted))
    assert text == to_text(judge(made, wanted))
    assert to_text(Result.model_validate_json(text)) == text

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    json.loads(text, parse_constant=refuse)
