"""Trees that are made of others: by patches, and by files of head over those of the base."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.overlay import inside, overlaid
from perfflow.trees.patches import FileChange, apply, changed_paths, difference
from perfflow.trees.repository import CodeState, Repository, open_repository
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, git, write

Ready = Callable[[], None]


def numbered(changed: dict[int, str]) -> str:
    return "".join(f"{changed.get(line, line)}\n" for line in range(1, 61))


@pytest.fixture
def patch(root: Path) -> str:
    """A patch with two hunks, at lines 7 and 47."""
    commit(root, "numbers", {"n.txt": numbered({})})
    write(root, {"n.txt": numbered({10: "ten", 50: "fifty"})})
    text = git(root, "diff") + "\n"
    git(root, "checkout", "-q", "n.txt")
    return text


def creating(path: str) -> str:
    """Return a patch that creates a file."""
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


def test_a_patch_makes_a_tree_and_touches_nothing(
    root: Path, repository: Repository, patch: str, untouched: Ready
) -> None:
    untouched()
    base = at(repository, "HEAD").tree
    tree = apply(repository, base, patch)
    found = difference(repository, base, tree)
    assert found.files == (FileChange("n.txt", 2, 2),)
    assert found.lines == 4
    assert "+fifty" in found.text
    assert apply(repository, base, found.patch) == tree


def test_the_file_and_the_hunk_that_do_not_apply_are_named(root: Path, repository: Repository, patch: str) -> None:
    write(root, {"n.txt": numbered({48: "other"})})
    tree = snapshot(repository).tree
    with pytest.raises(UserError, match=r"slab.patch does not apply to n.txt, hunk 2 \(at line 47\)"):
        apply(repository, tree, patch, "slab.patch")
    (root / "n.txt").unlink()
    with pytest.raises(UserError, match=r"does not apply: n.txt is not in the tree"):
        apply(repository, snapshot(repository).tree, patch)


def test_a_patch_that_is_in_already_is_refused(repository: Repository, patch: str) -> None:
    base = at(repository, "HEAD").tree
    with pytest.raises(UserError, match=r"does not apply to n\.txt, hunk 1"):
        apply(repository, apply(repository, base, patch), patch)
    with pytest.raises(UserError, match=r"a.txt is already in the tree"):
        apply(repository, base, creating("a.txt"))


@pytest.mark.parametrize("path", ["../x", ".git/config", "link/x", "/etc/x", "a/../../x"])
def test_a_patch_stays_in_the_tree(root: Path, repository: Repository, tmp_path: Path, path: str) -> None:
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(UserError, match="reaches outside the tree"):
        apply(repository, snapshot(repository).tree, creating(path))


def test_what_is_no_patch_is_said(root: Path, repository: Repository, patch: str) -> None:
    write(root, {"deep/m.txt": numbered({})})
    tree = snapshot(repository).tree
    bare = patch.replace("a/n.txt", "deep/m.txt").replace("b/n.txt", "deep/m.txt").split("\n", 2)[2]
    for text, said in (
        ("", "contains no changes"),
        ("nothing here\n", "contains no changes"),
        (patch[:-20], "is damaged at its line"),
        (bare, "without a/ and b/"),
    ):
        with pytest.raises(UserError, match=said):
            apply(repository, tree, text)


def test_a_patch_by_mail_a_rename_a_mode_and_a_binary_file(root: Path, repository: Repository) -> None:
    base = at(repository, "HEAD").tree
    git(root, "mv", "a.txt", "b.txt")
    (root / "src.py").chmod(0o755)
    wanted = repository.tree(commit(root, "all kinds", {"data.bin": bytes(range(256))}))
    mail = ["git", "format-patch", "-1", "--stdout", "--binary"]
    assert apply(repository, base, subprocess.run(mail, cwd=root, capture_output=True, check=True).stdout) == wanted
    assert changed_paths(repository, base, wanted) == ("a.txt", "b.txt", "data.bin", "src.py")
    assert FileChange("data.bin", None, None) in difference(repository, base, wanted).files
    assert apply(repository, base, difference(repository, base, wanted).patch) == wanted


def test_what_is_shown_does_not_depend_on_settings(root: Path, repository: Repository) -> None:
    name = os.fsdecode(b"\xff\n-x")
    write(root, {name: b"\xff\n", "a.txt": "changed\n"})
    base, new = at(repository, "HEAD").tree, snapshot(repository).tree
    plain = difference(repository, base, new)
    settings = {"diff.external": "false", "diff.noprefix": "true", "color.ui": "always", "diff.mnemonicPrefix": "true"}
    for key, value in settings.items():
        git(root, "config", key, value)
    assert difference(repository, base, new) == plain
    assert [file.path for file in plain.files] == ["a.txt", name]
    assert "\ufffd" in plain.text


@pytest.fixture
def overlaid_project(tmp_path: Path) -> Repository:
    root = tmp_path / "overlaid"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(root, "base", {"code": "slow", "bench/one": "1", "bench/own": "of the base", "bench/deep": "a file"})
    git(root, "rm", "-q", "bench/own", "bench/deep")
    commit(root, "head", {"code": "quick", "bench/one": "2", "bench/deep/two": "new", "bench/päth\n*": "odd"})
    return open_repository(root)


def files(repository: Repository, state: CodeState) -> dict[str, str]:
    listed = repository.git().run("ls-tree", "-r", "-z", "--name-only", "--full-tree", state.tree).decode()
    names = listed.split("\0")[:-1]
    return {name: repository.git().run("cat-file", "blob", f"{state.tree}:{name}").decode() for name in names}


def test_heads_files_win_and_those_that_only_base_has_stay(overlaid_project: Repository) -> None:
    base, head = at(overlaid_project, "HEAD~1"), at(overlaid_project, "HEAD")
    found, replaced = overlaid(overlaid_project, base, head, ["bench"])
    assert files(overlaid_project, found) == {
        "code": "slow",
        "bench/one": "2",
        "bench/own": "of the base",
        "bench/deep/two": "new",
        "bench/päth\n*": "odd",
    }
    assert (found.commit, replaced) == (base.commit, 3)
    assert overlaid(overlaid_project, found, head, ["bench", "bench/one"]) == (found, 0)
    with pytest.raises(UserError, match="head has no such file"):
        overlaid(overlaid_project, base, head, ["ben*"])


def test_a_path_leads_into_the_project_also_from_a_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("project")
    assert inside(tmp_path / "project", tmp_path / "link" / "deep", ["../bench", "one/.."]) == ("bench", "deep")
    with pytest.raises(UserError, match="not a path inside"):
        inside(tmp_path / "project", tmp_path / "link", ["../outside"])
