"""Find changes in a benchmark's history, and suspicions: the newest points may have left the level of their series.

A change has its commits and the command that bisects it. A run in pairs confirms or withdraws a suspicion. Suspicions
and their states are stored in the history, so that none is reported twice.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

from perfflow.jobs.history.collect import opened, shown
from perfflow.jobs.history.trends import HistoryFilter, HotspotShift, SeriesTrend, commit_order, hotspot_shifts, trends
from perfflow.model.errors import UserError
from perfflow.report.history_tables import SuspicionRow, weight_of
from perfflow.stats import change_points
from perfflow.stats.change_points import SAME, SuspicionStatus
from perfflow.stats.paired_test import quantile
from perfflow.store.history.database import StoredValue
from perfflow.store.history.summary import CONFIRMED, OPEN, WITHDRAWN, StoredSuspicion
from perfflow.trees import repository as repositories

_WIDTH = 2 * NormalDist().inv_cdf(0.975)
"""Standard errors in a 95% interval."""
MOST_COMMITS = 50


@dataclass(frozen=True)
class TrendChange:
    """A change of level between two points of a trend; ``at`` is the first point after it.

    With 95% confidence, it lies between ``earliest`` and ``latest``. ``before`` and ``after`` are in base units.
    ``change`` is its share, and ``low`` to ``high`` the 99% interval. ``is_drift``: many small steps from ``at`` to
    ``latest``.
    """

    at: int
    earliest: int
    latest: int
    before: float
    after: float
    change: float
    low: float
    high: float
    confidence: float
    is_drift: bool = False


def changes_of(trend: SeriesTrend) -> list[TrendChange]:
    """Return the changes and drifts of a trend, oldest first; none if a value is not positive."""
    searched = _searched(trend)
    if searched is None:
        return []
    levels = [
        TrendChange(
            *(item.at, item.earliest, item.latest, math.exp(item.before), math.exp(item.after)),
            *(math.expm1(item.size), math.expm1(item.low), math.expm1(item.high), item.confidence),
        )
        for item in searched.changes
    ]
    drifts = [_drifted(trend, item) for item in searched.drifts]
    return sorted([*levels, *drifts], key=lambda item: item.at)


def _searched(trend: SeriesTrend) -> change_points.FoundChanges | None:
    logs = logs_of(trend)
    return change_points.changes(*logs) if logs else None


def logs_of(trend: SeriesTrend) -> tuple[list[float], list[float]] | None:
    """Return the logarithms of a trend's values, and their standard errors; None if a value is not positive."""
    if any(point.value <= 0 for point in trend.points):
        return None
    return [math.log(point.value) for point in trend.points], [_error(point) for point in trend.points]


def _error(point: StoredValue) -> float:
    """Return the standard error of a value's logarithm, from its interval; 0 if that is not known."""
    if point.low is None or point.high is None or point.low <= 0:
        return 0.0
    return max(0.0, math.log(point.high / point.low)) / _WIDTH


def _drifted(trend: SeriesTrend, drift: Any) -> TrendChange:
    before, after = trend.points[drift.begin].value, trend.points[min(drift.end, len(trend.points) - 1)].value
    size = math.expm1(drift.size)
    return TrendChange(drift.begin, drift.begin, drift.end, before, after, size, size, size, 1.0, is_drift=True)


@dataclass(frozen=True)
class LocatedChange:
    """A change with its benchmark, its commits (newest first), and the command that bisects it."""

    trend: SeriesTrend
    change: TrendChange
    commits: tuple[str, ...]
    range: str
    bisect: str
    hotspots: tuple[HotspotShift, ...] = ()

    @property
    def rebased(self) -> str:
        """A note if the trend contains values of another machine, else ''."""
        return self.trend.rebased.text() if self.trend.rebased else ""

    def as_json(self) -> dict[str, Any]:
        """Return the change as data, values in base units."""
        series, change = self.trend.series, self.change
        first, last = self.trend.points[change.at], self.trend.points[max(0, change.at - 1)]
        return {
            "benchmark": series.benchmark,
            "metric": series.metric,
            "unit": series.unit,
            "machine": series.machine,
            "before": change.before,
            "after": change.after,
            "change": change.change,
            "low": change.low,
            "high": change.high,
            "confidence": change.confidence,
            "at": change.at,
            "commits": list(self.commits),
            "weight": weight_of(change.change, series.statistic).value,
            "kind": "drift" if change.is_drift else "step",
            "range": self.range,
            "bisect": self.bisect,
            "hotspots": [
                {**{name: getattr(item, name) for name in ("function", "before", "after")}, "runs": list(item.runs)}
                for item in self.hotspots
            ],
            "rebased": self.rebased,
            "from": last.committed or last.started,
            "since": first.committed or first.started,
        }


