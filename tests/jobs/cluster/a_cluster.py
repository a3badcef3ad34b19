"""A Slurm cluster of two nodes on this machine, a project whose benchmarks run there, and helpers for both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "slurm"
NO_START = "Slurm does not start on this machine; sh scripts/slurm start FOLDER says why"
"""Slurm needs a host name that resolves to this machine."""
SITE = "executors:\n  lab: {engine: slurm, partition: bench, group: [1s, 5s], poll: 100ms, grace: 2s, scratch: %s}\n"
PROGRAM = """
#include <stdlib.h>
static volatile double sink;
int main(int count, char **words) {
    long steps = 400000 + (WHICH == atol(words[1])) * EXTRA;
    double value = 1;
    for (long step = 0; step < steps; step++) value = value * 1.0000001 + 0.0000001;
    sink = value;
    return count < 2;
}
"""
BUILD = """perfflow: 1
name: placed
stages:
  build:
    - id: build
      run: |
        mkdir -p out
        cc -O1 -o out/work work.c
        echo "program=$PWD/out/work" >> "$PERFFLOW_OUTPUT"
  baseline:
"""


@dataclass
class Cluster:
    """A running Slurm: its folder, and how to start it again."""

    folder: Path
    start: Callable[[], None]

    def daemon(self, name: str) -> int:
        """Return the process id of a daemon: ``slurmctld``, or a node's, such as ``slurmd.n1``."""
        return int((self.folder / f"{name}.pid").read_text())


@dataclass
class Project:
    """A git project with very short benchmarks, in which perfflow can be run."""

    root: Path

    def write(self, steps: str) -> None:
        """Write a workflow with these steps under ``baseline``, and commit it."""
        (self.root / "flow.yaml").write_text(BUILD + steps)
        self.git("add", "-A")
        self.git("commit", "-qm", "workflow")

    def git(self, *words: str) -> None:
        """Run git."""
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *named, *words], cwd=self.root, check=True)

    def start(self, *words: str, given: str = "") -> subprocess.Popen[str]:
        """Start perfflow, with a text on its standard input."""
        pipe = subprocess.PIPE
        argv = [sys.executable, "-m", "perfflow", *words]
        process = subprocess.Popen(argv, cwd=self.root, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert process.stdin
        process.stdin.write(given)
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run perfflow and wait until it ends."""
        process = self.start(*words, given=given)
        out, err = process.communicate(timeout=900)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    @property
    def latest(self) -> Path:
        """The newest run's folder."""
        return (self.root / ".perfflow" / "runs" / "latest").resolve()


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition holds; fail after ``seconds``."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.1)


def kill(pid: int) -> None:
    """Kill a process with SIGKILL."""
    os.kill(pid, signal.SIGKILL)
