"""Fits of a growth: known curves with known noise, and scipy's least squares as the reference."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from perfflow.model.units import GROWTH_CLASSES
from perfflow.verdict.growth import BEND, EXACT_BEND, FittedGrowth, GrowthPoint, class_of, deciding_size, fitted_growth

HOW = {"floor": 0.02, "flat": 0.05, "bend": BEND}
CURVES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 7.0,
    "log": lambda n: 1 + math.log(n),
    "linear": lambda n: n,
    "nlogn": lambda n: n * math.log(n),
    "quadratic": lambda n: n**2,
    "cubic": lambda n: n**3,
}
DECADES = (10.0, 100.0, 1000.0, 10_000.0)


def points(
    curve: Callable[[float], float], sizes: Sequence[float] = DECADES, noise: float = 0.0, seed: int = 0
) -> list[GrowthPoint]:
    coin = random.Random(seed)
    return [GrowthPoint(n, curve(n) * (1 + coin.gauss(0, noise)), noise * curve(n)) for n in sizes]


def growth(found: Sequence[GrowthPoint]) -> FittedGrowth:
    return fitted_growth(found, 0.95, **HOW)


@pytest.mark.parametrize("name", GROWTH_CLASSES)
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_each_class_is_told_from_the_others_over_three_decades(name: str, unit: float) -> None:
    found = growth(points(lambda n: unit * CURVES[name](n)))
    place = float(GROWTH_CLASSES.index(name))
    assert (found.best, found.low, found.high) == (name, place, place)


@pytest.mark.parametrize("power", [0.5, 1.5, 2.5])
def test_what_lies_between_two_classes_is_neither(power: float) -> None:
    found = growth(points(lambda n: n**power))
    assert found.exponent.estimate == pytest.approx(power, abs=0.01)
    assert found.low == found.high
    assert found.low % 1 == 0.5


LINEAR, NLOGN, QUADRATIC = (float(GROWTH_CLASSES.index(name)) for name in ("linear", "nlogn", "quadratic"))
ONE_DECADE = [1000.0, 3000.0, 10_000.0]


def test_a_start_that_every_run_pays_is_not_taken_for_flatness() -> None:
    # Their log-log slope is 0.3, because the least size is almost only start-up cost.
    found = growth(points(lambda n: 1000.0 + n, [100.0, 300.0, *ONE_DECADE, 30_000.0]))
    assert found.exponent.estimate == pytest.approx(1.0, abs=0.02)
    assert found.best == "linear"


def test_what_is_not_told_apart() -> None:
    # Work hidden under the start is not proven to be anything.
    hidden = growth(points(lambda n: 1000.0 + n * n / 1e6, [100.0, 1000.0, 10_000.0]))
    assert (hidden.low, hidden.high) != (QUADRATIC, QUADRATIC)
    assert hidden.high >= QUADRATIC
    # Flat over a short way is not called constant.
    flat = growth(points(CURVES["constant"], [10.0, 20.0, 40.0]))
    assert (flat.low, flat.high) == (0.0, math.inf)
    # n log n and linear are not told apart over one decade, but by counts without noise.
    near = growth(points(CURVES["nlogn"], ONE_DECADE, noise=0.02))
    assert near.low <= LINEAR < NLOGN <= near.high
    for name, place in (("linear", LINEAR), ("nlogn", NLOGN)):
        found = fitted_growth(points(CURVES[name], ONE_DECADE), 0.95, floor=0.005, flat=0.05, bend=EXACT_BEND)
        assert (found.low, found.high) == (place, place)


def test_a_size_is_named_that_would_tell_and_does() -> None:
    known = points(CURVES["linear"], ONE_DECADE, noise=0.005)
    seen = growth(known)
    assert seen.high > LINEAR

    def decided(found: FittedGrowth) -> bool:
        return found.high <= LINEAR or found.low > LINEAR

    size = deciding_size(known, seen, decided, confidence=0.95, **HOW)
    assert size > 10_000
    assert decided(growth([*known, GrowthPoint(size, size, 0.005 * size)]))
    # None is named where none would tell.
    assert deciding_size(known, seen, lambda _: False, confidence=0.95, **HOW) == 0


@pytest.mark.parametrize("values", [[0.0] * 4, [0.0, 1.0, 2.0, 3.0], [5.0, 0.0, 0.0, 0.0], [4.0, 3.0, 2.0, 1.0]])
def test_zeros_and_falling_values_are_no_accident(values: list[float]) -> None:
    found = growth([GrowthPoint(size, value, 0.0) for size, value in zip(DECADES, values, strict=True)])
    falls = values[0] >= values[-1]
    assert (found.high == 0) == falls


@given(
    st.floats(0.2, 3.2),
    st.floats(0.0, 3.0),
    st.lists(st.floats(1.0, 1e6), min_size=3, max_size=8, unique_by=lambda n: round(math.log(n), 1)),
    st.floats(1e-9, 1e9),
)
def test_the_exponent_of_a_clean_power(power: float, start: float, sizes: list[float], unit: float) -> None:
    top = max(sizes) ** power
    found = growth([GrowthPoint(n, unit * (start + n**power / top), 0.0) for n in sizes])
    # A flat curve has the plain slope, including the start-up cost.
    assert found.high == 0 or found.exponent.low - 1e-6 <= power <= found.exponent.high + 1e-6
    assert (found.high == 0) == (found.rise.high <= 0.05 and max(sizes) >= 10 * min(sizes))
    assert found.low <= found.high
    assert found.exponent.low <= found.exponent.estimate <= found.exponent.high


@given(st.floats(0.3, 3.0), st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_the_unit_of_sizes_and_values_makes_no_difference_to_the_exponent(power: float, seed: int, unit: float) -> None:
    known = points(lambda n: n**power, noise=0.01, seed=seed)
    scaled = [GrowthPoint(point.size, unit * point.value, unit * point.error) for point in known]
    one, other = growth(known), growth(scaled)
    assert one.exponent.estimate == pytest.approx(other.exponent.estimate, abs=1e-4)
    assert (one.low, one.high) == (other.low, other.high)


@pytest.mark.parametrize("seed", range(8))
def test_the_exponent_is_that_of_scipys_weighted_least_squares(seed: int) -> None:
    known = points(lambda n: 3 + n**1.4, noise=0.03, seed=seed)
    sizes = np.array([point.size for point in known])
    values = np.array([point.value for point in known])
    errors = np.hypot([point.error for point in known], 0.02 * values)

    def squares(p: float) -> float:
        design = np.stack([np.ones_like(sizes), (sizes**p - 1) / p], axis=1) / errors[:, None]
        left = np.linalg.lstsq(design, values / errors, rcond=None)[0]
        return float(np.sum((values / errors - design @ left) ** 2))

    best = minimize_scalar(squares, bounds=(0.8, 2.5), method="bounded", options={"xatol": 1e-9})
    assert growth(known).exponent.estimate == pytest.approx(best.x, abs=1e-4)


def test_the_slope_of_what_is_flat_is_that_of_numpys_fit() -> None:
    known = points(CURVES["constant"], noise=0.005, seed=3)
    values = np.array([point.value for point in known])
    errors = np.hypot([point.error for point in known], 0.02 * values) / values

    logs = np.log([point.size for point in known])
    best, spread = np.polyfit(logs, np.log(values), 1, w=1 / errors, cov="unscaled")
    found = growth(known).exponent
    assert found.estimate == pytest.approx(best[0], abs=1e-6)
    assert found.high - found.estimate == pytest.approx(1.959964 * math.sqrt(spread[0, 0]), rel=1e-4)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(200):
        coin = random.Random(seed)
        # Errors of the claimed size: that of the sample and the floor combined.
        known = [GrowthPoint(n, n * (1 + coin.gauss(0, math.hypot(0.02, 0.02))), 0.02 * n) for n in DECADES]
        found = growth(known).exponent
        held += found.low <= 1 <= found.high
    assert held >= 180


@given(st.floats(-3, 7), st.floats(-3, 7), st.floats(1.001, 1.6))
def test_classes_rise_with_the_exponent(one: float, other: float, nlogn: float) -> None:
    low, high = sorted((one, other))
    for bend in (BEND, EXACT_BEND):
        for least in (True, False):
            assert class_of(low, nlogn, bend, least=least) <= class_of(high, nlogn, bend, least=least)
        assert class_of(low, nlogn, bend, least=True) <= class_of(low, nlogn, bend)


def test_each_class_has_the_exponent_of_its_name() -> None:
    own = {"log": 0.0, "linear": 1.0, "nlogn": 1.12, "quadratic": 2.0, "cubic": 3.0}
    assert {name: class_of(p, 1.12, BEND) for name, p in own.items()} == {
        name: float(GROWTH_CLASSES.index(name)) for name in own
    }
    assert class_of(math.inf, 1.12, BEND) > GROWTH_CLASSES.index("cubic")
    assert class_of(-math.inf, 1.12, BEND, least=True) == GROWTH_CLASSES.index("log")
