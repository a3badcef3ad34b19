"""The commits between two revisions that touched some lines of a file, or the file, renames followed."""

from __future__ import annotations

from perfflow.model.later import dataclass
from perfflow.trees.repository import Repository

_FIELDS = "--format=%x01%H%x00%an%x00%s"


@dataclass(frozen=True)
class Touched:
    """A commit: its full id, who wrote it, and the first line of its message."""

    commit: str
    author: str
    subject: str


def content(repository: Repository, commit: str, file: str) -> str | None:
    """A file's text at a commit; None where there is no such file."""
    done = repository.git().attempt("cat-file", "blob", f"{commit}:{file}")
    return done.stdout.decode(errors="replace") if done.status == 0 else None


def of_lines(repository: Repository, base: str, head: str, file: str, lines: tuple[int, int]) -> list[Touched]:
    """Commits of base..head that touched the lines which are ``lines`` (first, last) at head, the newest first."""
    span = f"-L{lines[0]},{lines[1]}:{file}"
    return _commits(repository, "log", "-s", span, _FIELDS, f"{base}..{head}")


def of_file(repository: Repository, base: str, head: str, file: str) -> list[Touched]:
    """Commits of base..head that touched a file, the newest first."""
    return _commits(repository, "log", "--follow", _FIELDS, f"{base}..{head}", "--", file)


def _commits(repository: Repository, *arguments: str) -> list[Touched]:
    done = repository.git().attempt("-c", "diff.renames=true", "-c", "log.showSignature=false", *arguments)
    # What git cannot tell (a file that is new, lines it does not have) nobody is blamed for.
    if done.status:
        return []
    records = done.stdout.decode(errors="replace").split("\x01")[1:]
    fields = (record.rstrip("\n").split("\x00", 2) for record in records)
    return [Touched(commit, author, subject) for commit, author, subject in fields]
