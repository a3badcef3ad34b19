"""Allocations and instructions of one operation of a suite's benchmarks, without the suite's harness."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH")

GOOGLE = """
#include <benchmark/benchmark.h>
#include <vector>

static void grow(benchmark::State &state) {
    std::vector<int> before(1000);
    for (auto _ : state) {
        std::vector<int> made(250);
        benchmark::DoNotOptimize(made.data());
    }
}
BENCHMARK(grow);
static void add(benchmark::State &state) {
    int sum = 1;
    for (auto _ : state) benchmark::DoNotOptimize(sum += 3);
}
BENCHMARK(add);
static void fixed(benchmark::State &state) {
    for (auto _ : state) benchmark::DoNotOptimize(std::vector<int>(250).data());
}
BENCHMARK(fixed)->Iterations(5);
BENCHMARK_MAIN();
"""
FLOW = """
perfflow: 1
name: google
targets:
  grow: {alloc: <=1000 B/op, allocs: <=1/op, instructions: <3000/op}
  add: {allocs: 0/op}
stages:
  baseline:
    - {id: suite, uses: google-benchmark, with: {command: ./suite}, runs: 1, metric: time}
"""


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("google")
    (root / "suite.cpp").write_text(GOOGLE)
    built = subprocess.run(
        ["c++", "-O1", "-g", "-o", "suite", "suite.cpp", "-lbenchmark", "-lpthread"], cwd=root, check=False
    )
    if built.returncode:
        pytest.skip("Google Benchmark is not installed (apt-get install libbenchmark-dev)")
    return root


def result_of(root: Path, flow: str, status: int) -> dict[str, Any]:
    (root / "flow.yaml").write_text(flow)
    done = perfflow("run", "flow.yaml", "--progress", "off", "--json", cwd=root, measured=True, timeout=600)
    assert done.returncode == status, done.stderr or done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def values(result: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(row["name"], row["metric"]): row["baseline"]["value"] for row in result["benchmarks"]}


def test_a_target_on_allocations_is_counted_without_a_step_of_its_own(google: Path) -> None:
    result = result_of(google, FLOW, 0)
    assert {item["status"] for item in result["targets"]} == {"met"}
    found = values(result)
    assert (found["grow", "alloc"], found["grow", "allocs"], found["add", "allocs"]) == (1000, 1, 0)
    # Only benchmarks with a target are counted.
    assert ("add", "instructions") not in found
    assert ("fixed/iterations:5", "alloc") not in found
    assert [step["id"] for step in result["steps"]] == ["suite", "suite-dhat", "suite-callgrind"]


@pytest.mark.long  # counts several suites
def test_a_benchmark_that_cannot_run_a_known_number_of_times_is_named(google: Path) -> None:
    flow = FLOW.partition("targets:")[0] + FLOW[FLOW.index("stages:") :]
    result = result_of(google, f"{flow}    - {{id: heap, uses: dhat, benchmark: '*'}}\n", 0)
    found = values(result)
    assert (found["grow", "alloc"], found["add", "alloc"]) == (1000, 0)
    assert ("fixed/iterations:5", "alloc") not in found
    (warning,) = (step["warnings"] for step in result["steps"] if step["id"] == "heap")
    assert "fixed/iterations:5 is not counted" in warning[0]
    assert "sets its iterations" in warning[0]
    result = result_of(google, f"{flow}    - {{id: heap, uses: dhat, benchmark: 'fixed/iterations:5'}}\n", 3)
    assert any("sets its iterations" in reason["text"] for reason in result["reasons"])
