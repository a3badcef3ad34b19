"""The text on a row that is not settled: its interval, the time that would settle it, and the option for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from perfflow.model.result import Benchmark, Result
from perfflow.model.units import duration
from perfflow.verdict.decide import by_cpu, remaining, seconds_to_settle
from tests.verdict.records import beside, ended, judged, pairs, planned, row

OPEN = [1.0, 1.3, 0.8, 1.1, 0.9] * 4
SHUT = [1.0, 1.001, 0.999, 1.0, 1.002] * 4
EVEN = [value * 1.000137**number for number, value in enumerate(OPEN)]
SWAPPED = [EVEN[number ^ 1] for number in range(len(EVEN))]


def several(
    reasons: Sequence[str],
    seconds: float | None = 1.0,
    sides: tuple[list[float], list[float]] = (EVEN, SWAPPED),
    **run: Any,
) -> Result:
    """Return undecided rows of 20 pairs that took so many seconds each, whose measuring ended for these reasons."""
    names = [f"b{number}" for number in range(len(reasons))]
    more = {"design": "looks"} | ({"seconds": seconds} if seconds else {})
    events: list[dict[str, Any]] = []
    for name, reason in zip(names, reasons, strict=True):
        events += [event | more for event in pairs(name, *sides)]
        events += [{"event": "stopped", "step": name, "benchmark": "", "reason": reason}] if reason else []
    return judged(*events, *map(ended, names), steps=[planned(name) for name in names], **run)


def undecided(seconds: float | None, stopped: str = "budget", **keys: Any) -> Benchmark:
    result = several([stopped], seconds, (OPEN, OPEN[2:] + OPEN[:2]))
    return result.benchmarks[0].model_copy(update=keys)


@pytest.mark.parametrize(
    ("seconds", "more", "said", "grant"),
    [
        (0.1, 20, "about 2 seconds more would settle it", "5s"),
        (1.0, 40, "about 40 seconds more would settle it", "70s"),
        (3.0, 60, "about 3 minutes more would settle it", "5m"),
        (60.0, 55, "about 55 minutes more would settle it", "89m"),
    ],
)
def test_the_time_and_the_budget_that_grants_it_are_told(seconds: float, more: int, said: str, grant: str) -> None:
    found = undecided(seconds, more=more)
    assert found.seconds == pytest.approx(20 * seconds)
    assert remaining(found) == f"{said} (budget: {grant})"
    assert remaining(found, options=True) == f"{said} (--budget {grant})"
    assert duration(grant) >= (20 + more) * seconds


@pytest.mark.parametrize(("metric", "is_advised"), [("time", True), ("cpu", False)])
def test_what_is_advised_if_it_takes_more_than_an_hour(metric: str, *, is_advised: bool) -> None:
    text = remaining(undecided(5.0, more=2000, metric=metric))
    assert text.startswith("about 3 hours more would settle it; a quieter machine")
    assert "budget" not in text
    assert ("metric: cpu" in text) is is_advised


@pytest.mark.parametrize(
    ("stopped", "more", "options", "said"),
    [
        ("", 30, False, "about 30 seconds more would settle it (runs: 50)"),
        ("", 30, True, "about 30 seconds more would settle it (--runs 50)"),
        ("total budget", 30, False, "about 30 seconds more would settle it (a --budget of 38s more)"),
        ("last look", 30, False, "more time will not settle it"),
        ("settled", 30, False, None),
        ("budget", None, False, None),
    ],
)
def test_what_helps_by_what_ended_it(stopped: str, more: int | None, said: str | None, *, options: bool) -> None:
    text = remaining(undecided(1.0, stopped, more=more), options=options)
    assert text.startswith(said) if said else text == ""


def test_without_known_seconds_it_tells_pairs() -> None:
    assert undecided(None).seconds is None
    assert remaining(undecided(None, more=1)) == "about 1 more pair would settle it (a larger budget)"
    few = undecided(None, more=7, design="few")
    assert remaining(few, options=True) == "about 7 more runs of each side would settle it (a larger --budget)"


def test_the_reason_says_what_is_known() -> None:
    (reason,) = several(["budget"], sides=(OPEN, OPEN[2:] + OPEN[:2])).reason_texts
    told = "its budget ran out; not settled after 20 pairs: the change is between -"
    assert reason.startswith(f"unproven: b0 time: {told}")
    # Before the first look its pairs are told.
    (reason,) = several(["budget"], sides=(OPEN[:2], OPEN[1:3])).reason_texts
    assert reason.endswith("not settled after 2 pairs, too few to tell; at least 9 more pairs needed (budget: 14s)")


@pytest.mark.parametrize(
    ("stopped", "said", "option"),
    [
        ("total budget", "the run's total budget ran out; about ", "--budget "),
        ("budget", "the budget of each ran out; about ", "(budget: "),
    ],
)
def test_a_cause_is_told_once_with_the_time_that_would_settle_all_rows(stopped: str, said: str, option: str) -> None:
    result = several([stopped] * 6, 0.1, budget=60.0)
    (reason,) = result.reason_texts
    assert reason.startswith(f"unproven: 6 rows: {said}")
    assert reason.endswith("b0 time, b1 time, b2 time, b3 time and 2 more")
    granted = duration(reason.split(option)[1].split(")")[0])
    (one,) = several([stopped], 0.1, budget=60.0).benchmarks
    needed = seconds_to_settle(one)
    assert needed
    assert granted >= (60 + 6 * needed if option == "--budget " else (one.seconds or 0) + needed)
    assert not any("ran out" in text for item in result.benchmarks for text in item.warnings)


def test_a_suite_whose_build_took_the_budget_was_not_measuring() -> None:
    ran_out = {"out_of_time": True, "log": "steps/b/prepared/baseline/stderr"}
    result = judged(ended("b", "timeout", "the budget of 5m ran out", **ran_out), budget=300.0)
    assert "the budget of 5m ran out: builds 1s; keep the build folders between runs, or give --budget 10m" in (
        result.reason_texts
    )


def test_rows_that_more_time_does_not_settle_are_told_so_together() -> None:
    (reason,) = several(["last look"] * 6).reason_texts
    assert "more time will not settle them" in reason
    assert "--budget" not in reason


def test_rows_of_different_causes_are_told_apart() -> None:
    result = several(["budget", "budget", "last look", "last look"])
    assert [reason.split(" rows")[0] for reason in result.reason_texts] == ["unproven: 2", "unproven: 2"]


def test_where_cpu_time_is_settled_it_is_advised() -> None:
    events = [event | {"design": "looks"} for event in pairs("b", OPEN, OPEN[2:] + OPEN[:2])]
    for event, before, after in zip(events, SHUT, SHUT[1:] + SHUT[:1], strict=True):
        # More CPU time than wall time indicates threads, so wall time decides.
        beside([event], "cpu", 3 * before, 3 * after)
    result = judged(*events, ended("b"))
    assert row(result).gating
    advice = "its CPU time is settled (same): judge by CPU time (metric: cpu)"
    assert [by_cpu(row(result, name), result.benchmarks) for name in ("time", "cpu")] == [advice, ""]
    assert any(advice in reason for reason in result.reason_texts)
    assert by_cpu(undecided(1.0), [undecided(1.0)]) == ""
