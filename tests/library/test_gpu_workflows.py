"""The GPU workflows of the library, run with stand-ins for nvidia-smi and nvcc; a CPU program is measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow
from tests.library.gpu_stand_ins import StandIns, copy_program, stand_ins
from tests.long import rest_long
from tests.repositories import git

SMALL = ("--set", "file=kernels_cpu.cpp", "--set", "check=--check --n 256", "--progress", "off", "--json")
BENCH = ("--set", "bench=--bench --n 256 --batch 2", "--set", "budget=1s")
BUSY = ("--set", "busy=--bench --n 256 --repeats 200")
SUITE = {"transpose/naive", "transpose/tiled", "sum/chain", "sum/lanes", "saxpy/plain"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    copy_program(folder)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "Kernels")):
        git(folder, *words)
    return folder


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIns:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("PERFFLOW_LABELS", raising=False)
    return stand_ins(tmp_path / "bin")


def _run(*words: str, project: Path, gpu: StandIns, **env: str) -> tuple[int, dict[str, Any]]:
    places = {"PERFFLOW_LOCK_FILE": str(project.parent / "lock"), "XDG_CACHE_HOME": str(project.parent / "cache")}
    done = perfflow(*words, cwd=project, path=gpu.path, env={**places, **env}, measured=True, timeout=900)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def _only(*steps: str) -> list[str]:
    return [word for step in steps for word in ("--only", step)]


def _states(result: dict[str, Any]) -> dict[str, str]:
    return {step["id"]: step["status"] for step in result["steps"]}


def _timed(result: dict[str, Any]) -> set[str]:
    return {row["name"] for row in result["benchmarks"] if row["metric"] == "time"}


def test_gpu_kernel(project: Path, gpu: StandIns) -> None:
    """With a GPU, steps with `requires` run, and slowdowns of the GPU are reported."""
    steps = _only("program", "kernels", "device", "answers")
    status, result = _run("run", "gpu-kernel", *SMALL, *BENCH, *BUSY, *steps, project=project, gpu=gpu)
    assert status == 0, result
    assert {_states(result)[name] for name in ("program", "kernels", "device", "answers")} == {"done"}
    assert _timed(result) == SUITE
    warnings = [text for step in result["steps"] for text in step["warnings"]]
    assert any("the power limit slowed the GPU down" in text for text in warnings)


@pytest.mark.long  # as the workflow of one kernel, which this file runs
def test_a_wrong_kernel_fails_the_run(project: Path, gpu: StandIns) -> None:
    wrong = ("--set", "check=--check --n 256 --plant sum/lanes")
    steps = _only("program", "answers")
    status, result = _run("run", "gpu-kernel", *SMALL, *wrong, *steps, project=project, gpu=gpu)
    assert status == 1
    assert {check["id"]: check["status"] for check in result["verification"]}["answers"] == "failed"


@pytest.mark.long  # as the workflow of one kernel, which this file runs
def test_a_program_that_uses_no_gpu_is_not_called_clean(project: Path, gpu: StandIns) -> None:
    steps = _only("program", "sanitizer[check=memcheck]")
    status, result = _run("run", "gpu-kernel", *SMALL, *steps, project=project, gpu=gpu)
    (ended,) = (check for check in result["verification"] if check["id"] == "sanitizer[check=memcheck]")
    if ended["status"] == "skipped":
        assert "compute-sanitizer is not on PATH" in ended["detail"]
    else:
        assert (ended["status"], status) == ("failed", 1)
        assert "nothing was checked" in ended["detail"]


@pytest.mark.long  # as the workflow of one kernel, which this file runs
def test_gpu_occupancy(project: Path, gpu: StandIns) -> None:
    """The source has no such macro, so all builds are equal. Each is built, measured and checked separately."""
    values = ("--set", "macro=BLOCK", "--set", "values=64,128")
    steps = _only("program", "kernels", "answers")
    status, result = _run("run", "gpu-occupancy", *SMALL, *BENCH, *values, *steps, project=project, gpu=gpu)
    assert status == 0, result
    assert _timed(result) == {f"{name}/{value}" for name in SUITE for value in (64, 128)}
    builds = [step["argv"] for step in result["steps"] if step["id"].startswith("program[")]
    assert [[word for word in argv if word.startswith("-D")] for argv in builds] == [["-DBLOCK=64"], ["-DBLOCK=128"]]


@pytest.mark.long  # as the workflow of one kernel, which this file runs
def test_gpu_warp_efficiency(project: Path, gpu: StandIns) -> None:
    steps = _only("program", "kernels", "answers")
    status, result = _run("run", "gpu-warp-efficiency", *SMALL, *BENCH, *steps, project=project, gpu=gpu)
    assert status == 0, result
    assert _timed(result) == SUITE


def _gate(*words: str, project: Path, gpu: StandIns, **env: str) -> tuple[int, dict[str, Any]]:
    gate = ("gate", "gpu-regression", "--base", "HEAD", "--unproven=pass", *SMALL, *BENCH, *BUSY)
    return _run(*gate, *words, project=project, gpu=gpu, **env)


@pytest.mark.long
def test_gpu_regression(project: Path, gpu: StandIns) -> None:
    """With the label of one architecture, its cells run on both sides. The other cells are skipped and listed."""
    source = project / "kernels_cpu.cpp"
    loop = "for (std::size_t i = 0; i < count; ++i) sum += {};"
    slower = f"{loop.format('in[i]')} {loop.format('0 * in[i]')}"
    source.write_text(source.read_text().replace(loop.format("in[i]"), slower))
    assert slower in source.read_text()
    words = ("--set", "arch=sm_80,sm_90", "--set", "labelled=true", "--set", "lock_clocks=1410,1410")
    status, result = _gate(*words, project=project, gpu=gpu, PERFFLOW_LABELS="sm_90")
    assert status == 1, result["reasons"]
    found = {row["name"]: row["decision"] for row in result["benchmarks"] if row["metric"] == "time"}
    assert found["sm_90/sum/chain"] == "regressed"
    assert set(found) == {f"sm_90/{name}" for name in SUITE}
    states, names = _states(result), ("program", "kernels", "device", "answers")
    for arch, state in (("sm_80", "skipped"), ("sm_90", "done")):
        assert {states[f"{name}[arch={arch}]"] for name in names} == {state}
    assert states["reset"] == "done"
    assert gpu.calls("gc ") == ["-i 0 -lgc 1410,1410"]
    assert set(gpu.calls("-rgc")) == {"-i 0 -rgc"}
    throttled = [row for row in result["benchmarks"] if row["metric"] == "gpu_throttled"]
    assert throttled[0]["name"] == "device/sm_90"
    assert throttled[0]["candidate"]["value"] == 1


@pytest.mark.long  # as the workflow of one kernel, which this file runs
def test_no_clock_is_touched_unless_asked(project: Path, gpu: StandIns) -> None:
    steps = _only("clocks", "lock", "program[arch=native]", "reset")
    status, result = _run("run", "gpu-regression", *SMALL, *steps, project=project, gpu=gpu)
    # None of the chosen steps measures.
    assert status == 3, result
    assert {name: _states(result)[name] for name in ("lock", "reset")} == {"lock": "skipped", "reset": "skipped"}
    assert gpu.calls("gc") == []


@pytest.mark.parametrize("ending", rest_long([signal.SIGINT, signal.SIGKILL]))
def test_clocks_are_reset_however_the_run_ends(ending: signal.Signals, project: Path, gpu: StandIns) -> None:
    words = ("--set", "lock_clocks=1410,1410", "--set", "bench=--bench --n 512 --repeats 2000", "--progress", "off")
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    places = {"PATH": gpu.path, "PERFFLOW_LOCK_FILE": str(project.parent / "lock")}
    argv = [sys.executable, "-m", "perfflow", "run", "gpu-regression", "--set", "file=kernels_cpu.cpp", *words]
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(argv, cwd=project, env={**env, **places}, stdout=quiet, stderr=quiet)
    try:
        _await(lambda: bool(gpu.calls("-lgc")), "the clocks to be locked")
        # The service is ready after it printed so.
        time.sleep(0.5)
        assert gpu.calls("-rgc") == []
        running.send_signal(ending)
        running.wait(timeout=30)
        _await(lambda: bool(gpu.calls("-rgc")), "the clocks to be reset")
    finally:
        running.kill()
        running.wait()


def _await(holds: Any, what: str) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends, f"waited for {what}"
        time.sleep(0.05)
