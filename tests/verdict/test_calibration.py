"""Calibration findings from hand-made records of steps compared with themselves."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.result import PlannedStep
from perfflow.store.calibrations import CalibrationFinding
from perfflow.store.record import Record
from perfflow.verdict.calibration import Trial, findings
from tests.verdict.records import beside, pairs, planned

Pairs = list[tuple[float, float]]


def trial(values: Pairs, *, complete: bool = True, seconds: float = 1.0, exact: bool = False) -> Trial:
    record = Record(planned={"b": PlannedStep.model_validate(planned("b"))})
    for before, after in values:
        event = pairs("b", [before], [after], "cpu", exact=exact)
        for metric, factor in (("uncontended", 1), ("time", 3)):
            beside(event, metric, factor * before, factor * after)
        record.fold(beside(event, "page_faults", 100.0, 100.0)[0] | {"design": "looks"})
    return Trial(record, {"b": seconds}, complete)


def noisy(seed: int, count: int = 10, spread: float = 0.01, factor: float = 1.0) -> Pairs:
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
    assert (row.trials, row.alarms, row.same, row.pairs, row.replayed) == (9, 0, 9, 10, 90)
    assert (row.seconds, row.within) == pytest.approx((0.9, 90 * 0.09))
    assert row.alarm_bound == pytest.approx(1 - 0.05 ** (1 / 9), rel=1e-6)
    assert row.smallest_change is not None
    # The metric that the verdict rests on is marked with its reason.
    assert [name for name, item in seen.items() if item.judged] == ["cpu"]
    assert "only computes" in row.why
    assert seen["time"].why == ""


def test_a_change_proven_between_equals_is_an_alarm() -> None:
    row = found([trial(noisy(1)), trial(noisy(2, factor=1.5)), trial(noisy(3, spread=0.5))])["cpu"]
    assert (row.alarms, row.same) == (1, 1)


def test_a_comparison_that_was_cut_short_is_noise_and_no_verdict() -> None:
    row = found([trial(noisy(1, count=4, factor=3.0), complete=False)])["cpu"]
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
            record.fold(pairs("s", [1.0], [1.0], metric, benchmark=name)[0] | {"design": "looks"})
    seen = findings("s", [Trial(record, dict.fromkeys("abc", 1.0), complete=True)], Criteria(), 20.0, 1)
    every = [(name, metric) for name in "abc" for metric in ("time", "cpu")]
    assert [(item.benchmark, item.metric) for item in seen] == every


@pytest.mark.parametrize(
    ("values", "exact", "is_exact"), [([(2.0, 2.0)] * 40, True, True), ([(0.0, 0.0)] * 10, False, None)]
)
def test_exact_figures_and_zeros_have_no_noise(values: Pairs, exact: bool, is_exact: bool | None) -> None:
    row = found([trial(values, exact=exact)])["cpu"]
    assert (row.noise, is_exact in (None, row.exact)) == (None, True)
    assert not found([trial(noisy(1), exact=True)])["cpu"].exact
