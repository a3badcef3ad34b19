"""Shell completions, requested as by the scripts that click generates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FLOW = """perfflow: 1
name: flow
params: {size: 10, speed: 1}
stages:
  baseline:
    - {id: one, uses: command, with: {command: "true"}}
    - {id: two, uses: command, with: {command: "true"}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "flow.yaml").write_text(FLOW)
    (tmp_path / "workflows" / "broken.yaml").write_text("stages: [\n")
    run = tmp_path / ".perfflow" / "runs" / "20260101-000000-abcdef"
    run.mkdir(parents=True)
    (run / "result.json").write_text("{}")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def asked(line: str, cwd: Path) -> list[str]:
    words = line.split(" ")
    env = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_PERFFLOW_COMPLETE": "bash_complete"}
    argv = [sys.executable, "-m", "perfflow"]
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("perfflow run fl", ["plain,flow"]),
        ("perfflow gate lib:regr", ["plain,lib:regression-gate"]),
        ("perfflow run flow --only ", ["plain,one", "plain,two"]),
        ("perfflow plan flow --stage ", ["plain,baseline"]),
        ("perfflow calibrate flow --set s", ["plain,size=", "plain,speed="]),
        ("perfflow report ", ["plain,20260101-000000-abcdef"]),
        ("perfflow fmt ", ["plain,workflows/broken.yaml", "plain,workflows/flow.yaml"]),
        ("perfflow show callg", ["plain,callgrind"]),
        ("perfflow run broken --only ", ["file,"]),
        ("perfflow run --only ", ["file,"]),
        ("perfflow run ./", ["file,./"]),
        ("perfflow vali", ["plain,validate"]),
    ],
)
def test_words_are_completed(line: str, expected: list[str], project: Path) -> None:
    assert asked(line, project) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    env = {**os.environ, "_PERFFLOW_COMPLETE": f"{shell}_source"}
    argv = [sys.executable, "-m", "perfflow"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "_perfflow_completion" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=done.stdout, text=True, check=True)
