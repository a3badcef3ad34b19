"""The recipes of docs/how-to/ci.md: the files are well-formed, what they call is there, and the shell one is run."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from perfflow.cli.main import app
from perfflow.report.payloads.files import PAYLOADS
from tests.cli.test_publish_webhook import Service, service
from tests.docs.recipes import FLOW, OF_CI, PAGE, PINNED, ROOT, github, repository, run, steps
from tests.long import rest_long
from tests.repositories import git

RECIPES = OF_CI
__all__ = ["service"]  # a fixture
GITLAB: dict[str, Any] = yaml.safe_load(RECIPES[".gitlab-ci.yml"])
NAMES = [name for name in RECIPES if name.startswith(".github/")]


def scripts() -> Iterator[str]:
    for name in NAMES:
        yield from (step["run"] for step in steps(name) if "run" in step)
    job = GITLAB["perf"]
    yield from (*job["script"], *job["after_script"])
    yield from (RECIPES["ci/perf.sh"], RECIPES["ci/tell.sh"])


def commands() -> list[str]:
    lines = (line.strip() for script in scripts() for line in script.splitlines())
    return [line.removesuffix("|| exit").strip() for line in lines if line.startswith("perfflow ")]


def test_the_recipes_are_there() -> None:
    assert set(RECIPES) == {
        *(f".github/workflows/{name}.yml" for name in ("perf", "perf-step", "perf-post", "mojo")),
        *(".gitlab-ci.yml", "ci/perf.sh", "ci/tell.sh", "ci/install.sh", "ci/wheel.sh"),
    }
    assert len(commands()) == 11


@pytest.mark.parametrize("line", commands())
def test_each_command_is_one_that_perfflow_takes(line: str) -> None:
    # A variable is one word in quotes; a commit where one is asked for.
    words = shlex.split(line.replace("$HEAD_SHA", "a" * 40).replace("$1", "https://x").replace("$", ""))[1:]
    command: click.Command | None = app
    context = click.Context(app)
    while isinstance(command, click.Group):
        name, command, words = command.resolve_command(context, words)
        assert command is not None, name
        context = click.Context(command, parent=context)
    assert command is not None
    assert command.make_context(command.name, words).command is command


def test_what_is_installed_is_a_commit_that_is_named_in_full() -> None:
    installs = [line for script in scripts() for line in script.splitlines() if "pip install" in line]
    assert {line.partition("pip install ")[2] for line in installs} == {'"$PERFFLOW"'}
    flows = [".github/workflows/perf.yml", ".github/workflows/perf-post.yml"]
    given = [*(github(name)["env"] for name in flows), GITLAB["perf"]["variables"]]
    assert all(PINNED.fullmatch(env["PERFFLOW"]) for env in given)
    assert PINNED.search(RECIPES["ci/install.sh"])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_from_outside_stands_in_a_script(name: str) -> None:
    assert "pull_request_target" not in github(name)["on"]
    assert github(name)["permissions"]["contents"] == "read"
    assert not [step["run"] for step in steps(name) if "${{" in step.get("run", "")]


def test_the_gate_has_the_history_the_cache_and_no_token_that_writes() -> None:
    flow = github(".github/workflows/perf.yml")
    assert set(flow["permissions"].values()) == {"read"}
    using = [step for step in steps(".github/workflows/perf.yml") if "uses" in step]
    by_use = {step["uses"].partition("@")[0]: step.get("with", {}) for step in using}
    assert by_use["actions/checkout"]["fetch-depth"] == 0
    assert by_use["actions/checkout"]["ref"] == "${{ github.event.pull_request.head.sha }}"
    assert by_use["actions/cache"]["path"] == "${{ steps.kept.outputs.path }}"
    assert GITLAB["perf"]["variables"]["GIT_DEPTH"] == "0"
    (job,) = flow["jobs"].values()
    assert job["name"] == "review:gate:perf"
    assert "GITHUB_TOKEN" not in RECIPES[".github/workflows/perf.yml"]


def test_the_workflow_that_posts_runs_nothing_of_the_pull_request() -> None:
    name = ".github/workflows/perf-post.yml"
    assert github(name)["on"]["workflow_run"]["workflows"] == [github(".github/workflows/perf.yml")["name"]]
    assert not [step for step in steps(name) if "checkout" in step.get("uses", "")]
    post = steps(name)[-1]
    assert post["env"]["HEAD_SHA"] == "${{ github.event.workflow_run.head_sha }}"
    assert '--sha "$HEAD_SHA"' in post["run"]
    assert [step for step in steps(name) if "GITHUB_TOKEN" in step.get("env", {})] == [post]


def test_the_job_with_a_toolchain_caches_it_and_passes_where_there_is_none() -> None:
    checkout, cache, compiler, kernels = steps(".github/workflows/mojo.yml")
    assert checkout["with"]["persist-credentials"] is False
    script = (ROOT / "scripts" / "mojo").read_text()
    assert "cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/perfflow\nfolder=$cache/mojo-$version\n" in script
    assert cache["with"]["path"] == "~/.cache/perfflow/mojo-*"
    assert "hashFiles('scripts/mojo')" in cache["with"]["key"]
    assert "if mojo=$(sh scripts/mojo); then" in compiler["run"]
    assert kernels["if"] == "steps.compiler.outputs.mojo != ''"
    assert kernels["env"] == {"PERFFLOW_MOJO": "${{ steps.compiler.outputs.mojo }}"}


def test_gitlab_is_told_of_files_that_are_written() -> None:
    job = GITLAB["perf"]
    written = {f"ci/{payload.file}" for payload in PAYLOADS.values()}
    assert set(job["artifacts"]["reports"].values()) <= written
    assert job["artifacts"]["when"] == "always"


def test_the_table_names_each_file() -> None:
    text = PAGE.read_text().partition("\n## Installation\n")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| `([\w.]+)` \|", text, re.MULTILINE)
    assert dict(rows) == {name: payload.file for name, payload in PAYLOADS.items()}


@pytest.fixture
def project(tmp_path: Path, own_machine: None) -> Path:
    files = {"workflows/perf.yaml": FLOW, "ci/perf.sh": RECIPES["ci/perf.sh"], "costs": "100\n"}
    return repository(tmp_path / "project", files)


@pytest.mark.parametrize(
    ("costs", "status", "said"),
    rest_long(
        [
            ("100", 0, "performance: pass"),
            ("130", 1, "performance: fail"),
            ("none", 3, "performance: could not be measured"),
        ]
    ),
)
def test_the_shell_recipe_does_what_it_says(costs: str, status: int, said: str, project: Path) -> None:
    (project / "costs").write_text(f"{costs}\n")
    git(project, "commit", "-qam", "two", "--allow-empty")
    done = run(["sh", "ci/perf.sh", "main~1", "files"], project)
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    assert sorted(path.name for path in (project / "files").iterdir()) == sorted(
        item.file for item in PAYLOADS.values()
    )
    outcome = {0: "passed", 1: "failure", 3: "error"}[status]
    tags = {item.tag for item in ET.parse(project / "files" / "junit.xml").iter()}  # noqa: S314 (our own file)
    assert tags & {"failure", "error"} == ({outcome} - {"passed"})


def test_the_shell_recipe_stops_where_nothing_was_run(project: Path) -> None:
    done = run(["sh", "ci/perf.sh"], project)
    assert done.returncode == 2
    assert "'origin/main' is not a revision" in done.stderr
    assert not (project / "ci-files").exists()


def test_a_gate_that_fails_is_told_and_one_that_passes_is_not(project: Path, service: Service) -> None:
    (project / "ci" / "tell.sh").write_text(RECIPES["ci/tell.sh"])
    git(project, "update-ref", "refs/remotes/origin/main", "HEAD")
    told = {"SLACK_WEBHOOK_URL": service.address, "no_proxy": "127.0.0.1"}
    for costs, status in (("100", 0), ("130", 1)):
        (project / "costs").write_text(f"{costs}\n")
        git(project, "commit", "-qam", costs, "--allow-empty")
        assert not service.taken
        done = run(["sh", "ci/tell.sh", "https://ci.example.com/7"], project, **told)
        assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout.endswith("message posted: 200\n")
    assert service.body["text"] == "❌ FAIL perf"
