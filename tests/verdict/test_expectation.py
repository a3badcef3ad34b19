"""The notes that a calibration adds to a judged run."""

from __future__ import annotations

import random
from typing import Any

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.result import Expected, Result
from perfflow.report import markdown, terminal
from perfflow.store.record import record_of
from perfflow.verdict.judge import detectable_change, judge
from tests.verdict.records import END, ended, opening, pairs, planned, row

EXPECTED = {
    "benchmark": "b",
    "metric": "time",
    "noise": 0.01,
    "smallest_change": 0.03,
    "within": 20.0,
    "calibrated": "2026-01-01T00:00:00Z",
}


def drawn(spread: float, count: int = 14) -> list[float]:
    chance = random.Random(5)
    return [chance.lognormvariate(0, spread) for _ in range(count)]


def judged(spread: float, expected: dict[str, Any] | None, **keys: Any) -> Result:
    values = drawn(spread, 28)
    start = {**opening([planned("b")], Criteria()), "expected": [expected] if expected else []}
    return judge(record_of([start, *pairs("b", values[:14], values[14:], **keys), ended("b"), END]), Criteria())


def test_what_is_expected_is_in_the_result() -> None:
    found = row(judged(0.01, EXPECTED)).expected
    assert found == Expected(noise=0.01, smallest_change=0.03, within=20.0, calibrated="2026-01-01T00:00:00Z")
    assert row(judged(0.01, None)).expected is None
    assert row(judged(0.01, {**EXPECTED, "metric": "cpu"})).expected is None
    assert row(judged(0.01, {**EXPECTED, "benchmark": "other"})).expected is None


def test_events_without_expectations_are_judged() -> None:
    start = opening([planned("b")], Criteria())
    assert row(judge(record_of([start, *pairs("b", [1.0], [1.0]), ended("b"), END]), Criteria())).expected is None


def test_an_unproven_row_says_what_can_be_told_here() -> None:
    result = judged(0.5, EXPECTED)
    assert row(result).decision == "unproven"
    said = "on this machine changes of 3% or more are detected within 20"
    assert said in markdown.render(result)
    assert said in terminal.render(result, width=400, color=False, unicode=True)
    proven = judged(0.001, EXPECTED)
    assert said not in markdown.render(proven)


def test_a_run_noisier_than_the_calibration_is_warned_of() -> None:
    noisy, calm = judged(0.05, EXPECTED), judged(0.01, EXPECTED)
    warning = next(text for text in row(noisy).warnings if "noisier" in text)
    assert warning.startswith("noisier than when calibrated: ±")
    assert warning.endswith("against ±1%")
    assert "noisier than when calibrated" in markdown.render(noisy)
    tiny = judged(0.002, {**EXPECTED, "noise": 0.0001})
    for quiet in (calm, tiny):
        assert not any("noisier" in text for text in row(quiet).warnings)


@pytest.mark.parametrize(
    ("smallest", "within", "said"),
    [
        (0.03, 20.0, "on this machine changes of 3% or more are detected within 20"),
        (0.0025, 2.0, "on this machine changes of 0.25% or more are detected within 2"),
        (None, 20.0, "in the calibration of this machine, no change up to 100% was detected within 20"),
        (None, None, ""),
    ],
)
def test_words(smallest: float | None, within: float | None, said: str) -> None:
    text = detectable_change(Expected(noise=0.01, smallest_change=smallest, within=within, calibrated=""))
    assert text.startswith(said)
    assert bool(text) == bool(said)
