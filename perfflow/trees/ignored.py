"""Ignored files that a command writes into a tree. Recorded trees and branches do not contain them.

Existing folders that are ignored as a whole, in which build tools keep their output, are not checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from perfflow.trees import sharing
from perfflow.trees.git import Git, lines, names

State = tuple[int, int, int]
"""Size in bytes, mtime and ctime in ns. A copied file may keep the mtime of its source."""
_BYTECODE = "__pycache__"


def standing(git: Git, folder: Path, share: Iterable[str]) -> dict[str, State]:
    """Return the ignored paths of a folder: files, and with a trailing slash folders that are ignored as a whole.

    Shared paths and Python bytecode are left out. Raises UserError if git fails.
    """
    options = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    found = {}
    for name in names(git.run("ls-files", *options)):
        path = PurePosixPath(name)
        if path.name == _BYTECODE or any(path.is_relative_to(shared) for shared in share):
            continue
        try:
            facts = (folder / name).lstat()
        except FileNotFoundError:
            continue
        found[name] = (0, 0, 0) if name.endswith("/") else (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return found


def remove_new(
    folder: Path, before: Mapping[str, State], built: Collection[str], after: Mapping[str, State]
) -> list[str]:
    """Remove ignored files that a command wrote, and return their paths without those that a build makes.

    ``built``: ignored paths in a built tree. Such a file is removed but not returned, because the next build makes it
    again; such a folder stays.
    """
    folders = {name for name in (*before, *built) if name.endswith("/")}
    told = []
    for name, state in after.items():
        if before.get(name) == state or any(name.startswith(known) for known in folders):
            continue
        if name.endswith("/") and any(known.startswith(name) for known in before):
            continue  # a folder whose files were listed one by one is now listed as a whole
        sharing.remove(folder / name)
        if name not in built:
            told.append(name)
    return told


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
