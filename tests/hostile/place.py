"""A project that somebody else wrote, a secret beside it, and a program that must never run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.shell import fork_server

LOOK = str(Path(__file__).with_name("look.py"))
SECRET = "zq7-hunter2-zq7"  # noqa: S105 (it is nobody's)
"""Stands in every file outside of the project, as key and as value, and in perfflow's environment."""
MEMORY = 512 * 2**20
"""Bytes of address space."""
SECONDS = 15.0
"""Seconds of processor time for one command, several times what the slowest takes on an idle machine."""
HANGS = 120.0
"""Seconds of the clock after which all commands of a case together are taken for hanging."""
BENCH = "stages: {baseline: [{id: bench, uses: command, with: {command: 'true'}}]}\n"


@dataclass(frozen=True)
class Place:
    """The folders of one case. ``tripped`` is there once the tripwire was run."""

    around: Path

    @property
    def project(self) -> Path:
        return self.around / "project"

    @property
    def outside(self) -> Path:
        return self.around / "outside"

    @property
    def tripped(self) -> Path:
        return self.around / "tripped"

    @classmethod
    def made(cls, around: Path) -> Place:
        place = cls(around)
        place.project.mkdir()
        place.outside.mkdir()
        (place.outside / "secret.yaml").write_text(f"perfflow: 1\n{SECRET}: {SECRET}\n{BENCH}")
        (place.outside / "shadow").write_text(f"root:{SECRET}:19000:0:99999:7:::\n")
        (place.outside / "tool.yaml").write_text(f"perfflow-tool: 1\n{SECRET}: {SECRET}\nargv: [true]\n")
        (place.outside / "secret.patch").write_text(f"diff --git a/{SECRET} b/{SECRET}\n@@ -1 +1 @@\n-a\n+b\n")
        place.program("trip")
        return place

    def program(self, name: str) -> Path:
        """A program of the project that leaves a trace when it is run."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{self.tripped}'\necho version 99.9\n")
        path.chmod(0o755)
        return path

    def write(self, text: str | bytes, name: str = "flow.yaml") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path


@dataclass(frozen=True)
class Looked:
    """What came of the commands of a case: all that they printed, and status and processor time of each."""

    output: str
    ended: list[tuple[int, float]]
    signal: int


def look(place: Place, commands: list[list[str]], env: dict[str, str] | None = None, *, forked: bool = False) -> Looked:
    """Run commands in the project under the limits, with the secret in their environment.

    ``forked``: without starting an interpreter, where no file is about what the kernel says of the process.
    """
    report = place.around / "report"
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    home = place.around / "home"
    home.mkdir(exist_ok=True)
    own |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "GIT_CONFIG_NOSYSTEM": "1"}
    words = [str(report), json.dumps(commands), str(MEMORY)]
    # First, so that it would stand in the first line of what holds the environment.
    environ = {"A_TOKEN": SECRET, **own, **(env or {})}
    output, status = (_forked if forked else _started)(words, place.project, environ)
    lines = report.read_text().splitlines() if report.exists() else []
    return Looked(output, [tuple(json.loads(line)) for line in lines], -status)


def _forked(words: list[str], folder: Path, environ: dict[str, str]) -> tuple[str, int]:
    try:
        done = fork_server().run([LOOK, *words], folder, environ, HANGS, script=True)
    except subprocess.TimeoutExpired as error:
        return str(error.output), -signal.SIGKILL
    return done.stdout + done.stderr, done.returncode


def _started(words: list[str], folder: Path, environ: dict[str, str]) -> tuple[str, int]:
    child = subprocess.Popen(
        [sys.executable, "-P", LOOK, *words],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=HANGS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
    return output.decode(errors="replace"), child.returncode
