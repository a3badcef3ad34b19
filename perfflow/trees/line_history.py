"""The commits between two revisions that touched given lines of a file, or the file, across renames."""

from __future__ import annotations

from dataclasses import dataclass

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
