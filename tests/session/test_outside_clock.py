"""The times of a suite, checked by those of its process."""

from __future__ import annotations

import random

import pytest

from perfflow.execute.invoke import Failure, Invoked
from perfflow.model.judging import Code
from perfflow.model.readings import Parsed, Reading, Side, Usage
from perfflow.session.outside_clock import LOOKS, is_saved, limit_of, too_slow

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


@pytest.mark.parametrize(
    ("mean", "iterations", "saved"), [(0.001, 1000, True), (0.001, 100, True), (0.01, 100, None), (0.02, 50, None)]
)
def test_an_honest_suite_passes(mean: float, iterations: int, *, saved: bool | None) -> None:
    """None: it saves nothing, so that there is nothing to show."""
    after = (process(mean, iterations, start=START + noise) for noise in (0.05, 0.0, -0.03))
    assert is_saved(sides(*after)) is saved


@pytest.mark.parametrize("iterations", [100, 1000])
def test_a_suite_that_tells_a_tenth_of_its_time_does_not(iterations: int) -> None:
    with pytest.raises(Failure, match="of the saved time is spent elsewhere in the process") as error:
        is_saved(sides(*(process(0.01, iterations, told=0.1) for _ in range(3))))
    assert error.value.code is Code.CLOCKS_DISAGREE


def test_work_that_moved_to_the_start_is_not_saved() -> None:
    with pytest.raises(Failure):
        is_saved(sides(*(process(0.001, 100, start=START + 0.9) for _ in range(3))))


def outcomes(told: float, mean: float, noise: float, trials: int = 300) -> tuple[int, int, int]:
    """Return how many suites on a noisy machine are believed, refuted, and neither. Noise is in seconds of a start."""
    draw = random.Random(f"{told} {mean} {noise}")
    believed = refuted = 0

    def runs(side: Side) -> list[Invoked]:
        figures = (0.01, 1.0) if side is Side.BASELINE else (mean, told)
        starts = [START + draw.gammavariate(1.0, noise) for _ in range(LOOKS[-1])]
        return [process(figures[0], 100, told=figures[1], start=start) for start in starts]

    for _ in range(trials):
        taken = {side: runs(side) for side in Side}
        try:
            believed += any(is_saved({side: taken[side][:number] for side in Side}) for number in LOOKS)
        except Failure:
            refuted += 1
    return believed, refuted, trials - believed - refuted


@pytest.mark.parametrize("noise", [0.1, 0.4, 1.0])
def test_a_liar_is_not_believed_on_a_noisy_machine(noise: float) -> None:
    """It claims to save 0.9 s. Refuted or not, it has a flag."""
    believed, refuted, unclear = outcomes(0.1, 0.01, noise)
    assert believed <= 0.05 * 300, (believed, refuted, unclear)
    assert noise > 0.1 or refuted >= 0.95 * 300, (believed, refuted, unclear)


@pytest.mark.parametrize("noise", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("mean", [0.001, 0.0085])
def test_an_honest_gain_is_seldom_refuted_on_a_noisy_machine(noise: float, mean: float) -> None:
    believed, refuted, unclear = outcomes(1.0, mean, noise)
    assert refuted <= 0.1 * 300, (believed, refuted, unclear)
    assert mean > 0.001 or noise > 0.1 or believed >= 0.95 * 300, (believed, refuted, unclear)


def test_a_run_that_takes_much_longer_than_that_of_the_base_contradicts_a_gain() -> None:
    before = [process(0.01, 100)]
    assert limit_of(before) == pytest.approx(11)
    assert too_slow(before).reason.endswith("takes 1.5 s on the base, and more than 11.0 s on the candidate")
    assert too_slow(before).code is Code.CLOCKS_DISAGREE
