"""A revision, or the user's tree as it stands → a state that slots can show, with nothing of the user's touched.

The user's index is copied, and the copy brought up to date with the files: so only what changed is read.
"""

from __future__ import annotations

from perfflow.trees import commits, submodules
from perfflow.trees.repository import Repository, State, open_repository, writing
from perfflow.trees.submodule_links import links, present
from perfflow.trees.write_tree import Recorded, copy_index, record

MESSAGE = "The tree as it stood"
"""Of the commit that stands for changes which are not committed."""


def at(repository: Repository, name: str) -> State:
    """The state of the code at a revision. Raises UserError for an unknown one, or where a submodule lacks it."""
    commit = repository.revision(name)
    tree = repository.tree(commit)
    return State(commit, submodules.filled(repository, tree) if repository.submodules else tree)


def snapshot(repository: Repository) -> State:
    """Record tracked, staged and untracked files (ignored ones not), deletions, modes and links.

    The commit's parent is HEAD where there is one. Raises UserError for a file that cannot be read, a full disk.
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
    """Put the files of each submodule that is checked out, as they stand, in place of the link to it."""
    tree, left_out = outer.tree, list(outer.left_out)
    for path in present(repository.root):
        if path not in links(repository.git(), tree):
            continue
        inner = _recorded(_inner(repository, path))
        tree = submodules.grafted(repository, tree, {path: inner.tree})
        left_out += [f"{path}/{name}" for name in inner.left_out]
    return State(commit, submodules.filled(repository, tree), tuple(left_out))


def _inner(repository: Repository, path: str) -> Repository:
    """A submodule as a repository whose objects go to the outer one's store."""
    inner = open_repository(repository.root / path)
    return Repository(inner.root, inner.git_folder, repository.home, repository.borrowed, submodules=False)


def _recorded(repository: Repository) -> Recorded:
    with repository.scratch() as folder:
        index = folder / "index"
        with writing(index):
            copy_index(repository.git_folder / "index", index)
        return record(repository.git(index), repository.root, what=f"record {repository.root}")
