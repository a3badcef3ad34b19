"""Calibration findings from hand-made records of steps compared with themselves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.result import PlannedStep
from perfflow.store.record import Record
from perfflow.store.result_file import CalibrationFinding
from perfflow.verdict.calibration import Trial, findings
from tests.verdict.records import planned, reading


def trial(values: Sequence[tuple[float, float]], *, complete: bool = True, seconds: float = 1.0, **keys: Any) -> Trial:
    record = Record(planned={"b": PlannedStep.model_validate(planned("b"))})
    for baseline, candidate in values:
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": keys.get("design", "looks")}
        for side, value in (("baseline", baseline), ("candidate", candidate)):
            event[side] = [
                reading("time", value * 3),
                reading("cpu", value, exact=keys.get("exact", False)),
                reading("uncontended", value),
                reading("page_faults", 100.0),
            ]
        record.fold(event)
    return Trial(record, {"b": seconds}, complete)


def noisy(seed: int, count: int = 10, spread: float = 0.01, factor: float = 1.0) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    return [
        (0.02 * chance.lognormvariate(0, spread), 0.02 * factor * chance.lognormvariate(0, spread))
        for _ in range(count)
    ]


def found(trials: Sequence[Trial], budget: float = 20.0) -> dict[str, CalibrationFinding]:
    return {item.metric: item for item in findings("b", trials, Criteria(), budget, 1)}


def test_noise_same_and_what_a_comparison_takes() -> None:
    seen = found([trial(noisy(seed), seconds=0.5 + seed / 10) for seed in range(9)])
    assert set(seen) == {"time", "cpu", "uncontended"}
    row = seen["cpu"]
    assert row.noise == pytest.approx(0.01 * 2**0.5, rel=0.25)
    assert (row.trials, row.alarms, row.same, row.pairs) == (9, 0, 9, 10)
    assert row.seconds == pytest.approx(0.9)
    assert row.alarm_bound == pytest.approx(1 - 0.05 ** (1 / 9), rel=1e-6)
    assert row.smallest_change is not None
    assert row.replayed == 90
    assert row.within == pytest.approx(90 * 0.09)


def test_the_metric_the_verdict_rests_on_is_marked_with_its_reason() -> None:
    seen = found([trial(noisy(seed)) for seed in range(3)])
    assert [name for name, item in seen.items() if item.judged] == ["cpu"]
    assert "only computes" in seen["cpu"].why
    assert seen["time"].why == ""


def test_a_change_proven_between_equals_is_an_alarm() -> None:
    seen = found([trial(noisy(1)), trial(noisy(2, factor=1.5)), trial(noisy(3, spread=0.5))])
    assert (seen["cpu"].alarms, seen["cpu"].same) == (1, 1)


def test_a_comparison_that_was_cut_short_is_noise_and_no_verdict() -> None:
    seen = found([trial(noisy(1, count=4, factor=3.0), complete=False)])
    row = seen["cpu"]
    assert row.noise is not None
    assert (row.trials, row.alarms, row.alarm_bound, row.pairs, row.smallest_change) == (0, 0, None, None, None)
    assert found([trial(noisy(1, count=2), complete=False)])["cpu"].noise is None


def test_the_budget_limits_the_pairs_that_are_replayed() -> None:
    trials = [trial(noisy(seed, spread=0.05), seconds=10.0) for seed in range(9)]
    assert found(trials, budget=14.0)["cpu"].replayed == 14
    few = found(trials, budget=5.0)["cpu"]
    assert (few.replayed, few.smallest_change) == (5, None)


def test_benchmarks_stand_in_the_order_of_the_suite_not_of_the_rounds() -> None:
    record = Record(planned={"s": PlannedStep.model_validate(planned("s"))})
    for name in ("c", "a", "b"):
        for metric in ("cpu", "time"):
            values = [reading(metric, 1.0, benchmark=name)]
            record.fold({"event": "sample", "step": "s", "design": "looks", "baseline": values, "candidate": values})
    seen = findings("s", [Trial(record, {"a": 1.0, "b": 1.0, "c": 1.0}, complete=True)], Criteria(), 20.0, 1)
    assert [(item.benchmark, item.metric) for item in seen] == [
        (name, metric) for name in "abc" for metric in ("time", "cpu")
    ]


def test_exact_figures_are_said_to_be_exact() -> None:
    seen = found([trial([(2.0, 2.0)] * 40, exact=True)])
    assert seen["cpu"].exact
    assert seen["cpu"].noise is None
    assert not found([trial(noisy(1), exact=True)])["cpu"].exact


def test_zeros_are_no_pairs() -> None:
    seen = found([trial([(0.0, 0.0)] * 10)])
    assert seen["cpu"].noise is None
