"""The recipes of docs/how-to/ci-recipes.md are run by their own programs, and GitLab's schema takes the component."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from perfflow.report.payloads.files import PAYLOADS
from tests.docs.console import blocks
from tests.docs.test_ci_recipes import FLOW, PINNED
from tests.repositories import git

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "ci-recipes.md"
COMPONENT = ROOT / "templates" / "perfflow.yml"
_KINDS = ("yaml", "just", "ini", "python", "toml", "rust")
RECIPES = {re.split(r"\s+", text)[1]: text for kind in _KINDS for text in blocks(PAGE, kind)}
HEADER, JOB = COMPONENT.read_text().split("\n---\n")
INPUTS: dict[str, dict[str, Any]] = yaml.safe_load(HEADER)["spec"]["inputs"]


def with_inputs(**given: str) -> str:
    """The job as GitLab makes it from the component."""
    values = {name: given.get(name, item.get("default", "")) for name, item in INPUTS.items()}
    return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda match: values[match[1]], JOB)


def schema_check(path: Path) -> subprocess.CompletedProcess[str]:
    if not importlib.util.find_spec("check_jsonschema"):
        pytest.skip("check-jsonschema is not installed: sh scripts/install dev")
    words = ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", str(path)]
    return subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.parametrize("name", ["header", "job", "project"])
def test_the_schema_of_gitlab_takes_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text({"header": HEADER, "job": with_inputs(), "project": RECIPES[".gitlab-ci.yml"]}[name])
    done = schema_check(path)
    assert done.returncode == 0, done.stdout


def test_the_schema_of_gitlab_would_find_a_key_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(with_inputs().replace("  script:", "  scripts:"))
    assert schema_check(path).returncode != 0


def test_the_page_has_each_input_with_its_default() -> None:
    _, _, table = PAGE.read_text().partition("| input | default | meaning |")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table.partition("\n\n")[0], re.MULTILINE))
    assert rows == {name: f"`{item['default']}`" if "default" in item else "required" for name, item in INPUTS.items()}
    given = yaml.safe_load(RECIPES[".gitlab-ci.yml"])["include"][0]["inputs"]
    assert given.keys() <= INPUTS.keys()
    assert PINNED.fullmatch(given["perfflow"])


def test_inputs_stand_in_no_script() -> None:
    (job,) = yaml.safe_load(JOB).values()
    assert not [line for line in (*job["script"], *job["after_script"]) if "$[[" in line]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a gate, whose branch main is where HEAD is, in a clone of its own."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "PERFFLOW_LOCK_FILE", "TOX_WORK_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    origin = tmp_path / "origin"
    for name, text in {**RECIPES, "workflows/perf.yaml": FLOW, "costs": "100\n", "requirements.txt": ""}.items():
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(text)
    (origin / ".gitignore").write_text(".cache/\n.nox/\n.tox/\ntarget/\nCargo.lock\n__pycache__/\n")
    git(origin, "init", "-q", "-b", "main")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "one")
    git(tmp_path, "clone", "-q", str(origin), "project")
    return tmp_path / "project"


def run(words: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.parametrize(("costs", "status"), [("100", 0), ("130", 1)])
def test_the_scripts_of_the_component_gate_a_clone(costs: str, status: int, project: Path) -> None:
    (project / "costs").write_text(f"{costs}\n")
    (job,) = yaml.safe_load(with_inputs(perfflow="none", base="main", budget="1m")).values()
    env: dict[str, str] = job["variables"]
    # All but the installation: what is tested is this tree.
    script = [line for line in job["script"] if "pip install" not in line]
    assert len(script) == len(job["script"]) - 1
    done = run(["bash", "-eo", "pipefail", "-c", "\n".join(script)], project, **env)
    assert done.returncode == status, done.stdout + done.stderr
    after = run(["bash", "-eo", "pipefail", "-c", "\n".join(job["after_script"])], project, **env)
    assert after.returncode == 0, after.stderr
    files = {path.name for path in (project / "ci").iterdir()}
    assert files == {"report.html", *(payload.file for payload in PAYLOADS.values())}
    assert {path.removeprefix("ci/") for path in job["artifacts"]["reports"].values()} <= files
    assert (project / ".perfflow/history.sqlite").is_file()


RUNNERS = {
    "just": (["just", "perf-gate", "main"], 1),
    "tox": (["tox", "run", "-e", "perf", "--", "main"], 1),
    "nox": (["nox", "-s", "perf", "--", "main"], 1),
    "cargo": (["cargo", "perf", "main"], 1),
}


# Each of them makes an environment of its own for tox and nox; what they hand on is tried with all of them below.
@pytest.mark.parametrize(
    "name", ["just", *(pytest.param(name, marks=pytest.mark.long) for name in ("tox", "nox", "cargo"))]
)
def test_a_runner_starts_the_gate_and_fails_with_it(name: str, project: Path) -> None:
    words, failed = RUNNERS[name]
    if not shutil.which(words[0]):
        pytest.skip(f"{name} is not on PATH")
    same = run(words, project)
    assert same.returncode == 0, same.stdout + same.stderr
    assert "✓ PASS" in same.stdout
    (project / "costs").write_text("130\n")
    done = run(words, project)
    assert done.returncode == failed, done.stdout + done.stderr
    assert "✗ FAIL" in done.stdout


@pytest.mark.parametrize(("name", "status"), [("just", 2), ("tox", 2), ("nox", 1), ("cargo", 2)])
def test_a_runner_hands_on_a_status_as_the_page_says(name: str, status: int, project: Path) -> None:
    words = RUNNERS[name][0]
    if not shutil.which(words[0]):
        pytest.skip(f"{name} is not on PATH")
    done = run([*words[:-1], "no-such-revision"], project)
    assert done.returncode == status, done.stdout + done.stderr
    assert "no-such-revision" in done.stdout + done.stderr


def test_just_hands_on_options_of_run(project: Path) -> None:
    if not shutil.which("just"):
        pytest.skip("just is not on PATH")
    done = run(["just", "perf", "--dry-run", "--only", "cost"], project)
    assert done.returncode == 0, done.stderr
    assert "cat costs" in done.stdout
