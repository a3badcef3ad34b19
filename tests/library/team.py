"""A repository of workflows of a team, and projects that use it."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
        for name, text in {
            "workflows/command.yaml": COMMAND,
            "parts/limits.yaml": LIMITS,
            "tools/words.yaml": WORDS,
            "README.md": "of the team\n",
        }.items():
            self.write(name, text)
        self.commit("v1")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, tag: str = "") -> str:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "change")
        if tag:
            git(self.folder, "tag", "-f", "-a", tag, "-m", tag)
        return git(self.folder, "rev-parse", "HEAD").strip()

    def reference(self, revision: str = "v1", path: str = "workflows/command.yaml") -> str:
        return f"git+file://{self.folder}@{revision}#{path}"

    def project(self, name: str, extends: str | None = None) -> Path:
        root = self.top / name
        (root / "workflows").mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        parents = extends or self.reference()
        text = f"perfflow: 1\nextends: {parents}\nname: own\nparams: {{command: 'true'}}\n"
        (root / "workflows/own.yaml").write_text(text)
        return root

    def run(self, *words: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return perfflow(*words, cwd=cwd, env={**self.env, **(env or {})})
