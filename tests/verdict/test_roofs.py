"""Benchmarks under the roof, and the notes if the roof is not known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perfflow.model.result import Result, RooflinePoint
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading

ROOF = {"bandwidth": 10e9, "flops f32": 100e9}


def values(value: float) -> list[float]:
    return [value * (1 + 0.001 * number) for number in range(14)]


def kernel(peaks: Mapping[str, float], traffic: str = "throughput", precision: str = "f32") -> Result:
    """Return a kernel of 0.5 FLOP/B with 2e9 FLOP/s, and another of the same suite that reports only arithmetic."""
    events = [*pairs("b", values(2e9), None, "flops"), *pairs("b", values(4e9), None, traffic)]
    alone = {"event": "sample", "step": "b", "pair": 0, "baseline": [reading("flops", 3e9, benchmark="alone")]}
    steps = [planned("b", precision=precision)]
    return judged(*events, alone, ended("b"), wanted=criteria({}, peaks=peaks), steps=steps)


def point(result: Result) -> RooflinePoint:
    (found,) = result.roofline
    return found


@pytest.mark.parametrize("traffic", ["throughput", "bandwidth"])
def test_a_kernel_is_held_against_what_its_intensity_allows(traffic: str) -> None:
    found = point(kernel(ROOF, traffic))
    assert (found.benchmark, found.tree, found.precision, found.bound, found.note) == (
        "b",
        "baseline",
        "f32",
        "memory",
        "",
    )
    assert found.intensity == pytest.approx(0.5)
    assert found.attainable == pytest.approx(5e9)
    assert found.share == pytest.approx(0.4, rel=0.02)
    assert found.attained.low is not None
    assert found.attained.low < 2.02e9


def test_what_the_memory_shows_comes_before_what_the_program_says() -> None:
    events = [*pairs("b", values(2e9), None, "flops"), *pairs("b", values(4e9), None, "throughput")]
    events += pairs("b", values(8e9), None, "bandwidth")
    assert point(judged(*events, ended("b"), wanted=criteria({}, peaks=ROOF))).intensity == pytest.approx(0.25)


def test_beyond_the_ridge_it_is_arithmetic_that_binds() -> None:
    found = point(kernel({"bandwidth": 10e9, "flops f32": 4e9}))
    assert (found.bound, found.attainable) == ("compute", 4e9)


@pytest.mark.parametrize(
    ("peaks", "precision", "note"),
    [
        ({}, "f32", "no peak is known for bandwidth"),
        ({"bandwidth": 10e9}, "f32", "no peak is known for flops f32"),
        ({"bandwidth": 10e9, "flops f64": 1e9}, "f32", "no peak is known for flops f32"),
        ({"bandwidth": 10e9}, "", "no peak is known for flops"),
    ],
)
def test_without_a_peak_there_is_no_roof(peaks: dict[str, float], precision: str, note: str) -> None:
    found = point(kernel(peaks, precision=precision))
    assert (found.attainable, found.share, found.bound, found.note) == (None, None, None, note)


def test_without_a_precision_the_roof_is_the_highest_and_it_is_said() -> None:
    peaks = {"bandwidth": 10e9, "flops f64": 1e9, "flops f32": 100e9}
    found = point(kernel(peaks, precision=""))
    assert found.attainable == pytest.approx(5e9)
    assert found.note == "the precision is not known, so the highest peak is the roof: f32"


def test_what_stays_in_a_cache_may_be_above_the_roof() -> None:
    found = point(kernel({"bandwidth": 1e9, "flops f32": 100e9}))
    assert found.share is not None
    assert found.share > 1
    assert found.note == "above the roof: its data stays in a cache, or the measured peak is too low"


def test_both_sides_have_a_place() -> None:
    events = [*pairs("b", values(2e9), values(4e9), "flops"), *pairs("b", values(4e9), values(8e9), "throughput")]
    result = judged(*events, ended("b"), wanted=criteria({}, peaks=ROOF), steps=[planned("b", precision="f32")])
    assert [(item.tree, round(item.share or 0, 1)) for item in result.roofline] == [
        ("baseline", 0.4),
        ("candidate", 0.8),
    ]
