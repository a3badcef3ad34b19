"""Benchmarks under the roof, and the notes if the roof is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from perfflow.model.result import Result, RooflinePoint
from tests.verdict.comparisons import known
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading

ROOF = {"bandwidth": 10e9, "flops f32": 100e9}


def values(value: float) -> list[float]:
    return [value * (1 + 0.001 * number) for number in range(14)]


def kernel(
    peaks: Mapping[str, float],
    traffic: Mapping[str, float] | None = None,
    precision: str = "f32",
    *,
    both: bool = False,
) -> Result:
    """Return a kernel of 0.5 FLOP/B with 2e9 FLOP/s, and another of the same suite that reports only arithmetic.

    ``both``: the candidate does twice as much in the same time.
    """
    events = []
    for metric, value in {"flops": 2e9, **(traffic or {"throughput": 4e9})}.items():
        events += pairs("b", values(value), values(2 * value) if both else None, metric)
    alone = {"event": "sample", "step": "b", "pair": 0, "baseline": [reading("flops", 3e9, benchmark="alone")]}
    steps = [planned("b", precision=precision)]
    return judged(*events, alone, ended("b"), wanted=criteria({}, peaks=peaks), steps=steps)


def point(result: Result) -> RooflinePoint:
    (found,) = result.roofline
    return found


@pytest.mark.parametrize("traffic", ["throughput", "bandwidth"])
def test_a_kernel_is_held_against_what_its_intensity_allows(traffic: str) -> None:
    found = point(kernel(ROOF, {traffic: 4e9}))
    assert (found.benchmark, found.tree, found.precision, found.bound) == ("b", "baseline", "f32", "memory")
    assert (found.intensity, found.attainable) == pytest.approx((0.5, 5e9))
    assert found.note == ""
    assert found.share == pytest.approx(0.4, rel=0.02)
    assert known(found.attained.low) < 2.02e9


def test_what_the_memory_shows_comes_before_what_the_program_says() -> None:
    found = point(kernel(ROOF, {"throughput": 4e9, "bandwidth": 8e9}))
    assert found.intensity == pytest.approx(0.25)


HIGHEST = "the precision is not known, so the highest peak is the roof: f32"
ABOVE = "above the roof: its data stays in a cache, or the measured peak is too low"


@pytest.mark.parametrize(
    ("peaks", "precision", "bound", "attainable", "note"),
    [
        # Beyond the ridge it is arithmetic that binds.
        ({"bandwidth": 10e9, "flops f32": 4e9}, "f32", "compute", 4e9, ""),
        ({"bandwidth": 10e9, "flops f64": 1e9, "flops f32": 100e9}, "", "memory", 5e9, HIGHEST),
        ({"bandwidth": 1e9, "flops f32": 100e9}, "f32", "memory", 0.5e9, ABOVE),
        ({}, "f32", None, None, "no peak is known for bandwidth"),
        ({"bandwidth": 10e9}, "f32", None, None, "no peak is known for flops f32"),
        ({"bandwidth": 10e9, "flops f64": 1e9}, "f32", None, None, "no peak is known for flops f32"),
        ({"bandwidth": 10e9}, "", None, None, "no peak is known for flops"),
    ],
)
def test_the_roof(peaks: Any, precision: str, bound: str | None, attainable: float | None, note: str) -> None:
    found = point(kernel(peaks, precision=precision))
    assert (found.bound, found.note) == (bound, note)
    assert found.attainable == pytest.approx(attainable)
    assert ((found.share or 0) > 1) is (note == ABOVE)
    assert (found.share is None) is (bound is None)


def test_both_sides_have_a_place() -> None:
    sides = [(item.tree, round(item.share or 0, 1)) for item in kernel(ROOF, both=True).roofline]
    assert sides == [("baseline", 0.4), ("candidate", 0.8)]
