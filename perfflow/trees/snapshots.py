"""Turn a revision, or the user's current tree, into a state that slots can show, without changing the user's files.

- ``at`` and ``snapshot`` return the state of a revision, or of the user's current tree.
- ``record`` writes a folder on disk as a tree: the current tracked files, and untracked files that are not ignored. The
  user's index is copied, and the copy is updated from the files, so only changed files are read.
- ``text_of`` reads text files of an untrusted project: only regular files of limited size inside the project.
- ``ignored_files`` and ``remove_new`` handle ignored files that a command writes into a tree. Recorded trees and
  branches do not contain them. Existing folders that are ignored as a whole, in which build tools keep their output,
  are not checked.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfflow.trees import commits, sharing, submodules
from perfflow.trees.git import Git, lines, names
from perfflow.trees.repository import CodeState, Repository, open_repository, writing
from perfflow.trees.submodule_links import links, present

MESSAGE = "The tree as it stood"
"""Message of the commit of uncommitted changes."""


def at(repository: Repository, name: str) -> CodeState:
    """Return the state of the code at a revision. Raises UserError if it, or a submodule's commit, is missing."""
    commit = repository.revision(name)
    tree = repository.tree(commit)
    return CodeState(commit, submodules.filled(repository, tree) if repository.submodules else tree)


def snapshot(repository: Repository) -> CodeState:
    """Record tracked, staged and untracked files, deletions, modes and links, but no ignored files.

    The commit's parent is HEAD, if there is one. Raises UserError for a file that cannot be read, and for a full disk.
    """
    recorded = _recorded(repository)
    head = repository.head()
    parents = [head] if head else []
    unchanged = head is not None and repository.tree(head) == recorded.tree
    commit = head if head and unchanged else commits.write(repository, recorded.tree, parents, MESSAGE)
    if not repository.submodules:
        return CodeState(commit, recorded.tree, recorded.left_out)
    return _with_submodules(repository, commit, recorded)


def _with_submodules(repository: Repository, commit: str, outer: RecordedTree) -> CodeState:
    """Replace the link to each checked-out submodule by its current files."""
    tree, left_out = outer.tree, list(outer.left_out)
    for path in present(repository.root):
        if path not in links(repository.git(), tree):
            continue
        inner = _recorded(_inner(repository, path))
        tree = submodules.grafted(repository, tree, {path: inner.tree})
        left_out += [f"{path}/{name}" for name in inner.left_out]
    return CodeState(commit, submodules.filled(repository, tree), tuple(left_out))


def _inner(repository: Repository, path: str) -> Repository:
    """Return a submodule as a repository that writes objects to the outer repository's store."""
    inner = open_repository(repository.root / path)
    return Repository(inner.root, inner.git_folder, repository.home, repository.borrowed, submodules=False)


def _recorded(repository: Repository) -> RecordedTree:
    with repository.scratch() as folder:
        index = folder / "index"
        with writing(index):
            copy_index(repository.git_folder / "index", index)
        return record(repository.git(index), repository.root, what=f"record {repository.root}")


@dataclass(frozen=True)
class RecordedTree:
    """The tree that was written, and the folders that it cannot contain."""

    tree: str
    left_out: tuple[str, ...]


def record(git: Git, worktree: Path, exclude: Iterable[str] = (), what: str = "record the tree") -> RecordedTree:
    """Update the index of ``git`` from ``worktree`` and write it as a tree.

    Deletions, modes, links, staged and unstaged changes and conflicts are recorded as they are on disk; paths under
    ``exclude`` are left out. Raises UserError if a file cannot be read or the disk is full.
    """
    # Ignore the user's assume-unchanged bits.
    git.attempt("update-index", "-q", "--really-refresh")
    unseen = [path for path in _skipped(git) if os.path.lexists(worktree / path)]
    if unseen:
        git.run("update-index", "-z", "--no-skip-worktree", "--stdin", input=lines(unseen))
    git.run("add", "--update", what=what)
    untracked = _others(git, exclude)
    files = [path for path in untracked if not path.endswith("/")]
    if files:
        # --remove: a file that was deleted meanwhile is left out instead of causing an error.
        git.run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", input=lines(files), what=what)
    left_out = tuple(path for path in untracked if path.endswith("/"))
    return RecordedTree(git.line("write-tree", what=what), left_out)


