"""The step for GitHub's jobs: what it uses is pinned, its scripts run, and actionlint takes the recipes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.recipes import FLOW, GITHUB, PAGE, ROOT, repository, run
from tests.long import rest_long
from tests.repositories import git

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


def test_what_it_uses_is_pinned_by_commit() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 3
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", name) for name in used)


def test_no_input_stands_in_a_script() -> None:
    assert not [step["run"] for step in STEPS if "${{" in step.get("run", "")]


def test_the_page_has_each_input_with_its_default() -> None:
    _, _, table = PAGE.read_text().partition("| input | default | meaning |")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", table.partition("\n\n")[0], re.MULTILINE))
    assert rows.keys() == ACTION["inputs"].keys()
    assert {name: text.strip("`") for name, text in rows.items() if text.startswith("`")} == {
        name: item["default"] for name, item in ACTION["inputs"].items() if item["default"]
    }


@pytest.mark.long  # compiles actionlint
@pytest.mark.parametrize("name", [*GITHUB, "budgets"])
def test_actionlint_takes_each_recipe_and_finds_an_input_that_is_not_there(
    name: str, linter: str, tmp_path: Path
) -> None:
    wrong = name == "budgets"
    text = GITHUB[".github/workflows/perf-step.yml"].replace("budget: 20m", "budgets: 20m") if wrong else GITHUB[name]
    path = tmp_path / ".github" / "workflows" / "perf.yml"
    path.parent.mkdir(parents=True)
    # The action is looked at, too: which inputs it has.
    path.write_text(re.sub(r"example/perfflow@\w+", "./own", text))
    (tmp_path / "own").mkdir()
    shutil.copy(ROOT / "action.yml", tmp_path / "own")
    git(tmp_path, "init", "-q")
    done = run([linter, "-shellcheck=", str(path)], tmp_path)
    assert (done.returncode == 0) is not wrong, done.stdout
    assert ('input "budgets" is not defined' in done.stdout) is wrong


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = repository(tmp_path / "project", {"workflows/perf.yaml": FLOW, "costs": "100\n"})
    git(root, "checkout", "-q", "-b", "change")
    (root / "costs").write_text("130\n")
    git(root, "commit", "-qam", "two")
    git(root, "update-ref", "refs/remotes/origin/main", "main")
    return root


class Job:
    """A runner's variables and files; its steps run one after the other, as GitHub's runner starts them."""

    def __init__(self, folder: Path, project: Path, **inputs: str) -> None:
        self.project = project
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        self.temp = folder / "temp"
        self.temp.mkdir()
        given = {name: item["default"] for name, item in ACTION["inputs"].items()} | inputs
        self.values: dict[str, str] = {f"inputs.{name}": value for name, value in given.items()}
        self.values |= {"github.base_ref": "main", "github.action_path": str(ROOT)}
        self.env = {name: str(path) for name, path in self.files.items()}
        self.env |= {"RUNNER_TEMP": str(self.temp), "XDG_CACHE_HOME": str(folder / "cache")}
        self.env |= {"PERFFLOW_LOCK_FILE": str(folder / "lock")}

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run the script of a step, with what its `env` says put in."""
        (step,) = (step for step in STEPS if step.get("name") == name)
        own: Mapping[str, str] = step["env"]
        env = self.env | {key: re.sub(r"\$\{\{ (.+?) \}\}", lambda m: self.values[m[1]], own[key]) for key in own}
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return run(argv, self.project, **env)

    def outputs(self) -> dict[str, str]:
        """What the steps have told the job."""
        lines = self.files["GITHUB_OUTPUT"].read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.parametrize(("base", "status", "verdict"), rest_long([("", 1, "fail"), ("HEAD", 0, "pass")]))
def test_the_scripts_gate_a_change_and_leave_the_files(
    base: str, status: int, verdict: str, project: Path, tmp_path: Path
) -> None:
    job = Job(tmp_path, project, base=base, budget="1m")
    done = job.step("Gate")
    assert done.returncode == status, done.stdout + done.stderr
    assert job.outputs() == {"verdict": verdict, "folder": str(job.temp / "perf")}
    files = job.step("Files")
    assert files.returncode == 0, files.stderr
    summary = job.files["GITHUB_STEP_SUMMARY"].read_text()
    assert {"fail": "FAIL", "pass": "PASS"}[verdict] in summary
    uploaded = STEPS[-1]["with"]["path"].replace("${{ runner.temp }}", str(job.temp)).split()
    assert all(Path(path).exists() for path in uploaded)
    assert (job.temp / "ci" / "history.sqlite").read_bytes() == (project / ".perfflow/history.sqlite").read_bytes()
    assert json.loads((job.temp / "perf" / "result.json").read_text())["verdict"] == verdict


def test_what_is_kept_is_told_by_the_base(project: Path, tmp_path: Path) -> None:
    job = Job(tmp_path, project)
    done = job.step("Kept")
    assert done.returncode == 0, done.stderr
    _, home, *_ = job.files["GITHUB_OUTPUT"].read_text().splitlines()
    told = {name: value for name, value in job.outputs().items() if name in ("key", "begin")}
    assert Path(home).is_relative_to(tmp_path / "cache" / "perfflow" / "trees")
    assert told["key"] == f"{told['begin']}-{git(project, 'rev-parse', 'main')[:16]}"
    job.files["GITHUB_OUTPUT"].unlink()
    job.values["github.base_ref"] = "nonsense"
    # The gate says what is wrong.
    assert job.step("Kept").returncode == 0
    assert not job.files["GITHUB_OUTPUT"].exists()


def test_where_nothing_was_run_the_gate_says_why_and_there_are_no_files(project: Path, tmp_path: Path) -> None:
    job = Job(tmp_path, project, workflow="workflows/none.yaml")
    done = job.step("Gate")
    assert done.returncode == 2
    assert "workflows/none.yaml" in done.stderr
    assert job.step("Files").returncode == 0
    assert not job.files["GITHUB_STEP_SUMMARY"].exists()
    job.values["github.base_ref"] = ""
    done = job.step("Gate")
    assert (done.returncode, done.stdout) == (2, "::error::this is not a pull request: name a revision as `base`\n")


def test_it_installs_its_own_commit_unless_told_otherwise(project: Path, tmp_path: Path) -> None:
    job = Job(tmp_path, project)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (programs / "python3").chmod(0o700)
    job.env["PATH"] = f"{programs}:{os.environ['PATH']}"
    assert job.step("Install perfflow").stdout.splitlines()[-1] == f"perfflow-cli[tools] @ file://{ROOT}"
    job.values["inputs.perfflow"] = "perfflow-cli==0.2"
    assert job.step("Install perfflow").stdout.splitlines()[-1] == "perfflow-cli==0.2"
