"""The recipes that publish the history: GitHub's and GitLab's checks take them, and their scripts make the pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.recipes import FLOW, OF_HISTORY, PINNED, github, run_script
from tests.long import rest_long

GITHUB, GITLAB = ".github/workflows/perf-pages.yml", ".gitlab-ci.yml"
JOBS: dict[str, dict[str, Any]] = github(GITHUB)["jobs"]
JOB: dict[str, Any] = yaml.safe_load(OF_HISTORY[GITLAB])["pages"]
SCRIPTS = {
    "github": [step["run"] for step in JOBS["build"]["steps"] if "run" in step],
    "gitlab": JOB["script"],
}


def test_they_install_a_commit_that_is_named_in_full() -> None:
    assert PINNED.search(OF_HISTORY[GITHUB])
    assert PINNED.fullmatch(JOB["variables"]["PERFFLOW"])


def test_what_publishes_runs_nothing_of_the_project() -> None:
    assert [step["uses"].partition("@")[0] for step in JOBS["deploy"]["steps"]] == ["actions/deploy-pages"]
    assert JOBS["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
    assert github(GITHUB)["permissions"] == {"contents": "read"}
    assert "permissions" not in JOBS["build"]


@pytest.mark.parametrize("name", rest_long(SCRIPTS))
@pytest.mark.parametrize("target", ["<200", "<50"], ids=["met", "missed"])
def test_the_scripts_make_the_pages(name: str, target: str, tmp_path: Path, own_machine: None) -> None:
    project = tmp_path / "project"
    (project / "workflows").mkdir(parents=True)
    flow = FLOW.replace("stages:", f"targets: {{cost: {{cost: '{target}'}}}}\nstages:", 1)
    (project / "workflows/perf.yaml").write_text(flow)
    (project / "costs").write_text("100\n")
    done = run_script(SCRIPTS[name], project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"<a href=\"benchmarks/", (project / "public/index.html").read_text())) == 1
    (uploaded,) = (step["with"]["path"] for step in JOBS["build"]["steps"] if "upload" in step.get("uses", ""))
    assert [uploaded] == JOB["artifacts"]["paths"] == ["public"]
