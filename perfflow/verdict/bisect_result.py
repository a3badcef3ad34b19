"""The result of a bisection, as bisect.json and the reports show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from perfflow.stats.paired_test import Interval
from perfflow.trees.bisection import Described
from perfflow.verdict.bisection import Holds, Regression

SCHEMA = "perfflow.bisect/1"


class Outcome(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    NARROWED = "narrowed"
    """Several commits are left that could not be narrowed down further."""
    SAME = "same"
    """Good and bad are proven not to differ in the deciding metrics, so there is nothing to bisect."""
    UNPROVEN = "unproven"
    """Between good and bad a regression is neither proven nor excluded."""
    NOT_MEASURED = "not measured"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Tried:
    """One revision: whether it has the regression, its change from the good one, and the cost of measuring it.

    ``built`` is False if another revision has the same tree. ``seconds`` is the time to build and measure.
    """

    commit: Described
    holds: Holds
    change: Interval | None = None
    pairs: int = 0
    reason: str = ""
    seconds: float = 0.0
    built: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain data for bisect.json."""
        return {
            "revision": self.commit.revision,
            "subject": self.commit.subject,
            "decision": self.holds.value,
            "change": interval_json(self.change),
            "pairs": self.pairs,
            "reason": self.reason,
            "seconds": self.seconds,
            "built": self.built,
        }


@dataclass(frozen=True)
class Bisected:
    """A whole bisection. ``left`` are the commits that may be the first bad one, the newest first.

    ``others`` are further proven regressions that were not bisected.
    """

    outcome: Outcome
    workflow: str
    good: Described
    bad: Described
    why: str = ""
    regression: Regression | None = None
    tried: tuple[Tried, ...] = ()
    left: tuple[Described, ...] = ()
    files: tuple[str, ...] = ()
    others: tuple[Regression, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first_bad(self) -> Described | None:
        """The first bad commit, None until it is found."""
        return self.left[0] if self.outcome is Outcome.FOUND else None

    @property
    def builds(self) -> int:
        """Number of revisions that were built and could be measured."""
        return sum(item.built and item.holds is not Holds.SKIPPED for item in self.tried)

    def of(self, revision: str) -> Tried | None:
        """Return the entry of a revision, None if it was not tried."""
        return next((item for item in self.tried if item.commit.revision == revision), None)

    def ended(self, outcome: Outcome, why: str = "") -> Bisected:
        """Return a copy with the given outcome."""
        return replace(self, outcome=outcome, why=why)

    def to_json(self, **more: Any) -> dict[str, Any]:
        """Return plain data for bisect.json."""
        first = self.first_bad
        found = None
        if first:
            known = [(parent, self.of(parent)) for parent in first.parents]
            found = {
                **_commit_json(first),
                "files": list(self.files),
                "change": interval_json(item.change if (item := self.of(first.revision)) else None),
                "parents": [
                    {"revision": parent, "change": interval_json(item.change if item else None)}
                    for parent, item in known
                ],
            }
        return {
            "schema": SCHEMA,
            "outcome": self.outcome.value,
            "why": self.why,
            "workflow": self.workflow,
            "good": _commit_json(self.good),
            "bad": _commit_json(self.bad),
            "regression": _regression_json(self.regression),
            "first_bad": found,
            "left": [_commit_json(item) for item in self.left],
            "builds": self.builds,
            "tried": [item.to_json() for item in self.tried],
            "others": [_regression_json(item) for item in self.others],
            "notes": list(self.notes),
            **more,
        }


def interval_json(interval: Interval | None) -> dict[str, float | None] | None:
    """Return value and bounds as plain data; values that are not finite become null."""
    if interval is None:
        return None
    names = {"value": interval.estimate, "low": interval.low, "high": interval.high}
    return {name: value if math.isfinite(value) else None for name, value in names.items()}


def about_size(found: Sequence[Tried], regression: Regression, first: Described) -> list[str]:
    """Return notes for a regression that came in several steps."""
    by_revision = {item.commit.revision: item for item in found}
    notes = []
    item = by_revision.get(first.revision)
    if item and item.holds is Holds.PART:
        notes.append(
            f"{first.revision[:12]} causes a part of the regression; to find the rest, use --good {first.revision[:12]}"
        )
    before = [by_revision[parent] for parent in first.parents if parent in by_revision]
    if any(each.change and _proven_worse(each.change, regression) for each in before):
        notes.append(f"an earlier commit causes a smaller part; to find it, use --bad {first.parents[0][:12]}")
    return notes


def _proven_worse(change: Interval, regression: Regression) -> bool:
    """Return whether a revision below the cut is proven to have more than a tenth of the regression."""
    sign = -1 if regression.change.estimate < 0 else 1
    return min(sign * change.low, sign * change.high) > regression.size / 10


def _commit_json(commit: Described) -> dict[str, str]:
    return {name: getattr(commit, name) for name in ("revision", "subject", "author", "date")}


def _regression_json(regression: Regression | None) -> dict[str, Any] | None:
    if regression is None:
        return None
    return {
        "benchmark": regression.benchmark,
        "metric": regression.metric,
        "step": regression.step,
        "change": interval_json(regression.change),
        "confidence": regression.confidence,
    }
