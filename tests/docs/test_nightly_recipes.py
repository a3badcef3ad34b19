"""The nightly recipes of docs/how-to/ci-recipes.md: services take them, and their commands do what the page says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.recipes import FLOW, OF_RUNNERS, PINNED, github, repository, run, run_script, steps
from tests.repositories import git

GITHUB, GITLAB = ".github/workflows/perf-nightly.yml", ".gitlab/perf-nightly.yml"
FLOW_OF_NIGHT: dict[str, Any] = github(GITHUB)
STEPS = steps(GITHUB)
JOB: dict[str, Any]
(JOB,) = yaml.safe_load(OF_RUNNERS[GITLAB]).values()
# One run of each side decides.
EXACT = FLOW.replace("(?P<cost>", "(?P<instructions>").replace(
    "{cost: '1'}, better: {cost: lower}", "{instructions: '1'}"
)


def test_they_start_by_the_clock_with_the_whole_history_and_no_token_that_writes() -> None:
    assert set(FLOW_OF_NIGHT["on"]) == {"schedule", "workflow_dispatch"}
    assert FLOW_OF_NIGHT["permissions"] == {"contents": "read"}
    assert "GITHUB_TOKEN" not in OF_RUNNERS[GITHUB]
    assert not [step["run"] for step in STEPS if "${{" in step.get("run", "")]
    assert JOB["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert (STEPS[0]["with"]["fetch-depth"], JOB["variables"]["GIT_DEPTH"]) == (0, "0")
    assert all(PINNED.fullmatch(env["PERFFLOW"]) for env in (FLOW_OF_NIGHT["env"], JOB["variables"]))


def test_what_a_night_measured_is_kept_also_where_it_fails() -> None:
    restored, kept = (step for step in STEPS if step.get("uses", "").startswith("actions/cache/"))
    assert (kept["uses"], kept["if"]) == ("actions/cache/save@v4", "always()")
    assert kept["with"]["path"] == restored["with"]["path"]
    assert kept["with"]["key"].startswith(restored["with"]["restore-keys"])
    assert restored["with"]["path"].split() == JOB["cache"]["paths"]
    assert JOB["cache"]["when"] == "always"


@pytest.fixture
def project(tmp_path: Path, own_machine: None) -> Path:
    return repository(tmp_path / "project", {"workflows/perf.yaml": EXACT, "costs": "1000\n"})


def night(service: str, number: int, project: Path) -> subprocess.CompletedProcess[str]:
    place = str(project.parent / f"night-{number}")
    Path(place).mkdir()
    lines = JOB["script"] if service == "gitlab" else [step["run"] for step in STEPS if "run" in step]
    if service == "gitlab":
        git(project, "checkout", "-q", "--detach")
    done = run_script(lines, project, RUNNER_TEMP=place, OUT=place, CI_COMMIT_BRANCH="main")
    git(project, "checkout", "-q", "main")
    return done


@pytest.mark.long  # a gate for each night; tests/cli/test_gate_against.py has a drift
@pytest.mark.parametrize(("service", "costs"), [("github", [1060, 1120]), ("gitlab", [1040, 1080, 1120])])
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
    shown = run(["perfflow", "baseline", "list"], project).stdout
    assert shown.splitlines()[1].split()[:2] == ["main", "main"]
    done = run(["perfflow", "compare", "main", f"../night-{len(costs)}/night", "--json"], project)
    (row,) = json.loads(done.stdout)["benchmarks"]
    # The last night that passed is the baseline.
    assert (row["baseline"]["value"], row["candidate"]["value"]) == tuple(costs[-2:])
