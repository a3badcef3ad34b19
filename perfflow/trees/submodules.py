"""Replace the links to submodules in a tree by their files, and back."""

from __future__ import annotations

from perfflow.model.errors import UserError
from perfflow.trees.git import Git, lines, names
from perfflow.trees.repository import Repository
from perfflow.trees.submodule_links import LINK, links


def filled(repository: Repository, tree: str) -> str:
    """Return the tree with the links of submodules replaced by the files of their commits, also in nested submodules.

    Raises UserError for a commit that is not on disk.
    """
    git, wanted = repository.git(), repository.to_fill
    while found := {path: link for path, link in links(git, tree).items() if wanted is None or path in wanted}:
        subtrees = {path: _subtree(git, path, commit) for path, commit in found.items()}
        tree = grafted(repository, tree, subtrees)
    return tree


def _subtree(git: Git, path: str, commit: str) -> str:
    done = git.attempt("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
    if done.status:
        hint = (
            f"git submodule update --init --recursive, or git -C {path} fetch (in CI: submodules: recursive and "
            "fetch-depth: 0 of actions/checkout); if no step needs it, worktree: {submodules: false}"
        )
        raise UserError.of(f"submodule {path}: commit {commit[:12]} is not on this disk", hint)
    return done.stdout.decode().strip()


def grafted(repository: Repository, tree: str, subtrees: dict[str, str]) -> str:
    """Return the tree with the contents of each path in ``subtrees`` replaced."""
    with repository.scratch() as folder:
        git = repository.git(folder / "index")
        git.run("read-tree", tree)
        git.run("update-index", "-z", "--force-remove", "--stdin", input=lines(subtrees))
        for path, subtree in subtrees.items():
            git.run("read-tree", f"--prefix={path}/", subtree)
        return git.line("write-tree")


def linked(repository: Repository, tree: str, commit: str, shown: str) -> str:
    """Return the tree with the submodules' files replaced by ``commit``'s links, for a commit on top of it.

    ``shown`` is the tree that showed ``commit``. Raises UserError if a submodule's files differ from it, because a
    commit of the outer repository cannot contain that change.
    """
    git = repository.git()
    linked_paths = links(git, commit)
    there = {path: link for path, link in linked_paths.items() if _at(git, tree, path) is not None}
    changed = [path for path in there if _at(git, tree, path) not in {_at(git, shown, path), there[path]}]
    if changed:
        hint = "commit the change inside the submodule first, or keep candidates out of it with forbid"
        raise UserError.of(f"the change affects the submodule {changed[0]}", hint)
    if not there:
        return tree
    with repository.scratch() as folder:
        git = repository.git(folder / "index")
        git.run("read-tree", tree)
        inside = [name for name in names(git.run("ls-files", "-z")) if _under(name, there)]
        git.run("update-index", "-z", "--force-remove", "--stdin", input=lines(inside))
        entries = [f"{LINK} {link}\t{path}" for path, link in there.items()]
        git.run("update-index", "-z", "--add", "--index-info", input=lines(entries))
        return git.line("write-tree")


def _under(name: str, paths: dict[str, str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in paths)


def _at(git: Git, tree: str, path: str) -> str | None:
    """Return the id of the object at a path of a tree, None if there is none."""
    entries = names(git.run("ls-tree", "-z", "--full-tree", tree, path))
    return entries[0].split("\t", 1)[0].split(" ")[2] if entries else None
