"""The recipes of docs/how-to/ci-recipes.md are run by their own programs, and GitLab's schema takes the component."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfflow.report.payloads.files import PAYLOADS
from tests.docs.recipes import FLOW, HOW_TO, OF_HISTORY, OF_RUNNERS, PINNED, ROOT, github, repository, run, run_script
from tests.long import rest_long
from tests.repositories import git

PAGE = HOW_TO / "ci-recipes.md"
COMPONENT = ROOT / "templates" / "perfflow.yml"
HEADER, JOB = COMPONENT.read_text().split("\n---\n")
INPUTS: dict[str, dict[str, Any]] = yaml.safe_load(HEADER)["spec"]["inputs"]


def with_inputs(**given: str) -> str:
    """The job as GitLab makes it from the component."""
    values = {name: given.get(name, item.get("default", "")) for name, item in INPUTS.items()}
    return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda match: values[match[1]], JOB)


OF_GITLAB = {
    "header": HEADER,
    "job": with_inputs(),
    "project": OF_RUNNERS[".gitlab-ci.yml"],
    "nights": OF_RUNNERS[".gitlab/perf-nightly.yml"],
    "pages": OF_HISTORY[".gitlab-ci.yml"],
    "an unknown key": with_inputs().replace("  script:", "  scripts:"),
}


@pytest.mark.parametrize("name", OF_GITLAB)
def test_the_schema_of_gitlab_takes_what_it_knows(name: str, tmp_path: Path) -> None:
    if not importlib.util.find_spec("check_jsonschema"):
        pytest.skip("check-jsonschema is not installed: sh scripts/install dev")
    (tmp_path / ".gitlab-ci.yml").write_text(OF_GITLAB[name])
    words = ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", ".gitlab-ci.yml"]
    done = run([sys.executable, "-m", "check_jsonschema", *words], tmp_path)
    assert (done.returncode == 0) is (name != "an unknown key"), done.stdout


def test_the_page_has_each_input_with_its_default() -> None:
    _, _, table = PAGE.read_text().partition("| input | default | meaning |")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table.partition("\n\n")[0], re.MULTILINE))
    assert rows == {name: f"`{item['default']}`" if "default" in item else "required" for name, item in INPUTS.items()}
    given = yaml.safe_load(OF_RUNNERS[".gitlab-ci.yml"])["include"][0]["inputs"]
    assert given.keys() <= INPUTS.keys()
    assert PINNED.fullmatch(given["perfflow"])


def test_inputs_stand_in_no_script() -> None:
    (job,) = yaml.safe_load(JOB).values()
    assert not [line for line in (*job["script"], *job["after_script"]) if "$[[" in line]


@pytest.fixture
def project(tmp_path: Path, own_machine: None) -> Path:
    """A project with a gate, whose branch main is where HEAD is, in a clone of its own."""
    files = {"workflows/perf.yaml": FLOW, "costs": "100\n", "requirements.txt": ""}
    ignored = ".cache/\n.nox/\n.tox/\ntarget/\nCargo.lock\n__pycache__/\n"
    origin = repository(tmp_path / "origin", {**OF_RUNNERS, **files, ".gitignore": ignored})
    git(tmp_path, "clone", "-q", str(origin), "project")
    return tmp_path / "project"


@pytest.mark.parametrize(("costs", "status"), rest_long([("100", 0), ("130", 1)]))
def test_the_scripts_of_the_component_gate_a_clone(costs: str, status: int, project: Path) -> None:
    (project / "costs").write_text(f"{costs}\n")
    (job,) = yaml.safe_load(with_inputs(perfflow="none", base="main", budget="1m")).values()
    env: dict[str, str] = job["variables"]
    done = run_script(job["script"], project, **env)
    assert done.returncode == status, done.stdout + done.stderr
    after = run(["bash", "-eo", "pipefail", "-c", "\n".join(job["after_script"])], project, **env)
    assert after.returncode == 0, after.stderr
    files = {path.name for path in (project / "ci").iterdir()}
    assert files == {"report.html", *(payload.file for payload in PAYLOADS.values())}
    assert {path.removeprefix("ci/") for path in job["artifacts"]["reports"].values()} <= files
    assert (project / ".perfflow/history.sqlite").is_file()


RUNNERS = {
    "just": ["just", "perf-gate", "main"],
    "tox": ["tox", "run", "-e", "perf", "--", "main"],
    "nox": ["nox", "-s", "perf", "--", "main"],
    "cargo": ["cargo", "perf", "main"],
}


def require(name: str) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not on PATH")


# Each of them makes an environment of its own for tox and nox; what they hand on is tried with all of them below.
@pytest.mark.long  # gates a clone, as the test of the component
@pytest.mark.parametrize(
    "name", ["just", *(pytest.param(name, marks=pytest.mark.long) for name in ("tox", "nox", "cargo"))]
)
def test_a_runner_starts_the_gate_and_fails_with_it(name: str, project: Path) -> None:
    require(name)
    same = run(RUNNERS[name], project)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "✓ PASS" in same.stdout
    (project / "costs").write_text("130\n")
    done = run(RUNNERS[name], project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "✗ FAIL" in done.stdout


@pytest.mark.parametrize(("name", "status"), rest_long([("just", 2), ("tox", 2), ("nox", 1), ("cargo", 2)]))
def test_a_runner_hands_on_a_status_as_the_page_says(name: str, status: int, project: Path) -> None:
    require(name)
    done = run([*RUNNERS[name][:-1], "no-such-revision"], project)
    assert done.returncode == status, done.stdout + done.stderr
    assert "no-such-revision" in done.stdout + done.stderr


def test_just_hands_on_options_of_run(project: Path) -> None:
    require("just")
    done = run(["just", "perf", "--dry-run", "--only", "cost"], project)
    assert done.returncode == 0, done.stderr
    assert "cat costs" in done.stdout


SHARDS: dict[str, dict[str, Any]] = github(".github/workflows/perf-shards.yml")["jobs"]


def script(job: str, step: str) -> list[str]:
    (found,) = (item["run"] for item in SHARDS[job]["steps"] if item.get("name") == step)
    return ["bash", "-e", "-c", found]


@pytest.mark.long  # starts several programs; tests/docs/test_action.py has the same scripts in GitHub
def test_the_parts_of_several_machines_are_merged_to_one_verdict(project: Path, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, shard in enumerate(SHARDS["measure"]["strategy"]["matrix"]["shard"]):
        done = run(script("measure", "Measure"), project, BASE="main", SHARD=shard, RUNNER_TEMP=str(tmp_path))
        assert done.returncode == 0, done.stderr
        (tmp_path / "part").rename(tmp_path / "parts" / f"perf-part-{number}")
    (tmp_path / "parts").rename(project / "parts")
    merged = run(script("gate", "Merge"), project)
    assert merged.returncode == 0, merged.stderr
    assert run(script("gate", "Files"), project, GITHUB_STEP_SUMMARY=str(project / "summary")).returncode == 0
    assert "PASS" in (project / "summary").read_text()
