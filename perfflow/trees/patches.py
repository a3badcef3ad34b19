"""Apply patches to trees, and compare trees, without files on disk.

``apply`` applies a patch. ``difference`` compares two trees as a patch and as lines per file, and ``changed_paths`` as
paths, for rules such as ``forbid``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from perfflow.model.errors import UserError
from perfflow.trees.git import names
from perfflow.trees.repository import Repository

_FAILED = re.compile(r"^error: patch failed: (.*):(\d+)$", re.MULTILINE)
_OUTSIDE = re.compile(r"invalid path '(.*)'|affected file '(.*)' is beyond a symbolic link")
_CORRUPT = re.compile(r"corrupt patch at (?:<stdin>:|line )(\d+)")
_GONE = re.compile(r"^error: (.*): (does not exist in index|already exists in index)$", re.MULTILINE)
_PREFIXED = re.compile(rb"^(--- a/|\+\+\+ b/|diff --git a/)", re.MULTILINE)
_HUNK = re.compile(rb"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def apply(repository: Repository, tree: str, patch: str | bytes, name: str = "the patch") -> str:
    """Return the tree with the whole ``patch`` (from ``git diff`` or ``git format-patch``) applied.

    Raises UserError, in which the patch is called ``name``: with file and hunk if it does not apply, with the path if
    it leaves the tree, with the line if it is damaged.
    """
    data = patch.encode("utf-8", "surrogateescape") if isinstance(patch, str) else patch
    with repository.scratch() as folder:
        git = repository.git(folder / "index")
        git.run("read-tree", tree)
        done = git.attempt("apply", "--cached", "--whitespace=nowarn", "-", input=data)
        if done.status:
            bare = ("apply", "--cached", "--check", "--whitespace=nowarn", "-p0", "-")
            fits = not _PREFIXED.search(data) and git.attempt(*bare, input=data).status == 0
            raise _refused(done.stderr, data, name, paths_are_bare=fits)
        changed = git.line("write-tree")
    if changed == tree:
        raise UserError.of(f"{name} changes nothing", "is it already applied?")
    return changed


def _refused(message: str, patch: bytes, name: str, *, paths_are_bare: bool) -> UserError:
    """Turn git's error about a patch into one that names the place in it."""
    if outside := _OUTSIDE.search(message):
        path = outside[1] or outside[2]
        return UserError.of(f"{name} reaches outside the tree: {path}", "a candidate changes files of the project only")
    if paths_are_bare:
        return UserError.of(f"{name} has paths without a/ and b/", "create it with git diff")
    if failed := _FAILED.search(message):
        file, line = failed[1], int(failed[2])
        hunk = _hunk(patch, file, line)
        where = f"hunk {hunk} (at line {line})" if hunk else f"at line {line}"
        others = len({found[0] for found in _FAILED.findall(message)}) - 1
        more = f", nor to {others} more files" if others > 1 else ", nor to another file" if others else ""
        hint = "it was made for another state of the file: create it again on top of the accepted changes"
        return UserError.of(f"{name} does not apply to {file}, {where}{more}", hint)
    if gone := _GONE.search(message):
        state = "is not in the tree" if gone[2].startswith("does not") else "is already in the tree"
        hint = "create it again on top of the accepted changes"
        return UserError.of(f"{name} does not apply: {gone[1]} {state}", hint)
    if corrupt := _CORRUPT.search(message):
        return UserError.of(f"{name} is damaged at its line {corrupt[1]}", "create it again with git diff")
    if "No valid patches" in message or "unrecognized input" in message:
        return UserError.of(f"{name} contains no changes", "create it with git diff > FILE")
    return UserError.of(f"{name} does not apply: {message}")


def _hunk(patch: bytes, file: str, line: int) -> int | None:
    """Return the number (from 1) of the hunk of a file that starts at ``line`` of the old file; None if not found."""
    old, number = b"", 0
    path = file.encode("utf-8", "surrogateescape")
    for text in patch.splitlines():
        if text.startswith(b"--- "):
            old, number = text[4:].split(b"\t")[0].removeprefix(b"a/"), 0
        elif (hunk := _HUNK.match(text)) and old == path:
            number += 1
            if int(hunk[1]) == line:
                return number
    return None


_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-r")
"""Options that make patches independent of the user's settings."""
_HUNK_HEAD = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class FileChange:
    """A changed file with the number of lines ``added`` and ``removed``, both None if it is not text."""

    path: str
    added: int | None
    removed: int | None


@dataclass(frozen=True)
class TreeDifference:
    """A patch that turns one tree into the other, and its size; a renamed file counts as removed and added."""

    patch: bytes
    files: tuple[FileChange, ...]

    @property
    def text(self) -> str:
        """The patch as text; bytes that are not UTF-8 become replacement characters."""
        return self.patch.decode(errors="replace")

    @property
    def lines(self) -> int:
        """Number of lines added and removed in all text files."""
        return sum((file.added or 0) + (file.removed or 0) for file in self.files)


def difference(repository: Repository, old: str, new: str) -> TreeDifference:
    """Compare two trees or commits. ``patches.apply`` can apply the ``patch``, including binary files."""
    git = repository.git()
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
    patch = git.run("diff-tree", *_PLAIN, *prefixes, "--patch", "--binary", "--full-index", old, new)
    counted = git.run("diff-tree", *_PLAIN, "--numstat", "-z", old, new)
    return TreeDifference(patch, tuple(_file(entry) for entry in counted.split(b"\0") if entry))


def changed_paths(repository: Repository, old: str, new: str) -> tuple[str, ...]:
    """Return the paths that differ between two trees or commits, with both names of a renamed file."""
    return tuple(names(repository.git().run("diff-tree", *_PLAIN, "--name-only", "-z", old, new)))


def added_lines(repository: Repository, old: str, new: str) -> dict[str, set[int]]:
    """Return the numbers of the lines in ``new`` that were added or changed, by file, without files of odd names."""
    patch = repository.git().run("diff-tree", *_PLAIN, "--patch", "--unified=0", "--dst-prefix=b/", old, new)
    by_file: dict[str, set[int]] = {}
    path = ""
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            path = ""
        elif not path and line.startswith(b"+++ b/"):
            path = os.fsdecode(line[6:].rstrip(b"\t"))
        elif path and (hunk := _HUNK_HEAD.match(line)):
            start = int(hunk[1])
            by_file.setdefault(path, set()).update(range(start, start + int(hunk[2] or 1)))
    return by_file


def _file(entry: bytes) -> FileChange:
    added, removed, path = entry.split(b"\t", 2)
    if added == b"-":
        return FileChange(os.fsdecode(path), None, None)
    return FileChange(os.fsdecode(path), int(added), int(removed))
