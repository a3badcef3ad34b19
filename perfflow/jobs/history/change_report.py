"""Find changes in a benchmark's history, each with its commits and the command that bisects it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

from perfflow.jobs.history.collect import shown
from perfflow.jobs.history.hotspots import HotspotShift, hotspot_shifts
from perfflow.jobs.history.trends import HistoryFilter, Trend, commit_order, trends
from perfflow.model.errors import UserError
from perfflow.report.history_tables import weight_of
from perfflow.stats import change_points
from perfflow.store.history.database import Measured
from perfflow.trees import repository as repositories

Tell = Callable[[str], None]
_WIDTH = 2 * NormalDist().inv_cdf(0.975)
"""Standard errors in a 95% interval."""
MOST_COMMITS = 50


@dataclass(frozen=True)
class Change:
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


def changes_of(trend: Trend) -> list[Change]:
    """Return the changes and drifts of a trend, oldest first; none if a value is not positive."""
    found = _searched(trend)
    if found is None:
        return []
    levels = [
        Change(
            *(item.at, item.earliest, item.latest, math.exp(item.before), math.exp(item.after)),
            *(math.expm1(item.size), math.expm1(item.low), math.expm1(item.high), item.confidence),
        )
        for item in found.changes
    ]
    drifts = [_drifted(trend, item) for item in found.drifts]
    return sorted([*levels, *drifts], key=lambda item: item.at)


def _searched(trend: Trend) -> change_points.FoundChanges | None:
    logs = logs_of(trend)
    return change_points.changes(*logs) if logs else None


def logs_of(trend: Trend) -> tuple[list[float], list[float]] | None:
    """Return the logarithms of a trend's values, and their standard errors; None if a value is not positive."""
    if any(point.value <= 0 for point in trend.points):
        return None
    return [math.log(point.value) for point in trend.points], [_error(point) for point in trend.points]


def _error(point: Measured) -> float:
    """Return the standard error of a value's logarithm, from its interval; 0 if that is not known."""
    if point.low is None or point.high is None or point.low <= 0:
        return 0.0
    return max(0.0, math.log(point.high / point.low)) / _WIDTH


def _drifted(trend: Trend, drift: Any) -> Change:
    before, after = trend.points[drift.begin].value, trend.points[min(drift.end, len(trend.points) - 1)].value
    size = math.expm1(drift.size)
    return Change(drift.begin, drift.begin, drift.end, before, after, size, size, size, 1.0, is_drift=True)


@dataclass(frozen=True)
class LocatedChange:
    """A change with its benchmark, its commits (newest first), and the command that bisects it."""

    trend: Trend
    change: Change
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
        series, found = self.trend.series, self.change
        first, last = self.trend.points[found.at], self.trend.points[max(0, found.at - 1)]
        return {
            "benchmark": series.benchmark,
            "metric": series.metric,
            "unit": series.unit,
            "machine": series.machine,
            "before": found.before,
            "after": found.after,
            "change": found.change,
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence,
            "at": found.at,
            "commits": list(self.commits),
            "weight": weight_of(found.change, series.statistic).value,
            "kind": "drift" if found.is_drift else "step",
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


def _hotspots(root: Path, trend: Trend, change: Change) -> tuple[HotspotShift, ...]:
    before, after = trend.points[: change.at][::-1], trend.points[change.latest if change.is_drift else change.at :]
    return hotspot_shifts(root, trend.series.benchmark, before, after, change.change)


def located_change(root: Path, trend: Trend, change: Change, order: dict[str, int]) -> LocatedChange:
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
