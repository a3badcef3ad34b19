"""One revision after another: built, measured against the good one, and what was found of it kept as an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from perfflow.jobs.bisect.build_and_measure import Limits, NotMeasuredError, SlotsInTurn
from perfflow.model.criteria import Criteria
from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass
from perfflow.model.secrets import Secrets, masked
from perfflow.stats.paired_test import Interval
from perfflow.store.folder import RunFolder
from perfflow.store.record import Record
from perfflow.store.subrun import Section
from perfflow.trees.bisection import Described, described
from perfflow.trees.repository import Repository
from perfflow.verdict.bisect_result import Tried
from perfflow.verdict.bisection import Holds, Regression, holds, row_of
from perfflow.verdict.comparison import Comparison

ATTEMPTS = 2
"""Comparisons of one revision: where the last look of the first leaves it open, fresh pairs alone decide."""
TRIED = "tried"
"""The event that keeps what was found of a revision."""


@dataclass
class Trials:
    """What was found of each revision so far; ``tell`` hears of each."""

    folder: RunFolder
    repository: Repository
    criteria: Criteria
    tell: Callable[[Tried], None]
    secrets: Secrets = field(default_factory=Secrets)
    """What must not be stored."""
    done: list[Tried] = field(default_factory=list)
    _by_tree: dict[str, Tried] = field(default_factory=dict)

    def note(self, item: Tried) -> Tried:
        """Keep what was found of a revision."""
        item = replace(item, reason=masked(item.reason, self.secrets))
        self._take(item)
        self.folder.append({"event": TRIED, **item.to_json()})
        self.tell(item)
        return item

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an interrupted bisection had found. Raises LookupError for events of another shape."""
        for event in events:
            if event.get("event") == TRIED:
                self._take(_from_json(self.repository, event))

    def of(self, revision: str) -> Tried | None:
        """What is known of a revision."""
        return next((item for item in self.done if item.commit.revision == revision), None)

    def _take(self, item: Tried) -> None:
        self.done.append(item)
        self._by_tree.setdefault(self.repository.tree(item.commit.revision), item)

    def make(self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None) -> Tried:
        """Build one commit and measure it against good, unless another one with the same files was.

        ``seconds`` is all the time there is for measuring it, None without a limit. Raises NotMeasuredError where the
        good revision cannot be measured any more, and UserError where the disk refuses.
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
            # A submodule that lacks a commit, a shared path that is in the way: this revision cannot be shown.
            found = Tried(commit, Holds.SKIPPED, reason=error.problems[0].message)
        return self.note(replace(found, seconds=worked()))

    def _measured(self, trees: SlotsInTurn, commit: Described, regression: Regression, seconds: float | None) -> Tried:
        name = commit.revision[:12]
        section = Section(self.folder, name, Record())
        # What an interrupted try left is not mixed with what comes now.
        section.append({"event": "begun"})
        context = trees.show(commit, section)
        criteria, goal = regression.criteria(self.criteria), regression.goal()
        ends = math.inf if seconds is None else trees.measuring.spent + seconds
        found = Tried(commit, Holds.UNPROVEN, reason="there was no time to measure it")
        for attempt in range(ATTEMPTS):
            left = ends - trees.measuring.spent
            if left <= 0:
                break
            if attempt:
                section = Section(self.folder, f"{name}.{attempt + 1}", Record())
                section.append({"event": "begun"})
            trees.measuring.attempt = attempt
            limits = Limits(criteria, goal, left if math.isfinite(left) else None)
            trees.compare(context, commit, section, [regression.step], limits)
            row = row_of(section.record, self.criteria, regression)
            if row is None:
                reason = f"{regression.benchmark} {regression.metric} is not measured there"
                return Tried(commit, Holds.SKIPPED, reason=reason)
            told = _layouts_told(section.record, row)
            found = Tried(commit, holds(row, regression), row.change, row.pairs, reason=told)
            if found.holds is not Holds.UNPROVEN:
                break
        return found


def _layouts_told(record: Record, row: Comparison) -> str:
    """Over how many code layouts a revision was measured, or why over one alone; '' where nothing rested on them."""
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
