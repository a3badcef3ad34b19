"""Steps that need a GPU on a machine without one are listed, and never count as success."""

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
CHEAP = "{id: cheap, uses: command, with: {command: /bin/true}, runs: 3}"


def _run(folder: Path, stages: str, targets: str = "") -> tuple[int, str, dict[str, Any]]:
    (folder / "flow.yaml").write_text(f"perfflow: 1\n{targets}stages:\n{stages}")
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=folder, path=PATH, measured=True)
    assert not (folder / "began").exists()
    return done.returncode, done.stdout, json.loads((folder / "out/result.json").read_text())


@pytest.fixture(autouse=True)
def _no_gpu() -> None:
    from perfflow.execute import gpus

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


def test_a_plan_ends_with_what_becomes_of_it_here(tmp_path: Path) -> None:
    other = STEP.replace("id: kernels", "id: other").replace("list: ''", "list: ''")
    tidy = "{id: tidy, if: params.locked, run: 'true', requires: {gpu: 1}}"
    gone = "{id: gone, uses: cuda-bench, with: {command: x, list: ''}, requires: {tool: no-such-tool}}"
    stages = f"  baseline: [{CHEAP}, {STEP}, {other}, {gone}, {tidy}]\n"
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nparams: {{locked: false}}\nstages:\n{stages}")
    done = perfflow("plan", "flow.yaml", cwd=tmp_path, path=PATH)
    shown = done.stdout[done.stdout.index("on this machine:") :].splitlines()
    assert shown[:4] == [
        "on this machine:",
        "  runs: cheap (1 of 5)",
        "  left out by its `if`: tidy (1 of 5)",
        "  skipped: kernels, other, gone (3 of 5)",
    ]
    assert shown[4].startswith(f"  reason for 2 steps: {WHY}")
    assert shown[5:] == ["  reason for 1 step: no-such-tool is not on PATH"]


def test_a_plan_says_that_a_missing_tool_stops_all_of_it(tmp_path: Path) -> None:
    stages = f"  baseline: [{CHEAP}, {{id: slow, uses: hyperfine, with: {{command: /bin/true}}}}]\n"
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nstages:\n{stages}")
    steps = json.loads(perfflow("plan", "flow.yaml", "--format", "json", cwd=tmp_path, path="/nowhere").stdout)["steps"]
    assert [step["outcome"] for step in steps] == ["runs", "nothing is run"]
    assert steps[1]["lacks"] == [steps[1]["missing"]]


def test_a_plan_without_gaps_says_no_more(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nstages:\n  baseline: [{CHEAP}]\n")
    assert "on this machine" not in perfflow("plan", "flow.yaml", cwd=tmp_path, path=PATH).stdout
