"""Notes of realistic benchmarks on the synthetic ones that they confirm."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.result import Result
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, judged, pairs, planned, row

STEPS = [
    planned("micro", scenario="synthetic"),
    planned("macro", scenario="realistic", confirms=["mic*"]),
]


def run(micro: float, macro: float | None, steps: list[dict[str, Any]] | None = None) -> Result:
    """Return 20 pairs of each benchmark, whose candidate costs this share of the baseline, within a percent."""
    events = []
    for name, ratio in (("micro", micro), ("macro", macro)):
        noise = [1 + 0.002 * ((7 * number) % 11 - 5) for number in range(20)]
        candidate = None if ratio is None else [ratio * (2 - value) for value in noise]
        events += [*pairs(name, noise, candidate), ended(name)]
    return judged(*events, steps=steps or STEPS)


@pytest.mark.parametrize(
    ("micro", "macro", "agrees", "note"),
    [
        (0.8, 1.0, False, "not confirmed by macro: same ±"),
        (0.8, 1.3, False, "not confirmed by macro: regressed +30."),
        (0.8, 0.7, True, "confirmed by macro: improved -30."),
        (1.3, 1.0, False, "not confirmed by macro: same ±"),
        (1.3, 1.2, True, "confirmed by macro: regressed +20."),
        (0.8, None, None, "macro neither confirms nor refutes this: not compared"),
    ],
)
def test_a_changed_synthetic_benchmark_is_held_against_the_realistic_one(
    micro: float, macro: float | None, agrees: bool | None, note: str
) -> None:
    result = run(micro, macro)
    (entry,) = result.confirmations
    assert (entry["benchmark"], entry["by"], entry["agrees"]) == ("micro", "macro", agrees)
    assert [text for text in row(result, name="micro").warnings if text.startswith(note)]


def test_one_that_did_not_change_needs_no_confirmation() -> None:
    result = run(1.0, 1.3)
    assert result.confirmations == []
    assert not [text for text in row(result, name="micro").warnings if "macro" in text]


def test_the_verdict_stays_that_of_the_rows() -> None:
    alone = [STEPS[0], planned("macro")]
    for micro in (0.8, 1.3):
        assert run(micro, 1.0).verdict == run(micro, 1.0, alone).verdict


def test_others_than_the_named_ones_are_left_alone() -> None:
    steps = [STEPS[0], planned("macro", scenario="realistic", confirms=["other"])]
    assert run(0.8, 1.0, steps).confirmations == []


def test_a_result_judged_again_is_the_same() -> None:
    first = run(0.8, 1.0)
    assert judge(record_of_result(first), criteria()) == first
