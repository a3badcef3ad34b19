"""The times of a suite, checked by those of its process."""

from __future__ import annotations

import pytest

from perfflow.execute.invoke import Failure, Invoked
from perfflow.model.judging import Code
from perfflow.model.readings import Parsed, Reading, Side, Usage
from perfflow.session.outside_clock import limit_of, require_saved, too_slow

START = 0.5


def process(mean: float, iterations: int, *, told: float = 1.0, start: float = START) -> Invoked:
    """Return a process of a suite with ``iterations`` of ``mean`` seconds, of which it tells a share."""
    inner = {"n": 10.0, "batch": iterations / 10, "mean": mean * told}
    readings = tuple(Reading(metric, mean * told, "b", inner) for metric in ("time", "cpu"))
    cpu = start + mean * iterations
    return Invoked(Parsed(readings), Usage(cpu, user=cpu), 0)


def sides(*after: Invoked) -> dict[Side, list[Invoked]]:
    before = [process(0.01, 100, start=START + noise) for noise in (0.0, 0.03, -0.02)]
    return {Side.BASELINE: before, Side.CANDIDATE: list(after)}


@pytest.mark.parametrize(("mean", "iterations"), [(0.001, 1000), (0.001, 100), (0.01, 100), (0.02, 50)])
def test_an_honest_suite_passes(mean: float, iterations: int) -> None:
    require_saved(sides(*(process(mean, iterations, start=START + noise) for noise in (0.05, 0.0, -0.03))))


@pytest.mark.parametrize("iterations", [100, 1000])
def test_a_suite_that_tells_a_tenth_of_its_time_does_not(iterations: int) -> None:
    with pytest.raises(Failure, match="of the saved time is spent elsewhere in the process") as error:
        require_saved(sides(*(process(0.01, iterations, told=0.1) for _ in range(3))))
    assert error.value.code is Code.CLOCKS_DISAGREE


def test_work_that_moved_to_the_start_is_not_saved() -> None:
    with pytest.raises(Failure):
        require_saved(sides(*(process(0.001, 100, start=START + 0.9) for _ in range(3))))


def test_a_run_that_takes_much_longer_than_that_of_the_base_contradicts_a_gain() -> None:
    before = [process(0.01, 100)]
    assert limit_of(before) == pytest.approx(11)
    assert too_slow(before).reason.endswith("takes 1.5 s on the base, and more than 11.0 s on the candidate")
    assert too_slow(before).code is Code.CLOCKS_DISAGREE
