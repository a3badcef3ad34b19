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
    """A folder in which every user may write, as in /tmp: only owners can remove or rename. It holds ``theirs``."""
    folder = tmp_path / "shared"
    (folder / "theirs").mkdir(parents=True)
    folder.chmod(0o1777)
    return folder


def require_refused(folder: Path, match: str) -> None:
    with pytest.raises(UserError, match=match) as refused:
        private_folder(folder)
    assert refused.value.exit is Exit.UNMEASURED


def test_new_folders_can_be_read_and_changed_by_this_user_only(shared: Path) -> None:
    old = os.umask(0)
    try:
        made = private_folder(shared / "one" / "two")
    finally:
        os.umask(old)
    assert made == shared / "one" / "two"
    assert [mode(made.parent), mode(made)] == [0o700, 0o700]
    assert per_user(shared).name == f"perfflow-{os.getuid()}"


def test_a_folder_of_this_user_that_others_may_read_becomes_private(shared: Path) -> None:
    (shared / "own").mkdir(0o755)
    assert mode(private_folder(shared / "own")) == 0o700


@pytest.mark.parametrize("inside", ["", "deeper/folder"])
@pytest.mark.parametrize("bits", [0o777, 0o707])
def test_a_folder_in_which_others_can_write_is_refused(shared: Path, inside: str, bits: int) -> None:
    (shared / "theirs").chmod(bits)
    require_refused(shared / "theirs" / inside, r"other users can write in .*theirs")
    assert list((shared / "theirs").iterdir()) == []


@as_root
@pytest.mark.parametrize(("inside", "bits"), [("", 0o700), ("deeper", 0o700), ("mine", 0o1777)])
def test_a_folder_of_another_user_is_refused(shared: Path, inside: str, bits: int) -> None:
    """Also a sticky one, since its owner may rename what is in it."""
    os.chown(shared / "theirs", NOBODY, NOBODY)
    (shared / "theirs").chmod(bits)
    require_refused(shared / "theirs" / inside, "theirs belongs to another user")


@as_root
def test_a_link_of_another_user_is_refused(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (shared / "link").symlink_to(tmp_path / "target")
    os.chown(shared / "link", NOBODY, NOBODY, follow_symlinks=False)
    require_refused(shared / "link" / "mine", "is a link that another user made")
    assert list((tmp_path / "target").iterdir()) == []


def test_a_link_of_this_user_is_followed_and_its_target_is_checked(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (shared / "link").symlink_to("../target")
    assert private_folder(shared / "link" / "mine") == tmp_path / "target" / "mine"
    (tmp_path / "target").chmod(0o777)
    require_refused(shared / "link" / "mine", r"other users can write in .*target")


def test_a_circle_of_links_and_a_file_are_refused(shared: Path) -> None:
    (shared / "one").symlink_to("two")
    (shared / "two").symlink_to("one")
    (shared / "file").touch()
    for name in ("one", "file"):
        require_refused(shared / name, "is not safe from other users")


def test_folders_above_the_chosen_one_are_not_checked(shared: Path) -> None:
    (shared / "theirs").chmod(0o777)
    assert private_folder(shared / "theirs" / "mine", below=shared / "theirs").is_dir()


@as_root
def test_a_file_of_another_user_is_not_used(tmp_path: Path) -> None:
    require_own(tmp_path / "missing")
    (tmp_path / ".git").mkdir()
    require_own(tmp_path / ".git")
    os.chown(tmp_path / ".git", NOBODY, NOBODY)
    with pytest.raises(UserError, match="belongs to another user"):
        require_own(tmp_path / ".git")
