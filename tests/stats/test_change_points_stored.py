"""Changes reported for a stored history keep the same numbers in every version."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from perfflow.stats import series_noise
from perfflow.stats.change_points import changes
from tests.stats.test_change_points import ROOT, noisy, shifted


def public() -> list[float]:
    return [math.log(value) for value in json.loads((ROOT / "benchmarks" / "fib_20.json").read_text())["values"]]


def staircase() -> list[float]:
    slope = [0.0] * 60 + [0.01 * (index // 10) for index in range(140)] + [0.13] * 60
    return [a + b for a, b in zip(noisy(17, 260, 0.3), slope, strict=True)]


def dependent() -> list[float]:
    return shifted(shifted(noisy(3, 200, 0.6), 190, 0.07), 20, 0.3, 23)


def terraces() -> list[float]:
    values = shifted(shifted(shifted(noisy(5, 300), 70, -0.1), 150, 0.08), 230, 0.08)
    return shifted(values, 110, 0.4, 113)


def down_and_up() -> list[float]:
    return shifted(staircase(), 0, 0.2, 25)


def up_and_down() -> list[float]:
    return shifted(staircase(), 235, -0.3)


def long() -> list[float]:
    values = [one * (3 if index < 300 else 1) for index, one in enumerate(noisy(9, 700, 0.2))]
    return shifted(shifted(shifted(values, 120, 0.1), 500, -0.02), 640, 0.5, 647)


NOISES = {
    "few": (noisy(1, 12), 0.0),
    "short": (noisy(2, 19, 0.6), 0.005),
    "twenty": (noisy(3, 20, 0.6), 0.005),
    "more": (noisy(4, 27, 0.6), 0.01),
    "all lags": (noisy(5, 28, 0.6), 0.01),
    "precise to less than it scatters": (noisy(6, 60), 0.05),
}
ESTIMATED: dict[str, list[float]] = {
    "few": [0.000976703258, 0.000186646068, 0.0418500426, 0.0, 1.33737035, -0.0420237362],
    "short": [-0.0163662107, 9.92325065e-05, 0.0335697766, 0.0, 1.25914128, 0.0914019103],
    "twenty": [0.00323766908, 0.000236056546, 0.0588295426, 0.65, 7.39642543, -0.0592805947],
    "more": [0.00201577824, 0.000413812032, 0.0622671423, 0.85, 12.3333333, 0.00496163793],
    "all lags": [-0.00553462017, 0.000499368308, 0.0555945214, 0.85, 12.3333333, -0.0136860626],
    "precise to less than it scatters": [0.00128715834, 2.1951974e-05, 0.0674560001, 0.0, 1.13800781, -0.045397155],
}


@pytest.mark.parametrize("name", NOISES)
def test_the_noise_of_a_series_is_estimated_alike_in_every_version(name: str) -> None:
    values, error = NOISES[name]
    found = series_noise.estimate(values, [error] * len(values))
    numbers = [found.center, found.between[0], found.reaches[0], found.rho, found.inflation, math.fsum(found.clipped)]
    assert numbers == pytest.approx(ESTIMATED[name], rel=1e-7, abs=1e-9)


TOLD: dict[Callable[[], list[float]], tuple[list[tuple[int, int, int]], list[tuple[int, int]], list[float]]] = {
    public: (
        [(97, 88, 103), (158, 157, 159), (191, 191, 191)],
        [],
        [
            10.2416549,
            -0.107288415,
            -0.162306512,
            0.999872097,
            10.1343665,
            -0.230509352,
            -0.273739614,
            1.0,
            9.90385715,
            0.112575809,
            0.106762358,
            1.0,
            0.25,
        ],
    ),
    staircase: ([], [], [54.0, 208.0, 0.141461498, 0.3]),
    dependent: ([(190, 190, 190)], [], [-0.00435774494, 0.0635440481, 0.0298280062, 0.999772886, 0.55]),
    terraces: (
        [(70, 70, 70), (150, 150, 151), (230, 230, 232)],
        [],
        [
            0.00167016825,
            -0.0999629289,
            -0.113673885,
            1.0,
            -0.0982927606,
            0.0776769004,
            0.0644718041,
            1.0,
            -0.0206158602,
            0.0798667834,
            0.0661423409,
            1.0,
            0.25,
        ],
    ),
    down_and_up: ([(25, 25, 25)], [], [0.195437201, -0.183809877, -0.203162465, 1.0, 73.0, 195.0, 0.130766107, 0.35]),
    up_and_down: (
        [(235, 235, 235)],
        [],
        [0.125158231, -0.287145518, -0.306731207, 1.0, 64.0, 202.0, 0.136101696, 0.35],
    ),
    long: (
        [(118, 116, 120), (500, 491, 510)],
        [(640, 647)],
        [-0.00278769994, 0.10457328, 0.0831564971, 1.0, 0.10178558, -0.0216245312, -0.0292261548, 0.999999985, 0.3],
    ),
}


@pytest.mark.parametrize("series", TOLD)
def test_a_history_is_told_by_the_same_numbers_in_every_version(series: Callable[[], list[float]]) -> None:
    values = series()
    told = changes(values, [0.004] * len(values))
    places = [(one.at, one.earliest, one.latest) for one in told.changes]
    numbers = [number for one in told.changes for number in (one.before, one.size, one.low, one.confidence)]
    numbers += [number for one in told.drifts for number in (one.begin, one.end, one.size)]
    expected_places, outliers, expected = TOLD[series]
    assert (places, list(told.outliers)) == (expected_places, outliers)
    assert [*numbers, told.rho] == pytest.approx(expected)
