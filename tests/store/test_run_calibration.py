"""Calibrations on disk: per machine, replaced by later ones, never used for another machine or other parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Expected
from perfflow.store import calibrations
from perfflow.store.calibrations import CalibrationEntry, CalibrationFinding


def entry(
    workflow: str = "flow", step: str = "a", benchmark: str = "a", noise: float | None = 0.01, **keys: Any
) -> CalibrationEntry:
    finding = CalibrationFinding(
        step, benchmark, "time", exact=noise is None, noise=noise, smallest_change=0.03, within=2.0
    )
    params = keys.get("params", {"size": 10})
    return CalibrationEntry(workflow, params, keys.get("when", "2026-01-01T00:00:00Z"), 1, "0.1.0", "quiet", finding)


def names(root: Path) -> list[tuple[str, str]]:
    return [(item.workflow, item.finding.benchmark) for item in calibrations.load(root, "m")]


def test_what_is_stored_reads_back(tmp_path: Path) -> None:
    entries = [entry(), entry(benchmark="b", noise=None)]
    file = calibrations.store(tmp_path, "m", entries, whole=True)
    assert file == calibrations.path_of(tmp_path, "m")
    assert calibrations.load(tmp_path, "m") == entries
    assert [item.name for item in file.parent.iterdir()] == [file.name]


def test_a_machine_never_calibrated_has_nothing_nor_what_was_measured_on_another(tmp_path: Path) -> None:
    file = calibrations.store(tmp_path, "m", [entry()], whole=True)
    assert calibrations.load(tmp_path, "other") == []
    assert list(calibrations.expected_noise(tmp_path, "other", "flow", {"size": 10})) == []
    file.rename(calibrations.path_of(tmp_path, "other"))
    assert calibrations.load(tmp_path, "other") == []


def test_a_whole_calibration_replaces_its_workflow_and_a_partial_one_its_steps(tmp_path: Path) -> None:
    calibrations.store(tmp_path, "m", [entry(), entry(step="b", benchmark="b"), entry("second")], whole=True)
    calibrations.store(tmp_path, "m", [entry(benchmark="renamed")], whole=False)
    assert names(tmp_path) == [("flow", "b"), ("second", "a"), ("flow", "renamed")]
    calibrations.store(tmp_path, "m", [entry(step="c", benchmark="c")], whole=True)
    assert names(tmp_path) == [("second", "a"), ("flow", "c")]


def test_a_run_expects_its_own_workflow_with_its_own_parameters(tmp_path: Path) -> None:
    calibrations.store(tmp_path, "m", [entry(), entry(benchmark="exact", noise=None)], whole=True)
    known = Expected(noise=0.01, smallest_change=0.03, within=2.0, calibrated="2026-01-01T00:00:00Z")
    assert list(calibrations.expected_noise(tmp_path, "m", "flow", {"size": 10})) == [("a", "time", known)]
    assert list(calibrations.expected_noise(tmp_path, "m", "flow", {"size": 11})) == []
    assert list(calibrations.expected_noise(tmp_path, "m", "second", {"size": 10})) == []


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_a_clear_error(tmp_path: Path, share: float) -> None:
    file = calibrations.store(tmp_path, "m", [entry()], whole=True)
    file.write_text(file.read_text()[: int(file.stat().st_size * share)])
    with pytest.raises(UserError, match="perfflow calibrate"):
        calibrations.load(tmp_path, "m")


@pytest.mark.parametrize("noise", [float("nan"), float("inf"), -1.0, "much"])
def test_figures_that_cannot_be_are_a_clear_error(tmp_path: Path, noise: object) -> None:
    file = calibrations.store(tmp_path, "m", [entry()], whole=True)
    file.write_text(file.read_text().replace('"noise": 0.01', f'"noise": {json.dumps(noise)}'))
    with pytest.raises(UserError, match="not a calibration"):
        calibrations.load(tmp_path, "m")
