"""The built wheel, in a virtual environment of its own and away from the source tree, does the whole job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOW = """\
perfflow: 1
targets: {nap: {time: <10s, rss: <1GiB}}
stages:
  baseline:
    - {id: nap, uses: command, with: {command: sleep 0.002}, candidate: sleep 0.02}
  profile:
    - {id: calls, uses: cprofile, with: {command: python3 -c 'sum(range(1000))'}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    wheel = next(folder.glob("perfflow-*.whl"))
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([str(python), *pip[1:], "install", str(wheel)], check=True)
    return folder / "venv" / "bin" / "perfflow"


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON"))}
    return subprocess.run(
        [str(program), *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_wheel_runs_a_workflow_and_writes_its_report(program: Path, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    done = run(program, "run", "flow.yaml", "--json", cwd=tmp_path)
    # The candidate sleeps ten times as long: a regression of level action.
    assert done.returncode == 1, done.stderr
    rows = {row["metric"]: row for row in json.loads(done.stdout)["benchmarks"] if row["name"] == "nap"}
    assert rows["time"]["decision"] == "regressed"
    assert rows["time"]["level"] == "action"
    assert "regressed (action)" in (tmp_path / ".perfflow" / "runs" / "latest" / "report.md").read_text()


def test_the_wheel_has_its_schema_and_lists_its_tools(program: Path, tmp_path: Path) -> None:
    assert json.loads(run(program, "schema", cwd=tmp_path).stdout)["title"] == "perfflow workflow"
    assert "(lib:two-commands)" in run(program, "list", cwd=tmp_path).stdout
