"""A program's project as a git repository: a base commit, a commit for each edit, and builds of both."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.layout_experiment.edits import PROGRAMS, Edit, Program

BUDGET = "90s"
"""For one benchmark, so that a gate with two builds ends within two minutes."""
LAYOUTS = ("off", "auto", 64)
_USER = ("-c", "user.name=experiment", "-c", "user.email=experiment@localhost", "-c", "commit.gpgsign=false")


def workflow(program: Program, layouts: str | int) -> Mapping[str, object]:
    """What a project would write to compare the program of base and head."""
    step: dict[str, object] = {"id": program.name, "layouts": layouts, "budget": BUDGET}
    stages: dict[str, object] = {}
    if program.language == "c":
        stages["build"] = [{"id": "make", "run": "make"}]
        step |= {"uses": "command", "with": {"command": "build/program"}}
    else:
        step |= {"uses": "cargo-bench", "with": {"package": program.name, "bench": program.name, "offline": True}}
    return {"perfflow": 1, "name": "layouts", "stages": {**stages, "baseline": [step]}}


def workflow_file(program: Program, layouts: str | int) -> str:
    """Where that workflow is in the project."""
    return f"{program.name}-layouts-{layouts}.yaml"


class Sides(NamedTuple):
    """The branches that are compared; head stands on base."""

    base: str
    head: str


@dataclass(frozen=True, slots=True)
class Project:
    """The repository at ``root``; built programs are kept in ``builds``, trees of gates in ``cache``."""

    program: Program
    root: Path
    builds: Path
    cache: Path

    @classmethod
    def create(cls, program: Program, folder: Path) -> Project:
        """Write the project, commit it as `base`, and build it; programs in Rust are crates of one workspace."""
        own = folder / (program.language if program.language == "rust" else program.name)
        project = cls(program, own / "project", own / "builds" / program.name, own / "cache")
        if project.root.exists():
            project.git("checkout", "--quiet", "base")
        else:
            project._begin()
        project.build("base")
        return project

    def _begin(self) -> None:
        for path in (self.root, self.cache):
            path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=base")
        self._write({**self.program.files(), ".gitignore": "build/\ntarget/\n"})
        for program in PROGRAMS:
            if program.file in self.program.files():
                texts = {name: json.dumps(workflow(program, name), indent=1) for name in LAYOUTS}
                self._write({workflow_file(program, name): text for name, text in texts.items()})
        self._commit("Base")

    def commit(self, edit: Edit, *, reverse: bool = False) -> Sides:
        """Commit an edit on top of the base, and build it; in reverse, the edit is the base and head undoes it."""
        branch = edit.name.replace("%", "").replace("+", "-")
        if not self.executable(branch).exists():
            self._commit_on("base", branch, edit.files(), edit.name)
            self.build(branch)
        if not reverse:
            return Sides("base", branch)
        undone, before = f"{branch}-undone", self.program.files()
        if not self.executable(undone).exists():
            self._commit_on(branch, undone, {name: before[name] for name in edit.files()}, f"Undo {edit.name}")
            shutil.copy2(self.executable("base"), self.executable(undone))
        return Sides(branch, undone)

    def _commit_on(self, start: str, branch: str, files: Mapping[str, str], message: str) -> None:
        self.git("checkout", "--quiet", "-B", branch, start)
        self._write(files)
        self._commit(message)

    def executable(self, branch: str) -> Path:
        """What was built of a branch."""
        return self.builds / branch

    def build(self, branch: str) -> None:
        """Build what is checked out, and keep the executable."""
        kept = self.executable(branch)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._made() if self.program.language == "c" else self._bench(), kept)

    def _made(self) -> Path:
        # All of it: two edits within one second may look alike to make.
        subprocess.run(["make", "--silent", "--always-make"], cwd=self.root, check=True)
        return self.root / "build" / "program"

    def _bench(self) -> Path:
        name = self.program.name
        argv = ["cargo", "bench", "--offline", "--no-run", "--package", name, "--bench", name, "--message-format=json"]
        done = subprocess.run([*argv, "--quiet"], cwd=self.root, capture_output=True, text=True, check=True)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        return Path(next(item["executable"] for item in said if item.get("executable")))

    def _write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def git(self, *words: str) -> None:
        """Run git in the project. Raises CalledProcessError."""
        subprocess.run(["git", *_USER, *words], cwd=self.root, check=True)
