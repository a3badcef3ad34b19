"""``compare: KEY``: the first value of a matrix key is the baseline of the others; a gate compares each with itself."""

from __future__ import annotations

import shutil

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.result import Axis, Result
from perfflow.report import markdown, terminal
from tests.repositories import git
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


def decisions(result: Result) -> dict[str, str | None]:
    return {row.name: row.decision for row in result.benchmarks if row.metric == "instructions"}


def test_first_value_is_the_baseline_of_the_others_and_other_keys_stay_apart(project: Project) -> None:
    project.write("work.c", source(200_000, 100_000))
    result = project.run(FLOW)
    assert decisions(result) == {
        "work[cc=gcc,opt=O1]": None,
        "work[cc=gcc,opt=O2]": None,
        "work[cc=clang,opt=O1]": "improved",
        "work[cc=clang,opt=O2]": "improved",
    }
    rows = {row.name: row for row in result.benchmarks if row.metric == "instructions"}
    for opt in ("O1", "O2"):
        alone, compared = rows[f"work[cc=gcc,opt={opt}]"], rows[f"work[cc=clang,opt={opt}]"]
        assert alone.baseline is not None
        assert compared.baseline is not None
        assert compared.baseline.value == pytest.approx(alone.baseline.value, rel=0.01)
    axes = {step.id: step.axis for step in result.steps if step.axis}
    cell = "work[cc=clang,opt=O1]"
    assert axes[cell] == Axis(key="cc", value="clang", first="gcc", cell=cell, of="work[opt=O1]")


def test_gate_compares_each_cell_with_itself_and_says_which_values_changed(project: Project) -> None:
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", ".perfflow\nflow.yaml\nbuild\n")
    project.write("work.c", source(100_000, 100_000))
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "base")
    project.write("work.c", source(200_000, 50_000))
    result = project.run(FLOW, base="main")
    found = decisions(result)
    assert {found[f"work[cc=gcc,opt={opt}]"] for opt in ("O1", "O2")} == {"regressed"}
    assert {found[f"work[cc=clang,opt={opt}]"] for opt in ("O1", "O2")} == {"improved"}
    again = rejudge((project.folder / ".perfflow/runs/latest").resolve() / "result.json", (), None).result
    for each in (result, again):
        text = markdown.render(each)
        assert "By `cc`:" in text
        for opt in ("O1", "O2"):
            (line,) = [line for line in text.splitlines() if line.startswith(f"- `work[opt={opt}] instructions`: ")]
            assert "worse with gcc " in line
            assert "better with clang " in line
    assert "by cc: work[opt=O1] instructions: worse with gcc (" in terminal.render(
        result, width=160, color=False, unicode=True
    )


def test_names_with_the_value_belong_to_one_benchmark(project: Project) -> None:
    project.write("work.c", source(100_000, 100_000))
    flow = FLOW.replace("      compare: cc\n", "      compare: cc\n      benchmark: ${{ matrix.cc }}/work\n")
    result = project.run(flow)
    assert {step.axis.of for step in result.steps if step.axis} == {"{cc}/work[opt=O1]", "{cc}/work[opt=O2]"}
