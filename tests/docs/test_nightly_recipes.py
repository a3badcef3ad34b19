"""The nightly recipes of docs/how-to/ci-recipes.md: services take them, and their commands do what the page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.test_action import linter
from tests.docs.test_ci_recipes import FLOW, PINNED
from tests.docs.test_recipes_page import RECIPES, schema_check
from tests.repositories import git

__all__ = ["linter"]
GITHUB, GITLAB = ".github/workflows/perf-nightly.yml", ".gitlab/perf-nightly.yml"
# One run of each side decides.
EXACT = FLOW.replace("(?P<cost>", "(?P<instructions>").replace(
    "{cost: '1'}, better: {cost: lower}", "{instructions: '1'}"
)


def github() -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true; GitHub does not.
    known: dict[Any, Any] = yaml.safe_load(RECIPES[GITHUB])
    return {"on" if key is True else key: value for key, value in known.items()}


def job() -> dict[str, Any]:
    (found,) = yaml.safe_load(RECIPES[GITLAB]).values()
    assert isinstance(found, dict)
    return found


def steps() -> list[dict[str, Any]]:
    (found,) = github()["jobs"].values()
    return list(found["steps"])


def test_actionlint_takes_it(linter: str, tmp_path: Path) -> None:
    path = tmp_path / GITHUB
    path.parent.mkdir(parents=True)
    path.write_text(RECIPES[GITHUB])
    git(tmp_path, "init", "-q")
    words = [linter, "-shellcheck=", str(path)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_schema_of_gitlab_takes_it(tmp_path: Path) -> None:
    (tmp_path / ".gitlab-ci.yml").write_text(RECIPES[GITLAB])
    done = schema_check(tmp_path / ".gitlab-ci.yml")
    assert done.returncode == 0, done.stdout


def test_they_start_by_the_clock_with_the_whole_history_and_no_token_that_writes() -> None:
    assert set(github()["on"]) == {"schedule", "workflow_dispatch"}
    assert github()["permissions"] == {"contents": "read"}
    assert "GITHUB_TOKEN" not in RECIPES[GITHUB]
    assert not [step["run"] for step in steps() if "${{" in step.get("run", "")]
    assert job()["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert (steps()[0]["with"]["fetch-depth"], job()["variables"]["GIT_DEPTH"]) == (0, "0")
    assert all(PINNED.fullmatch(env["PERFFLOW"]) for env in (github()["env"], job()["variables"]))


def test_what_a_night_measured_is_kept_also_where_it_fails() -> None:
    restored, kept = (step for step in steps() if step.get("uses", "").startswith("actions/cache/"))
    assert (kept["uses"], kept["if"]) == ("actions/cache/save@v4", "always()")
    assert kept["with"]["path"] == restored["with"]["path"]
    assert kept["with"]["key"].startswith(restored["with"]["restore-keys"])
    assert restored["with"]["path"].split() == job()["cache"]["paths"]
    assert job()["cache"]["when"] == "always"


def scripts(service: str) -> list[str]:
    lines = [step["run"] for step in steps() if "run" in step] if service == "github" else job()["script"]
    # All but the installation: what is tested is this tree.
    return [line for line in lines if "pip install" not in line]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "PERFFLOW_LOCK_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    root = tmp_path / "project"
    for name, text in {"workflows/perf.yaml": EXACT, "costs": "1000\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def night(service: str, number: int, project: Path) -> subprocess.CompletedProcess[str]:
    place = project.parent / f"night-{number}"
    place.mkdir()
    env = {"RUNNER_TEMP": str(place), "OUT": str(place), "CI_COMMIT_BRANCH": "main"}
    if service == "gitlab":
        git(project, "checkout", "-q", "--detach")
    words = ["bash", "-eo", "pipefail", "-c", "\n".join(scripts(service))]
    done = subprocess.run(
        words, cwd=project, env={**os.environ, **env}, capture_output=True, text=True, timeout=900, check=False
    )
    git(project, "checkout", "-q", "main")
    return done


@pytest.mark.parametrize(
    ("service", "costs"),
    [("github", [1060, 1120]), pytest.param("gitlab", [1040, 1080, 1120], marks=pytest.mark.long)],
)
def test_nights_of_small_steps_fail_when_they_add_up(service: str, costs: list[int], project: Path) -> None:
    done = night(service, 0, project)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "only for the code of head" in done.stderr
    for number, cost in enumerate(costs, 1):
        status = int(cost > 1100)
        (project / "costs").write_text(f"{cost}\n")
        git(project, "commit", "-qam", f"cost {cost}")
        done = night(service, number, project)
        assert done.returncode == status, done.stdout + done.stderr
        assert ("✗ FAIL" if status else "✓ PASS") in done.stdout
    assert "1 already known" in done.stdout
    words = ["perfflow", "baseline", "list"]
    shown = subprocess.run(words, cwd=project, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[1].split()[:2] == ["main", "main"]
    words = ["perfflow", "compare", "main", f"../night-{len(costs)}/night", "--json"]
    (row,) = json.loads(subprocess.run(words, cwd=project, capture_output=True, check=True).stdout)["benchmarks"]
    # The last night that passed is the baseline.
    assert (row["baseline"]["value"], row["candidate"]["value"]) == tuple(costs[-2:])
