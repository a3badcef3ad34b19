"""Targets: on values, percentiles and differences, on shares of a peak, and why one was not measured."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.metrics import METRICS
from perfflow.model.readings import BATCH
from perfflow.model.result import TargetResult
from perfflow.model.targets import parse_target
from perfflow.verdict import targets
from perfflow.verdict.targets import widened
from tests.verdict.comparisons import side
from tests.verdict.records import beside, criteria, ended, judged, pairs, planned, scaled

FLAT = [1.0371] * 20
THREE = [1.0, 1.1001, 1.2] * 10
Events = list[dict[str, Any]]


def found(wanted: dict[str, Any], events: Events, **keys: Any) -> TargetResult:
    return judged(*events, ended("b"), wanted=criteria({"b": wanted}, **keys)).targets[0]


def target(wanted: dict[str, Any], events: Events, **keys: Any) -> tuple[str, str]:
    told = found(wanted, events, **keys)
    return told.status, told.detail


Wanted = dict[str, Any]


def between(least: str, most: str) -> Wanted:
    return {"time": {"min": least, "max": most}}


@pytest.mark.parametrize(
    ("values", "status", "every"),
    [
        (THREE, "met", [{"time": "<2s"}, {"time": "≥0.5s"}, {"time max": "<1.3s"}, {"time max": "≤1.2s"}]),
        (THREE, "met", [{"time mean": "<1.15s"}, between("0.9s", "1.3s"), between("1s", "1.2s")]),
        (THREE, "unproven", [{"time": "<1.1s"}]),
        (THREE, "not met", [{"time": "<0.5s"}, {"time min": "≥1.1s"}, between("1.25s", "1.3s")]),
        ([1.0, 1.2] * 10, "unproven", [between("1.1s", "1.3s")]),
        *[([1.0] * 4, "unproven", [{"time": "<2s"}]), ([1.0] * 5, "met", [{"time": "<2s"}])],
        # Exact counts need one run.
        *[([0.0], "met", [{"allocs": "0"}]), ([1.0], "not met", [{"allocs": "0"}])],
        ([12.0], "met", [{"allocs": "12"}, {"allocs": "≤12"}, {"allocs": "<13"}]),
        ([12.0], "not met", [{"allocs": "<12"}]),
    ],
)
def test_targets_on_values(values: list[float], status: str, every: list[Wanted]) -> None:
    for wanted in every:
        (metric, *_) = next(iter(wanted)).split()
        assert target(wanted, pairs("b", values, None, metric=metric))[0] == status, wanted


ONE_TO_TWO = {"min": "1 s", "max": "2 s"}


@pytest.mark.parametrize(
    ("requirement", "status", "bounds"),
    [
        *[("<10 s", "met", [(8.0, 9.9)]), ("<10 s", "unproven", [(8.0, 10.0)]), ("<10 s", "not met", [(10.0, 11.0)])],
        *[("<=10 s", "met", [(8.0, 10.0)]), (">10 s", "unproven", [(10.0, 11.0)]), (ONE_TO_TWO, "met", [(1.0, 2.0)])],
        (ONE_TO_TWO, "unproven", [(0.9, 2.0), (1.0, 2.1), (2.0, 2.2), (0.8, 1.0)]),
        (ONE_TO_TWO, "not met", [(2.1, 2.2), (0.8, 0.9)]),
    ],
)
def test_the_interval_of_a_target(requirement: Any, status: str, bounds: list[tuple[float, float]]) -> None:
    """A target is met where the whole interval is on its side."""
    wanted = parse_target("b", "time", requirement, METRICS).requirement
    for low, high in bounds:
        assert targets._status(wanted, low, high) == status, (low, high)


EIGHTY = [1.0 + 0.001 * number for number in range(80)]
random.Random(1).shuffle(EIGHTY)
INNER = {"p50": 1.0, "p99": 2.0, "n": 1000.0}
EIGHT = [8.01, 8.2, 7.93, 8.4, 8.11]
ONE = [1.02, 1.0, 1.04, 0.99, 1.01]
TEN = [8.01 + 0.0137 * (number * 7 % 10) for number in range(10)]
SWINGS = [value * (1 + 0.01 * (-1) ** number) for number, value in enumerate(scaled(1.0))]
ALL_FIVE, ALL_PAIRS = (f"all 5 {what} lie on one side of the limit" for what in ("samples", "pairs"))
INCLUDES = "the interval includes the limit"
NO_BASE = "there is nothing to compare with"


INSIDE = pairs("b", FLAT[:6], None, inner=INNER)
HALVED, SWUNG = pairs("b", scaled(2), SWINGS), pairs("b", scaled(1), SWINGS)
AT_MOST = pairs("b", [9e6] * 6, None, metric="rss", at_most=True)
NEEDS = "{} samples; a 95% interval of {} needs {}"
OF_BATCHES = "p99 of averages over about 2 calls each, not of single calls"


@pytest.mark.parametrize(
    ("events", "status", "detail", "every"),
    [
        # Percentiles say how many samples they need; those inside processes need few processes.
        (pairs("b", EIGHTY, None), "met", "", [{"time p95": "<1.1s"}]),
        (pairs("b", EIGHTY, None), "unproven", NEEDS.format(80, "p99", 368), [{"time p99": "<1.1s"}]),
        (pairs("b", EIGHTY[:50], None), "unproven", NEEDS.format(50, "p95", 72), [{"time p95": "<1.1s"}]),
        (pairs("b", EIGHTY, None), "not met", None, [{"time p99": "<1s"}]),
        (INSIDE, "met", "", [{"time p99": "<2.5s"}]),
        (INSIDE, "not met", None, [{"time p99": "<1.5s"}]),
        (INSIDE[:4], "unproven", NEEDS.format(4, "p99", 6), [{"time p99": "<2.5s"}]),
        # A percentile of batches is named as one.
        (pairs("b", FLAT[:6], None, inner=INNER | {BATCH: 2.0}), "met", OF_BATCHES, [{"time p99": "<9 s"}]),
        (pairs("b", FLAT[:6], None, inner=INNER | {BATCH: 1.0}), "met", "", [{"time p99": "<9 s"}]),
        (pairs("b", FLAT[:6], None, inner=INNER | {BATCH: 9.0}), "met", "", [{"time p50": "<9 s"}]),
        # The candidate is judged where there is one.
        (pairs("b", scaled(2), scaled(1)), "met", None, [{"time": "<1.5s"}]),
        (pairs("b", scaled(1), scaled(2)), "not met", None, [{"time": "<1.5s"}]),
        # Targets on the difference.
        (HALVED, "met", None, [{"speedup": "≥1.5x"}, {"change": "<-40%"}]),
        (HALVED, "not met", None, [{"speedup": "≥2.5x"}, {"change": "<-60%"}]),
        (HALVED, "unproven", None, [{"speedup": "≥2x"}]),
        (pairs("b", scaled(1), scaled(2), metric="rate"), "met", None, [{"rate speedup": "≥1.9x"}]),
        (pairs("b", scaled(1), None), "not measured", NO_BASE, [{"speedup": "≥1.5x"}, {"change": "<-40%"}]),
        (SWUNG, "met", "", [{"time change": "<9%"}]),
        (SWUNG, "not met", "", [{"time change": "<-9%"}]),
        (SWUNG, "unproven", INCLUDES, [{"time change": "<0%"}]),
        # Samples that all lie on one side of the limit decide.
        (pairs("b", EIGHT, None), "not met", ALL_FIVE, [{"time": "<1s"}]),
        (pairs("b", EIGHT, None), "met", ALL_FIVE, [{"time": "<9s"}, between("7s", "9s")]),
        (pairs("b", EIGHT, None), "unproven", None, [{"time": "<8.2s"}]),
        (pairs("b", EIGHT[:4], None), "unproven", None, [{"time": "<1s"}]),
        # Few of them say that a percentile is missed, and never that it is met.
        (pairs("b", TEN, None), "not met", None, [{"time p99": "<1s"}]),
        (pairs("b", TEN, None), "unproven", None, [{"time p99": "<9s"}]),
        (pairs("b", TEN * 2, None), "unproven", None, [{"time p90": "<9s"}]),
        (pairs("b", TEN * 3, None), "met", None, [{"time p90": "<9s"}]),
        # Pairs that all lie on one side of the limit decide.
        (pairs("b", EIGHT, ONE), "met", ALL_PAIRS, [{"time speedup": "≥2x"}]),
        (pairs("b", EIGHT, ONE), "not met", ALL_PAIRS, [{"time change": "<-95%"}]),
        (pairs("b", EIGHT, ONE), "unproven", None, [{"time speedup": "≥8x"}]),
        (pairs("b", EIGHT[:4], ONE[:4]), "unproven", None, [{"time speedup": "≥2x"}]),
        # An upper bound meets what is above it, and proves nothing below.
        (AT_MOST, "met", None, [{"rss": "<10MB"}]),
        (AT_MOST, "unproven", None, [{"rss": "<5MB"}, {"rss": "≥5MB"}]),
    ],
)
def test_what_a_target_says(events: Events, status: str, detail: str | None, every: list[Wanted]) -> None:
    """``detail``: None where it is another test's."""
    for wanted in every:
        told = found(wanted, events)
        assert (told.status, detail in (None, told.detail)) == (status, True), wanted


