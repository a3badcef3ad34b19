"""What each part of the pipeline promises, on input small enough to say what is right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pipeline import calibration, pairing, readings, smoothing, summary
from pipeline.readings import Reading

HERE = Path(__file__).parents[1]


def at(*times: int) -> list[Reading]:
    return [Reading(time, f"g{number:02}", 1000.0) for number, time in enumerate(times)]


def times(levels: list[Reading], pressures: list[Reading]) -> list[int]:
    return [pressure.time for _, pressure in pairing.pair(levels, pressures)]


def test_lines_are_the_same_every_time() -> None:
    lines = list(readings.generate(4))
    assert lines == list(readings.generate(4))
    assert lines[0] == "2023-11-14T22:13:43.757+00:00 g69 level 3.7381"
    assert [line.split()[2] for line in lines] == ["level", "pressure"] * 2


def test_a_line_is_taken_apart() -> None:
    levels, pressures = readings.parse(["1970-01-01T00:00:01.500+00:00 g07 level 3.25"])
    assert levels == [Reading(1500, "g07", 3.25)]
    assert not pressures


def test_a_level_gets_the_pressure_that_is_nearest_whatever_their_order() -> None:
    assert times(at(4, 100, 61, 0), at(60, 0, 10)) == [0, 60, 60, 0]


def test_of_two_equally_near_ones_the_earlier_counts() -> None:
    assert times(at(5), at(10, 0)) == [0]
    assert times(at(5), at(0, 10)) == [0]


def test_of_two_at_one_time_the_first_counts() -> None:
    pressures = [Reading(3, "g01", 990.0), Reading(3, "g00", 1010.0), Reading(9, "g02", 1000.0)]
    assert [pair[1].gauge for pair in pairing.pair(at(2, 4), pressures)] == ["g01", "g01"]


def test_without_pressures_nothing_can_be_paired() -> None:
    with pytest.raises(ValueError, match="no pressure"):
        pairing.pair(at(1), [])


def test_gain_and_offset_come_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gauges.csv").write_text("gauge,gain,offset\ng00,2.0,0.5\ng01,1.0,0.0\n")
    monkeypatch.setattr(calibration, "GAUGES", tmp_path / "gauges.csv")
    pressure = Reading(0, "g01", 1013.25)
    found = calibration.calibrate([(Reading(7, "g00", 3.0), pressure), (Reading(8, "g01", 3.0), pressure)])
    assert found == [Reading(7, "g00", 6.5), Reading(8, "g01", 3.0)]
    with pytest.raises(KeyError, match="g77"):
        calibration.calibrate([(Reading(7, "g77", 3.0), pressure)])


def test_a_constant_level_stays_and_a_step_becomes_a_slope() -> None:
    assert smoothing.smooth(np.full(9, 3.5), width=4) == pytest.approx(np.full(9, 3.5))
    slope = smoothing.smooth(np.repeat([0.0, 1.0], 8), width=4)
    assert len(slope) == 16
    assert (np.diff(slope) >= -1e-6).all()
    assert slope[7] + slope[8] == pytest.approx(1.0)


def test_each_level_is_the_mean_of_its_neighbours_by_weight() -> None:
    levels, bell = np.sin(np.arange(50.0)), smoothing.weights(6)
    assert bell.sum() == pytest.approx(1.0)
    assert smoothing.smooth(levels, width=6)[20] == pytest.approx(float((levels[14:27] * bell).sum()))


def test_a_series_is_in_the_order_of_time() -> None:
    gauges, values = summary.series([Reading(2, "g01", 2.0), Reading(1, "g02", 1.0), Reading(1, "g00", 3.0)])
    assert (gauges, values.tolist()) == (["g00", "g02", "g01"], [3.0, 1.0, 2.0])


def test_the_summary_has_each_gauge_once() -> None:
    lines = summary.summarize(readings.generate(600))
    names = [line.split()[0] for line in lines]
    assert names == sorted(set(names))
    assert sum(int(line.split()[1]) for line in lines) == 300
    for line in lines:
        mean, highest = map(float, line.split()[2:])
        assert 2.5 < mean <= highest < 4.5


def test_the_command_line() -> None:
    argv = [sys.executable, "-m", "pipeline", "--rows", "40"]
    done = subprocess.run(argv, cwd=HERE, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == summary.summarize(readings.generate(40))
    refused = subprocess.run([*argv[:-1], "1"], cwd=HERE, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--rows must be at least 2" in refused.stderr
