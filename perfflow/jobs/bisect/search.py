"""Choose the commit to try next, and the commits that are left. Pure: git's order is passed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from perfflow.trees.bisection import Candidate
from perfflow.verdict.bisection import Holds

Order = Callable[[str, Sequence[str]], list[Candidate]]
"""(bad, good ones) → the commits that may be the first bad one. The best commit to try is first."""


@dataclass
class Search:
    """The remaining commits: those in the history of ``bad``, but of no good commit."""

    order: Order
    bad: str
    good: list[str]
    passed_over: set[str] = field(default_factory=set)
    """Commits that could not be decided."""

    def left(self) -> list[str]:
        """Return the commits that may be the first bad one, including ``bad``."""
        return [item.commit for item in self.order(self.bad, self.good)]

    def next(self) -> str | None:
        """Return the commit to try next; None if one is left, or none of the others can be decided.

        Commits that cannot be tried are often neighbours, so after them a more distant commit is chosen. The distance
        never adds a try in the worst case.
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
        """Return the number of tries that are left in the worst case."""
        return (len(self.left()) - 1).bit_length()

    def learn(self, commit: str, what: Holds) -> None:
        """Record the result of a commit."""
        if what in (Holds.YES, Holds.PART):
            self.bad = commit
        elif what is Holds.NO:
            self.good.append(commit)
        else:
            self.passed_over.add(commit)


def _tries(count: int, item: Candidate) -> int:
    """Return the number of tries that the larger part needs after this one."""
    return (count - item.distance - 1).bit_length()
