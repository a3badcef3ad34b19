"""Judging a record: targets, verdict, gate, gating rows and their reasons."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.criteria import Accepted
from perfflow.model.metrics import Better, Metric
from perfflow.model.result import Gate, Result, TargetResult
from perfflow.model.units import Dimension
from perfflow.store.result_file import to_text
from perfflow.verdict.judge import judge
from tests.verdict.records import END, criteria, ended, judged, pairs, planned, reading, record, row

FLAT = [1.0371] * 20
THREE = [1.0, 1.1001, 1.2]


def scaled(factor: float, count: int = 20) -> list[float]:
    return [factor * (1 + 0.001 * (number % 3)) for number in range(count)]


def noisy(factor: float, spread: float, count: int = 20) -> list[float]:
    coin = random.Random(5)
    return [factor * math.exp(coin.gauss(0, spread)) for _ in range(count)]


BASE = scaled(1.0)


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
    assert (found.decision, found.level, found.gating) == (decision, level, True)
    assert result.verdict == verdict
    assert result.gate == Gate(name="review:gate:perf", status="pass" if verdict == "pass" else "fail")
    assert bool(result.reason_texts) == (verdict != "pass" or level == "concern")


def test_a_small_change_of_a_rebuilt_program_is_told_as_what_it_is() -> None:
    result = judged(*pairs("b", BASE, scaled(1.03)), ended("b", rebuilt=True))
    assert row(result).decision == "same"
    assert any("which a rebuild alone can do" in text for text in row(result).warnings)
    assert row(judged(*pairs("b", BASE, scaled(1.03)), ended("b"))).decision == "regressed"


def test_a_row_that_does_not_gate_decides_nothing() -> None:
    """CPU time is chosen; wall time is only shown."""
    events = []
    for number, (wall, cpu) in enumerate(zip(noisy(1.5, 0.5), scaled(1.0), strict=True)):
        sides = {
            "baseline": [reading("time", 1.0), reading("cpu", 1.0), reading("uncontended", 1.0)],
            "candidate": [reading("time", wall), reading("cpu", cpu), reading("uncontended", cpu)],
        }
        events.append({"event": "sample", "step": "b", "pair": number, "first": "baseline", **sides})
    result = judged(*events, ended("b"))
    assert {item.metric: item.gating for item in result.benchmarks} == {
        "time": False,
        "cpu": True,
        "uncontended": False,
    }
    assert result.verdict == "pass"
    result = judged(*events, ended("b"), steps=[planned("b", metric="time")])
    assert row(result, "time").gating
    assert row(result, "time").why == "as asked for"
    assert result.verdict == "unproven"
    result = judged(*events, ended("b"), wanted=criteria({"b": {"time": "<10s"}}))
    assert row(result, "time").gating
    assert row(result, "cpu").gating


def test_a_timing_metric_that_was_asked_for_and_not_measured_is_said() -> None:
    result = judged(*pairs("b", BASE, BASE), ended("b"), steps=[planned("b", metric="cpu")])
    assert row(result).gating
    assert row(result).why == "`cpu` was requested, but not measured"


def test_identical_files_lower_the_floor() -> None:
    events = pairs("b", BASE, scaled(1.012))
    assert row(judged(*events, ended("b"))).decision == "same"
    assert row(judged(*events, ended("b", identical=True))).decision == "regressed"


def test_thresholds_of_the_most_specific_glob_hold() -> None:
    strict = criteria(per_glob={"*": {"action": 0.5}, "b": {"action": 0.03, "concern": 0.025}})
    assert row(judged(*pairs("b", BASE, scaled(1.04)), ended("b"), wanted=strict)).level == "action"


ACCEPTED = Accepted("b", 0.25, "new checksums", "2026-06-30")


@pytest.mark.parametrize(
    ("started", "factor", "verdict", "level"),
    [
        ("2026-01-02T00:00:00Z", 1.2, "pass", "concern"),
        ("2026-06-30T23:59:59Z", 1.2, "pass", "concern"),
        ("2026-07-01T00:00:00Z", 1.2, "fail", "action"),
        ("2026-01-02T00:00:00Z", 1.3, "fail", "action"),
    ],
)
def test_an_accepted_regression_passes_until_its_date(started: str, factor: float, verdict: str, level: str) -> None:
    result = judged(
        *pairs("b", BASE, scaled(factor)), ended("b"), wanted=criteria(accepted=[ACCEPTED]), started=started
    )
    assert (result.verdict, row(result).level) == (verdict, level)
    assert "2026-06-30" in row(result).warnings[0]
    # If it would have passed before the date, the reasons mention the date.
    lapsed = ["b time was accepted until 2026-06-30, which has passed: new checksums"]
    assert [text for text in result.reason_texts if "which has passed" in text] == (
        lapsed if started > "2026-07" else []
    )


def test_unpaired_values_never_gate() -> None:
    sides = {"baseline": [reading("cycles", 100)], "candidate": [reading("cycles", 900)]}
    step = planned("p", role="profile", benchmark="b")
    result = judged(ended("p", readings=sides), steps=[step])
    found = row(result, "cycles")
    assert (found.decision, found.gating, found.paired, result.verdict) == ("unproven", False, False, "pass")
    sides = {"baseline": [reading("heap_peak", 100)], "candidate": [reading("heap_peak", 900)]}
    result = judged(ended("p", readings=sides), steps=[step])
    assert (row(result, "heap_peak").gating, result.verdict) == (True, "fail")


def test_one_side_that_lost_a_benchmark_is_an_error() -> None:
    events = pairs("b", BASE, BASE)
    for event in events:
        event["baseline"].append(reading("time", 2.0, benchmark="gone"))
        event["candidate"].append(reading("time", 3.0, benchmark="fresh"))
    result = judged(*events, ended("b"), wanted=criteria({"gone": {"time": "<10s"}, "fresh": {"time": "<10s"}}))
    assert row(result, "time", "gone").decision == "removed"
    assert row(result, "time", "fresh").decision == "new"
    assert [target.status for target in result.targets] == ["not measured", "met"]
    assert result.verdict == "error"
    assert "no longer measured: gone time" in result.reason_texts


def target(wanted: dict[str, Any], *events: dict[str, Any], **keys: Any) -> tuple[str, str]:
    result = judged(*events, ended("b"), wanted=criteria({"b": wanted}, **keys))
    found = result.targets[0]
    return found.status, found.detail


@pytest.mark.parametrize(
    ("values", "wanted", "status"),
    [
        (THREE * 10, {"time": "<2s"}, "met"),
        (THREE * 10, {"time": "<1.1s"}, "unproven"),
        (THREE * 10, {"time": "<0.5s"}, "not met"),
        (THREE * 10, {"time": "≥0.5s"}, "met"),
        (THREE * 10, {"time max": "<1.3s"}, "met"),
        (THREE * 10, {"time max": "≤1.2s"}, "met"),
        (THREE * 10, {"time min": "≥1.1s"}, "not met"),
        (THREE * 10, {"time mean": "<1.15s"}, "met"),
        (THREE * 10, {"time": {"min": "0.9s", "max": "1.3s"}}, "met"),
        (THREE * 10, {"time": {"min": "1s", "max": "1.2s"}}, "met"),
        (THREE * 10, {"time": {"min": "1.25s", "max": "1.3s"}}, "not met"),
        ([1.0, 1.2] * 10, {"time": {"min": "1.1s", "max": "1.3s"}}, "unproven"),
        ([1.0] * 4, {"time": "<2s"}, "unproven"),
        ([1.0] * 5, {"time": "<2s"}, "met"),
    ],
)
def test_targets_on_values(values: list[float], wanted: dict[str, Any], status: str) -> None:
    assert target(wanted, *pairs("b", values, None))[0] == status


def test_percentiles_say_how_many_samples_they_need() -> None:
    values = [1.0 + 0.001 * number for number in range(80)]
    random.Random(1).shuffle(values)
    events = pairs("b", values, None)
    assert target({"time p95": "<1.1s"}, *events) == ("met", "")
    assert target({"time p99": "<1.1s"}, *events) == ("unproven", "80 samples; a 95% interval of p99 needs 368")
    assert target({"time p95": "<1.1s"}, *events[:50])[1] == "50 samples; a 95% interval of p95 needs 72"
    assert target({"time p99": "<1s"}, *events)[0] == "not met"


def test_percentiles_inside_processes_need_few_processes() -> None:
    inner = {"p50": 1.0, "p99": 2.0, "n": 1000.0}
    events = pairs("b", [1.0371] * 6, None, inner=inner)
    assert target({"time p99": "<2.5s"}, *events) == ("met", "")
    assert target({"time p99": "<1.5s"}, *events)[0] == "not met"
    assert target({"time p99": "<2.5s"}, *events[:4])[1] == "4 samples; a 95% interval of p99 needs 6"


@pytest.mark.parametrize(
    ("value", "wanted", "status"),
    [
        *[(0.0, "0", "met"), (1.0, "0", "not met"), (12.0, "12", "met"), (12.0, "<12", "not met")],
        *[(12.0, "≤12", "met"), (12.0, "<13", "met")],
    ],
)
def test_exact_counts_need_one_run(value: float, wanted: str, status: str) -> None:
    assert target({"allocs": wanted}, *pairs("b", [value], None, metric="allocs"))[0] == status


def test_targets_are_judged_on_the_candidate_where_there_is_one() -> None:
    assert target({"time": "<1.5s"}, *pairs("b", scaled(2), scaled(1)))[0] == "met"
    assert target({"time": "<1.5s"}, *pairs("b", scaled(1), scaled(2)))[0] == "not met"


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"speedup": "≥1.5x"}, "met"),
        ({"speedup": "≥2.5x"}, "not met"),
        ({"speedup": "≥2x"}, "unproven"),
        ({"change": "<-40%"}, "met"),
        ({"change": "<-60%"}, "not met"),
    ],
)
def test_targets_on_the_difference(wanted: dict[str, Any], status: str) -> None:
    candidate = [0.5 * value * (1 + 0.01 * (-1) ** number) for number, value in enumerate(BASE)]
    assert target(wanted, *pairs("b", BASE, candidate))[0] == status
    assert target(wanted, *pairs("b", BASE, None)) == ("not measured", "there is nothing to compare with")


def test_speedup_of_what_is_better_higher() -> None:
    assert target({"rate speedup": "≥1.9x"}, *pairs("b", BASE, scaled(2), metric="rate"))[0] == "met"


def test_shares_of_a_peak() -> None:
    events = pairs("b", scaled(40e9), None, metric="bandwidth")
    assert target({"bandwidth": "≥70% of peak"}, *events, peaks={"bandwidth": 50e9})[0] == "met"
    assert target({"bandwidth": "≥90% of peak"}, *events, peaks={"bandwidth": 50e9})[0] == "not met"
    assert target({"bandwidth": "≥70% of peak"}, *events) == ("not measured", "no peak is known for bandwidth")


def found_peak(metric: str, value: float, precision: str = "", step: str = "roof") -> dict[str, Any]:
    return ended(step, peaks=[{"metric": metric, "value": value, "precision": precision, "how": "as seen"}])


def of_peak(metric: str, *events: dict[str, Any], precision: str = "", **keys: Any) -> TargetResult:
    """Judge the target of half the peak on a benchmark with 40e9 FLOP/s."""
    steps = [planned("b", precision=precision), *(planned(name, role="machine") for name in ("roof", "again"))]
    wanted = criteria({"b": {metric: "≥50% of peak"}}, **keys)
    return judged(*pairs("b", scaled(40e9), None, metric=metric), *events, wanted=wanted, steps=steps).targets[0]


def test_a_step_may_find_the_peak() -> None:
    found = of_peak("bandwidth", found_peak("bandwidth", 50e9))
    assert (found.status, found.peak, found.peak_source) == ("met", 50e9, "found by step roof")
    # The highest measured peak counts.
    assert of_peak("bandwidth", found_peak("bandwidth", 50e9), found_peak("bandwidth", 90e9, step="again")).peak == 90e9
    found = of_peak("bandwidth", found_peak("bandwidth", 50e9), peaks={"bandwidth": 100e9})
    assert (found.status, found.peak, found.peak_source) == ("not met", 100e9, "said by the workflow")


def test_a_step_that_could_not_find_the_peak_is_named() -> None:
    found = of_peak("bandwidth", ended("roof", "skipped", "cc is not installed"))
    assert (found.status, found.detail) == (
        "not measured",
        "no peak is known for bandwidth; step roof: cc is not installed",
    )


def test_bytes_by_time_are_held_against_the_memory() -> None:
    assert of_peak("throughput", found_peak("bandwidth", 50e9)).peak == 50e9
    assert of_peak("throughput", found_peak("bandwidth", 50e9), peaks={"throughput": 60e9}).peak == 60e9


@pytest.mark.parametrize(("precision", "peak"), [("f32", 64e9), ("f64", 32e9), ("", 64e9), ("f16", None)])
def test_the_peak_is_that_of_the_precision(precision: str, peak: float | None) -> None:
    both = found_peak("flops", 32e9, "f64"), found_peak("flops", 64e9, "f32", "again")
    found = of_peak("flops", *both, precision=precision)
    assert found.peak == peak
    assert found.status == ("met" if peak else "not measured")
    assert found.detail == ("" if peak else "no peak is known for flops f16")


def test_an_upper_bound_meets_what_is_above_it_and_proves_nothing_below() -> None:
    events = pairs("b", [9e6] * 6, None, metric="rss", at_most=True)
    assert target({"rss": "<10MB"}, *events)[0] == "met"
    assert target({"rss": "<5MB"}, *events)[0] == "unproven"
    assert target({"rss": "≥5MB"}, *events)[0] == "unproven"
    assert judged(*events, ended("b")).evidence == ["perf: b rss: ≤8.58 MiB; Δ vs baseline: none"]


@pytest.mark.parametrize(
    ("step", "selected", "detail"),
    [
        (ended("c", "skipped", "needs 1 GPU, 0 found"), True, "step c: needs 1 GPU, 0 found"),
        (ended("c", "failed", "c exited with 1"), True, "step c: c exited with 1"),
        (None, False, "step c was not selected"),
        (None, True, "step c did not end"),
        (ended("c"), True, "no step measured this"),
    ],
)
def test_a_target_without_numbers_says_why(step: dict[str, Any] | None, selected: bool, detail: str) -> None:
    events = [*pairs("b", FLAT, None), ended("b"), *([step] if step else [])]
    wanted = criteria({"c": {"time": "<1s"}})
    result = judged(*events, wanted=wanted, steps=[planned("b"), planned("c", selected=selected)])
    assert (result.targets[0].status, result.targets[0].detail) == ("not measured", detail)
    assert result.verdict == "error"


def everything_wrong() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    steps = [planned("b"), planned("gone"), planned("t", role="check", benchmark="", stage="verify")]
    events = [
        *pairs("b", BASE, noisy(1.0, 0.5)),
        *[ended("b"), ended("gone", "failed", "gone exited with 1"), ended("t", "failed", "t exited with 1")],
    ]
    return steps, events


def test_fail_before_error_before_unproven_and_all_reasons_are_named() -> None:
    steps, events = everything_wrong()
    result = judged(*events, steps=steps)
    assert result.verdict == "fail"
    assert [reason.split(":")[0] for reason in result.reason_texts] == [
        "correctness step failed",
        "step gone",
        "unproven",
    ]
    assert judged(*events[:-1], steps=steps).verdict == "error"
    assert judged(*events[:-2], steps=steps).verdict == "unproven"


@pytest.mark.parametrize(
    ("role", "keys", "verdict"),
    [
        ("work", {"status": "failed"}, "error"),
        ("work", {"status": "timeout"}, "error"),
        ("measure", {"status": "failed"}, "error"),
        ("profile", {"status": "failed"}, "pass"),
        ("check", {"status": "failed"}, "fail"),
        ("check", {"status": "timeout"}, "error"),
        ("check", {"status": "failed", "not_started": True}, "error"),
        ("check", {"status": "skipped"}, "pass"),
        ("work", {"status": "skipped"}, "pass"),
    ],
)
def test_failed_steps_by_role(role: str, keys: dict[str, Any], verdict: str) -> None:
    events = [*pairs("b", FLAT, None), ended("b"), ended("s", reason="why", **keys)]
    steps = [planned("b"), planned("s", role=role, benchmark="")]
    assert judged(*events, steps=steps).verdict == verdict
    steps[1]["allowed"] = True
    assert judged(*events, steps=steps).verdict == "pass"


def test_a_failed_profile_is_an_error_where_a_run_found_out_nothing_else() -> None:
    failed = ended("p", "failed", reason="why")
    profile, other = planned("p", role="profile", benchmark=""), planned("o", role="profile", benchmark="")
    assert judged(failed, steps=[profile]).reason_texts == ["step p: why"]
    assert judged(failed, steps=[profile]).verdict == "error"
    assert judged(failed, ended("o", "failed"), steps=[profile, other]).verdict == "error"
    assert judged(failed, ended("o"), steps=[profile, other]).verdict == "pass"
    assert judged(failed, ended("c"), steps=[profile, planned("c", role="check", benchmark="")]).verdict == "pass"
    assert judged(failed, ended("w"), steps=[profile, planned("w", role="work", benchmark="")]).verdict == "error"
    assert judged(failed, steps=[profile | {"allowed": True}]).verdict == "pass"


def test_nothing_measured_where_something_should_have_been_is_an_error() -> None:
    assert judged(ended("b")).reason_texts == ["nothing was measured"]
    assert judged(steps=[planned("b", selected=False)]).verdict == "error"
    result = judged(*pairs("b", FLAT, None), ended("b"), steps=[planned("b", expect=["b", "c*"])])
    assert result.reason_texts == ["expected benchmark did not appear: c* (step b)"]


@pytest.mark.parametrize(
    ("end", "reason", "interrupted"),
    [
        (None, "the run did not finish (was it killed?)", True),
        ({"event": "interrupted", "time": "2026-01-02T03:04:06.500Z"}, "the run was interrupted", True),
        (END, None, False),
    ],
)
def test_a_run_without_its_end_never_passes(end: dict[str, Any] | None, reason: str | None, interrupted: bool) -> None:
    result = judged(*pairs("b", FLAT, None), ended("b"), steps=[planned("b"), planned("c", selected=False)], end=end)
    assert result.run.interrupted is interrupted
    assert result.verdict == ("error" if reason else "pass")
    assert result.reason_texts == ([reason] if reason else [])
    assert result.steps[1].reason == "not selected"
    assert result.run.seconds == (None if end is None else 1.5 if interrupted else 10.0)


def test_metrics_of_the_workflow_and_unknown_ones() -> None:
    frames = Metric("frames", Dimension.COUNT, Better.HIGHER)
    wanted = criteria(metrics=[frames])
    result = judged(*pairs("b", BASE, scaled(0.5), metric="frames"), ended("b"), wanted=wanted)
    assert (row(result, "frames").decision, result.verdict) == ("regressed", "fail")
    result = judged(*pairs("b", BASE, scaled(0.5), metric="mystery"), ended("b"))
    assert (row(result, "mystery").decision, row(result, "mystery").gating) == (None, False)
    assert result.verdict == "pass"


def test_a_metric_that_never_meets_its_partner_is_left_out() -> None:
    events = pairs("b", FLAT, FLAT)
    events[0]["baseline"].append(reading("uncontended", 1.0))
    events[1]["candidate"].append(reading("uncontended", 1.0))
    result = judged(*events, ended("b"))
    assert [item.metric for item in result.benchmarks] == ["time"]


def test_hotspots_are_ranked_within_each_side_of_each_profile() -> None:
    spots = [
        {"location": name, "share": share, "unit": unit, "source": "perf", "tree": tree}
        for name, share, unit, tree in (
            *[("f", 0.5, "time", "baseline"), ("g", 0.2, "time", "baseline"), ("f", 1.0, "time", "candidate")],
            ("h", 0.36, "bytes", "candidate"),
        )
    ]
    result = judged(ended("p", hotspots=spots), steps=[planned("p", role="profile")])
    assert [(spot.rank, spot.tree, spot.location) for spot in result.hotspots] == [
        *[(1, "baseline", "f"), (2, "baseline", "g"), (1, "candidate", "f"), (1, "candidate", "h")],
    ]
    assert [spot.impact for spot in result.hotspots] == [
        "at most 2.00x faster without it",
        "at most 1.25x faster without it",
        "all of the time",
        "at most 36% fewer bytes without it",
    ]


VALUES = st.floats(1e-9, 1e9) | st.just(0.0) | st.sampled_from([1e-300, 1e300])
METRIC_NAMES = st.sampled_from(
    ["time", "cpu", "uncontended", "rss", "heap_peak", "allocs", "throughput", "user", "odd"]
)
READINGS = st.lists(st.tuples(METRIC_NAMES, VALUES, st.booleans(), st.sampled_from(["", "x", "x/y"])), max_size=5)


@given(st.lists(st.tuples(READINGS, READINGS), max_size=12), st.booleans(), st.booleans())
def test_whatever_was_measured_the_result_is_json_and_judging_again_gives_the_same_bytes(
    rounds: list[tuple[list[Any], list[Any]]], two_sided: bool, end: bool
) -> None:
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


@pytest.mark.parametrize("role", ["profile", "machine"])
def test_what_only_looks_on_fails_a_run_that_found_nothing_else(role: str) -> None:
    failed = ended("look", "failed", "look exited with 1")
    steps = [planned("b"), planned("look", role=role, benchmark="")]
    assert judged(*pairs("b", FLAT, None), ended("b"), failed, steps=steps).verdict == "pass"
    alone = judged(failed, steps=steps[1:])
    assert (alone.verdict, alone.reason_texts) == ("error", ["step look: look exited with 1"])


def test_samples_that_all_lie_on_one_side_of_the_bound_decide() -> None:
    eight = [8.01, 8.2, 7.93, 8.4, 8.11]
    said = "all 5 samples lie on one side of the limit"
    assert target({"time": "<1s"}, *pairs("b", eight, None)) == ("not met", said)
    assert target({"time": "<9s"}, *pairs("b", eight, None)) == ("met", said)
    assert target({"time": {"min": "7s", "max": "9s"}}, *pairs("b", eight, None)) == ("met", said)
    assert target({"time": "<8.2s"}, *pairs("b", eight, None))[0] == "unproven"
    assert target({"time": "<1s"}, *pairs("b", eight[:4], None))[0] == "unproven"


def test_few_samples_say_that_a_percentile_is_missed_and_never_that_it_is_met() -> None:
    ten = [8.01 + 0.0137 * (number * 7 % 10) for number in range(10)]
    assert target({"time p99": "<1s"}, *pairs("b", ten, None))[0] == "not met"
    assert target({"time p99": "<9s"}, *pairs("b", ten, None))[0] == "unproven"
    assert target({"time p90": "<9s"}, *pairs("b", ten * 2, None))[0] == "unproven"
    assert target({"time p90": "<9s"}, *pairs("b", ten * 3, None))[0] == "met"


def test_pairs_that_all_lie_on_one_side_of_the_bound_decide() -> None:
    old, new = [8.01, 8.2, 7.93, 8.4, 8.11], [1.02, 1.0, 1.04, 0.99, 1.01]
    events = pairs("b", old, new)
    said = "all 5 pairs lie on one side of the limit"
    assert target({"time speedup": "≥2x"}, *events) == ("met", said)
    assert target({"time change": "<-95%"}, *events) == ("not met", said)
    assert target({"time speedup": "≥8x"}, *events)[0] == "unproven"
    assert target({"time speedup": "≥2x"}, *events[:4])[0] == "unproven"


def test_ends_that_are_not_known_are_null_and_said() -> None:
    result = judged(*pairs("b", [8.01, 8.2, 7.93], [1.02, 1.0, 1.04]), ended("b"))
    found = row(result)
    assert found.change
    assert found.speedup
    assert (found.change.low, found.change.high, found.speedup.low, found.speedup.high) == (None,) * 4
    assert "too few pairs for a confidence interval of the change; raise `runs` or `budget`" in found.warnings


def test_a_percentile_of_too_few_samples_has_no_figure() -> None:
    few, enough = pairs("b", noisy(1, 0.01, 19), None), pairs("b", noisy(1, 0.01, 21), None)
    texts = [judged(*events, ended("b"), wanted=criteria({"b": {"time p95": "<9s"}})) for events in (few, enough)]
    assert [result.targets[0].measured is None for result in texts] == [True, False]
    assert texts[0].targets[0].status == "unproven"


def test_a_target_says_how_much_wider_drift_makes_its_interval() -> None:
    drift = [1 + 0.01037 * number for number in range(20)]
    status, detail = target({"time": "<1.15s"}, *pairs("b", drift, None))
    assert status == "unproven"
    assert re.search(r"successive samples are correlated, so the interval is \d\.\d times as wide", detail)
