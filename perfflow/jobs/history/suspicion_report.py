"""Suspicions: the newest points of a series may have left its level. A run in pairs confirms or withdraws each one.

Suspicions and their states are stored in the history, so that none is reported twice.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

from perfflow.jobs.history.change_report import logs_of
from perfflow.jobs.history.collect import opened, shown
from perfflow.jobs.history.trends import HistoryFilter, Trend, commit_order, trends
from perfflow.model.errors import UserError
from perfflow.report.history_tables import SuspicionRow
from perfflow.stats import change_points, newest_points
from perfflow.stats.newest_points import SAME, SuspicionStatus
from perfflow.stats.paired_test import quantile
from perfflow.store.history.database import Measured
from perfflow.store.history.suspicions import CONFIRMED, OPEN, WITHDRAWN, StoredSuspicion
from perfflow.trees import repository as repositories

Tell = Callable[[str], None]
_BEFORE = 3
"""The older revision is this many points before the suspicion, whose position is uncertain."""
_WHY = {
    SuspicionStatus.CONFIRMED: "later runs show the change as well",
    SuspicionStatus.WITHDRAWN: "later runs are back at the level before it",
}
_STATES = {SuspicionStatus.CONFIRMED: CONFIRMED, SuspicionStatus.WITHDRAWN: WITHDRAWN}


@dataclass(frozen=True)
class Suspicion:
    """One suspicion in its trend; ``at`` is the index of its first point.

    ``is_news``: this call found or settled it. ``base`` and ``head`` are the revisions to measure in pairs, both '' if
    the repository lacks one.
    """

    trend: Trend
    kept: StoredSuspicion
    at: int
    base: str
    head: str
    is_news: bool

    @property
    def change(self) -> float:
        """The difference of the newest values' median from the level before them, as a share."""
        return quantile([point.value for point in self.trend.points[self.at :]], 0.5) / math.exp(self.kept.before) - 1

    def is_about(self, series: int, at: int) -> bool:
        """Return whether a change of a series is this suspicion, unless the suspicion is confirmed."""
        return self.kept.state != CONFIRMED and self.kept.series == series and abs(self.at - at) <= SAME

    @property
    def command(self) -> str:
        """The command that measures both revisions in pairs; '' if that is impossible or not needed."""
        workflow = self.trend.series.workflow
        if self.kept.state != OPEN or not (self.base and workflow):
            return ""
        return shlex.join(["perfflow", "gate", workflow, "--base", self.base[:12], "--head", self.head[:12]])

    def as_json(self) -> dict[str, Any]:
        """Return the suspicion as data, values in base units."""
        series, kept = self.trend.series, self.kept
        first = self.trend.points[self.at]
        return {
            **{name: getattr(series, name) for name in ("benchmark", "metric", "unit", "machine", "workflow")},
            "state": kept.state,
            "why": kept.why,
            "before": math.exp(kept.before),
            "change": self.change,
            "at": self.at,
            "since": first.committed or first.started,
            "told": kept.told,
            "base": self.base,
            "head": self.head,
            "command": self.command,
            "run": kept.run,
        }

    def row(self) -> SuspicionRow:
        """Return the suspicion as a row of a table."""
        first = self.trend.points[self.at]
        return SuspicionRow(
            self.trend.series,
            self.kept.state,
            math.exp(self.kept.before),
            self.change,
            first.committed or first.started,
            f"{self.base[:9]}..{self.head[:9]}" if self.base else "",
            self.kept.why or self.command,
        )


def suspicions(root: Path, asked: HistoryFilter, tell: Tell, now: str) -> list[Suspicion]:
    """Check the newest points of all requested series, and review earlier suspicions.

    The findings are stored in the history. ``now`` is the current time (RFC 3339).
    """
    found: list[Suspicion] = []
    with shown(root, tell) as history:
        order = commit_order(root, history.revisions())
        # Suspicions are based on a series' own values only, not on converted values of another machine.
        for trend in trends(history, replace(asked, rebase=""), order, None):
            known = history.suspicions(trend.series.id)
            looked_at = list(_looked_at(trend, known, now))
            news = [item for item, is_news in looked_at if is_news]
            if news and not history.read_only:
                history.keep_suspicions(news)
            found += _shown(trend, looked_at, _Commits(root, order))
    return found


def keep(root: Path, found: Sequence[Suspicion], tell: Tell) -> None:
    """Store the states of suspicions."""
    with opened(root, tell) as history:
        history.keep_suspicions([item.kept for item in found])


