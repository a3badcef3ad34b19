"""NVIDIA's real programs, if installed; those that need a GPU only up to their error message without one."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.execute import gpus, prepare
from perfflow.model.errors import ToolOutputError
from perfflow.tools.adapter import Effort
from tests.cli.shell import perfflow
from tests.tools.harness import PROGRAMS, USAGE, call_of, run, run_call, start, tool

CROWDED = str(PROGRAMS / "crowded.cu")
NVCC = tool("nvcc")


@pytest.fixture(scope="module")
def nvcc() -> str:
    program = prepare.located(NVCC.program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"nvcc is not installed: {NVCC.program.install}")
    return program


def test_nvcc_builds_for_one_architecture(nvcc: str, tmp_path: Path) -> None:
    ran = run("nvcc", tmp_path / "out", file=CROWDED, arch="sm_80")
    assert ran.status == 0
    handed_on = NVCC.build.results(ran.call)
    assert os.access(handed_on["path"], os.X_OK)
    assert int(handed_on["binary_size"]) == Path(handed_on["path"]).stat().st_size
    assert (handed_on["kernels"], handed_on["registers"], handed_on["shared"]) == ("3", "32", "256")
    assert int(handed_on["spills"]) > 0
    (warning,) = ran.parse().warnings
    assert warning.startswith("dense::crowded (sm_80) spills: ")
    assert warning.endswith("per thread, at 32 registers")


def test_nvcc_puts_the_program_where_it_is_wanted(nvcc: str, tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "crowded"
    ran = run("nvcc", tmp_path / "out", file=[CROWDED], arch=["sm_80", "sm_90"], out=str(out), flags=["-DNDEBUG"])
    assert ran.status == 0
    assert NVCC.build.results(ran.call)["path"] == str(out)
    assert out.stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"flags": "-DBROKEN"}, r'error: identifier "missing" is undefined$'),
        ({"arch": "sm_35"}, r"Unsupported gpu architecture 'sm_35'; run `nvcc --list-gpu-code` for those"),
        ({"file": "no-such.cu"}, r"fatal error: no-such.cu: No such file"),
        ({"flags": ["-ccbin", "no-such-compiler"]}, r"no-such-compiler"),
        ({"flags": "-ptx"}, r"crowded is not a program"),
        ({"flags": "-lno-such-library"}, r"cannot find -lno-such-library"),
    ],
    ids=["code", "architecture", "file", "host compiler", "other output", "library"],
)
def test_nvcc_that_fails_says_why(nvcc: str, options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    ran = run("nvcc", tmp_path / "out", **{"file": CROWDED, "arch": "sm_80", **options})
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


@pytest.mark.parametrize("arch", ["80", "sm_8", "compute_80", ["sm_80", "native"], "sm_80 native"])
def test_nvcc_refuses_what_is_no_architecture(arch: str | list[str], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"`arch` is '(80|sm_8|compute_80|native)': set sm_90"):
        NVCC.invocations(call_of("nvcc", tmp_path, arch=arch))


def test_code_for_several_architectures_and_later_ones(tmp_path: Path) -> None:
    argv = NVCC.invocations(call_of("nvcc", tmp_path, arch="sm_80, sm_90a"))[0].argv
    assert argv[5:9] == (
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90a,code=[sm_90a,compute_90a]",
    )


WORKFLOW = """
perfflow: 1
stages:
  build:
    - id: make
      uses: nvcc
      with: {file: %s, out: "build/crowded-${{ matrix.arch }}", arch: "${{ matrix.arch }}"}
      matrix: {arch: [sm_80, sm_90]}
  baseline:
    - {id: one, run: ls, runs: 1, warmup: 0}
  verify:
    - run: test ${{ steps['make[arch=sm_80]'].outputs.spills }} -gt 0 && test -x build/crowded-sm_90
