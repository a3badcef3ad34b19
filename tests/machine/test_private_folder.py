"""Folders that nobody else can change, also below folders that other users can write in."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from perfflow.machine.private_folder import per_user, private_folder, require_own
from perfflow.model.errors import Exit, UserError

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which every user may write, as in /tmp: only owners can remove or rename."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_new_folders_can_be_read_and_changed_by_this_user_only(shared: Path) -> None:
    old = os.umask(0)
    try:
        made = private_folder(shared / "one" / "two")
    finally:
        os.umask(old)
    assert made == shared / "one" / "two"
    assert [mode(made.parent), mode(made)] == [0o700, 0o700]


def test_a_folder_of_this_user_that_others_may_read_becomes_private(shared: Path) -> None:
    (shared / "own").mkdir(0o755)
    assert mode(private_folder(shared / "own")) == 0o700


def test_the_name_of_a_folder_in_a_shared_one_contains_the_number_of_the_user(shared: Path) -> None:
    assert per_user(shared).name == f"perfflow-{os.getuid()}"


@pytest.mark.parametrize("inside", ["", "deeper/folder"])
@pytest.mark.parametrize("bits", [0o777, 0o707])
def test_a_folder_in_which_others_can_write_is_refused(shared: Path, inside: str, bits: int) -> None:
    (shared / "theirs").mkdir()
    (shared / "theirs").chmod(bits)
    with pytest.raises(UserError, match=r"other users can write in .*theirs") as refused:
        private_folder(shared / "theirs" / inside)
    assert refused.value.exit is Exit.UNMEASURED
    assert list((shared / "theirs").iterdir()) == []


@as_root
@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_folder_of_another_user_is_refused(shared: Path, inside: str) -> None:
    (shared / "theirs").mkdir(0o700)
    os.chown(shared / "theirs", NOBODY, NOBODY)
    with pytest.raises(UserError, match="theirs belongs to another user"):
        private_folder(shared / "theirs" / inside)


@as_root
def test_a_sticky_folder_of_another_user_is_refused_since_its_owner_may_rename(shared: Path) -> None:
    (shared / "theirs").mkdir()
    os.chown(shared / "theirs", NOBODY, NOBODY)
    (shared / "theirs").chmod(0o1777)
    with pytest.raises(UserError, match="theirs belongs to another user"):
        private_folder(shared / "theirs" / "mine")


@as_root
def test_a_link_of_another_user_is_refused(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (shared / "link").symlink_to(tmp_path / "target")
    os.chown(shared / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(UserError, match="is a link that another user made"):
        private_folder(shared / "link" / "mine")
    assert list((tmp_path / "target").iterdir()) == []


def test_a_link_of_this_user_is_followed_and_its_target_is_checked(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (shared / "link").symlink_to("../target")
    assert private_folder(shared / "link" / "mine") == tmp_path / "target" / "mine"
    (tmp_path / "target").chmod(0o777)
    with pytest.raises(UserError, match=r"other users can write in .*target"):
        private_folder(shared / "link" / "mine")


def test_a_circle_of_links_and_a_file_are_refused(shared: Path) -> None:
    (shared / "one").symlink_to("two")
    (shared / "two").symlink_to("one")
    (shared / "file").touch()
    for name in ("one", "file"):
        with pytest.raises(UserError, match="is not safe from other users"):
            private_folder(shared / name)


def test_folders_above_the_chosen_one_are_not_checked(shared: Path) -> None:
    (shared / "team").mkdir()
    (shared / "team").chmod(0o777)
    assert private_folder(shared / "team" / "mine", below=shared / "team").is_dir()


@as_root
def test_a_file_of_another_user_is_not_used(tmp_path: Path) -> None:
    require_own(tmp_path / "missing")
    (tmp_path / ".git").mkdir()
    require_own(tmp_path / ".git")
    os.chown(tmp_path / ".git", NOBODY, NOBODY)
    with pytest.raises(UserError, match="belongs to another user"):
        require_own(tmp_path / ".git")
