"""The three costly parts, each alone and on little input."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline import calibration, pairing, readings, smoothing
from pytest_benchmark.fixture import BenchmarkFixture

ROWS = 400
Input = tuple[list[readings.Reading], list[readings.Reading]]


@pytest.fixture(scope="module")
def read() -> Input:
    """Levels and pressures."""
    return readings.parse(readings.generate(ROWS))


def test_pair(benchmark: BenchmarkFixture, read: Input) -> None:
    """Each level with its nearest pressure."""
    assert len(benchmark(pairing.pair, *read)) == ROWS // 2


def test_calibrate(benchmark: BenchmarkFixture, read: Input) -> None:
    """Gain, offset and pressure of each level."""
    pairs = list(zip(*read, strict=True))
    assert len(benchmark(calibration.calibrate, pairs)) == ROWS // 2


def test_smooth(benchmark: BenchmarkFixture) -> None:
    """A weighted mean for each level."""
    assert len(benchmark(smoothing.smooth, np.linspace(2.0, 4.0, ROWS // 2), 40)) == ROWS // 2