def test_a_target_says_how_much_wider_drift_makes_its_interval() -> None:
    status, detail = target({"time": "<1.15s"}, pairs("b", [1 + 0.01037 * number for number in range(20)], None))
    assert status == "unproven"
    assert re.search(r"successive samples are correlated, so the interval is \d\.\d times as wide", detail)


@pytest.mark.parametrize(("count", "is_shown"), [(19, False), (21, True)])
def test_a_percentile_of_too_few_samples_has_no_figure(count: int, *, is_shown: bool) -> None:
    told = found({"time p95": "<9s"}, pairs("b", SWINGS[:19] + SWINGS[: count - 19], None))
    assert (told.measured is not None, told.status) == (is_shown, "unproven")


def test_a_target_that_is_missed_is_named_with_its_statistic() -> None:
    wanted = criteria({"b": {"time p50": "<0.5 s", "heap_peak": "<1 KB"}})
    events = beside(pairs("b", scaled(1.0), None), "heap_peak", 2000.0, None)
    assert judged(*events, ended("b"), wanted=wanted).reason_texts == [
        "target not met: b time p50 <0.5 s",
        "target not met: b heap_peak <1 KB",
    ]


# -- shares of a peak


def peak(metric: str, value: float, precision: str = "", step: str = "roof") -> dict[str, Any]:
    return ended(step, peaks=[{"metric": metric, "value": value, "precision": precision, "how": "as seen"}])