def all_changes(root: Path, asked: HistoryFilter, tell: Tell) -> list[LocatedChange]:
    """Return the changes of all requested series, newest first."""
    with shown(root, tell) as history:
        order = commit_order(root, history.revisions())
        found = list(trends(history, asked, order, None))
    found_changes = [
        replace(located_change(root, trend, change, order), hotspots=_hotspots(root, trend, change))
        for trend in found
        for change in changes_of(trend)
    ]
    return sorted(found_changes, key=lambda item: item.trend.points[item.change.at].started, reverse=True)


def _hotspots(root: Path, trend: SeriesTrend, change: TrendChange) -> tuple[HotspotShift, ...]:
    before, after = trend.points[: change.at][::-1], trend.points[change.latest if change.is_drift else change.at :]
    return hotspot_shifts(root, trend.series.benchmark, before, after, change.change)


def located_change(root: Path, trend: SeriesTrend, change: TrendChange, order: dict[str, int]) -> LocatedChange:
    """Return a change with the commits between its points, as far as the repository has them."""
    points = trend.points
    good = next((point.revision for point in reversed(points[: change.at]) if point.revision in order), "")
    bad = next((point.revision for point in points[change.at :] if point.revision in order), "")
    between = _between(root, good, bad) if good and bad and good != bad else ()
    after = points[change.at].revision
    commits = between or ((after,) if after else ())
    workflow = trend.series.workflow
    command = (
        shlex.join(["perfflow", "bisect", workflow, "--good", good[:12], "--bad", bad[:12]])
        if between and workflow
        else ""
    )
    return LocatedChange(trend, change, commits, f"{good[:12]}..{bad[:12]}" if between else "", command)


@cache
def _between(root: Path, good: str, bad: str) -> tuple[str, ...]:
    """Return the commits after ``good`` up to ``bad``. Cached, since many series change between the same two."""
    try:
        git = repositories.look_at(root).git()
        found = git.attempt("rev-list", "--topo-order", f"--max-count={MOST_COMMITS}", f"{good}..{bad}")
    except UserError:
        return ()
    return tuple(found.stdout.decode("ascii", "replace").split()) if found.status == 0 else ()


Tell = Callable[[str], None]
_BEFORE = 3
"""The older revision is this many points before the suspicion, whose position is uncertain."""
_WHY = {
    SuspicionStatus.CONFIRMED: "later runs show the change as well",
    SuspicionStatus.WITHDRAWN: "later runs are back at the level before it",
}
_STATES = {SuspicionStatus.CONFIRMED: CONFIRMED, SuspicionStatus.WITHDRAWN: WITHDRAWN}


@dataclass(frozen=True)
class TrendSuspicion:
    """One suspicion in its trend; ``at`` is the index of its first point.

    ``is_news``: this call found or settled it. ``base`` and ``head`` are the revisions to measure in pairs, both '' if
    the repository lacks one.
    """

    trend: SeriesTrend
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


def suspicions(root: Path, query: HistoryFilter, tell: Tell, now: str) -> list[TrendSuspicion]:
    """Check the newest points of all requested series, and review earlier suspicions.

    The findings are stored in the history. ``now`` is the current time (RFC 3339).
    """
    to_show: list[TrendSuspicion] = []
    with shown(root, tell) as history:
        order = commit_order(root, history.revisions())
        # Suspicions are based on a series' own values only, not on converted values of another machine.
        for trend in trends(history, replace(query, rebase=""), order, None):
            known = history.suspicions(trend.series.id)
            looked_at = list(_looked_at(trend, known, now))
            news = [item for item, is_news in looked_at if is_news]
            if news and not history.read_only:
                history.keep_suspicions(news)
            to_show += _shown(trend, looked_at, _Commits(root, order))
    return to_show


def keep(root: Path, found: Sequence[TrendSuspicion], tell: Tell) -> None:
    """Store the states of suspicions."""
    with opened(root, tell) as history:
        history.keep_suspicions([item.kept for item in found])


