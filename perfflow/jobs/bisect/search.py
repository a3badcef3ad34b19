"""Which commit is tried next, and what is left when none can be: pure, git's order is handed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from perfflow.model.later import dataclass
from perfflow.trees.bisection import Candidate
from perfflow.verdict.bisection import Holds

Order = Callable[[str, Sequence[str]], list[Candidate]]
"""(bad, good ones) → the commits that may be the first bad one, the best one to try first."""


@dataclass
class Search:
    """The commits that are left: those of ``bad`` that no good one has."""

    order: Order
    bad: str
    good: list[str]
    passed_over: set[str] = field(default_factory=set)
    """Commits of which nothing could be found out."""

    def left(self) -> list[str]:
        """The commits that may be the first bad one, ``bad`` among them."""
        return [item.commit for item in self.order(self.bad, self.good)]

    def next(self) -> str | None:
        """The commit to try next; None where one is left, or nothing can be found out of the others.

        After commits that could not be tried another one is taken that is some way off, as they tend to stand together,
        but only so far off that no further try is needed in the worst case.
        """
        ordered = [item for item in self.order(self.bad, self.good) if item.commit != self.bad]
        able = [item for item in ordered if item.commit not in self.passed_over]
        if not able:
            return None
        count = len(ordered) + 1
        best = _tries(count, able[0])
        equal = [item for item in able if _tries(count, item) == best]
        passed = len(ordered) - len(able)
        return equal[min((1 << passed) - 1, len(equal) - 1)].commit

    def steps(self) -> int:
        """How many tries are left in the worst case."""
        return (len(self.left()) - 1).bit_length()

    def learn(self, commit: str, what: Holds) -> None:
        """Take in what was found of a commit."""
        if what in (Holds.YES, Holds.PART):
            self.bad = commit
        elif what is Holds.NO:
            self.good.append(commit)
        else:
            self.passed_over.add(commit)


def _tries(count: int, item: Candidate) -> int:
    """Tries that the larger part needs after this one."""
    return (count - item.distance - 1).bit_length()
