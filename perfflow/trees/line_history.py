"""The commits that touched given lines of a file, and the commits between a good and a bad revision.

- ``of_lines`` and ``of_file`` return the commits between two revisions that touched lines of a file, or the file,
  across renames.
- ``lines_of`` finds the first and last line of a function: by Python's syntax, or by braces in C, C++, Rust and similar
  languages. The text is only scanned, not compiled. If it is not understood, the result is None instead of a guess.
- ``candidates`` returns the commits between a good and a bad revision, in the order in which git would try them.
  Nothing is written.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.trees.git import names
from perfflow.trees.repository import Repository

_FIELDS = "--format=%x01%H%x00%an%x00%s"


@dataclass(frozen=True)
class Touched:
    """A commit: its full id, its author, and the first line of its message."""

    commit: str
    author: str
    subject: str


def content(repository: Repository, commit: str, file: str) -> str | None:
    """Return the text of a file at a commit; None if there is no such file."""
    done = repository.git().attempt("cat-file", "blob", f"{commit}:{file}")
    return done.stdout.decode(errors="replace") if done.status == 0 else None


def of_lines(repository: Repository, base: str, head: str, file: str, lines: tuple[int, int]) -> list[Touched]:
    """Return the commits of base..head that touched ``lines`` (first, last; as numbered at head), newest first."""
    span = f"-L{lines[0]},{lines[1]}:{file}"
    return _commits(repository, "log", "-s", span, _FIELDS, f"{base}..{head}")


def of_file(repository: Repository, base: str, head: str, file: str) -> list[Touched]:
    """Return the commits of base..head that touched a file, newest first."""
    return _commits(repository, "log", "--follow", _FIELDS, f"{base}..{head}", "--", file)


def _commits(repository: Repository, *arguments: str) -> list[Touched]:
    done = repository.git().attempt("-c", "diff.renames=true", "-c", "log.showSignature=false", *arguments)
    # git fails for a new file, or for lines that do not exist: report no commits then.
    if done.status:
        return []
    records = done.stdout.decode(errors="replace").split("\x01")[1:]
    fields = (record.rstrip("\n").split("\x00", 2) for record in records)
    return [Touched(commit, author, subject) for commit, author, subject in fields]


_NAME = re.compile(r"([A-Za-z_~][A-Za-z0-9_]*)\W*\Z")
_CLOSURES = re.compile(r"::\{\{?closure\}\}?|::\{closure#?\d*\}|::\{impl#?\d*\}")
# Braces in strings, characters and comments do not count. A Rust lifetime is not a character.
_ELSEWHERE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^'\\\n])'""",
    re.DOTALL,
)


def lines_of(text: str, file: str, function: str, line: int) -> tuple[int, int] | None:
    """Return the first and last line (from 1) of a function that contains ``line``; None if it is not found."""
    if PurePosixPath(file).suffix == ".py":
        return _in_python(text, function, line)
    return _in_braces(text, bare(function), line)


def bare(function: str) -> str:
    """Return the last name of a function, without types and modules: ``run`` for ``<a::B as C>::run::<u8>(int)``."""
    name = _CLOSURES.sub("", function)
    name = re.sub(r"\(.*\)", "", name)
    while (stripped := re.sub(r"::<[^<>]*>|<[^<>]*>", "", name)) != name:
        name = stripped
    found = _NAME.search(name)
    return found[1] if found else ""


def _in_python(text: str, function: str, line: int) -> tuple[int, int] | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    if function == "<module>":
        return None
    spans = [
        (min([node.lineno, *(item.lineno for item in node.decorator_list)]), node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    around = [span for span in spans if span[0] <= line <= span[1]]
    named = [span for span in around if span[2] == bare(function)]
    # A generator expression or lambda belongs to the innermost function around it.
    innermost = max(named or around, key=lambda span: span[0], default=None)
    return innermost[:2] if innermost else None


def _in_braces(text: str, name: str, line: int) -> tuple[int, int] | None:
    if not name:
        return None
    blank = _ELSEWHERE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    starts = list(re.finditer(rf"(?<![\w.>]){re.escape(name)}\s*[(<]", blank))
    spans = [span for match in starts if (span := _body(blank, match.start()))]
    around = [span for span in spans if not line or span[0] <= line <= span[1]]
    if line:
        return max(around, key=lambda span: span[0], default=None)
    return around[0] if len(around) == 1 else None


def _body(text: str, start: int) -> tuple[int, int] | None:
    """Return the lines from a name to the closing brace of its body; None for a call or a declaration."""
    depth, opened = 0, False
    for index in range(start, len(text)):
        letter = text[index]
        if letter in "([{":
            opened = opened or (letter == "{" and depth == 0)
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth < 0:
                return None
            if opened and depth == 0:
                return text.count("\n", 0, _line_start(text, start)) + 1, text.count("\n", 0, index) + 1
        elif letter == ";" and depth == 0:
            return None
    return None


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


_LINE = re.compile(r"^(?P<commit>[0-9a-f]+) \((?:.*, )?dist=(?P<distance>\d+)\)$")


@dataclass(frozen=True)
class BisectionCandidate:
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
) -> list[BisectionCandidate]:
    """Return the commits that ``bad`` has but none of ``good``, including ``bad``; the best one to test comes first.

    With ``first_parent``, a merge counts as one change, as in `git bisect --first-parent`.
    """
    walk = ("--first-parent",) if first_parent else ()
    words = ("rev-list", "--bisect-all", *walk, bad, *(f"^{commit}" for commit in good))
    printed = repository.git().run(*words, what="list the commits to try").decode().splitlines()
    lines = [_LINE.match(line) for line in printed]
    return [BisectionCandidate(line["commit"], int(line["distance"])) for line in lines if line]


def newest_first(
    repository: Repository, bad: str, good: Collection[str], *, first_parent: bool = False
) -> list[Described]:
    """Return the same commits, each before its parents."""
    walk = ("--first-parent",) if first_parent else ()
    words = ("rev-list", "--topo-order", *walk, bad, *(f"^{commit}" for commit in good))
    return [
        described(repository, commit) for commit in repository.git().run(*words, what="list commits").decode().split()
    ]


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
