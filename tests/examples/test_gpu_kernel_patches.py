"""The candidates of workflows/gpu-kernel.yaml: each applies to what is kept before it, and just one is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perfflow.execute import prepare
from tests.cli.shell import ROOT
from tests.examples.trees import apply, copied, run
from tests.long import rest_long
from tests.tools.harness import tool

HERE = Path(__file__).parent
EXAMPLE = Path("examples/gpu-kernels")
PATCHES = Path("workflows/patches/gpu-kernel")
IN_ORDER = ("tile", "pad", "wrong")


def patched(folder: Path, count: int) -> Path:
    """A copy of the example with the first patches."""
    apply(copied(folder, EXAMPLE), PATCHES, *IN_ORDER[:count])
    return folder / EXAMPLE


def printed(*words: str | Path, cwd: Path) -> str:
    done = run([*words], cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_workflow_names_them_all() -> None:
    text = (ROOT / "workflows/gpu-kernel.yaml").read_text()
    assert tuple(re.findall(r"patch: patches/gpu-kernel/(\w+)\.patch", text)) == IN_ORDER
    assert {path.stem for path in (ROOT / PATCHES).iterdir()} == set(IN_ORDER)


@pytest.mark.parametrize("count", rest_long(range(len(IN_ORDER) + 1)))
def test_what_a_candidate_computes(count: int, tmp_path: Path) -> None:
    """The kernel's own text, its threads being threads of the CPU: no GPU is needed to see that it is right."""
    source = patched(tmp_path, count)
    program = tmp_path / "draft"
    flags = ("-std=c++20", "-O1", "-pthread", f"-I{source}", f"-I{HERE}")
    printed("c++", *flags, "-o", program, HERE / "transpose_draft.cpp", cwd=tmp_path)
    apart = float(printed(program, cwd=tmp_path))
    assert (apart == 0) == ("wrong" not in IN_ORDER[:count])


@pytest.mark.parametrize("count", range(len(IN_ORDER) + 1))
def test_nvcc_builds_it(count: int, tmp_path: Path) -> None:
    program = prepare.located(tool("nvcc").program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"nvcc is not installed: {tool('nvcc').program.install}")
    source = patched(tmp_path, count)
    printed(program, "-std=c++17", "-arch=sm_90", "-cubin", "-o", tmp_path / "out", source / "kernels.cu", cwd=tmp_path)
