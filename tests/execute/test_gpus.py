"""The number of usable GPUs. The fake nvidia-smi prints output from its documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.execute import gpus, prepare
from perfflow.tools import registry
from perfflow.workflow.model import Requires

A, B = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-1234f937-d72c-4106-c12f-20bd9faed9f6"
INSTANCE = "MIG-63feeb45-94c6-5cf5-8a5d-8c6a9b7e1f6d"
TWO = f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {A})\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: {B})\n"
# https://docs.nvidia.com/datacenter/tesla/mig-user-guide
SPLIT = f"""GPU 0: A100-SXM4-40GB (UUID: {A})
  MIG 3g.20gb     Device  0: (UUID: {INSTANCE})
  MIG 3g.20gb     Device  1: (UUID: MIG-fe8f4b0e-94c6-5cf5-8a5d-8c6a9b7e1f6d)
"""
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running."
)


@pytest.fixture(autouse=True)
def _all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(gpus.VISIBLE, raising=False)
    monkeypatch.setattr(gpus, "_ELSEWHERE", "/nowhere")


def _smi(folder: Path, said: str, status: int = 0) -> str:
    """Write a fake nvidia-smi and return the PATH to it."""
    (folder / "said").write_text(said)
    program = folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\n[ "$1" = -L ] || exit 9\n/bin/cat {folder}/said\nexit {status}\n')
    program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("said", "allowed", "count", "why"),
    [
        (TWO, None, 2, ""),
        (TWO, "0,1", 2, ""),
        (TWO, "1", 1, "CUDA_VISIBLE_DEVICES='1' hides the others"),
        (TWO, "", 0, "CUDA_VISIBLE_DEVICES='' hides"),
        (TWO, "-1", 0, "hides the others"),
        (TWO, "1,-1,0", 1, "hides the others"),
        (TWO, "7,0", 0, "hides the others"),
        (TWO, "GPU-8932f937", 1, "hides the others"),
        (TWO, "GPU-", 0, "hides the others"),
        (SPLIT, None, 1, "a program can use only one of 2 MIG instances"),
        (SPLIT, INSTANCE, 1, ""),
        (SPLIT + f"GPU 1: A100-SXM4-40GB (UUID: {B})\n", None, 1, "use only one of"),
    ],
)
def test_what_a_program_would_see(
    said: str, allowed: str | None, count: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if allowed is not None:
        monkeypatch.setenv(gpus.VISIBLE, allowed)
    found = gpus.visible(_smi(tmp_path, said))
    assert found.count == count
    assert why in found.why
    assert bool(why) == bool(found.why)


@pytest.mark.parametrize(
    ("said", "status", "why"),
    [
        (NO_DRIVER, 9, "nvidia-smi exited with 9 and printed: NVIDIA-SMI has failed because it couldn't communicate"),
        ("No devices were found\n", 6, "nvidia-smi exited with 6 and printed: No devices were found"),
        ("No devices were found\n", 0, "nvidia-smi lists no GPU and printed: No devices were found"),
        ("", 0, "nvidia-smi lists no GPU and printed: nothing"),
        (TWO, 15, "nvidia-smi exited with 15"),
    ],
)
def test_a_driver_that_fails_has_no_gpu(said: str, status: int, why: str, tmp_path: Path) -> None:
    found = gpus.visible(_smi(tmp_path, said, status))
    assert (found.count, found.why[: len(why)]) == (0, why)


def test_nvidia_smi_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_TIMEOUT", 0.2)
    path = _smi(tmp_path, TWO)
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexec /bin/sleep 30\n")
    assert gpus.visible(path) == gpus.Gpus(0, "nvidia-smi did not answer in 0.2 s")


def test_requirements(tmp_path: Path) -> None:
    path = _smi(tmp_path, TWO)
    assert prepare.unmet(Requires(gpu=2), path) == ""
    assert prepare.unmet(Requires(gpu=3), path) == "needs 3 GPUs, 2 found"
    why = "nvidia-smi, which comes with NVIDIA's driver, is not on PATH"
    assert gpus.visible(str(tmp_path / "none")) == gpus.Gpus(0, why)
    assert prepare.unmet(Requires(gpu=1), str(tmp_path / "none")) == f"needs 1 GPU, none found: {why}"


def test_a_program_apart_from_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for release in ("9.2", "12.0"):
        program = tmp_path / f"cuda-{release}" / "bin" / "nvcc"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho release {release}\n")
        program.chmod(0o755)
    nvcc = registry.find("nvcc")
    assert nvcc is not None
    apart = replace(nvcc, program=replace(nvcc.program, places=(f"{tmp_path}/cuda-*/bin",)))
    monkeypatch.setattr(registry, "find", lambda name: apart if name == "nvcc" else None)
    assert prepare.located(apart.program, "/nowhere") == str(tmp_path / "cuda-12.0/bin/nvcc")
    assert prepare.located(apart.program, str(tmp_path / "cuda-9.2/bin")) == str(tmp_path / "cuda-9.2/bin/nvcc")
    assert prepare.unmet(Requires(tool="nvcc>=12"), "/nowhere") == ""
    assert prepare.unmet(Requires(tool="nvcc>=13"), "/nowhere") == "needs nvcc>=13, found 12.0"
    nowhere = replace(nvcc.program, places=("$NO_SUCH_VARIABLE/bin",))
    assert prepare.located(nowhere, "/nowhere") is None
