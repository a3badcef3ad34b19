"""Head's files over those of the base."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.overlay import inside, overlaid
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import at
from tests.repositories import git


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(root, {"code": "slow", "bench/one": "1", "bench/own": "of the base", "bench/deep": "a file"})
    git(root, "rm", "-q", "bench/own", "bench/deep")
    commit(root, {"code": "quick", "bench/one": "2", "bench/deep/two": "new", "bench/päth\n*": "odd"})
    return open_repository(root)


def commit(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def files(repository: Repository, state: CodeState) -> dict[str, str]:
    listed = repository.git().run("ls-tree", "-r", "-z", "--name-only", "--full-tree", state.tree).decode()
    names = listed.split("\0")[:-1]
    return {name: repository.git().run("cat-file", "blob", f"{state.tree}:{name}").decode() for name in names}


def test_heads_files_win_and_those_that_only_base_has_stay(repository: Repository) -> None:
    base, head = at(repository, "HEAD~1"), at(repository, "HEAD")
    found, replaced = overlaid(repository, base, head, ["bench"])
    assert files(repository, found) == {
        "code": "slow",
        "bench/one": "2",
        "bench/own": "of the base",
        "bench/deep/two": "new",
        "bench/päth\n*": "odd",
    }
    assert (found.commit, replaced) == (base.commit, 3)
    assert overlaid(repository, found, head, ["bench", "bench/one"]) == (found, 0)


def test_a_path_is_no_pattern(repository: Repository) -> None:
    with pytest.raises(UserError, match="head has no such file"):
        overlaid(repository, at(repository, "HEAD~1"), at(repository, "HEAD"), ["ben*"])


def test_a_path_leads_into_the_project_also_from_a_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("project")
    assert inside(tmp_path / "project", tmp_path / "link" / "deep", ["../bench", "one/.."]) == ("bench", "deep")
    with pytest.raises(UserError, match="not a path inside"):
        inside(tmp_path / "project", tmp_path / "link", ["../outside"])
