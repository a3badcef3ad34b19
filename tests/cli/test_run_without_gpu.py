"""Steps that need a GPU, where there is none: named, and never taken for a success."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow

PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"
WHY = "needs 1 GPU, none found: "
STEP = "{id: kernels, uses: cuda-bench, with: {command: touch began, list: ''}, requires: {gpu: 1}}"
CHEAP = "{id: cheap, uses: command, with: {command: /bin/true}, runs: 3, allow: {no-memory-metric: it does nothing}}"


def _run(folder: Path, stages: str, targets: str = "") -> tuple[int, str, dict[str, Any]]:
    (folder / "flow.yaml").write_text(f"perfflow: 1\n{targets}stages:\n{stages}")
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=folder, path=PATH, measured=True)
    assert not (folder / "began").exists()
    return done.returncode, done.stdout, json.loads((folder / "out/result.json").read_text())


@pytest.fixture(autouse=True)
def _no_gpu() -> None:
    from perfflow.run import gpus

    if gpus.visible(PATH).count:
        pytest.skip("there is a GPU here")


def test_nothing_else_was_measured(tmp_path: Path) -> None:
    status, said, result = _run(tmp_path, f"  baseline: [{STEP}]\n")
    assert status == 3
    assert f"skipped: kernels: {WHY}nvidia-smi" in said
    assert result["steps"][0]["status"] == "skipped"


def test_what_else_was_measured_stands(tmp_path: Path) -> None:
    status, said, _ = _run(tmp_path, f"  baseline: [{CHEAP}, {STEP}]\n")
    assert status == 0, said
    assert f"skipped: kernels: {WHY}" in said


def test_a_target_that_was_skipped_is_not_measured(tmp_path: Path) -> None:
    targets = "targets: {transpose/tiled: {bandwidth: ≥1 GB/s}}\n"
    status, said, result = _run(tmp_path, f"  baseline: [{CHEAP}, {STEP}]\n", targets)
    assert status == 3, said
    assert [target["status"] for target in result["targets"]] == ["not measured"]


def test_a_plan_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nstages:\n  baseline: [{STEP}]\n")
    done = perfflow("plan", "flow.yaml", cwd=tmp_path, path=PATH)
    assert done.returncode == 0, done.stderr
    assert f"missing: {WHY}" in done.stdout
