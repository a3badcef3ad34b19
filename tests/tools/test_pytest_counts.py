"""Under a counting profiler, a benchmark of pytest runs a fixed number of times instead of being timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.tools.adapter import Effort
from tests.tools.harness import PYTHON, call_of, run_call, tool

SUITE = """
calls = []

def work(number):
    calls.append(number)
    return number

def test_plain(benchmark):
    assert benchmark(work, 3) == 3
    assert calls == [3] * 7

def test_pedantic(benchmark):
    made = iter(range(100))
    benchmark.pedantic(work, setup=lambda: ((next(made),), {}), rounds=2)
    assert calls == [0, 1, 2, 3, 4, 5, 6]

def test_without(benchmark):
    pass
"""


@pytest.mark.parametrize("name", ["test_plain", "test_pedantic"])
def test_a_benchmark_runs_a_fixed_number_of_times(name: str, tmp_path: Path) -> None:
    (tmp_path / "bench_it.py").write_text(SUITE)
    call = call_of("pytest-benchmark", tmp_path / "out", python=PYTHON, args=f"-c {tmp_path}/none.ini")
    (tmp_path / "none.ini").write_text("[pytest]\n")
    call = replace(call, chosen=(str(tmp_path / f"bench_it.py::{name}"),), effort=Effort.BRIEF, iterations=7)
    ran = run_call("pytest-benchmark", call)
    assert ran.status == 0, (tmp_path / "out" / "pytest.out").read_text()
    assert tool("pytest-benchmark").suite.iterated(call) == "7"


def test_a_test_that_does_not_run_its_benchmark_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bench_it.py").write_text(SUITE)
    (tmp_path / "none.ini").write_text("[pytest]\n")
    call = call_of("pytest-benchmark", tmp_path / "out", python=PYTHON, args=f"-c {tmp_path}/none.ini")
    call = replace(call, chosen=(str(tmp_path / "bench_it.py::test_without"),), effort=Effort.BRIEF, iterations=7)
    run_call("pytest-benchmark", call)
    with pytest.raises(ToolOutputError, match="0 calls of 7"):
        tool("pytest-benchmark").suite.iterated(call)
