"""``torch-profiler`` and its examples with a real PyTorch (some gigabytes), only if PERFFLOW_TORCH is set."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfflow.tools.torch import torch_profiler
from tests.cli.shell import perfflow
from tests.tools.harness import PROGRAMS, parsed_of, run, values_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "torch-training"
TORCH = os.environ.get("PERFFLOW_TORCH", "")
"""The interpreter with PyTorch; 1 means python3."""
PYTHON = "python3" if TORCH == "1" else TORCH

needs_torch = pytest.mark.skipif(
    not TORCH, reason="set PERFFLOW_TORCH to an interpreter with PyTorch, or to 1 for python3; captured traces stand in"
)


def _said(*words: str) -> Any:
    done = subprocess.run([PYTHON, *words], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


@needs_torch
def test_self_times_are_those_of_pytorch_itself(tmp_path: Path) -> None:
    program = (PROGRAMS / "torch_loop.py").read_text() + (
        "import json\n"
        "rows = {row.key: row.self_cpu_time_total for row in profiler.key_averages()}\n"
        "sys.stdout.write(json.dumps(rows))\n"
    )
    # Without a schedule, since key_averages() loses the events of its earlier cycles.
    theirs = _said("-c", program, str(tmp_path / "trace.json"), "--no-schedule")
    ours: dict[str, float] = {}
    for (name, _), row in torch_profiler.read_trace(tmp_path / "trace.json").rows.items():
        ours[name] = ours.get(name, 0.0) + row.own
    assert {"aten::mm", "forward"} < theirs.keys()
    # Both round start and end of each event to 1 us or less.
    assert all(ours[name] == pytest.approx(value, rel=0.01, abs=5.0) for name, value in theirs.items() if value)


@needs_torch
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_training_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--records", "64", "--epochs", "1", "--profile-steps", "2", "--show", "loss")
    train = [PYTHON, str(EXAMPLE / "train.py"), "--batch", "16", "--profile", name, *words, "--profile-steps", "4"]
    parsed = parsed_of(run("torch-profiler", tmp_path / "out", *train, trace=name))
    values = values_of(parsed)
    assert values.keys() == {"dataloader_wait", "compile_time", "tensor_memory_peak"}
    assert 0 < values["dataloader_wait"] < 1
    spots = {spot.location for spot in parsed.hotspots}
    assert {"aten::addmm", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"} < spots
    assert parsed.warnings == ()


@needs_torch
def test_two_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--records", "128", "--trace", "rank{rank}.json.gz", "--trace-steps", "3")
    ran = run("torch-profiler", tmp_path / "out", PYTHON, str(EXAMPLE / "ddp.py"), *words, trace="rank*.json.gz")
    parsed = parsed_of(ran)
    assert {"allreduce_fraction", "rank_skew", "dataloader_wait"} <= values_of(parsed).keys()
    assert len([profile for profile in parsed.profiles if profile.kind == "chrome-trace"]) == 2


@needs_torch
def test_settings_that_only_load_otherwise_change_no_loss() -> None:
    few = ("--records", "64", "--batch", "16", "--epochs", "2", "--show", "loss")
    plain = _said(str(EXAMPLE / "train.py"), *few)
    workers = ("--num-workers", "2", "--persistent-workers", "--prefetch-factor", "4", "--pin-memory")
    assert _said(str(EXAMPLE / "train.py"), *few, *workers) == plain


@needs_torch
def test_the_program_tells_its_loader_apart() -> None:
    few = ("--records", "64", "--batch", "16", "--epochs", "2")
    whole = _said(str(EXAMPLE / "train.py"), *few)
    assert len(whole["steps"]) == 2 * 4 - 1
    assert 0 < whole["dataloader_fraction"] <= 1
    assert whole["rate"] == pytest.approx(64 / whole["epoch"])
    assert _said(str(EXAMPLE / "train.py"), *few, "--loader-only").keys() == {"loader", "rate"}


@pytest.mark.parametrize("name", ["torch-training", "torch-ddp"])
def test_without_pytorch_a_workflow_says_so(name: str, tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {os.path.realpath("/usr/bin/env")} python3 -I -S "$@"\n')
    bare.chmod(0o755)
    done = perfflow(
        "run",
        str(ROOT / "workflows" / f"{name}.yaml"),
        "--set",
        f"python={bare}",
        "--out",
        str(tmp_path / "out"),
        cwd=ROOT,
    )
    assert done.returncode == 3, done.stderr
    assert "skipped: torch: PyTorch cannot be imported by" in done.stdout
    assert "pip install torch" in done.stdout
