"""git for remote repositories never prompts, never waits, and leaves no files behind."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from perfflow.model.errors import Exit, UserError
from perfflow.trees import remote
from tests.cli.shell import perfflow
from tests.trees.projects import commit, git, write


def repository(folder: Path) -> tuple[Path, str]:
    """Return a new repository, and the address of it."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "one", {"a.yaml": "a: 1\n"})
    return folder, f"file://{folder}"


def test_tags_branches_and_commits_are_told_apart(tmp_path: Path) -> None:
    folder, url = repository(tmp_path / "r")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    git(folder, "branch", "feature/x")
    git(folder, "branch", "v1")
    head = git(folder, "rev-parse", "HEAD")
    for name, kind in (("v1", "tag"), ("feature/x", "branch"), (head, "commit")):
        assert remote.tip(url, name, tmp_path) == (head, kind)
    with pytest.raises(UserError, match="no tag and no branch called 'HEAD'"):
        remote.tip(url, "HEAD", tmp_path)


def test_a_commit_behind_the_branches_is_fetched_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    folder, url = repository(tmp_path / "r")
    first = git(folder, "rev-parse", "HEAD")
    commit(folder, "two", {"a.yaml": "a: 2\n"})
    with remote.fetched(url, first, tmp_path) as snapshot:
        assert snapshot.bytes_of("a.yaml", 5) == b"a: 1\n"
        with pytest.raises(UserError, match="has 5 bytes, more than 4"):
            snapshot.bytes_of("a.yaml", 4)
        assert list(snapshot.files) == ["a.yaml"]
    assert list((tmp_path / "temporary").iterdir()) == []
    with pytest.raises(UserError), remote.fetched(url, git(folder, "rev-parse", "HEAD^{tree}"), tmp_path):
        pass


def test_what_never_answers_is_given_up_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"never": f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n"}, executable=True)
    monkeypatch.setenv("GIT_SSH", str(tmp_path / "never"))
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    monkeypatch.setattr(remote, "LIMIT", 2.0)
    with pytest.raises(UserError, match="took more than 2 s") as raised:
        remote.tip("ssh://example.invalid/o/r", "v1", tmp_path)
    assert raised.value.exit is Exit.UNMEASURED
    number = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the program that git started is still there")


def test_only_the_transport_that_was_named_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"home/.gitconfig": f'[url "ext::touch {tmp_path}/was-run "]\n insteadOf = https://\n'})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "home/.gitconfig"))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:https:file")
    with pytest.raises(UserError, match="transport 'ext' not allowed"):
        remote.tip("https://example.invalid/o/r", "v1", tmp_path)
    assert not (tmp_path / "was-run").exists()


def test_a_git_that_lies_in_the_project_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"project/bin/git": f"#!/bin/sh\ntouch {tmp_path}/was-run\n"}, executable=True)
    monkeypatch.setenv("PATH", str(tmp_path / "project/bin"))
    with pytest.raises(UserError, match="git is not on PATH"):
        remote.tip(f"file://{tmp_path}/r", "v1", tmp_path / "project")
    assert not (tmp_path / "was-run").exists()


FLOW = "perfflow: 1\nstages: {baseline: [{id: one, uses: command, runs: 2, with: {command: sh program.sh}}]}\n"


def partial_clone(folder: Path) -> Path:
    """Return a clone that has the contents of the newest files only."""
    origin = folder / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    git(origin, "config", "uploadpack.allowFilter", "true")
    for number in ("1", "2"):
        commit(origin, number, {"flow.yaml": FLOW, "program.sh": f"echo {number}\n"})
    git(folder, "clone", "-q", "--filter=blob:none", f"file://{origin}", "clone")
    return folder / "clone"


def gate(clone: Path) -> subprocess.CompletedProcess[str]:
    return perfflow("gate", "flow.yaml", "--base", "HEAD~1", cwd=clone)


def test_contents_are_fetched_where_git_can(tmp_path: Path) -> None:
    done = gate(partial_clone(tmp_path))
    assert "2 pairs" in done.stdout, done.stdout + done.stderr


def test_contents_that_cannot_be_fetched_are_named(tmp_path: Path) -> None:
    clone = partial_clone(tmp_path)
    (tmp_path / "origin").rename(tmp_path / "away")
    said = "this clone lacks contents of files (a partial clone)"
    done = gate(clone)
    assert done.returncode == 3
    assert f"{said}: run git fetch --refetch REMOTE" in done.stdout
    # Without the remote, git does not even try.
    git(clone, "config", "--remove-section", "remote.origin")
    done = gate(clone)
    assert done.returncode == 3
    assert said in done.stdout
    assert "program.sh" in done.stdout
