"""Ignored files that come into a tree while a command runs there: no tree that is recorded, and no branch, holds them.

Folders that are ignored as a whole and were there before, where build tools keep what they built, are not looked into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from perfflow.trees import sharing
from perfflow.trees.git import Git, lines, names

State = tuple[int, int, int]
"""Size in bytes, and the times of the last change of content and of anything, in ns. A copy may keep the first time."""
_BYTECODE = "__pycache__"


def standing(git: Git, folder: Path, share: Iterable[str]) -> dict[str, State]:
    """What is ignored in a folder, by path: files, and with a slash at the end folders as a whole.

    Neither what is shared nor what Python compiled is among them. Raises UserError where git fails.
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
    """Remove what a command wrote, and return the paths of it, what a build makes apart.

    ``built`` is what stands ignored in a tree that was built. Such a file goes without a word, since the next build
    makes it again; a folder stays as it is.
    """
    folders = {name for name in (*before, *built) if name.endswith("/")}
    told = []
    for name, state in after.items():
        if before.get(name) == state or any(name.startswith(known) for known in folders):
            continue
        if name.endswith("/") and any(known.startswith(name) for known in before):
            continue  # what was listed file by file is now listed as a whole
        sharing.remove(folder / name)
        if name not in built:
            told.append(name)
    return told


def tops(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Each of the paths that git ignores and does not track, and the highest folder of it that is ignored as a whole.

    Raises UserError where git is missing.
    """
    above = {path: list(_above(root, path)) for path in paths}
    asked = sorted({part for parts in above.values() for part in parts})
    if not asked:
        return {}
    found = set(names(Git(root).attempt("check-ignore", "-z", "--stdin", input=lines(asked)).stdout))
    return {path: top for path, parts in above.items() if (top := next((part for part in parts if part in found), ""))}


def _above(root: Path, path: str) -> Iterator[str]:
    """The folders of a path from the top on, and the path itself.

    git refuses to tell of what lies behind a link, or in a repository inside this one.
    """
    parts = PurePosixPath(path).parts
    for number in range(1, len(parts) + 1):
        part = str(PurePosixPath(*parts[:number]))
        yield part
        if (root / part).is_symlink() or (root / part / ".git").exists():
            return
