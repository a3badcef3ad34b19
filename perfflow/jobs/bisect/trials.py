"""Build one revision after another, measure each against the good one, and store its result as an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perfflow.jobs.bisect.build_and_measure import Limits, NotMeasuredError, SlotsInTurn
from perfflow.model.criteria import Criteria
from perfflow.model.errors import Exit, UserError
from perfflow.model.secrets import Secrets, masked
from perfflow.stats.paired_test import Interval
from perfflow.store.record import Record
from perfflow.store.run_folder import RunFolder
from perfflow.store.subrun import Subrun
from perfflow.trees.bisection import Described, described
from perfflow.trees.repository import Repository
from perfflow.verdict.bisect_result import Tried
from perfflow.verdict.bisection import Holds, Regression, holds, row_of
from perfflow.verdict.comparison import Comparison

ATTEMPTS = 2
"""The most comparisons of one revision. If the first leaves it undecided, new pairs alone decide."""
TRIED = "tried"
"""The event that stores the result of a revision."""


@dataclass
class Trials:
    """The results of all revisions so far; ``tell`` is called with each new one."""

    folder: RunFolder
    repository: Repository
    criteria: Criteria
    tell: Callable[[Tried], None]
    secrets: Secrets = field(default_factory=Secrets)
    """Texts that must not be stored."""
    done: list[Tried] = field(default_factory=list)
    _by_tree: dict[str, Tried] = field(default_factory=dict)

    def note(self, item: Tried) -> Tried:
        """Store the result of a revision, and pass it to ``tell``."""
        # Rounded here, so that a page of the stored result has the same figures.
        item = replace(item, reason=masked(item.reason, self.secrets), seconds=round(item.seconds, 3))
        self._take(item)
        self.folder.append({"event": TRIED, **item.to_json()})
        self.tell(item)
        return item

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Restore the results of an interrupted bisection. Raises LookupError for events of another shape."""
        for event in events:
            if event.get("event") == TRIED:
                self._take(_from_json(self.repository, event))

    def of(self, revision: str) -> Tried | None:
        """Return the result of a revision; None if it was not tried."""
        return next((item for item in self.done if item.commit.revision == revision), None)

    def _take(self, item: Tried) -> None:
        self.done.append(item)
        self._by_tree.setdefault(self.repository.tree(item.commit.revision), item)

    def make(self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None) -> Tried:
        """Build one commit and measure it against good, unless a commit with the same files was measured.

        seconds: time limit for measuring it; None for no limit. Raises NotMeasuredError if the good revision can no
        longer be measured, and UserError if the disk cannot be written.
        """
        known = self._by_tree.get(self.repository.tree(commit.revision))
        if known:
            reason = f"the same files as {known.commit.revision[:12]}"
            return self.note(replace(known, commit=commit, reason=reason, seconds=0.0, built=False))
        worked = trees.session.waits.stopwatch()
        try:
            found = self._measured(trees, commit, regression, seconds)
        except NotMeasuredError as error:
            if error.good:
                raise
            found = Tried(commit, Holds.SKIPPED, reason=str(error))
        except UserError as error:
            if error.exit is Exit.UNMEASURED:
                raise
            # This revision cannot be checked out: a submodule lacks a commit, or a shared path is in the way.
            found = Tried(commit, Holds.SKIPPED, reason=error.problems[0].message)
        return self.note(replace(found, seconds=worked()))

    def _measured(self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None) -> Tried:
        name = commit.revision[:12]
        subrun = Subrun(self.folder, name, Record())
        # Separates this try from the events of an interrupted one.
        subrun.append({"event": "begun"})
        context = trees.show(commit, subrun)
        criteria, goal = regression.criteria(self.criteria), regression.goal()
        ends = math.inf if seconds is None else trees.measuring.spent + seconds
        found = Tried(commit, Holds.UNPROVEN, reason="no time was left to measure it")
        for attempt in range(ATTEMPTS):
            left = ends - trees.measuring.spent
            if left <= 0:
                break
            if attempt:
                subrun = Subrun(self.folder, f"{name}.{attempt + 1}", Record())
                subrun.append({"event": "begun"})
            trees.measuring.attempt = attempt
            limits = Limits(criteria, goal, left if math.isfinite(left) else None)
            trees.compare(context, commit, subrun, [regression.step], limits)
            row = row_of(subrun.record, self.criteria, regression)
            if row is None:
                reason = f"{regression.benchmark} {regression.metric} is not measured at this commit"
                return Tried(commit, Holds.SKIPPED, reason=reason)
            told = _layouts_told(subrun.record, row)
            found = Tried(commit, holds(row, regression), row.change, row.pairs, reason=told)
            if found.holds is not Holds.UNPROVEN:
                break
        return found


def _layouts_told(record: Record, row: Comparison) -> str:
    """Return the number of code layouts that a revision was measured over, or why it was one; '' if irrelevant."""
    if row.layouts:
        return f"over {row.layouts.n} code layouts of each side"
    why = record.why_as_built(record.series[row.benchmark, row.metric.name])
    return f"with one code layout of each side: {why}" if why else ""


def _from_json(repository: Repository, event: Mapping[str, Any]) -> Tried:
    bounds = event["change"]
    change = None
    if bounds:
        ends = ("value", math.nan), ("low", -math.inf), ("high", math.inf)
        change = Interval(*(open_ if bounds[name] is None else bounds[name] for name, open_ in ends))
    return Tried(
        described(repository, event["revision"]),
        Holds(event["decision"]),
        change,
        event["pairs"],
        event["reason"],
        event["seconds"],
        event["built"],
    )
