"""A repository of workflows of a team, and projects that use it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.shell import perfflow
from tests.repositories import git

COMMAND = """\
perfflow: 1
extends: ../parts/limits.yaml
name: command
params:
  command: {type: string, help: the program}
stages:
  baseline:
    - {id: program, uses: command, with: {command: "${{ params.command }}"}}
    - {id: words, uses: tools/words.yaml, with: {text: a b c}}
"""
LIMITS = "perfflow: 1\nthresholds: {concern: 5%, action: 10%}\n"
WORDS = """\
perfflow-tool: 1
with: {text: {type: string}}
argv: [sh, -c, 'echo $# words', sh, "${{ with.text }}"]
parse:
  regex: '(?P<words>\\d+) words'
  units: {words: "1"}
"""


class Team:
    """A repository of workflows, and what the tests do on one machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.top = folder / "team", folder
        self.env = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
        self.folder.mkdir(parents=True)
        git(self.folder, "init", "-q", "-b", "main")
        self.write("workflows/command.yaml", COMMAND)
        self.write("parts/limits.yaml", LIMITS)
        self.write("tools/words.yaml", WORDS)
        self.write("README.md", "of the team\n")
        self.commit("v1")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def head(self) -> str:
        return git(self.folder, "rev-parse", "HEAD").strip()

    def commit(self, tag: str = "") -> str:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "change")
        if tag:
            git(self.folder, "tag", "-f", "-a", tag, "-m", tag)
        return self.head()

    def reference(self, revision: str = "v1", path: str = "workflows/command.yaml") -> str:
        return f"git+file://{self.folder}@{revision}#{path}"

    def project(self, name: str = "one", extends: str | None = None) -> Project:
        root = self.top / name
        (root / "workflows").mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        text = f"perfflow: 1\nextends: {extends or self.reference()}\nname: own\nparams: {{command: 'true'}}\n"
        (root / "workflows/own.yaml").write_text(text)
        return Project(self, root)


@dataclass(frozen=True)
class Project:
    """A project that uses the workflows of a team, and perfflow in it."""

    team: Team
    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "perfflow.lock"

    @property
    def folder(self) -> Path:
        """The folder of the latest run."""
        return self.root / ".perfflow/runs/latest"

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return perfflow(*words, cwd=self.root, env={**self.team.env, **env})

    def ok(self, *words: str) -> str:
        """Run a command that must succeed, and return what it prints."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *words: str, status: int = 2) -> str:
        """Run a command that must fail, and return its errors."""
        done = self.run(*words)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr

    def add(self, *references: str) -> str:
        return self.ok("library", "add", *references)

    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ok("library", "list", "--json"))["items"]
        return found
