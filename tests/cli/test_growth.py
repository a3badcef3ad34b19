"""``scaling`` as a user's shell runs it: with linear and quadratic programs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

WORK = """
#include <stdlib.h>
int main(int argc, char **argv) {
    long n = atol(argv[1]), inner = argv[2][0] == 'q' ? n * 40 : 4000;
    volatile double sum = 0;
    for (long i = 0; i < n; i++) for (long j = 0; j < inner; j++) sum += j;
    return 0;
}
"""
FLOW = """
name: growth
targets: {decode: {time: ≤KLASS}}
stages:
  baseline:
    - id: decode
      uses: command
      matrix: {n: [50, 200, 800, 3200]}
      scaling: n
      with: {command: "./work ${{ matrix.n }} KIND"}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "work.c").write_text(WORK)
    subprocess.run(["cc", "-O1", "-o", "work", "work.c"], cwd=root, check=True)
    return root


@pytest.mark.parametrize(
    ("kind", "sizes", "klass", "status", "best"),
    [
        # The largest size is 64 times the smallest, and starting a process takes 1% of it.
        ("linear", "[50, 200, 800, 3200]", "<quadratic", "met", "linear"),
        ("quadratic", "[50, 100, 200, 400]", "≤linear", "not met", "quadratic"),
        ("quadratic", "[50, 100, 200, 400]", "<cubic", "met", "quadratic"),
    ],
)
def test_true_work_has_its_growth(kind: str, sizes: str, klass: str, status: str, best: str, project: Path) -> None:
    text = FLOW.replace("KIND", kind).replace("≤KLASS", klass).replace("[50, 200, 800, 3200]", sizes)
    write(project, text)
    done = perfflow("run", "flow.yaml", "--json", cwd=project, measured=True)
    result = json.loads(done.stdout)
    (target,) = result["targets"]
    assert (target["benchmark"], target["statistic"], target["status"]) == ("decode", "growth", status)
    assert f"{best} fits best over n=50.." in target["detail"]
    assert done.returncode == (0 if status == "met" else 1)
    assert len({item["name"] for item in result["benchmarks"]}) == 4
    report = (project / ".perfflow/runs/latest/report.md").read_text()
    assert "`decode time growth`" in report
    assert f"n^{target['measured']:.2f}" in report


def test_sizes_that_tell_nothing_are_refused_before_anything_runs(project: Path) -> None:
    write(project, FLOW.replace("KLASS", "linear").replace("[50, 200, 800, 3200]", "[50, 200]"))
    done = perfflow("run", "flow.yaml", cwd=project)
    assert done.returncode == 2
    assert "flow.yaml:10:16: error: `scaling` over `n` has 2 sizes, but needs at least 3" in done.stderr
    assert not (project / ".perfflow").exists()


COUNTED = """
name: counted
stages:
  baseline:
    - id: decode
      run: ./cost ${{ matrix.n }}
      runs: 12
      matrix: {n: [10, 100, 1000]}
      scaling: n
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
"""


def test_a_gate_says_what_grows_faster_than_on_the_base(project: Path) -> None:
    write(project, COUNTED)
    cost = project / "cost"
    cost.write_text("#!/bin/sh\necho $((500 + $1))\n")
    cost.chmod(0o755)
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "one")
    cost.write_text("#!/bin/sh\necho $((500 + $1 * $1))\n")
    done = perfflow("gate", "flow.yaml", "--base", "main", "--json", cwd=project)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["growth"][0]["decision"] == "worse"
    assert any(reason["kind"] == "growth" and "faster with n: linear" in reason["text"] for reason in result["reasons"])