"""


def test_a_matrix_of_architectures(nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW % json.dumps(CROWDED))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, env={"CUDA_HOME": str(Path(nvcc).parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
    steps = json.loads((tmp_path / "out/result.json").read_text())["steps"]
    assert [step["status"] for step in steps] == ["done"] * 4
    assert "dense::crowded (sm_90) spills" in (tmp_path / "out/result.json").read_text()


def test_nvcc_that_was_stopped_half_way_is_no_success(nvcc: str, tmp_path: Path) -> None:
    """A wrapper that hides the exit status, as build scripts do."""
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{nvcc} "$@" -DBROKEN || true\n')
    program.chmod(0o755)
    (tmp_path / "flow.yaml").write_text(WORKFLOW % json.dumps(CROWDED))
    path = f"{program.parent}:{os.environ['PATH']}"
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, path=path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert 'identifier "missing" is undefined' in done.stderr


SANITIZER = tool("compute-sanitizer")


def _checks(folder: Path, lines: list[str], **options: Any) -> tuple[str, ...]:
    """Return the warnings of a report."""
    text = "".join(f"========= {line}\n" for line in ["COMPUTE-SANITIZER", *lines])
    (folder / "sanitizer.txt").write_text(text)
    return SANITIZER.parse(call_of("compute-sanitizer", folder, "/bin/x", **options), USAGE).warnings


@pytest.mark.parametrize(
    ("lines", "options", "reason"),
    [
        ([], {}, "cut short: it has no summary$"),
        (["ERROR SUMMARY: 0 errors"], {"check": "racecheck"}, "it has no summary$"),
        (["ERROR SUMMARY: 0 errors"], {"leaks": True}, "no summary of leaks"),
        (["ERROR SUMMARY: no errors"], {}, "it has no summary$"),
        (["ERROR SUMMARY: 0 errors", "ERROR SUMMARY: 1 error"], {}, "1 error, first: the report does not name it"),
        (["ERROR SUMMARY: 0 errors", "LEAK SUMMARY: what"], {}, "it has no summary$"),
        (["Error: " + "Target application terminated before first instrumented API call"], {}, "nothing was checked"),
        (["Target application doesn't exist or is not a valid executable"], {}, "the command is not a program"),
    ],
)
def test_a_report_that_is_not_clean(lines: list[str], options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _checks(tmp_path, lines, **options)


def test_what_makes_a_check_weaker_is_said(tmp_path: Path) -> None:
    overflow = "Warning: Detected overflow of tracked cuda::barrier structures."
    assert _checks(tmp_path, [overflow, overflow, "ERROR SUMMARY: 0 errors"]) == (overflow.removeprefix("Warning: "),)
    summary = "RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"
    races = ["WARNING: Race reported between Write at x", "and Read at y", summary]
    (warning,) = _checks(tmp_path, races, check="racecheck")
    assert warning.endswith("racecheck also warns (1): WARNING: Race reported between Write at x and Read at y")


def test_leaks_are_a_matter_of_memcheck(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="`leaks` needs `check: memcheck`"):
        SANITIZER.invocations(call_of("compute-sanitizer", tmp_path, "/bin/x", check="synccheck", leaks=True))


@pytest.mark.parametrize("command", ["/bin/true", "./no-such-program"])
def test_a_program_that_never_used_a_gpu_was_not_checked(command: str, tmp_path: Path) -> None:
    program = prepare.located(SANITIZER.program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"compute-sanitizer is not installed: {SANITIZER.program.install}")
    step = {"id": "accesses", "uses": "compute-sanitizer", "with": {"command": command}}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"verify": [step]}}))
    done = perfflow("run", "flow.yaml", cwd=tmp_path, env={"CUDA_HOME": str(Path(program).parents[1])})
    assert done.returncode == 1, done.stdout + done.stderr
    wanted = "nothing was checked" if command == "/bin/true" else "no-such-program"
    assert wanted in done.stdout + done.stderr


TORCH = os.environ.get("PERFFLOW_TORCH", "")
needs_triton = pytest.mark.skipif(not TORCH, reason="PERFFLOW_TORCH names no Python with PyTorch and Triton")
TRITON_CPU = str(PROGRAMS / "triton_cpu.py")
LAMBDA = next(at for at, line in enumerate(Path(TRITON_CPU).read_text().splitlines(), 1) if "3_000" in line)
NAMES = ["total", "total#2", f"triton_cpu.py:{LAMBDA}", "sizes[n=5000,how=loop]", "sizes[n=50000,how=loop]"]


@needs_triton
def test_every_call_of_do_bench_is_a_benchmark(tmp_path: Path) -> None:
    ran = run("triton-bench", tmp_path / "out", script=TRITON_CPU, python=TORCH)
    assert ran.status == 0
    readings = ran.parse().readings
    assert [reading.benchmark for reading in readings] == NAMES
    assert readings[0].inner["n"] > 1
    assert all(reading.value > 0 for reading in readings)


@needs_triton
def test_triton_benchmarks_are_listed_and_run_alone(tmp_path: Path) -> None:
    call = call_of("triton-bench", tmp_path, script=TRITON_CPU, python=TORCH)
    listing = tool("triton-bench").suite.listing(call)
    assert listing is not None
    assert start(replace(listing, stdout="ids"), tmp_path) == 0
    assert (tmp_path / "ids").read_text().splitlines() == NAMES
    alone = replace(call, chosen=(NAMES[3],), effort=Effort.BRIEF)
    ran = run_call("triton-bench", alone)
    assert [reading.benchmark for reading in ran.parse().readings] == [NAMES[3]]


@needs_triton
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import triton.testing\ntriton.testing.do_bench(lambda: None)\n", r"finds no GPU; add `requires: \{gpu: 1\}`"),
        ("raise LookupError('no such thing')\n", "LookupError: no such thing$"),
        ("import sys\nsys.exit(3)\n", "was not written"),
        ("pass\n", r"has no call of triton.testing.do_bench$"),
    ],
    ids=["no gpu", "raises", "exits", "nothing"],
)
def test_triton_bench_that_fails_says_why(script: str, reason: str, tmp_path: Path) -> None:
    if "None" in script and gpus.visible(os.environ["PATH"]).count:
        pytest.skip("there is a GPU here")
    (tmp_path / "bench.py").write_text(script)
    ran = run("triton-bench", tmp_path / "out", script=str(tmp_path / "bench.py"), python=TORCH)
    assert ran.status != 0
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


def test_triton_that_is_not_installed(tmp_path: Path) -> None:
    ran = run("triton-bench", tmp_path / "out", script=TRITON_CPU, python="/usr/bin/python3")
    assert ran.status != 0
    with pytest.raises(ToolOutputError, match=r"triton is not installed for this python .*: pip install triton"):
        ran.parse()
