"""Two benchmarks of one suite as the two sides, with suites that can run one alone and suites that cannot."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.project import Project, row, step
from tests.tools.harness import PROGRAMS

WORK = """
import pytest

@pytest.mark.parametrize("variant", ["scalar", "simd"])
@pytest.mark.parametrize("name", ["halved", "alike"])
def test_work(benchmark, name, variant):
    benchmark(sum, range(5000 if (name, variant) == ("halved", "simd") else 20000))

def test_alone_scalar(benchmark):
    benchmark(sum, range(10))
"""
ALONE = """
targets: {"**halved": {speedup: ≥1.5x}}
stages:
  baseline:
    - id: suite
      uses: pytest-benchmark
      runs: 4
      env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}
      with: {python: PYTHON, paths: work.py, args: -p pytest_benchmark.plugin --benchmark-max-time=0.001}
      expect: [halved, alike]
      variants: {baseline: "work.py::test_work[*-scalar]", candidate: "work.py::test_work[*-simd]"}
"""
TOGETHER = """
targets: {sort: {speedup: ≥1.5x}}
stages:
  baseline:
    - id: suite
      run: python3 suite.py
      parse: {regex: "(?P<benchmark>[a-z/]+) (?P<time>[0-9.]+)", units: {time: ms}}
      runs: 12
      variants: {baseline: "*/old", candidate: "*/new"}
"""
PRINTING = """
from pathlib import Path
file = Path("count")
count = int(file.read_text()) if file.exists() else 0
file.write_text(str(count + 1))
factor = 1 + 0.5 * (count % 3)
print("sort/old", 8 * factor)
print("sort/new", 4 * factor)
print("hash/old", 2)
"""


def test_one_process_measures_the_variants_of_a_side_in_the_order_of_the_coin(project: Project) -> None:
    project.write("work.py", WORK)
    result = project.run(ALONE.replace("PYTHON", sys.executable), seed=2)
    assert [target.benchmark for target in result.targets] == ["halved"]
    halved = row(result, "halved", "time")
    assert (halved.pairs, halved.paired) == (4, True)
    assert halved.change is not None
    assert halved.change.value is not None
    assert halved.change.value < 0
    assert {item.name for item in result.benchmarks} == {"halved", "alike"}
    pairs = [event for event in project.events() if event["event"] == "sample"]
    assert {event["first"] for event in pairs} == {"baseline", "candidate"}
    assert [event["together"] for event in pairs] == [2] * 8


def test_each_variant_is_run_alone_if_asked(project: Project) -> None:
    project.write("work.py", WORK)
    result = project.run(ALONE.replace("PYTHON", sys.executable) + "      rounds: benchmark\n", seed=2)
    assert {item.name: item.pairs for item in result.benchmarks} == {"halved": 4, "alike": 4}
    assert not any("together" in event for event in project.events())


def test_a_suite_that_runs_as_a_whole_yields_both_sides_from_one_process(project: Project) -> None:
    project.write("suite.py", PRINTING)
    result = project.run(TOGETHER)
    found = row(result, "sort", "time")
    assert found.baseline is not None
    assert found.candidate is not None
    # Each pair is from one process, so the ratio is exactly two although the processes differ.
    assert [a / b for a, b in zip(found.baseline.samples, found.candidate.samples, strict=True)] == [2.0] * 12
    assert len(set(found.baseline.samples)) == 3
    assert found.decision == "improved"
    warnings = step(result, "suite").warnings
    assert any("both variants run in one process" in text for text in warnings)
    assert "hash/old has no counterpart like `*/new`, so it is not compared" in warnings
    assert [item.name for item in result.benchmarks] == ["sort"]


def test_variants_that_are_not_there_are_named(project: Project) -> None:
    project.write("suite.py", PRINTING)
    result = project.run(TOGETHER.replace("*/new", "*/newer").replace("targets: {sort: {speedup: ≥1.5x}}", ""))
    assert result.verdict == "error"
    assert step(result, "suite").reason == "no benchmark of the suite exists as both `*/old` and `*/newer`"


def test_a_benchmark_that_lost_a_variant_is_missed_by_its_name(project: Project) -> None:
    project.write("suite.py", PRINTING)
    result = project.run(TOGETHER + "      expect: [sort, hash]\n")
    assert result.verdict == "error"
    assert "expected benchmark did not appear: hash (step suite)" in result.reason_texts


@pytest.mark.skipif(not Path("/usr/include/benchmark").is_dir(), reason="needs the library Google Benchmark")
def test_google_benchmark_runs_each_variant_alone(project: Project) -> None:
    shutil.copy(PROGRAMS / "gbench.cpp", project.folder)
    build = ["g++", "-O1", "gbench.cpp", "-lbenchmark", "-lpthread", "-o", "gbench"]
    subprocess.run(build, cwd=project.folder, check=True)
    result = project.run(
        "stages:\n  baseline:\n    - {id: suite, uses: google-benchmark, with: {command: ./gbench}, runs: 6,"
        ' variants: {baseline: "*/4096", candidate: "*/64"}}\n'
    )
    found = row(result, "add", "time")
    assert found.change is not None
    assert found.change.value is not None
    assert found.change.value < 0
    assert {item.name for item in result.benchmarks} == {"add"}