NO_BANDWIDTH = "no peak is known for bandwidth"
FLOPS = (peak("flops", 32e9, "f64"), peak("flops", 64e9, "f32", "again"))
FOUND, SAID = "found by step roof", "said by the workflow"


@pytest.mark.parametrize(
    ("metric", "precision", "events", "peaks", "status", "value", "how"),
    [
        ("bandwidth", "", (), {"bandwidth": 50e9}, "met", 50e9, SAID),
        ("bandwidth", "", (), {"bandwidth": 90e9}, "not met", 90e9, SAID),
        ("bandwidth", "", (), {}, "not measured", None, NO_BANDWIDTH),
        # A step may find the peak; the highest one counts, and that of the workflow comes before.
        ("bandwidth", "", (peak("bandwidth", 50e9),), {}, "met", 50e9, FOUND),
        ("bandwidth", "", (peak("bandwidth", 50e9),), {"bandwidth": 100e9}, "not met", 100e9, SAID),
        (
            *("bandwidth", "", (peak("bandwidth", 50e9), peak("bandwidth", 60e9, step="again"))),
            *({}, "not met", 60e9, "found by step again"),
        ),
        # One that could not find it is named.
        (
            *("bandwidth", "", (ended("roof", "skipped", "cc is not installed"),)),
            *({}, "not measured", None, f"{NO_BANDWIDTH}; step roof: cc is not installed"),
        ),
        # Bytes by time are held against the memory.
        ("throughput", "", (peak("bandwidth", 50e9),), {}, "met", 50e9, FOUND),
        ("throughput", "", (peak("bandwidth", 50e9),), {"throughput": 60e9}, "not met", 60e9, SAID),
        # The peak is that of the precision.
        ("flops", "f32", FLOPS, {}, "not met", 64e9, "found by step again"),
        ("flops", "f64", FLOPS, {}, "met", 32e9, FOUND),
        ("flops", "", FLOPS, {}, "not met", 64e9, "found by step again"),
        ("flops", "f16", FLOPS, {}, "not measured", None, "no peak is known for flops f16"),
    ],
)
def test_peaks(metric: str, precision: str, events: Any, peaks: Any, status: str, value: Any, how: str) -> None:
    steps = [planned("b", precision=precision), *(planned(name, role="machine") for name in ("roof", "again"))]
    wanted = criteria({"b": {metric: "≥70% of peak"}}, peaks=peaks)
    (told,) = judged(*pairs("b", scaled(40e9), None, metric=metric), *events, wanted=wanted, steps=steps).targets
    assert (told.status, told.peak) == (status, value)
    assert (told.peak_source if value else told.detail) == how


