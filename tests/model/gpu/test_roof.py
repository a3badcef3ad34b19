"""The roofline model, a kernel under a GPU's roof, latency by ncu's rule, and one kernel on several GPUs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.model.gpu.devices import OnDevice, SpeedOfLight, bound_without_roof, device, place, rows
from perfflow.model.roofline import Roof

ROOF = Roof(bandwidth=100e9, flops=1e12)
positive = st.floats(1e-6, 1e15)


def test_a_kernel_left_of_the_ridge_is_held_by_memory() -> None:
    placed = place(ROOF, flops=2e9, size=12e9, seconds=0.2)
    assert placed.bound == "memory"
    assert placed.share == pytest.approx(0.6)
    assert placed.flops == pytest.approx(placed.share * placed.attainable)
    assert placed.headroom == pytest.approx(1 / 0.6)
    assert placed.because == "0.167 FLOP/B, where the ridge is at 10"


@pytest.mark.parametrize(
    ("flops", "size", "seconds", "bound", "share", "intensity"),
    [
        pytest.param(1e12, 1e9, 2, "compute", 0.5, 1000, id="right of the ridge"),
        pytest.param(0, 80e9, 1, "memory", 0.8, 0, id="a copy, without any arithmetic"),
        pytest.param(1e11, 0, 1, "compute", 0.1, math.inf, id="registers, without any memory"),
    ],
)
def test_a_place(flops: float, size: float, seconds: float, bound: str, share: float, intensity: float) -> None:
    placed = place(ROOF, flops=flops, size=size, seconds=seconds)
    assert (placed.bound, placed.share, placed.intensity) == (bound, share, intensity)
    assert placed.attainable == (1e12 if bound == "compute" else intensity * 100e9)


# Speed of light in reports of Nsight Compute: SM, memory, waves, and the bound by its rule SOLBottleneck.
@pytest.mark.parametrize(
    ("evidence", "bound"),
    [
        pytest.param(SpeedOfLight(0.4654, 0.9175, 78.77), "memory", id="addConstDouble, High Throughput"),
        pytest.param(SpeedOfLight(0.3673, 0.7261, 26.26), "memory", id="addConstDouble3, High Memory Throughput"),
        pytest.param(SpeedOfLight(0.2359, 0.2168, 1.89), "latency", id="matrix product on sm_100, Latency Issue"),
        pytest.param(SpeedOfLight(0.6, 0.1), "memory", id="at 60% it is no latency"),
        pytest.param(SpeedOfLight(0.599, 0.599), "latency", id="both just under 60%"),
    ],
)
def test_latency_is_told_as_nsight_computes_rule_tells_it(evidence: SpeedOfLight, bound: str) -> None:
    placed = place(ROOF, flops=1e9, size=8e9, seconds=1, evidence=evidence)
    assert placed.bound == bound
    assert placed.share == pytest.approx(0.08)


def test_a_grid_that_does_not_fill_the_gpu_is_said() -> None:
    placed = place(ROOF, flops=1e9, size=8e9, seconds=1, evidence=SpeedOfLight(0.05, 0.1, waves=0.25))
    assert placed.because.endswith("the grid fills 0.25 of a wave")


def test_without_a_roof_the_busier_unit_binds() -> None:
    bounds = {(0.9, 0.8): "compute", (0.3, 0.8): "memory", (0.8, 0.8): "memory", (0.599, 0.1): "latency"}
    assert {busy: bound_without_roof(SpeedOfLight(*busy))[0] for busy in bounds} == bounds


@pytest.mark.parametrize(
    ("flops", "size", "seconds"),
    [(0, 0, 1), (1, 1, 0), (-1, 1, 1), (1, -1, 1), (1, 1, math.nan), (math.inf, 1, 1), (1, 1, math.inf)],
)
def test_numbers_that_cannot_be_are_refused(flops: float, size: float, seconds: float) -> None:
    with pytest.raises(UserError, match="no roofline"):
        place(ROOF, flops=flops, size=size, seconds=seconds)


@given(positive, positive, positive)
def test_the_share_is_what_is_attained_of_the_attainable(flops: float, size: float, seconds: float) -> None:
    placed = place(ROOF, flops=flops, size=size, seconds=seconds)
    assert placed.share == pytest.approx(placed.flops / placed.attainable)
    assert placed.attainable <= ROOF.flops


def test_a_slower_board_that_is_used_as_well_is_no_worse() -> None:
    boards = {"Tesla T4": 16e9 / 256e9, "NVIDIA H100 80GB HBM3": 16e9 / 2346.4e9}
    measured = []
    for name, seconds in boards.items():
        roof = device(name).roof("f32")
        assert roof is not None
        measured.append(OnDevice("saxpy", name, seconds, place(roof, flops=2.7e9, size=16e9, seconds=seconds).share))
    first, second = rows(measured)
    assert (first.device, second.device) == ("Tesla T4", "NVIDIA H100 80GB HBM3")
    assert first.share == pytest.approx(0.8, abs=0.001)
    assert second.share == pytest.approx(0.7, abs=0.001)
    assert (first.of_best, second.slower) == (1.0, 1.0)
    assert second.of_best == pytest.approx(0.875, abs=0.001)
    assert first.slower == pytest.approx(9.17, abs=0.01)


def test_kernels_keep_their_order_and_devices_without_a_roof_stand_last() -> None:
    found = rows(
        [OnDevice("b", "x", 2.0), OnDevice("a", "x", 1.0, 0.1), OnDevice("b", "y", 4.0, 0.5), OnDevice("b", "z", 1.0)]
    )
    assert [(row.kernel, row.device) for row in found] == [("b", "y"), ("b", "z"), ("b", "x"), ("a", "x")]
    assert [row.of_best for row in found] == [1.0, None, None, 1.0]
    # A share of nothing has no best.
    found = rows([OnDevice("a", "y", 0.5), OnDevice("a", "x", 1.0, 0.0)])
    assert [(row.device, row.of_best) for row in found] == [("x", None), ("y", None)]
    assert rows([]) == ()


# ---- the roofline model: the ridge, and the attainable performance on either side ----

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
