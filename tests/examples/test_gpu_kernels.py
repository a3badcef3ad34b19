"""The kernels of the GPU example: judged on the CPU, built with nvcc, interpreted with Triton."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perfflow.execute import gpus, prepare
from tests.cli.shell import ROOT
from tests.examples.trees import copied, run
from tests.tools.harness import tool

EXAMPLE = Path("examples/gpu-kernels")
NAMES = ["transpose/naive", "transpose/tiled", "sum/chain", "sum/lanes", "saxpy/plain"]
SMALL = ("--n", "256")
TORCH = os.environ.get("PERFFLOW_TORCH", "")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("gpu-kernels"), EXAMPLE) / EXAMPLE


@pytest.fixture(scope="module")
def on_cpu(example: Path) -> Path:
    done = run(["make", "-s", "cpu"], example)
    assert done.returncode == 0, done.stderr
    return example / "build/kernels-cpu"


def test_every_kernel_is_right(on_cpu: Path) -> None:
    done = run([on_cpu, "--check", *SMALL])
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^kernel=(\S+) max_abs_diff=\S+ tolerance=\S+ ok$", done.stdout, re.MULTILINE) == NAMES
    assert done.stdout.endswith(f"\nend kernels={len(NAMES)}\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_answer_is_rejected(on_cpu: Path, name: str) -> None:
    done = run([on_cpu, "--check", *SMALL, "--plant", name])
    assert done.returncode == 1
    assert re.findall(r"^kernel=(\S+) .* WRONG$", done.stdout, re.MULTILINE) == [name]


def test_a_repetition_a_line(on_cpu: Path) -> None:
    done = run([on_cpu, "--bench", *SMALL, "--kernel=sum/lanes", "--repeats=3", "--batch=2"])
    assert done.returncode == 0, done.stderr
    line = r"kernel=sum/lanes ms=[\d.e-]+ bytes=262144 flops=65536 n=256 precision=f32 batch="
    assert re.fullmatch(f"{line}1 warmup=1\n(?:{line}2\n){{3}}end kernels=1 times=3\n", done.stdout)


def test_kernels_of_one_family(on_cpu: Path) -> None:
    done = run([on_cpu, "--check", *SMALL, "--kernel", "sum"])
    assert re.findall(r"^kernel=(\S+)", done.stdout, re.MULTILINE) == ["sum/chain", "sum/lanes"]


def test_names_are_listed(on_cpu: Path) -> None:
    assert run([on_cpu, "--bench", *SMALL, "--list"]).stdout.split() == NAMES


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--bench", "--n", "100"], "a multiple of 32"),
        (["--bench", "--n", "x"], "--n takes a whole number from 1 to 32768, not x"),
        (["--bench", "--repeats", "0"], "--repeats takes a whole number"),
        (["--once", "no/such"], "there is no kernel no/such; --list names them"),
        (["--once", "sum"], "there is no kernel sum; --list names them"),
        (["--check", "--kernel", "su"], "there is no kernel su; --list names them"),
        (["--check", "--plant", "no/such"], "there is no kernel no/such"),
        (["--bench", "--check"], "choose one of"),
        ([], "choose one of"),
        (["--once"], "--once needs a value"),
        (["--fast"], "unknown flag --fast"),
    ],
)
def test_a_flag_that_will_not_do(on_cpu: Path, words: list[str], said: str) -> None:
    done = run([on_cpu, *words])
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def on_gpu(example: Path) -> Path:
    """The CUDA program, which is built without a GPU, too."""
    program = prepare.located(tool("nvcc").program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"nvcc is not installed: {tool('nvcc').program.install}")
    done = run(["make", "-s", f"NVCC={program}"], example)
    assert done.returncode == 0, done.stderr
    return example / "build/kernels"


def test_the_cuda_program_names_its_kernels_without_a_gpu(on_gpu: Path) -> None:
    listed = run([on_gpu, "--list"]).stdout.split()
    families = {"transpose": ["naive", "tiled", "draft"], "sum": ["naive", "shuffle"], "saxpy": ["plain", "wide"]}
    assert listed == [f"{family}/{name}" for family, names in families.items() for name in names]
    for family, names in families.items():
        assert run([on_gpu, "--list", "--kernel", family]).stdout.split() == [f"{family}/{name}" for name in names]


@pytest.mark.parametrize("mode", ["--bench", "--check"])
def test_the_cuda_program(on_gpu: Path, mode: str) -> None:
    done = run([on_gpu, mode, "--repeats", "5", "--n", "1024"])
    if gpus.visible(os.environ["PATH"]).count:
        assert done.returncode == 0, done.stdout + done.stderr
        assert re.search(r"\nend kernels=7(?: times=35)?\n$", done.stdout)
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("error: no CUDA device: ")


@pytest.mark.skipif(not TORCH, reason="PERFFLOW_TORCH names no Python with PyTorch and Triton")
@pytest.mark.parametrize(("plant", "status"), [("", 0), ("sum/blocks", 1), ("transpose/tiled", 1)])
def test_the_triton_kernels_in_the_interpreter(plant: str, status: int) -> None:
    words = ("--plant", plant) if plant else ()
    done = run([TORCH, ROOT / EXAMPLE / "kernels.py", "--check", "--n", "64", *words], TRITON_INTERPRET="1")
    assert done.returncode == status, done.stdout + done.stderr
    assert re.findall(r"^kernel=(\S+) .* WRONG$", done.stdout, re.MULTILINE) == ([plant] if plant else [])
    assert len(re.findall(r"^kernel=\S+ .* ok$", done.stdout, re.MULTILINE)) == (5 if plant else 6)


@pytest.mark.skipif(not TORCH, reason="PERFFLOW_TORCH names no Python with PyTorch and Triton")
def test_the_triton_program_without_a_gpu() -> None:
    listed = run([TORCH, ROOT / EXAMPLE / "kernels.py", "--list"])
    assert len(listed.stdout.split()) == 6
    some = run([TORCH, ROOT / EXAMPLE / "kernels.py", "--list", "--kernel", "sum"])
    assert some.stdout.split() == ["sum/small", "sum/blocks"]
    if gpus.visible(os.environ["PATH"]).count == 0:
        done = run([TORCH, ROOT / EXAMPLE / "kernels.py", "--bench"])
        assert done.returncode == 2
        assert done.stderr.startswith("error: no CUDA device")