def _looked_at(
    trend: SeriesTrend, known: Sequence[StoredSuspicion], now: str
) -> Iterator[tuple[StoredSuspicion, bool]]:
    """Yield each suspicion of a trend with its current state, and whether this call found or settled it."""
    logs = logs_of(trend)
    if logs is None:
        yield from ((item, False) for item in known)
        return
    found_changes, places = change_points.changes(*logs), _places(trend)
    after = list(known)
    for number, item in enumerate(known):
        suspected = _placed(item, places)
        if item.state == OPEN and suspected:
            status = change_points.review_suspicion(suspected, found_changes, *logs)
            # A change among the newest points is the suspicion itself. Only further runs can confirm it.
            too_early = status is SuspicionStatus.CONFIRMED and _is_new(trend, suspected.at)
            if status is not SuspicionStatus.OPEN and not too_early:
                after[number] = replace(item, state=_STATES[status], why=_WHY[status])
    new = _new(trend, logs, found_changes, after)
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


def _is_new(trend: SeriesTrend, at: int) -> bool:
    return len(trend.points) - at <= SAME


def _new(
    trend: SeriesTrend,
    logs: tuple[list[float], list[float]],
    found_changes: change_points.FoundChanges,
    known: Sequence[StoredSuspicion],
) -> change_points.Suspicion | None:
    """Return a new suspicion about the newest points; None if there is none or it was already reported."""
    if any(item.state == OPEN for item in known):
        return None
    places = _places(trend)
    starts = {item: at for item in known if (at := places.get((item.first, item.first_revision))) is not None}
    settled = [at for item, at in starts.items() if item.state == CONFIRMED]
    older = [item.at for item in found_changes.changes if not _is_new(trend, item.at)]
    start = min(len(trend.points), max([0, *settled, *older, *(item.end for item in found_changes.drifts)]))
    new = change_points.fresh_suspicion(*logs, start) or _of_change(trend, found_changes, start)
    return None if new is None or any(abs(new.at - at) <= SAME for at in starts.values()) else new


def _of_change(trend: SeriesTrend, found: change_points.FoundChanges, start: int) -> change_points.Suspicion | None:
    """Return the newest change as a suspicion, if it is among the newest points."""
    new = [item for item in found.changes if _is_new(trend, item.at) and item.at > start]
    if not new:
        return None
    last = new[-1]
    reach = (last.high - last.low) / 2
    z = abs(last.size) / reach * NormalDist().inv_cdf(0.995) if reach else math.inf
    return change_points.Suspicion(last.at, start, last.before, last.size, min(z, sys.float_info.max))


def _places(trend: SeriesTrend) -> dict[tuple[str, str], int]:
    """Return the index of each (run, revision); of several points the first."""
    found: dict[tuple[str, str], int] = {}
    for at, point in enumerate(trend.points):
        found.setdefault((point.run, point.revision), at)
    return found


def _placed(item: StoredSuspicion, places: Mapping[tuple[str, str], int]) -> change_points.Suspicion | None:
    """Return a suspicion with its current indices; None if the points lack it, such as those of one branch."""
    at, since = places.get((item.first, item.first_revision)), places.get((item.since, item.since_revision))
    if at is None or since is None or since >= at:
        return None
    return change_points.Suspicion(at, since, item.before, item.size, item.z)


class _Commits:
    """The revisions of a repository that can be measured in pairs."""

    def __init__(self, root: Path, order: Mapping[str, int]) -> None:
        self._root, self._order = root, order

    def ends(self, points: Sequence[StoredValue], at: int) -> tuple[str, str]:
        """Return a revision a few points before a suspicion, and the newest one; both '' if there are not two."""
        able = [point.revision if self._is_known(point) else "" for point in points]
        before, after = [name for name in able[:at] if name], [name for name in able[at:] if name]
        if not before or not after:
            return "", ""
        base, head = before[max(0, len(before) - _BEFORE)], after[-1]
        return (base, head) if base != head and self._is_ancestor(base, head) else ("", "")

    def _is_known(self, point: StoredValue) -> bool:
        return point.revision in self._order and not point.dirty

    def _is_ancestor(self, base: str, head: str) -> bool:
        # A gate measures the merge base, which is ``base`` itself only if it is an ancestor.
        try:
            done = repositories.look_at(self._root).git().attempt("merge-base", "--is-ancestor", base, head)
        except UserError:
            return False
        return done.status == 0


def _shown(
    trend: SeriesTrend, looked_at: Sequence[tuple[StoredSuspicion, bool]], commits: _Commits
) -> Iterator[TrendSuspicion]:
    places = _places(trend)
    for item, is_news in looked_at:
        at = places.get((item.first, item.first_revision))
        if at is not None:
            yield TrendSuspicion(trend, item, at, *commits.ends(trend.points, at), is_news)
