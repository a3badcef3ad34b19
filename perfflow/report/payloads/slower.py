"""Functions that cost more on the candidate, as lines of a table, and as places in the repository's files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.report.rows import NOTHING
from perfflow.result import Attribution, Result
from perfflow.samples.criteria import Criteria, criteria_from_json
from perfflow.tools.own_code import is_own
from perfflow.units import format_change, format_quantity

MOST_SLOWER = 10
MOST_COMMITS = 3
_SHORT_HASH = 12


@dataclass(frozen=True, slots=True)
class Slower:
    """One function: its cost per operation on both sides, its part of the loss, and who touched it."""

    benchmark: str
    function: str
    place: str
    cost: str
    share: str
    commits: str


def slower_functions(result: Result) -> Iterator[Slower]:
    """The first functions that attribution names, in its order."""
    criteria = criteria_from_json(result.criteria)
    for found in result.attributions[:MOST_SLOWER]:
        yield Slower(
            benchmark=found.benchmark,
            function=found.function,
            place=f"{found.file}:{found.line}" if found.file and found.line else found.file,
            cost=cost_text(found, criteria),
            share=NOTHING if found.share is None else f"{found.share:.0%}",
            commits=commits_text(found),
        )


def cost_text(found: Attribution, criteria: Criteria) -> str:
    """``1.20 ms → 1.50 ms (+25.0%)``."""
    dimension = criteria.metric(found.metric).dimension
    values = [
        NOTHING if value is None else format_quantity(value, dimension) for value in (found.baseline, found.candidate)
    ]
    change = f" ({format_change(found.change)})" if found.change is not None else ""
    return " → ".join(values) + change


def commits_text(found: Attribution) -> str:
    """``3fa2c1d88a01 Parse twice``, newest first, and how many more."""
    named = [f"{commit.revision[:_SHORT_HASH]} {commit.subject}".strip() for commit in found.commits[:MOST_COMMITS]]
    more = len(found.commits) - len(named)
    return "; ".join([*named, *([f"{more} more"] if more > 0 else [])])


def path_in_repository(file: str) -> str:
    """A source file's path from the repository's root, or '' where it is not known to lie there.

    Debug information names files of libraries and toolchains, too, and absolute paths of the trees that were built.
    """
    path = PurePosixPath(file)
    inside = file.isprintable() and not path.is_absolute() and not {"..", "~"} & set(path.parts) and "://" not in file
    if not file or not inside or not is_own(file) or "\\" in file or ":" in file or file != file.strip():
        return ""
    return str(path) if path.parts and path.parts[0] != ".git" else ""
