"""Apply patches to trees, and compare trees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.patches import FileChange, apply, changed_paths, difference
from perfflow.trees.repository import Repository
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, git

Ready = Callable[[], None]


def numbered(changed: dict[int, str]) -> str:
    return "".join(f"{changed.get(line, line)}\n" for line in range(1, 61))


@pytest.fixture
def patch(root: Path) -> str:
    """A patch with two hunks, at lines 7 and 47."""
    (root / "n.txt").write_text(numbered({}))
    commit(root, "numbers")
    (root / "n.txt").write_text(numbered({10: "ten", 50: "fifty"}))
    text = git(root, "diff") + "\n"
    git(root, "checkout", "-q", "n.txt")
    return text


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
    (root / "n.txt").write_text(numbered({48: "other"}))
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
    new = "diff --git a/a.txt b/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(UserError, match=r"a.txt is already in the tree"):
        apply(repository, base, new)


@pytest.mark.parametrize("path", ["../x", ".git/config", "link/x", "/etc/x", "a/../../x"])
def test_a_patch_stays_in_the_tree(root: Path, repository: Repository, tmp_path: Path, path: str) -> None:
    (root / "link").symlink_to(tmp_path)
    text = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(UserError, match="reaches outside the tree"):
        apply(repository, snapshot(repository).tree, text)


def test_what_is_no_patch_is_said(root: Path, repository: Repository, patch: str) -> None:
    base = at(repository, "HEAD").tree
    for text in ("", "nothing here\n"):
        with pytest.raises(UserError, match="contains no changes"):
            apply(repository, base, text)
    with pytest.raises(UserError, match="is damaged at its line"):
        apply(repository, base, patch[:-20])
    (root / "deep").mkdir()
    (root / "deep" / "m.txt").write_text(numbered({}))
    bare = patch.replace("a/n.txt", "deep/m.txt").replace("b/n.txt", "deep/m.txt").split("\n", 2)[2]
    with pytest.raises(UserError, match="without a/ and b/"):
        apply(repository, snapshot(repository).tree, bare)


def test_a_patch_by_mail_a_rename_a_mode_and_a_binary_file(root: Path, repository: Repository) -> None:
    base = at(repository, "HEAD").tree
    git(root, "mv", "a.txt", "b.txt")
    (root / "src.py").chmod(0o755)
    (root / "data.bin").write_bytes(bytes(range(256)))
    wanted = repository.tree(commit(root, "all kinds"))
    done = subprocess.run(
        ["git", "format-patch", "-1", "--stdout", "--binary"], cwd=root, capture_output=True, check=True
    )
    assert apply(repository, base, done.stdout) == wanted
    assert changed_paths(repository, base, wanted) == ("a.txt", "b.txt", "data.bin", "src.py")
    assert FileChange("data.bin", None, None) in difference(repository, base, wanted).files
    assert apply(repository, base, difference(repository, base, wanted).patch) == wanted


def test_what_is_shown_does_not_depend_on_settings(root: Path, repository: Repository) -> None:
    name = os.fsdecode(b"\xff\n-x")
    (root / name).write_bytes(b"\xff\n")
    (root / "a.txt").write_text("changed\n")
    base, new = at(repository, "HEAD").tree, snapshot(repository).tree
    plain = difference(repository, base, new)
    settings = {"diff.external": "false", "diff.noprefix": "true", "color.ui": "always", "diff.mnemonicPrefix": "true"}
    for key, value in settings.items():
        git(root, "config", key, value)
    assert difference(repository, base, new) == plain
    assert [file.path for file in plain.files] == ["a.txt", name]
    assert "\ufffd" in plain.text
