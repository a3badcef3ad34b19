"""A project with a stored run of known figures, which the programs print."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import perfflow, write
from tests.repositories import git

FLOW = """
name: words
targets:
  count: {time: <1s}
stages:
  baseline:
    - id: count
      run: echo time 0.125 s
      candidate: {command: echo time 0.150 s}
      parse: {regex: "time (?P<time>[0-9.]+)", units: {time: s}}
      runs: 10
"""


def _repository(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write(folder, text, f"{name}.yaml")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "one")):
        git(folder, *words)


def project_in(folder: Path) -> Path:
    """Return a repository with one run."""
    _repository(folder, flow=FLOW)
    done = perfflow("run", "flow.yaml", "--seed", "1", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


KINDS = ("run", "gate", "compare")
"""Kinds of runs: of candidates in one tree, of two trees, and of two commands."""
_PROGRAM = "with: {command: ./work.sh 2}"
_RUN = f"""
name: several
stages:
  baseline:
    - {{id: work, uses: command, {_PROGRAM}, candidate: ./work.sh 3, runs: 6}}
    - {{id: alone, uses: command, {_PROGRAM}, runs: 6}}
"""
_GATE = f"name: gated\nstages: {{baseline: [{{id: work, uses: command, {_PROGRAM}, runs: 6}}]}}\n"


def kinds_in(folder: Path) -> dict[str, Path]:
    """Return the folders of a run of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "work.sh").write_text("#!/bin/sh\nsleep 0.00$1\n")
    (folder / "work.sh").chmod(0o755)
    _repository(folder, run=_RUN, gate=_GATE)
    git(folder, "commit", "-q", "--allow-empty", "-m", "two")
    commands = {
        "run": ("run", "run.yaml", "--out", "run"),
        # Both sides are equal, so they are only timed with --all.
        "gate": ("gate", "gate.yaml", "--base", "HEAD~1", "--all", "--out", "gate"),
        "compare": ("compare", "--runs", "6", "--out", "compare", "--", "./work.sh 2", "./work.sh 3"),
    }
    for words in commands.values():
        done = perfflow(*words, cwd=folder)
        assert done.returncode in (0, 1, 4), done.stdout + done.stderr
    return {name: folder / name for name in commands}
