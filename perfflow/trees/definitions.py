"""Find where a function is defined, for programs without debug information: first in the files that changed.

If none of them has it, the other files that contain its name are scanned. The text is only scanned. If several places
could be meant, the result is None instead of a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perfflow.trees.git import names
from perfflow.trees.line_history import bare, content, lines_of
from perfflow.trees.repository import Repository

_SOURCES = re.compile(
    r"\.(?:c|cc|cpp|cxx|c\+\+|cu|h|hh|hpp|hxx|inl|ipp|m|mm|rs|go|zig|d|swift|java|kt|scala|cs|js|ts|mojo)\Z"
)
_MOST_FILES = 500
"""Most files that are read; a name that more of them contain is no help."""


class Definition(NamedTuple):
    """A file, relative to the root, and the first line of a function in it."""

    file: str
    line: int


def definition(repository: Repository, base: str, head: str, function: str) -> Definition | None:
    """Return the definition of a function at ``head``; None if it is not found or not the only one."""
    if not bare(function):
        return None
    changed = repository.git().attempt("diff", "--name-only", "-z", "--diff-filter=d", base, head)
    found = list(_definitions(repository, head, function, names(changed.stdout)))
    if not found:
        holding = repository.git().attempt("grep", "-lwzF", "-e", bare(function), head, "--")
        files = [name.removeprefix(f"{head}:") for name in names(holding.stdout)]
        found = list(_definitions(repository, head, function, files))
    return found[0] if len(found) == 1 else None


def _definitions(repository: Repository, head: str, function: str, files: Iterable[str]) -> Iterator[Definition]:
    sources = [file for file in files if _SOURCES.search(file.lower())]
    for file in sources if len(sources) <= _MOST_FILES else ():
        text = content(repository, head, file)
        # Most files do not contain the name, which is quicker to see than to scan them.
        lines = lines_of(text, file, function, 0) if text and bare(function) in text else None
        if lines:
            yield Definition(file, lines[0])