def _others(git: Git, exclude: Iterable[str] = ()) -> list[str]:
    """Return untracked paths that are not ignored: files, and nested repositories with a trailing slash."""
    options = [f"--exclude={exactly(path)}" for path in exclude]
    return names(git.run("ls-files", "--others", "--exclude-standard", "-z", *options))


def exactly(path: str) -> str:
    """Return a line for .gitignore that matches only this path."""
    return "/" + re.sub(r"([\\*?\[\] !#])", r"\\\1", path)


def _skipped(git: Git) -> list[str]:
    """Return the paths that git skips because of a sparse checkout or the user's settings."""
    return [name[2:] for name in names(git.run("ls-files", "-t", "-z")) if name.startswith("S ")]


def copy_index(source: Path, target: Path) -> None:
    """Copy an index file with its mtime, because git rereads files that are as new as their index.

    A repository without an index file gives no copy.
    """
    try:
        number = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(number, "rb") as file:
        facts = os.fstat(file.fileno())
        target.write_bytes(file.read())
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))


LARGEST = 2**20
"""Largest size (bytes) of a file that is read."""


def text_of(path: Path, within: Path) -> str:
    """Return the text of a file below ``within``.

    '' for a file that does not exist, is larger than ``LARGEST``, not regular, not UTF-8, or reached through a link
    that leads out of ``within``.
    """
    try:
        place = path.resolve()
        if not place.is_relative_to(within.resolve()) or not stat.S_ISREG(place.stat().st_mode):
            return ""
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            data = stream.read(LARGEST + 1)
        return "" if len(data) > LARGEST else data.decode("utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError):  # RuntimeError: a loop of links, before Python 3.13
        return ""


IgnoredFiles = tuple[int, int, int]
"""Size in bytes, mtime and ctime in ns. A copied file may keep the mtime of its source."""
_BYTECODE = "__pycache__"


def ignored_files(git: Git, folder: Path, share: Iterable[str]) -> dict[str, IgnoredFiles]:
    """Return the ignored paths of a folder: files, and with a trailing slash folders that are ignored as a whole.

    Shared paths and Python bytecode are left out. Raises UserError if git fails.
    """
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    states = {}
    for name in names(git.run("ls-files", *options)):
        path = PurePosixPath(name)
        if path.name == _BYTECODE or any(path.is_relative_to(shared) for shared in share):
            continue
        try:
            facts = (folder / name).lstat()
        except FileNotFoundError:
            continue
        states[name] = (0, 0, 0) if name.endswith("/") else (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return states


def remove_new(
    folder: Path, before: Mapping[str, IgnoredFiles], built: Collection[str], after: Mapping[str, IgnoredFiles]
) -> list[str]:
    """Remove ignored files that a command wrote, and return their paths without those that a build makes.

    ``built``: ignored paths in a built tree. Such a file is removed but not returned, because the next build makes it
    again; such a folder stays.
    """
    folders = {name for name in (*before, *built) if name.endswith("/")}
    removed = []
    for name, state in after.items():
        if before.get(name) == state or any(name.startswith(known) for known in folders):
            continue
        if name.endswith("/") and any(known.startswith(name) for known in before):
            continue  # a folder whose files were listed one by one is now listed as a whole
        sharing.remove(folder / name)
        if name not in built:
            removed.append(name)
    return removed


def tops(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the paths that git ignores and does not track, each with the top folder that is ignored as a whole.

    Raises UserError if git is missing.
    """
    above = {path: list(_above(root, path)) for path in paths}
    asked = sorted({part for parts in above.values() for part in parts})
    if not asked:
        return {}
    found = set(names(Git(root).attempt("check-ignore", "-z", "--stdin", input=lines(asked)).stdout))
    return {path: top for path, parts in above.items() if (top := next((part for part in parts if part in found), ""))}


def _above(root: Path, path: str) -> Iterator[str]:
    """Yield the folders of a path from the top down, and the path itself.

    Stops at a link or a nested repository, because git does not answer for paths behind them.
    """
    parts = PurePosixPath(path).parts
    for number in range(1, len(parts) + 1):
        part = str(PurePosixPath(*parts[:number]))
        yield part
        if (root / part).is_symlink() or (root / part / ".git").exists():
            return
