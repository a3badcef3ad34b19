"""The kernels in Mojo: scalar ones are scalar, optimized ones are right, and the check finds what is wrong."""

from __future__ import annotations

import csv
import platform
import re
import shutil
from pathlib import Path

import pytest

from tests.examples.mojo import PATCHES, build, copy_example, needs_mojo
from tests.examples.trees import apply, run

IN_ORDER = ("tiling", "simd", "registers", "wrong")
KERNELS = ("add", "saxpy", "matmul")
TOLERANCE = 1e-5

pytestmark = needs_mojo


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return copy_example(tmp_path / "tree")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    return build(copy_example(folder) / "bench.mojo", folder / "bench")


def differences(example: Path) -> dict[str, float]:
    done = run([build(example / "check.mojo", example / "check")])
    assert done.returncode == 0, done.stderr
    return {name: float(value) for name, value in re.findall(r"(\S+) max_abs_diff (\S+)", done.stdout)}


def test_the_kernels_do_what_their_references_do(example: Path) -> None:
    found = differences(example)
    assert list(found) == [*KERNELS, "draft"]
    assert all(0 <= value < TOLERANCE for value in found.values())


@pytest.mark.long  # compiles each kernel; tests/tools/test_mojo.py compiles one
def test_the_candidates_make_a_draft_that_is_right(example: Path) -> None:
    apply(example.parents[1], PATCHES, *IN_ORDER[:-1])
    assert 0 < differences(example)["draft"] < TOLERANCE


@pytest.mark.long  # compiles each kernel; tests/tools/test_mojo.py compiles one
def test_the_wrong_candidate_is_found(example: Path) -> None:
    apply(example.parents[1], PATCHES, *IN_ORDER)
    found = differences(example)
    assert found["draft"] > 0.1
    assert found["matmul"] < TOLERANCE


@pytest.mark.long  # compiles each kernel; tests/tools/test_mojo.py compiles one
def test_a_kernel_that_writes_beyond_its_output_is_found(example: Path) -> None:
    source = example / "kernels" / "elementwise.mojo"
    source.write_text(source.read_text().replace("while i < n:", "while i <= n:"))
    done = run([build(example / "check.mojo", example / "check")])
    assert done.returncode == 1
    assert "a kernel wrote to place 0 of an output of 0" in done.stdout + done.stderr


@pytest.mark.long  # compiles each kernel; tests/tools/test_mojo.py compiles one
def test_benchmarks_are_listed_and_run_alone(bench: Path, tmp_path: Path) -> None:
    names = [f"{kernel}/{version}" for kernel in KERNELS for version in ("scalar", "simd")]
    assert run([bench, "--list"]).stdout.split() == names
    file = tmp_path / "one.csv"
    assert run([bench, "--only", "matmul/simd", "-r", "2", "-o", str(file)]).returncode == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [row["name"] for row in rows] == ["matmul/simd"] * 2
    seconds, flops = (float(rows[0][key]) for key in ("met (ms)", "Arithmetic (GFLOPS/s)"))
    assert flops * seconds * 1e6 == pytest.approx(2 * 384**3)
    for words in (("--only", "matmul/fast"), ("--only",)):
        assert run([bench, *words]).returncode == 1


@pytest.mark.long  # compiles each kernel; tests/tools/test_mojo.py compiles one
@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("objdump"), reason="needs objdump on x86-64")
def test_scalar_kernels_are_scalar_and_the_others_packed(bench: Path) -> None:
    done = run(["objdump", "-d", "--no-show-raw-insn", bench])
    functions = re.split(r"\n\n(?=[0-9a-f]+ <)", done.stdout)
    for kernel in KERNELS:
        packed, scalar = {}, {}
        for version in ("scalar", "simd"):
            (body,) = (text for text in functions if re.match(rf"[0-9a-f]+ <kernels::\w+::{kernel}_{version}\[", text))
            arithmetic = re.findall(r"\tv?(?:add|mul|fmadd\w+)([sp])s\b", body)
            packed[version], scalar[version] = arithmetic.count("p"), arithmetic.count("s")
        assert packed["scalar"] == 0 < scalar["scalar"]
        assert packed["simd"] >= 4
