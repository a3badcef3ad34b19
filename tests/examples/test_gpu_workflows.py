"""The GPU workflows of this repository: valid, planned and run where there is no GPU, which they say."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from perfflow.execute import gpus
from tests.cli.shell import ROOT, perfflow
from tests.examples.trees import committed, copied

NAMES = ["gpu-kernel", "gpu-occupancy", "gpu-regression", "gpu-warp-efficiency"]
WITHOUT = "needs 1 GPU, none found: "

pytestmark = pytest.mark.skipif(gpus.visible(os.environ["PATH"]).count > 0, reason="there is a GPU here")


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_valid_and_tells_what_would_run_and_what_is_missing(name: str) -> None:
    done = perfflow("plan", f"workflows/{name}.yaml", "--format", "json", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    steps = {step["id"]: step for step in json.loads(done.stdout)["steps"]}
    needing = {key for key, step in steps.items() if any(text.startswith(WITHOUT) for text in step["lacks"])}
    builds = {key for key in steps if key.startswith(("program", "twin"))}
    assert set(steps) - needing == builds
    assert {steps[key]["outcome"] for key in needing} <= {"skipped", "left out"}
    # What can be built, is, unless nvcc is missing: nothing stops the run as a whole.
    assert {steps[key]["outcome"] for key in builds} <= {"runs", "skipped"}
    shown = perfflow("plan", f"workflows/{name}.yaml", cwd=ROOT).stdout
    assert WITHOUT in shown[shown.index("\non this machine:") :]


def test_a_run_names_what_it_skips_and_checks_what_it_can(tmp_path: Path) -> None:
    out = tmp_path / "out"
    # Nothing is built in the user's tree.
    paths = ("examples/gpu-kernels", "workflows/gpu-kernel.yaml", "workflows/patches/gpu-kernel")
    copy = committed(copied(tmp_path / "copy", *paths))
    words = ("run", "workflows/gpu-kernel.yaml", "--out", str(out), "--progress", "off", "--color", "never")
    done = perfflow(*words, cwd=copy, env={"PERFFLOW_LOCK_FILE": str(tmp_path / "lock")})
    assert done.returncode == 3, done.stdout + done.stderr
    result = json.loads((out / "result.json").read_text())
    states = {step["id"]: step for step in result["steps"]}
    ran = {key for key, step in states.items() if step["status"] != "skipped"}
    assert ran - {"program"} == {"twin", "twin-answers"}
    assert all(WITHOUT in states[key]["reason"] for key in set(states) - ran - {"program"})
    assert {check["id"]: check["status"] for check in result["verification"]}["twin-answers"] == "passed"
    assert {target["status"] for target in result["targets"]} == {"not measured"}
    # A profile that did not run leaves nothing behind that could be taken for one.
    assert (result["profiles"], result["hotspots"], result["benchmarks"]) == ([], [], [])
    assert "  skipped: kernels, sum, saxpy, draft, device, " in done.stdout
    assert done.stdout.startswith("✗ ERROR")
    assert re.search(r"speedup +≥1.5x .*step kernels: .*needs 1 GPU", done.stdout)
