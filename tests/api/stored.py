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


def project_in(folder: Path) -> Path:
    """Return a repository with one run."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, FLOW)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    done = perfflow("run", "flow.yaml", "--seed", "1", cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return folder
