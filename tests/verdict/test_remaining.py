"""The text on a row that is not settled: its interval, the time that would settle it, and the option for that."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.result import Benchmark, Result
from perfflow.model.units import duration
from perfflow.verdict.decide import by_cpu, remaining, seconds_to_settle
from tests.session.project import row
from tests.verdict.records import ended, judged, pairs, planned

OPEN = [1.0, 1.3, 0.8, 1.1, 0.9] * 4
SHUT = [1.0, 1.001, 0.999, 1.0, 1.002] * 4


def unproven(seconds: float | None, stopped: str = "budget", metric: str = "time", design: str = "looks") -> Result:
    """Return a row of 20 pairs that took so many seconds each."""
    events = pairs("b", OPEN, OPEN[2:] + OPEN[:2], metric)
    for event in events:
        event.update({"design": design} | ({"seconds": seconds} if seconds else {}))
    why = {"event": "stopped", "step": "b", "benchmark": "", "reason": stopped}
    return judged(*events, *([why] if stopped else []), ended("b"))


def changed(result: Result, **keys: Any) -> Benchmark:
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
    found = changed(unproven(seconds), more=more)
    assert found.seconds == pytest.approx(20 * seconds)
    assert remaining(found) == f"{said} (budget: {grant})"
    assert remaining(found, options=True) == f"{said} (--budget {grant})"
    assert duration(grant) >= (20 + more) * seconds


def test_more_than_an_hour_is_not_advised() -> None:
    text = remaining(changed(unproven(5.0), more=2000))
    assert text.startswith("about 3 hours more would settle it; a quieter machine")
    assert "budget" not in text


def test_cpu_time_is_not_advised_where_it_decides_already() -> None:
    for metric, is_advised in (("time", True), ("cpu", False)):
        assert ("metric: cpu" in remaining(changed(unproven(5.0), more=2000, metric=metric))) is is_advised


def test_what_ended_the_measuring_decides_what_helps() -> None:
    fixed = changed(unproven(1.0, ""), more=30)
    assert remaining(fixed) == "about 30 seconds more would settle it (runs: 50)"
    assert remaining(fixed, options=True).endswith("(--runs 50)")
    assert remaining(changed(unproven(1.0, "total budget"), more=30)).endswith("(a --budget of 38s more)")
    assert remaining(changed(unproven(1.0, "last look"), more=30)).startswith("more time will not settle it")
    assert remaining(changed(unproven(1.0, "settled"), more=30)) == ""
    assert remaining(changed(unproven(1.0), more=None)) == ""


def test_before_the_first_look_its_pairs_are_told() -> None:
    events = pairs("b", OPEN[:2], OPEN[1:3])
    for event in events:
        event.update({"design": "looks", "seconds": 1.0})
    why = {"event": "stopped", "step": "b", "benchmark": "", "reason": "budget"}
    (reason,) = judged(*events, why, ended("b")).reason_texts
    assert reason.endswith("not settled after 2 pairs, too few to tell; at least 9 more pairs needed (budget: 14s)")


def test_without_known_seconds_it_tells_pairs() -> None:
    found = unproven(None)
    assert found.benchmarks[0].seconds is None
    assert remaining(changed(found, more=1)) == "about 1 more pair would settle it (a larger budget)"
    few = changed(found, more=7, design="few")
    assert remaining(few, options=True) == "about 7 more runs of each side would settle it (a larger --budget)"


def test_the_reason_says_what_is_known() -> None:
    (reason,) = unproven(1.0).reason_texts
    assert reason.startswith(
        "unproven: b time: its budget ran out; not settled after 20 pairs: the change is between -"
    )


EVEN = [value * 1.000137**number for number, value in enumerate(OPEN)]
SWAPPED = [EVEN[number ^ 1] for number in range(len(EVEN))]


def several(reason: str, count: int = 6, seconds: float = 0.1) -> Result:
    """Return undecided rows whose measuring ended for the same reason."""
    names = [f"b{number}" for number in range(count)]
    events = []
    for name in names:
        events += [event | {"design": "looks", "seconds": seconds} for event in pairs(name, EVEN, SWAPPED)]
        events.append({"event": "stopped", "step": name, "benchmark": "", "reason": reason})
    steps = [planned(name) for name in names]
    return judged(*events, *map(ended, names), steps=steps, budget=60.0)


def test_a_cause_is_told_once_with_the_time_that_would_settle_all_rows() -> None:
    result = several("total budget")
    result_of_one = several("total budget", 1)
    needed = seconds_to_settle(result_of_one.benchmarks[0])
    assert needed is not None
    (reason,) = result.reason_texts
    assert reason.startswith("unproven: 6 rows: the run's total budget ran out; about ")
    assert reason.endswith("b0 time, b1 time, b2 time, b3 time and 2 more")
    granted = duration(reason.split("--budget ")[1].split(")")[0])
    assert granted >= 60 + 6 * needed
    assert not any("ran out" in text for row in result.benchmarks for text in row.warnings)


def test_rows_whose_own_budgets_ran_out_are_told_the_key() -> None:
    result = several("budget")
    (reason,) = result.reason_texts
    assert reason.startswith("unproven: 6 rows: the budget of each ran out; about ")
    granted = duration(reason.split("(budget: ")[1].split(")")[0])
    row_of_one = result.benchmarks[0]
    assert granted >= (row_of_one.seconds or 0) + (seconds_to_settle(row_of_one) or 0)


def test_rows_that_more_time_does_not_settle_are_told_so_together() -> None:
    (reason,) = several("last look").reason_texts
    assert "more time will not settle them" in reason
    assert "--budget" not in reason


def test_rows_of_different_causes_are_told_apart() -> None:
    names = ["b0", "b1", "b2", "b3"]
    events: list[dict[str, Any]] = []
    for name, why in zip(names, ["budget", "budget", "last look", "last look"], strict=True):
        events += [event | {"design": "looks", "seconds": 1.0} for event in pairs(name, EVEN, SWAPPED)]
        events.append({"event": "stopped", "step": name, "benchmark": "", "reason": why})
    result = judged(*events, *map(ended, names), steps=[planned(name) for name in names])
    assert [reason.split(" rows")[0] for reason in result.reason_texts] == ["unproven: 2", "unproven: 2"]


def test_where_cpu_time_is_settled_it_is_advised() -> None:
    events = pairs("b", OPEN, OPEN[2:] + OPEN[:2])
    for event, before, after in zip(events, SHUT, SHUT[1:] + SHUT[:1], strict=True):
        event["design"] = "looks"
        for side, value in (("baseline", before), ("candidate", after)):
            # More CPU time than wall time indicates threads, so wall time decides.
            event[side].append({"metric": "cpu", "value": 3 * value})
    result = judged(*events, ended("b"))
    assert row(result, "b", "time").gating
    advice = "its CPU time is settled (same): judge by CPU time (metric: cpu)"
    assert by_cpu(row(result, "b", "time"), result.benchmarks) == advice
    assert any(advice in reason for reason in result.reason_texts)
    assert by_cpu(row(result, "b", "cpu"), result.benchmarks) == ""
    assert by_cpu(unproven(1.0).benchmarks[0], unproven(1.0).benchmarks) == ""
