"""The level of a series at each of its points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.stats.paired_test import levels

SERIES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([], []),
        ([3], [3]),
        ([3, 1], [3, 1]),
        # One neighbour on each side; the ends have only one.
        ([1, 1, 9, 1], [1, 1, 1, 5]),
        # Two neighbours on each side: two outliers in a row do not change the level, three do.
        ([5, 5, 5, 1, 1, 5, 5, 5], [5, 5, 5, 5, 5, 5, 5, 5]),
        ([5, 5, 5, 1, 1, 1, 5, 5, 5], [5, 5, 5, 1, 1, 1, 5, 5, 5]),
        # A step keeps its place.
        ([1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 2, 2, 2, 2]),
    ],
)
def test_of_known_series(values: list[float], found: list[float]) -> None:
    assert levels(values) == found


@given(SERIES, st.floats(0.5, 2))
def test_levels_lie_among_the_values_and_go_with_their_unit(values: list[float], factor: float) -> None:
    found = levels(values)
    assert len(found) == len(values)
    assert all(min(values) <= level <= max(values) for level in found)
    assert levels([value * factor for value in values]) == pytest.approx([level * factor for level in found])
