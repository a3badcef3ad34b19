"""Show files of head on both sides of a gate (``gate --overlay PATH``), for benchmarks younger than the base.

Files of head win, as in an overlay file system; files that only the base has under the path stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from perfflow.model.errors import UserError
from perfflow.trees.git import lines, names
from perfflow.trees.repository import CodeState, Repository

_LINK = "120000"
"""The mode of a symbolic link."""


def inside(root: Path, folder: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths, as typed in ``folder``, relative to the tree ``root``. Raises UserError for paths outside of it."""
    root, found = root.resolve(), []
    for text in paths:
        path = Path(os.path.normpath(folder.resolve() / text))
        if not path.is_relative_to(root) or path == root or ".git" in path.relative_to(root).parts:
            hint = "name the file or folder of the benchmarks, such as --overlay benchmarks"
            raise UserError.of(f"--overlay {text}: not a path inside {root}", hint)
        found.append(path.relative_to(root).as_posix())
    return tuple(dict.fromkeys(found))


def overlaid(repository: Repository, base: CodeState, head: CodeState, paths: Sequence[str]) -> tuple[CodeState, int]:
    """Return the base with head's files under ``paths``, and the number of files that this adds or replaces.

    paths: relative to the repository. Raises UserError for a path that head does not have, or that is a link.
    """
    git = repository.git()
    entries: dict[str, str] = {}
    for path in paths:
        _require_plain(repository, head, path)
        listed = names(git.run("ls-tree", "-r", "-z", "--full-tree", head.tree, "--", path))
        if not listed:
            hint = "it must be committed there, or at least not be ignored"
            raise UserError.of(f"--overlay {path}: head has no such file or folder", hint)
        entries |= {entry.split("\t", 1)[1]: entry for entry in listed}
    of_base = set(names(git.run("ls-tree", "-r", "-z", "--full-tree", base.tree)))
    changed = [entry for entry in entries.values() if entry not in of_base]
    if not changed:
        return base, 0
    with repository.scratch() as folder:
        index = repository.git(folder / "index")
        index.run("read-tree", base.tree)
        index.run("update-index", "-z", "--add", "--replace", "--index-info", input=lines(changed))
        return CodeState(base.commit, index.line("write-tree"), base.left_out), len(changed)


def _require_plain(repository: Repository, head: CodeState, path: str) -> None:
    """Raise UserError if the path is a link, or leads through one: what it shows is not a part of head."""
    for place in (*reversed(PurePosixPath(path).parents[:-1]), PurePosixPath(path)):
        entry = repository.git().run("ls-tree", "-z", "--full-tree", head.tree, "--", str(place))
        if entry.startswith(_LINK.encode()):
            raise UserError.of(f"--overlay {path}: {place} is a link", "name the file or folder that it leads to")
