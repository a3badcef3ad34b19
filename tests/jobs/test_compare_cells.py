"""``compare: KEY``: the first value of a matrix key is the baseline of the others; a gate compares each with itself."""

from __future__ import annotations

import shutil

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.result import Axis, Benchmark, Result
from perfflow.report import markdown, terminal
from tests.session.project import Project

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "clang", "valgrind"))), reason="gcc, clang or valgrind is not installed"
)
SOURCE = """
#ifdef __clang__
#define STEPS CLANG
#else
#define STEPS GCC
#endif
int main(void) { volatile double sum = 0; for (long i = 1; i < STEPS; i++) sum += 1.0 / i; return sum < 0; }
"""
FLOW = """
name: axis
stages:
  build:
    - id: make
      matrix: &cells {cc: [gcc, clang], opt: [O1, O2]}
      run: mkdir -p build && ${{ matrix.cc }} -${{ matrix.opt }} -o build/${{ matrix.cc }}-${{ matrix.opt }} work.c
  baseline:
    - id: work
      uses: callgrind
      matrix: *cells
      compare: cc
      with: {command: "build/${{ matrix.cc }}-${{ matrix.opt }}"}
"""


def source(gcc: int, clang: int) -> str:
    return SOURCE.replace("CLANG", str(clang)).replace("GCC", str(gcc))


def counted(result: Result) -> dict[str, Benchmark]:
    return {row.name: row for row in result.benchmarks if row.metric == "instructions"}


def decisions(result: Result) -> dict[str, str | None]:
    return {name: row.decision for name, row in counted(result).items()}


@pytest.mark.long  # as the cells of the gate
def test_first_value_is_the_baseline_of_the_others_and_other_keys_stay_apart(project: Project) -> None:
    project.write("work.c", source(200_000, 100_000))
    result = project.run(FLOW)
    said = {"gcc": None, "clang": "improved"}
    assert decisions(result) == {f"work[cc={cc},opt={opt}]": said[cc] for cc in said for opt in ("O1", "O2")}
    for opt in ("O1", "O2"):
        alone, compared = (counted(result)[f"work[cc={cc},opt={opt}]"].baseline for cc in said)
        assert alone
        assert compared
        assert compared.value == pytest.approx(alone.value, rel=0.01)
    axes = {step.id: step.axis for step in result.steps if step.axis}
    cell = "work[cc=clang,opt=O1]"
    assert axes[cell] == Axis(key="cc", value="clang", first="gcc", cell=cell, of="work[opt=O1]")


def test_gate_compares_each_cell_with_itself_and_says_which_values_changed(project: Project) -> None:
    project.git("init", "-q", "-b", "main")
    project.commit({".gitignore": ".perfflow\nflow.yaml\nbuild\n", "work.c": source(100_000, 100_000)})
    project.write("work.c", source(200_000, 50_000))
    result = project.run(FLOW, base="main")
    said = {"gcc": "regressed", "clang": "improved"}
    assert decisions(result) == {f"work[cc={cc},opt={opt}]": said[cc] for cc in said for opt in ("O1", "O2")}
    again = rejudge((project.folder / ".perfflow/runs/latest").resolve() / "result.json", (), None).result
    for each in (result, again):
        text = markdown.render(each)
        assert "By `cc`:" in text
        for opt in ("O1", "O2"):
            (line,) = [line for line in text.splitlines() if line.startswith(f"- `work[opt={opt}] instructions`: ")]
            assert "worse with gcc " in line
            assert "better with clang " in line
    screen = terminal.render(result, width=160, color=False, unicode=True)
    assert "by cc: work[opt=O1] instructions: worse with gcc (" in screen


@pytest.mark.long  # as the cells of the gate
def test_names_with_the_value_belong_to_one_benchmark(project: Project) -> None:
    project.write("work.c", source(100_000, 100_000))
    flow = FLOW.replace("      compare: cc\n", "      compare: cc\n      benchmark: ${{ matrix.cc }}/work\n")
    result = project.run(flow)
    assert {step.axis.of for step in result.steps if step.axis} == {"{cc}/work[opt=O1]", "{cc}/work[opt=O2]"}
