"""The commits between a good and a bad revision, in the order in which git would try them. Nothing is written."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

from perfflow.trees.git import names
from perfflow.trees.repository import Repository

_LINE = re.compile(r"^(?P<commit>[0-9a-f]+) \((?:.*, )?dist=(?P<distance>\d+)\)$")


@dataclass(frozen=True)
class Candidate:
    """A commit that may be the first bad one. Testing it rules out at least ``distance`` commits."""

    commit: str
    distance: int


@dataclass(frozen=True)
class Described:
    """A commit as git describes it; ``date`` is the author's, in ISO 8601."""

    revision: str
    parents: tuple[str, ...]
    author: str
    date: str
    subject: str


def candidates(
    repository: Repository, bad: str, good: Collection[str], *, first_parent: bool = False
) -> list[Candidate]:
    """Return the commits that ``bad`` has but none of ``good``, including ``bad``; the best one to test comes first.

    With ``first_parent``, a merge counts as one change, as in `git bisect --first-parent`.
    """
    walk = ("--first-parent",) if first_parent else ()
    words = ("rev-list", "--bisect-all", *walk, bad, *(f"^{commit}" for commit in good))
    found = repository.git().run(*words, what="list the commits to try").decode().splitlines()
    lines = [_LINE.match(line) for line in found]
    return [Candidate(line["commit"], int(line["distance"])) for line in lines if line]


def described(repository: Repository, commit: str) -> Described:
    """Return git's description of a commit. Raises UserError for an unknown one."""
    form = "%H%x00%P%x00%an <%ae>%x00%aI%x00%s"
    words = ("show", "-s", "--no-show-signature", "--encoding=UTF-8", f"--format={form}", commit)
    text = repository.git().run(*words, what=f"read {commit}").decode(errors="replace").removesuffix("\n")
    revision, parents, author, date, subject = text.split("\0", 4)
    return Described(revision, tuple(parents.split()), author, date, subject)


def touched(repository: Repository, commit: Described) -> list[str]:
    """Return the paths that differ between a commit and its first parent; all its paths if it has no parent."""
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id")
    sides = (commit.parents[0], commit.revision) if commit.parents else ("--root", commit.revision)
    found = names(repository.git().run(*words, *sides, what=f"list the files of {commit.revision}"))
    return [os.fsencode(name).decode(errors="replace") for name in found]