# -- what was not measured


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


def test_a_step_that_expects_a_benchmark_says_why_it_is_missing() -> None:
    events = [*pairs("b", FLAT, None), ended("b"), ended("suite", "skipped", "no compiler")]
    steps = [planned("b"), planned("suite", expect=["c", "d"]), planned("check", role="check", benchmark="c")]
    (told,) = judged(*events, wanted=criteria({"c": {"time": "<1 s"}}), steps=steps).targets
    assert (told.status, told.detail) == ("not measured", "step suite: no compiler")


@pytest.mark.parametrize(
    ("wanted", "detail"),
    [
        ({"time": "<9 s"}, "no step measured this: `*` does not cross `/`; write `**`"),
        ({"rss": "<1 TB"}, "no step measured this"),
    ],
)
def test_a_glob_that_would_match_if_it_crossed_a_slash_is_told(wanted: dict[str, str], detail: str) -> None:
    events = pairs("b", FLAT, None, benchmark="a/b")
    (told,) = judged(*events, ended("b"), wanted=criteria({"*": wanted})).targets
    assert told.detail == detail


# -- parts


def test_a_figure_that_ought_to_repeat_is_widened_by_its_range() -> None:
    for samples, low, high in (((1.0, 4.0, 2.0), -2.0, 7.0), ((1.0, 2.0), 0.0, 3.0)):
        wide = widened(replace(side(*samples), needs=6))
        assert (wide.low, wide.high, wide.needs) == (low, high, 0)
    one = replace(side(1.0), needs=6)
    assert widened(one) is one


def test_a_percentile_is_told_where_a_sample_lies_beyond_it() -> None:
    few = side(*[1.0] * 19)
    assert [targets._is_shown(replace(few, n=n), "p95", "unproven") for n in (19, 20)] == [False, True]
    assert targets._is_shown(few, "p95", "met")
    assert targets._is_shown(replace(few, high=1.0), "p99", "unproven")
    assert all(targets._is_shown(few, statistic, "unproven") for statistic in ("p50", "max"))


def test_samples_that_depend_on_those_before_them_are_named() -> None:
    summary = replace(side(1.0), low=0.9, high=1.1, factor=1.52)
    assert targets._dependence(summary).endswith("so the interval is 1.5 times as wide")
    for silent in (replace(summary, factor=1.0), replace(summary, low=None), replace(summary, high=None)):
        assert targets._dependence(silent) == ""


@pytest.mark.parametrize(("selected", "status"), [(False, "not looked at"), (True, "not measured")])
def test_a_run_that_tries_patches_alone_looks_at_no_target(*, selected: bool, status: str) -> None:
    steps = [planned("b", selected=selected), planned("c", role="candidate")]
    result = judged(steps=steps, wanted=criteria({"b": {"time": "<1ms"}}))
    assert [item.status for item in result.targets] == [status]
