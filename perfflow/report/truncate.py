"""Truncation of long lists: the most important entries in the list's order, and the number of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from perfflow.model.result import Benchmark, TargetResult

MOST_ROWS = 200
"""Most rows of one table, since GitHub cuts a summary at 1 MB. All rows are in result.json."""

T = TypeVar("T")
U = TypeVar("U")

_TARGETS = ("not met", "not measured", "unproven", "not held by base", "met", "not looked at")
_DECISIONS = ("removed", "not measured", "regressed", "unproven", "improved", "new", "same")


@dataclass(frozen=True)
class Truncated(Generic[T]):
    """The shown entries of a list, and the number of the others."""

    shown: tuple[T, ...]
    others: int

    def each(self, line: Callable[[T], U]) -> Truncated[U]:
        """Return the same with ``line`` applied to each shown entry."""
        return Truncated(tuple(map(line, self.shown)), self.others)


def truncated(values: Sequence[T], rank: Callable[[T], int] = lambda _: 0, most: int = MOST_ROWS) -> Truncated[T]:
    """Keep the ``most`` entries of lowest rank, the first of equals, in the order of the list."""
    if len(values) <= most:
        return Truncated(tuple(values), 0)
    kept = sorted(range(len(values)), key=lambda index: rank(values[index]))[:most]
    return Truncated(tuple(values[index] for index in sorted(kept)), len(values) - most)


def rank_of_row(row: Benchmark) -> int:
    """Return a rank: failures first, unchanged rows last, and rows that do not gate after all others."""
    word = _DECISIONS.index(row.decision) if row.decision else len(_DECISIONS)
    ahead = {"action": -3, "concern": -1}.get(
        row.level or "", -2 if row.decision == "unproven" and not row.level else 0
    )
    return (0 if row.gating else 100) + 10 * (ahead + 3) + word


def rank_of_target(target: TargetResult) -> int:
    """Return a rank by status; met targets come last."""
    return _TARGETS.index(target.status)
