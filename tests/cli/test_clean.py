"""``perfflow clean`` on real runs and trees: removes old ones, keeps those that are new, in use or saved."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from perfflow.cli.mcp_server import answers
from perfflow.cli.mcp_server.limits import SessionLimits
from tests.cli.shell import perfflow, write
from tests.repositories import git

FLOW = """\
stages:
  baseline:
    - {id: nap, uses: command, runs: 2, with: {command: sleep 0.01}}
"""
OLD = time.time() - 40 * 86400


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def project(tmp_path: Path, env: dict[str, str]) -> Path:
    """A repository with three runs, two of them old, and the trees of a gate."""
    folder = tmp_path / "project"
    folder.mkdir()
    write(folder, FLOW)
    git(folder, "init", "-q")
    git(folder, "add", "flow.yaml")
    git(folder, "commit", "-qm", "begin")
    for _ in range(2):
        assert perfflow("run", "flow.yaml", cwd=folder, env=env).returncode == 0
    for run in runs(folder):
        age(run)
    assert perfflow("gate", "flow.yaml", "--base", "HEAD", cwd=folder, env=env).returncode in (0, 4)
    return folder


def runs(project: Path) -> list[Path]:
    """Return the runs, the oldest first. Their names only have a resolution of seconds."""
    found = [path for path in (project / ".perfflow" / "runs").iterdir() if not path.is_symlink()]
    return sorted(found, key=lambda path: ((path / "events.jsonl").stat().st_mtime, path.name))


def age(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (OLD, OLD))


def homes(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "perfflow" / "trees").iterdir())


def test_old_runs_go_but_the_newest(project: Path, env: dict[str, str]) -> None:
    before = runs(project)
    assert perfflow("baseline", "save", "main", before[0].name, cwd=project, env=env).returncode == 0
    done = perfflow("clean", "--keep", "2", "-n", cwd=project, env=env)
    assert (done.returncode, done.stdout.count("would go")) == (0, 1)
    assert runs(project) == before
    done = perfflow("clean", "--keep", "2", cwd=project, env=env)
    assert (done.returncode, runs(project)) == (0, before[1:])
    assert str(before[0]) in done.stdout
    done = perfflow("clean", "--keep", "0", cwd=project, env=env)
    # The last one is new.
    assert (done.returncode, runs(project)) == (0, before[2:])
    assert perfflow("baseline", "show", "main", cwd=project, env=env).returncode == 0
    assert perfflow("report", "latest", cwd=project, env=env).returncode in (0, 4)
    assert perfflow("clean", "runs", "--keep", "0", "--older-than", "0", cwd=project, env=env).returncode == 0
    assert not list((project / ".perfflow" / "runs").iterdir())


def test_a_run_that_goes_on_stays(project: Path, env: dict[str, str]) -> None:
    run = runs(project)[0]
    with (run / "events.jsonl").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        done = perfflow("clean", "runs", "--keep", "0", "--older-than", "0", cwd=project, env=env)
    assert (done.returncode, runs(project)) == (0, [run])


def test_a_patch_goes_with_the_last_run_that_judged_it(project: Path, env: dict[str, str]) -> None:
    submitted = {}
    for name in ("judged", "kept", "fresh"):
        # Written and run as by the MCP server.
        limits = SessionLimits(project, 60, may_run=True)
        steps = [{"id": "nap", "stage": "baseline", "role": "measure"}]
        submitted[name] = answers.submit(limits, "flow.yaml", steps, f"--- {name}\n", name, "io").workflow.parent
    for name in ("judged", "kept"):
        workflow = submitted[name] / "judge.yaml"
        workflow.write_text(f"perfflow: 1\nextends: {json.loads(workflow.read_text())['extends']}\n")
        ran = perfflow("run", str(workflow.relative_to(project)), "--progress=off", cwd=project, env=env)
        assert ran.returncode == 0, ran.stderr
        age(submitted[name])
    judged, kept = runs(project)[-2:]
    age(judged)
    # The newest run needs its patch to be resumed. A new patch may be about to run.
    done = perfflow("clean", "runs", "--keep=0", "-n", cwd=project, env=env)
    assert [path for path in submitted.values() if str(path) in done.stdout] == [submitted["judged"]]
    assert all(path.is_dir() for path in submitted.values())
    done = perfflow("clean", "runs", "--keep=0", cwd=project, env=env)
    assert (done.returncode, f"patch  {submitted['judged']}" in done.stdout) == (0, True)
    assert [name for name, path in submitted.items() if path.is_dir()] == ["kept", "fresh"]
    assert (judged.is_dir(), kept.is_dir()) == (False, True)
    # Neither a running run nor its patch is removed.
    with (kept / "events.jsonl").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        perfflow("clean", "runs", "--keep=0", "--older-than=0", cwd=project, env=env)
    assert [name for name, path in submitted.items() if path.is_dir()] == ["kept"]


def test_trees_go_when_they_are_old_or_their_project_is_gone(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (home,) = homes(tmp_path)
    prune = ("cache", "prune")
    assert perfflow(*prune, cwd=project, env=env).stdout == "nothing to remove\n"
    assert homes(tmp_path) == [home]
    age(home)
    with next(home.glob("*/lock")).open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        done = perfflow(*prune, cwd=tmp_path, env=env)
    assert (done.returncode, "a run uses them" in done.stdout) == (0, True)
    assert "would go" in perfflow(*prune, "--dry-run", cwd=tmp_path, env=env).stdout
    assert homes(tmp_path) == [home]
    assert perfflow(*prune, cwd=tmp_path, env=env).returncode == 0
    assert homes(tmp_path) == []
    perfflow("gate", "flow.yaml", "--base", "HEAD", cwd=project, env=env)
    project.rename(tmp_path / "moved")
    assert perfflow(*prune, cwd=tmp_path, env=env).returncode == 0
    assert homes(tmp_path) == []


def test_the_oldest_trees_go_until_the_rest_fits(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    (project / "large").write_bytes(os.urandom(3_000_000))
    git(project, "add", "large")
    git(project, "commit", "-qm", "large")
    gate = ("gate", "flow.yaml", "--base", "HEAD~1")
    assert perfflow(*gate, cwd=project, env=env).returncode in (0, 4)
    pair = homes(tmp_path)[0] / "1"
    shown = {slot.name for slot in pair.iterdir() if (slot / "large").exists()}
    done = perfflow("cache", "prune", "--keep", "2MB", cwd=project, env=env)
    assert (done.returncode, done.stdout.count("removed")) == (0, 2)
    assert not [name for name in shown if (pair / name).exists() or (pair / f"{name}.kept").exists()]
    assert perfflow(*gate, cwd=project, env=env).returncode in (0, 4)
    assert [slot for slot in pair.iterdir() if (slot / "large").exists()]
    for size in ("much", "-1GB", "5s"):
        done = perfflow("cache", "prune", "--keep", size, cwd=project, env=env)
        assert (done.returncode, "--keep" in done.stderr) == (2, True)


def test_the_paths_and_the_key_for_ci(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    done = perfflow("cache", "path", cwd=project, env=env)
    first, *others = done.stdout.splitlines()
    assert [Path(first)] == homes(tmp_path)
    assert all(path.startswith(f"{project}/.perfflow/") for path in others)
    key = perfflow("cache", "key", "--base", "HEAD", cwd=project, env=env).stdout.strip()
    assert key.endswith("-" + git(project, "rev-parse", "HEAD")[:16])
    git(project, "commit", "-qm", "more", "--allow-empty")
    assert perfflow("cache", "key", "--base", "HEAD~1", cwd=project, env=env).stdout.strip() == key
    other = perfflow("cache", "key", "--base", "HEAD", cwd=project, env=env).stdout.strip()
    assert other.rpartition("-")[0] == key.rpartition("-")[0]
    assert other != key
    assert perfflow("cache", "key", "--base", "NONSENSE", cwd=project, env=env).returncode == 2


def test_comparisons_go_and_foreign_folders_beside_them_stay(env: dict[str, str], tmp_path: Path) -> None:
    assert perfflow("compare", "--runs", "2", "--", "sleep 0.01", "sleep 0.01", cwd=tmp_path, env=env).returncode in (
        0,
        4,
    )
    folder = tmp_path / "cache" / "perfflow" / "compare"
    (folder / "mine").mkdir()
    assert len(list(folder.iterdir())) == 2
    assert perfflow("clean", "comparisons", "--older-than", "0", cwd=tmp_path, env=env).returncode == 0
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_clones_that_jobs_left_go_unless_one_works_in_them(tmp_path: Path, project: Path, env: dict[str, str]) -> None:
    homes = [tmp_path / "cache" / "perfflow" / "clones" / name for name in ("old", "used", "new")]
    for home in homes:
        (home / "0" / "src").mkdir(parents=True)
        (home / "0.lock").touch()
        os.utime(home / "0.lock", (OLD, OLD))
    os.utime(homes[2] / "0.lock")

    with (homes[1] / "0.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = perfflow("cache", "prune", cwd=project, env=env)

    assert [home.is_dir() for home in homes] == [False, True, True]
    assert "a job is using one" in done.stdout
