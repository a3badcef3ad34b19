"""git for remote repositories never prompts, never waits, and leaves no files behind."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import psutil
import pytest

from perfflow.model.errors import Exit, UserError
from perfflow.trees import remote
from tests.repositories import git


def repository(folder: Path) -> str:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.yaml").write_text("a: 1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return git(folder, "rev-parse", "HEAD").strip()


def test_tags_branches_and_commits_are_told_apart(tmp_path: Path) -> None:
    commit = repository(tmp_path / "r")
    git(tmp_path / "r", "tag", "-a", "v1", "-m", "v1")
    git(tmp_path / "r", "branch", "feature/x")
    git(tmp_path / "r", "branch", "v1")
    url = f"file://{tmp_path}/r"
    assert remote.tip(url, "v1", tmp_path) == (commit, "tag")
    assert remote.tip(url, "feature/x", tmp_path) == (commit, "branch")
    assert remote.tip(url, commit, tmp_path) == (commit, "commit")
    with pytest.raises(UserError, match="no tag and no branch called 'HEAD'"):
        remote.tip(url, "HEAD", tmp_path)


def test_a_commit_behind_the_branches_is_fetched_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    first = repository(tmp_path / "r")
    (tmp_path / "r/a.yaml").write_text("a: 2\n")
    git(tmp_path / "r", "commit", "-qam", "two")
    with remote.fetched(f"file://{tmp_path}/r", first, tmp_path) as snapshot:
        assert snapshot.bytes_of("a.yaml", 10) == b"a: 1\n"
        with pytest.raises(UserError, match="has 5 bytes, more than 4"):
            snapshot.bytes_of("a.yaml", 4)
        assert list(snapshot.files) == ["a.yaml"]
    assert list((tmp_path / "temporary").iterdir()) == []
    tree = git(tmp_path / "r", "rev-parse", "HEAD^{tree}").strip()
    with pytest.raises(UserError), remote.fetched(f"file://{tmp_path}/r", tree, tmp_path):
        pass


def test_what_never_answers_is_given_up_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "never"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(program))
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
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/.gitconfig").write_text(f'[url "ext::touch {tmp_path}/was-run "]\n insteadOf = https://\n')
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:https:file")
    with pytest.raises(UserError, match="transport 'ext' not allowed"):
        remote.tip("https://example.invalid/o/r", "v1", tmp_path)
    assert not (tmp_path / "was-run").exists()


def test_a_git_that_lies_in_the_project_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    (project / "bin").mkdir(parents=True)
    (project / "bin/git").write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    (project / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(project / "bin"))
    with pytest.raises(UserError, match="git is not on PATH"):
        remote.tip(f"file://{tmp_path}/r", "v1", project)
    assert not (tmp_path / "was-run").exists()
