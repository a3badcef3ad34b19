"""Turn a revision, or the user's current tree, into a state that slots can show, without changing the user's files.

The user's index is copied, and the copy is updated from the files, so only changed files are read.
"""

from __future__ import annotations

from perfflow.trees import commits, submodules
from perfflow.trees.repository import Repository, State, open_repository, writing
from perfflow.trees.submodule_links import links, present
from perfflow.trees.write_tree import Recorded, copy_index, record

MESSAGE = "The tree as it stood"
"""Message of the commit of uncommitted changes."""


def at(repository: Repository, name: str) -> State:
    """Return the state of the code at a revision. Raises UserError if it, or a submodule's commit, is missing."""
    commit = repository.revision(name)
    tree = repository.tree(commit)
    return State(commit, submodules.filled(repository, tree) if repository.submodules else tree)


def snapshot(repository: Repository) -> State:
    """Record tracked, staged and untracked files, deletions, modes and links, but no ignored files.

    The commit's parent is HEAD, if there is one. Raises UserError for a file that cannot be read, and for a full disk.
    """
    found = _recorded(repository)
    head = repository.head()
    parents = [head] if head else []
    unchanged = head is not None and repository.tree(head) == found.tree
    commit = head if head and unchanged else commits.write(repository, found.tree, parents, MESSAGE)
    if not repository.submodules:
        return State(commit, found.tree, found.left_out)
    return _with_submodules(repository, commit, found)


def _with_submodules(repository: Repository, commit: str, outer: Recorded) -> State:
    """Replace the link to each checked-out submodule by its current files."""
    tree, left_out = outer.tree, list(outer.left_out)
    for path in present(repository.root):
        if path not in links(repository.git(), tree):
            continue
        inner = _recorded(_inner(repository, path))
        tree = submodules.grafted(repository, tree, {path: inner.tree})
        left_out += [f"{path}/{name}" for name in inner.left_out]
    return State(commit, submodules.filled(repository, tree), tuple(left_out))


def _inner(repository: Repository, path: str) -> Repository:
    """Return a submodule as a repository that writes objects to the outer repository's store."""
    inner = open_repository(repository.root / path)
    return Repository(inner.root, inner.git_folder, repository.home, repository.borrowed, submodules=False)


def _recorded(repository: Repository) -> Recorded:
    with repository.scratch() as folder:
        index = folder / "index"
        with writing(index):
            copy_index(repository.git_folder / "index", index)
        return record(repository.git(index), repository.root, what=f"record {repository.root}")
