"""Find submodules: the links in a tree, and the submodules that are checked out on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perfflow.trees.git import Git, names

LINK = "160000"
"""The mode of a link to a commit of another repository."""


def links(git: Git, tree: str) -> dict[str, str]:
    """Return path → commit of every link in a tree."""
    found = {}
    for entry in names(git.run("ls-tree", "-r", "-z", "--full-tree", tree)):
        facts, path = entry.split("\t", 1)
        mode, _, commit = facts.split(" ", 2)
        if mode == LINK:
            found[path] = commit
    return found


def present(root: Path) -> list[str]:
    """Return the submodules that are checked out under ``root``, also nested ones; outer ones before inner ones."""
    return list(_present(root, ""))


def _present(root: Path, prefix: str) -> Iterator[str]:
    listed = names(Git(root / prefix).run("ls-files", "--stage", "-z", "--cached"))
    for entry in listed:
        facts, name = entry.split("\t", 1)
        path = os.path.join(prefix, name)  # noqa: PTH118 - names are text with surrogates, relative to root
        if facts.startswith(LINK) and (root / path / ".git").exists():
            yield path
            yield from _present(root, path)
