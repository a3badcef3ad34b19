"""Folders that only this user can read and change, also below folders that all users share, such as ``/tmp``."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

from perfflow.model.errors import Exit, UserError

_MOST_LINKS = 40
"""Most links in one path, as in the kernel."""


def private_folder(path: Path, *, below: Path | None = None) -> Path:
    """Return a folder with links resolved, after creating it if it is missing: mode 0700, owned by this user.

    Nobody else may be able to replace a folder on the way to it. So each one must belong to this user or root and be
    writable by nobody else, or be sticky as ``/tmp`` is; and links are followed only if this user or root made them.
    Folders above ``below`` are not checked, nor is ``below`` itself; by default that is the home folder, because
    whoever can change that can change the user's settings anyway.

    Raises UserError (exit status 3) for a folder that others own or can change, OSError if it cannot be created.
    """
    real, left, links = Path("/"), list(Path(os.path.abspath(path)).parts[1:]), _MOST_LINKS  # noqa: PTH100 (no links)
    exempt = _and_above(Path(os.path.realpath(below or Path("~").expanduser())))
    while left:
        place, left = real / left[0], left[1:]
        with suppress(FileExistsError):
            if not os.path.lexists(place):
                place.mkdir(0o700)
        state = place.lstat()
        if stat.S_ISLNK(state.st_mode):
            links -= 1
            if links < 0 or state.st_uid not in _trusted():
                raise _refused(path, f"{place} is a link that another user made")
            target = Path(real, place.readlink())
            real, left = Path("/"), [*Path(os.path.abspath(target)).parts[1:], *left]  # noqa: PTH100
            continue
        if not stat.S_ISDIR(state.st_mode):
            raise _refused(path, f"{place} is not a folder")
        if not left:
            _make_private(path, place, state)
        elif place not in exempt:
            _require_safe(path, place, state)
        real = place
    return real


def per_user(shared: Path) -> Path:
    """Return the path of this user's own folder in a folder that several users share."""
    return shared / f"perfflow-{os.getuid()}"


def require_own(path: Path) -> None:
    """Raise UserError if a file or folder exists and another user made it."""
    with suppress(FileNotFoundError):
        if path.lstat().st_uid != os.geteuid():
            raise _refused(path, f"{path} belongs to another user")


def _and_above(folder: Path) -> frozenset[Path]:
    return frozenset((folder, *folder.parents))


def _trusted() -> frozenset[int]:
    """Return the users who can change everything here: this one, root, and the owner of the file system."""
    # In a user namespace, the owner of the file system has another number than 0.
    return frozenset((0, os.geteuid(), Path("/").stat().st_uid))


def _make_private(path: Path, place: Path, state: os.stat_result) -> None:
    if state.st_uid != os.geteuid():
        raise _refused(path, f"{place} belongs to another user")
    if _others_write(state):
        raise _refused(path, f"other users can write in {place}")
    if stat.S_IMODE(state.st_mode) & 0o077:
        place.chmod(0o700)


def _require_safe(path: Path, place: Path, state: os.stat_result) -> None:
    if state.st_uid not in _trusted():
        raise _refused(path, f"{place} belongs to another user")
    if _others_write(state) and not state.st_mode & stat.S_ISVTX:
        raise _refused(path, f"other users can write in {place}")


def _others_write(state: os.stat_result) -> bool:
    """Return whether users other than the owner may write; a group in which the owner is alone does not count."""
    if state.st_mode & stat.S_IWOTH:
        return True
    return bool(state.st_mode & stat.S_IWGRP) and not _is_alone(state.st_gid)


def _is_alone(group: int) -> bool:
    """Return whether a group is the private one of this user, as many systems make one for each user."""
    try:
        user, about = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and about.gr_name == user.pw_name and set(about.gr_mem) <= {user.pw_name}


def _refused(path: Path, why: str) -> UserError:
    hint = "use a folder that belongs to you or root and that nobody else can change, such as one in your home folder"
    return UserError.of(f"{path} is not safe from other users: {why}", hint, Exit.UNMEASURED)
