"""The unpaired interval compared with scipy, and its properties."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perfflow.stats.paired_test import SESSIONS, unpaired_interval

properties = settings(deadline=None)
SIDE = st.lists(st.floats(min_value=1e-9, max_value=1e9), min_size=1, max_size=30)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "m"), [(2, 2), (2, 9), (10, 10), (7, 60), (300, 200)])
def test_it_is_welchs_with_three_times_the_half_width(seed: int, n: int, m: int) -> None:
    draw = random.Random(f"{seed} {n} {m}")
    a = [draw.lognormvariate(-3, draw.choice((0.01, 0.3))) for _ in range(n)]
    b = [draw.lognormvariate(-3.1, draw.choice((0.02, 0.2))) for _ in range(m)]
    mine = unpaired_interval(a, b, 0.99)
    theirs = stats.ttest_ind(np.log(b), np.log(a), equal_var=False).confidence_interval(0.99)
    middle, half = (theirs.low + theirs.high) / 2, (theirs.high - theirs.low) / 2
    assert mine.estimate == pytest.approx(middle, abs=1e-12)
    assert mine.low == pytest.approx(middle - SESSIONS * half, rel=1e-7)
    assert mine.high == pytest.approx(middle + SESSIONS * half, rel=1e-7)


@properties
@given(SIDE, SIDE)
def test_swapping_the_sides_mirrors_it(a: list[float], b: list[float]) -> None:
    there, back = unpaired_interval(a, b, 0.99), unpaired_interval(b, a, 0.99)
    assert there.estimate == pytest.approx(-back.estimate, abs=1e-12)
    assert there.low == pytest.approx(-back.high, rel=1e-9, abs=1e-12)
    assert there.high == pytest.approx(-back.low, rel=1e-9, abs=1e-12)


@properties
@given(SIDE, SIDE, st.floats(min_value=0.01, max_value=100))
def test_a_factor_on_one_side_moves_it(a: list[float], b: list[float], factor: float) -> None:
    plain, moved = unpaired_interval(a, b, 0.99), unpaired_interval(a, [value * factor for value in b], 0.99)
    assert moved.estimate == pytest.approx(plain.estimate + math.log(factor), abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [([1.0], [2.0]), ([1.0], [2.0, 2.1, 2.2]), ([1.0, 1.1], [2.0])])
def test_with_one_value_on_a_side_nothing_is_known(a: list[float], b: list[float]) -> None:
    found = unpaired_interval(a, b, 0.99)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_without_any_spread_as_many_values_are_needed_as_a_permutation_needs() -> None:
    """With 4 + 4 equal values, 2 of 70 assignments to the sides are as extreme; with 5 + 5, 2 of 252."""
    few = unpaired_interval([0.1] * 4, [0.3] * 4, 0.99)
    assert (few.low, few.high) == (-math.inf, math.inf)
    enough = unpaired_interval([0.1] * 5, [0.3] * 5, 0.99)
    assert enough.low == enough.estimate == enough.high == pytest.approx(math.log(3))
