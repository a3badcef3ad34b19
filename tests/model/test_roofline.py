"""The roofline model: the ridge, and the attainable performance on either side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.roofline import Roof

amounts = st.floats(1e-3, 1e15)
roofs = st.builds(Roof, amounts, amounts)


def test_an_example_of_the_paper() -> None:
    """Opteron X2 of the paper's figure 1a: 17.6 GFLOP/s and 15 GB/s by specification, the ridge a little above 1."""
    roof = Roof(bandwidth=15e9, flops=17.6e9)
    assert roof.ridge == pytest.approx(1.17, abs=0.01)
    assert (roof.bound(0.25), roof.attainable(0.25)) == ("memory", 3.75e9)
    assert (roof.bound(1.64), roof.attainable(1.64)) == ("compute", 17.6e9)


@given(roofs, amounts, amounts)
def test_more_intensity_never_attains_less(roof: Roof, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert roof.attainable(low) <= roof.attainable(high) <= roof.flops


@given(roofs, amounts)
def test_the_bound_is_the_limit_that_is_met(roof: Roof, intensity: float) -> None:
    limit = {"memory": intensity * roof.bandwidth, "compute": roof.flops}[roof.bound(intensity)]
    assert roof.attainable(intensity) == pytest.approx(limit)