def _looked_at(trend: Trend, known: Sequence[StoredSuspicion], now: str) -> Iterator[tuple[StoredSuspicion, bool]]:
    """Yield each suspicion of a trend with its current state, and whether this call found or settled it."""
    logs = logs_of(trend)
    if logs is None:
        yield from ((item, False) for item in known)
        return
    found, places = change_points.changes(*logs), _places(trend)
    after = list(known)
    for number, item in enumerate(known):
        suspected = _placed(item, places)
        if item.state == OPEN and suspected:
            status = newest_points.review(suspected, found, *logs)
            # A change among the newest points is the suspicion itself. Only further runs can confirm it.
            too_early = status is SuspicionStatus.CONFIRMED and _is_new(trend, suspected.at)
            if status is not SuspicionStatus.OPEN and not too_early:
                after[number] = replace(item, state=_STATES[status], why=_WHY[status])
    new = _new(trend, logs, found, after)
    yield from ((item, item is not old) for item, old in zip(after, known, strict=True))
    if new:
        first, since = trend.points[new.at], trend.points[new.since]
        yield (
            StoredSuspicion(
                *(trend.series.id, first.run, first.revision, since.run, since.revision),
                *(new.before, new.size, new.z, now),
            ),
            True,
        )


def _is_new(trend: Trend, at: int) -> bool:
    return len(trend.points) - at <= SAME


def _new(
    trend: Trend,
    logs: tuple[list[float], list[float]],
    found: change_points.FoundChanges,
    known: Sequence[StoredSuspicion],
) -> newest_points.Suspicion | None:
    """Return a new suspicion about the newest points; None if there is none or it was already reported."""
    if any(item.state == OPEN for item in known):
        return None
    places = _places(trend)
    told = {item: at for item in known if (at := places.get((item.first, item.first_revision))) is not None}
    settled = [at for item, at in told.items() if item.state == CONFIRMED]
    older = [item.at for item in found.changes if not _is_new(trend, item.at)]
    start = min(len(trend.points), max([0, *settled, *older, *(item.end for item in found.drifts)]))
    new = newest_points.fresh(*logs, start) or _of_change(trend, found, start)
    return None if new is None or any(abs(new.at - at) <= SAME for at in told.values()) else new


def _of_change(trend: Trend, found: change_points.FoundChanges, start: int) -> newest_points.Suspicion | None:
    """Return the newest change as a suspicion, if it is among the newest points."""
    new = [item for item in found.changes if _is_new(trend, item.at) and item.at > start]
    if not new:
        return None
    last = new[-1]
    reach = (last.high - last.low) / 2
    z = abs(last.size) / reach * NormalDist().inv_cdf(0.995) if reach else math.inf
    return newest_points.Suspicion(last.at, start, last.before, last.size, min(z, sys.float_info.max))


def _places(trend: Trend) -> dict[tuple[str, str], int]:
    """Return the index of each (run, revision); of several points the first."""
    found: dict[tuple[str, str], int] = {}
    for at, point in enumerate(trend.points):
        found.setdefault((point.run, point.revision), at)
    return found


def _placed(item: StoredSuspicion, places: Mapping[tuple[str, str], int]) -> newest_points.Suspicion | None:
    """Return a suspicion with its current indices; None if the points lack it, such as those of one branch."""
    at, since = places.get((item.first, item.first_revision)), places.get((item.since, item.since_revision))
    if at is None or since is None or since >= at:
        return None
    return newest_points.Suspicion(at, since, item.before, item.size, item.z)


class _Commits:
    """The revisions of a repository that can be measured in pairs."""

    def __init__(self, root: Path, order: Mapping[str, int]) -> None:
        self._root, self._order = root, order

    def ends(self, points: Sequence[Measured], at: int) -> tuple[str, str]:
        """Return a revision a few points before a suspicion, and the newest one; both '' if there are not two."""
        able = [point.revision if self._is_known(point) else "" for point in points]
        before, after = [name for name in able[:at] if name], [name for name in able[at:] if name]
        if not before or not after:
            return "", ""
        base, head = before[max(0, len(before) - _BEFORE)], after[-1]
        return (base, head) if base != head and self._is_ancestor(base, head) else ("", "")

    def _is_known(self, point: Measured) -> bool:
        return point.revision in self._order and not point.dirty

    def _is_ancestor(self, base: str, head: str) -> bool:
        # A gate measures the merge base, which is ``base`` itself only if it is an ancestor.
        try:
            done = repositories.look_at(self._root).git().attempt("merge-base", "--is-ancestor", base, head)
        except UserError:
            return False
        return done.status == 0


def _shown(trend: Trend, looked_at: Sequence[tuple[StoredSuspicion, bool]], commits: _Commits) -> Iterator[Suspicion]:
    places = _places(trend)
    for item, is_news in looked_at:
        at = places.get((item.first, item.first_revision))
        if at is not None:
            yield Suspicion(trend, item, at, *commits.ends(trend.points, at), is_news)
