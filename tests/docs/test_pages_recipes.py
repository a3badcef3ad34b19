"""The recipes that publish the history: GitHub's and GitLab's checks take them, and their scripts make the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.console import blocks
from tests.docs.test_action import linter
from tests.docs.test_ci_recipes import FLOW, PINNED
from tests.docs.test_recipes_page import run, schema_check
from tests.repositories import git

__all__ = ["linter"]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "history.md"
RECIPES = {text.split()[1]: text for text in blocks(PAGE, "yaml")}
GITHUB, GITLAB = ".github/workflows/perf-pages.yml", ".gitlab-ci.yml"
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(RECIPES[GITHUB])["jobs"]
JOB: dict[str, Any] = yaml.safe_load(RECIPES[GITLAB])["pages"]
SCRIPTS = {
    "github": [step["run"] for step in JOBS["build"]["steps"] if "run" in step],
    "gitlab": JOB["script"],
}


def test_the_recipes_are_there() -> None:
    assert {GITHUB, GITLAB} <= set(RECIPES)
    assert PINNED.search(RECIPES[GITHUB])
    assert PINNED.fullmatch(JOB["variables"]["PERFFLOW"])


def test_actionlint_takes_it(linter: str, tmp_path: Path) -> None:
    path = tmp_path / GITHUB
    path.parent.mkdir(parents=True)
    path.write_text(RECIPES[GITHUB])
    git(tmp_path, "init", "-q")
    done = subprocess.run(
        [linter, "-shellcheck=", str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_schema_of_gitlab_takes_it(tmp_path: Path) -> None:
    path = tmp_path / GITLAB
    path.write_text(RECIPES[GITLAB])
    done = schema_check(path)
    assert done.returncode == 0, done.stdout


def test_what_publishes_runs_nothing_of_the_project() -> None:
    assert [step["uses"].partition("@")[0] for step in JOBS["deploy"]["steps"]] == ["actions/deploy-pages"]
    assert JOBS["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert yaml.safe_load(RECIPES[GITHUB])["permissions"] == {"contents": "read"}
    assert "permissions" not in JOBS["build"]


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("target", ["<200", "<50"], ids=["met", "missed"])
def test_the_scripts_make_the_pages(name: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "PERFFLOW_LOCK_FILE"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    project = tmp_path / "project"
    (project / "workflows").mkdir(parents=True)
    flow = FLOW.replace("stages:", f"targets: {{cost: {{cost: '{target}'}}}}\nstages:", 1)
    (project / "workflows/perf.yaml").write_text(flow)
    (project / "costs").write_text("100\n")
    script = [line for line in SCRIPTS[name] if "pip install" not in line]
    assert len(script) == len(SCRIPTS[name]) - 1
    done = run(["bash", "-eo", "pipefail", "-c", "\n".join(script)], project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"<a href=\"benchmarks/", (project / "public/index.html").read_text())) == 1
    (uploaded,) = (step["with"]["path"] for step in JOBS["build"]["steps"] if "upload" in step.get("uses", ""))
    assert [uploaded] == JOB["artifacts"]["paths"] == ["public"]
