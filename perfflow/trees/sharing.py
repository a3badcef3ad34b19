"""Link ignored paths of the user's tree into other trees that need them (``worktree: {share: [.venv, data]}``)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from perfflow.model.errors import Problem, UserError
from perfflow.trees.git import Git, names
from perfflow.trees.repository import Repository


def checked(root: Path, share: Iterable[str]) -> tuple[str, ...]:
    """Return the normalized paths. Raises UserError with each path that is missing or leaves the project."""
    paths = tuple(dict.fromkeys(str(PurePosixPath(path)) for path in share))
    problems = tuple(problem for path in paths for problem in problems_of(root, path))
    if problems:
        raise UserError(problems)
    return paths


def problems_of(root: Path, path: str) -> Iterator[Problem]:
    """Yield the problems of a shared path itself: where it leads, and whether it exists."""
    parts = PurePosixPath(path).parts
    if path == "." or path.startswith("/") or ".." in parts or ".git" in parts:
        yield Problem(f"worktree.share: {path} is not a path inside the project", "write it relative to the project")
    elif not (root / path).parent.resolve().is_relative_to(root.resolve()):
        yield Problem(f"worktree.share: {path} leaves the project through a link", "share the link itself")
    elif not os.path.lexists(root / path):
        yield Problem(f"worktree.share: {path} does not exist", "create it, or take it out of the list")


def require_free(repository: Repository, tree: str, share: Sequence[str]) -> None:
    """Raise UserError if the tree itself contains a shared path, or a file in place of one of its folders."""
    git = repository.git()
    for path in share:
        if _is_held(git, tree, path):
            hint = "every tree has its own: take it out of the list, or git rm --cached it and add it to .gitignore"
            raise UserError.of(f"worktree.share: {path} is tracked, or not ignored", hint)


def _is_held(git: Git, tree: str, path: str) -> bool:
    """Return whether the tree contains the path, or a file in place of one of its folders."""
    for place in (*reversed(PurePosixPath(path).parents[:-1]), path):
        entries = names(git.run("ls-tree", "-z", "--full-tree", tree, str(place)))
        if not entries:
            return False
        if not entries[0].startswith("040000"):
            return True
    return True


def link(root: Path, slot: Path, share: Sequence[str]) -> None:
    """Make each shared path of a slot a link to the user's, in place of anything that a build left there."""
    for path in share:
        place, target = slot / path, root / path
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            # A link that a step left there would lead out of the slot.
            if (slot / parent).is_symlink() or (slot / parent).is_file():
                (slot / parent).unlink()
        if place.is_symlink() and place.readlink() == target:
            continue
        remove(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def remove(place: Path) -> None:
    """Remove a file, a link (never its target) or a folder with its contents."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)
