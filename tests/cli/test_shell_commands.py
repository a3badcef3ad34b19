"""Shell syntax in a command without a shell: nothing is measured, and the hint works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write

LATE = """
stages:
  build:
    - {id: ready, run: "echo 'text=touch started && true' >> $PERFFLOW_OUTPUT"}
  baseline:
    - {id: it, uses: command, runs: 2, with: {command: "${{ steps.ready.outputs.text }}"}}
"""
PARAMETER = """
params: {command: "true"}
stages:
  baseline:
    - {id: it, uses: command, runs: 2, with: {command: "${{ params.command }}"}}
"""


def test_text_that_only_a_run_knows_starts_nothing(tmp_path: Path) -> None:
    write(tmp_path, LATE)
    done = perfflow("run", "flow.yaml", "--progress", "off", cwd=tmp_path, measured=True)
    assert done.returncode == 3
    assert "`&&` needs a shell" in done.stdout
    assert "shell: true" in done.stdout
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("command", [["run", "--progress", "off"], ["plan"], ["run", "--dry-run"]], ids=" ".join)
def test_text_of_a_setting_is_refused_before_anything_runs(command: list[str], tmp_path: Path) -> None:
    write(tmp_path, PARAMETER)
    done = perfflow(*command, "flow.yaml", "--set", "command=touch started && true", cwd=tmp_path, measured=True)
    assert done.returncode == 2
    assert "flow.yaml:6:" in done.stderr
    assert "hint: add `shell: true`, or quote it" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"flow.yaml"}
