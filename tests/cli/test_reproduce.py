"""The commands under "How to reproduce it" work as printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.docs.console import blocks

LIBRARY = ("--set", "baseline=sleep 0.004", "--set", "candidate=sleep 0.004", "--set", "profile=false")
ALSO = ("--set", "allow_empty=true")
OWN = """
name: own
params: {words: {default: "one, two"}, count: {default: 2}, quick: {default: false}, list: {default: [1, 2]}}
stages:
  baseline:
    - {id: one, run: ls, runs: 1, warmup: 0}
  verify:
    - {id: words, run: "test ${{ params.words }} = 'a  b' -a ${{ params.count }} = 3 -a ${{ params.quick }} = true"}
    - {id: list, run: "test ${{ params.list | join('-') }} = 4-5-6"}
"""
SET = ("--set", "words=a  b", "--set", "count=3", "--set", "quick=yes", "--set", "list=4,5,6")


def printed(report: Path) -> list[str]:
    text = report.read_text()
    (block,) = (block for block in blocks(report, "sh") if "perfflow" in block)
    assert text.index("How to reproduce it") < text.index(block)
    return block.splitlines()


def typed(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the line in a shell, with ``perfflow`` on PATH."""
    program = folder.parent / "bin" / "perfflow"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perfflow "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=900
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    root.mkdir()
    return root


@pytest.mark.parametrize("name", ["two-commands", "lib:two-commands"])
def test_a_run_of_the_library(name: str, project: Path) -> None:
    done = perfflow("run", name, *LIBRARY, *ALSO, "--progress", "off", "--unproven=pass", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    run, report = printed(project / ".perfflow" / "runs" / "latest" / "report.md")
    assert run.startswith("perfflow run lib:two-commands ")
    assert typed(report, project).returncode == done.returncode
    again = typed(run, project)
    assert again.returncode in (0, 4), again.stderr


@pytest.mark.parametrize("out", [(), ("--out", "results here")])
def test_a_workflow_of_ones_own_with_all_kinds_of_parameters(out: tuple[str, ...], project: Path) -> None:
    (project / "workflows").mkdir()
    write(project / "workflows", OWN, "own.yaml")
    assert perfflow("run", "own", *SET, *out, "--progress", "off", cwd=project).returncode == 0
    folder = project / "results here" if out else project / ".perfflow" / "runs" / "latest"
    run, report = printed(folder / "report.md")
    for line in (report, run):
        done = typed(line, project)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_workflow_outside_the_project(project: Path) -> None:
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, OWN, "own.yaml")
    assert perfflow("run", "../elsewhere/own.yaml", *SET, "--progress", "off", cwd=project).returncode == 0
    for line in printed(project / ".perfflow" / "runs" / "latest" / "report.md"):
        done = typed(line, project)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_comparison_of_two_commands(project: Path) -> None:
    assert perfflow("compare", "--out", "kept", "--runs", "3", "--", "true 'a b'", "true", cwd=project).returncode in (
        0,
        4,
    )
    for line in printed(project / "kept" / "report.md"):
        assert typed(line, project).returncode in (0, 4)
