"""The values of each benchmark in commit order, for tables, charts and the search for changes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from perfflow.jobs.history.rebase import Rebased, key_of, machine_named, overlap, rebased, too_few
from perfflow.model.errors import UserError
from perfflow.stats.paired_test import quantile
from perfflow.store.history.database import History, Measured, Series
from perfflow.trees import repository as repositories
from perfflow.trees.git import Git

NEWEST = 200
"""The number of newest points of a series that are read by default."""
FLAKY, LEAST = 0.05, 8
"""A benchmark is flaky if its noise is above the share FLAKY, over at least LEAST runs. FLAKY is a gate's default
concern threshold, so such noise looks like a change."""
_COMPLETE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DAY = 86_400
_AGO = re.compile(r"(?P<number>[0-9]{1,6})\s*(?P<unit>[hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_DEVIATION = 1.4826 / math.sqrt(2)
"""Factor from the median absolute difference of two normal values to their standard deviation."""


@dataclass(frozen=True)
class HistoryFilter:
    """The requested benchmarks and points; '' and None stand for all. ``benchmark`` is a name or a part of one."""

    benchmark: str = ""
    metric: str = ""
    branch: str = ""
    since: datetime | None = None
    machine: str | None = ""
    """The identity of the one machine to read, '' for any, None for all machines beside each other."""
    rebase: str = ""
    """The identity of a machine whose values are converted to the scale of ``machine``; '' for none."""


@dataclass(frozen=True)
class Trend:
    """A series with its points in commit order."""

    series: Series
    points: tuple[Measured, ...]
    rebased: Rebased | None = None
    """How values of another machine were converted, if the points include some."""

    @property
    def noise(self) -> float | None:
        """The relative standard deviation between runs, from differences of neighbours; None if there are too few."""
        logs = [math.log(point.value) for point in self.points if point.value > 0]
        if len(logs) < LEAST or len(logs) < len(self.points):
            return None
        return math.expm1(quantile([abs(b - a) for a, b in pairwise(logs)], 0.5) * _DEVIATION)

    @property
    def is_flaky(self) -> bool:
        """Whether the noise between runs is above ``FLAKY``."""
        return (self.noise or 0.0) > FLAKY


def since(text: str, now: datetime) -> datetime:
    """Return the moment that ``--since`` names: a date, a time, or the time before ``now``, such as ``90d``.

    Raises UserError for any other text.
    """
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(hours=int(ago["number"]) * _HOURS[ago["unit"]])
        return moment(text)
    except (ValueError, OverflowError) as error:
        hint = "write a time before now, such as 90d, 3w or 12h, or a date, such as 2026-03-31"
        raise UserError.of(f"--since {text} is neither a time nor a date", hint) from error


def moment(text: str) -> datetime:
    """Return an ISO date or time; without a time zone it is UTC. Raises ValueError for any other text."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def trends(
    history: History, asked: HistoryFilter, order: Mapping[str, int], newest: int | None = NEWEST
) -> Iterator[Trend]:
    """Yield the requested trends by benchmark and metric, each with the requested points.

    Raises UserError if values are to be converted to another machine and that is not possible.
    """
    found = _of_machines(history, asked, order, None if asked.rebase else newest)
    return _with_rebased(history, asked, order, list(found)) if asked.rebase else found


def _with_rebased(
    history: History, asked: HistoryFilter, order: Mapping[str, int], own: Sequence[Trend]
) -> Iterator[Trend]:
    """Yield one machine's trends, with another machine's values where both have enough revisions in common."""
    known = list(history.machines())
    old = machine_named(asked.rebase, "--rebase", known)
    new = machine_named(asked.machine or "", "--machine", known)
    if old == new:
        raise UserError.of(f"--rebase {old} and --machine are the same", "name the earlier machine as --rebase")
    others = {key_of(each.series): each for each in _of_machines(history, replace(asked, machine=old), order, None)}
    pairs = [(trend, others.get(key_of(trend.series))) for trend in own]
    made = [(trend, other and rebased(trend.points, other.points, old)) for trend, other in pairs]
    if not any(found for _, found in made):
        raise too_few(old, new, (overlap(trend.points, other.points) for trend, other in pairs if other))
    for trend, found in made:
        if found:
            points, by = found
            series = replace(trend.series, points=trend.series.points + len(points))
            yield Trend(series, tuple(in_order([*points, *trend.points], order)), by)
        else:
            yield trend


def _of_machines(
    history: History, asked: HistoryFilter, order: Mapping[str, int], newest: int | None
) -> Iterator[Trend]:
    for series in history.series():
        # Metrics without a direction are only shown if the user names them.
        if asked.metric != series.metric and (asked.metric or series.better == "none"):
            continue
        if asked.benchmark and not (asked.benchmark == series.benchmark or asked.benchmark in series.benchmark):
            continue
        if asked.machine and not series.machine.startswith(asked.machine):
            continue
        points = [point for point in history.points(series.id, newest) if _is_wanted(point, asked)]
        if points:
            yield Trend(series, tuple(in_order(points, order)))


def _is_wanted(point: Measured, asked: HistoryFilter) -> bool:
    if asked.branch and point.branch != asked.branch:
        return False
    return asked.since is None or moment(point.committed or point.started) >= asked.since


def commit_order(root: Path, revisions: Iterable[str]) -> dict[str, int]:
    """Return revision -> position in the commit graph, parents first and siblings by date; {} without git.

    Revisions that the repository lacks are left out. git walks back only to the oldest revision, so the time depends on
    the span of the revisions, not on the age of the project.
    """
    wanted = sorted(revision for revision in set(revisions) if _COMPLETE.fullmatch(revision))
    try:
        git = repositories.look_at(root).git() if wanted else None
    except UserError:
        git = None
    dates = _dates(git, wanted) if git else {}
    if not git or not dates:
        return {}
    # Committers' clocks differ. If a parent is younger than its child by more than a day, walk the whole graph.
    bounds: list[list[str]] = [[f"--max-age={min(dates.values()) - _DAY}"], []]
    walks = (_walk(git, bound, dates) for bound in bounds)
    by_date = sorted(dates, key=lambda revision: (dates[revision], revision))
    order = next((found for found in walks if len(found) == len(dates)), by_date)
    return {revision: place for place, revision in enumerate(order)}


def _dates(git: Git, revisions: Sequence[str]) -> dict[str, int]:
    """Return the commit time (s since 1970) of each revision that the repository has."""
    options = ("--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin")
    done = git.attempt("rev-list", *options, input=_lines(revisions))
    pairs = (line.split() for line in done.stdout.decode("ascii", "replace").splitlines())
    return {revision: int(seconds) for seconds, revision in pairs} if done.status == 0 else {}


def _lines(revisions: Iterable[str]) -> bytes:
    return "".join(f"{revision}\n" for revision in revisions).encode("ascii")


def _walk(git: Git, bounds: Sequence[str], known: Mapping[str, int]) -> list[str]:
    """Return the known revisions in graph order, as far as a walk within the bounds reaches them."""
    done = git.attempt("rev-list", "--date-order", "--reverse", *bounds, "--stdin", input=_lines(known))
    met = done.stdout.decode("ascii", "replace").split() if done.status == 0 else []
    return [revision for revision in met if revision in known]


def in_order(points: Iterable[Measured], order: Mapping[str, int]) -> list[Measured]:
    """Sort points by the commit graph if their revisions are known, else by date; points of one revision by date.

    A point without a known revision keeps its position by date among the others.
    """
    by_date = sorted(points, key=lambda point: (point.committed or point.started, point.started))
    known = [point for point in by_date if point.revision in order]
    # The points with known revisions fill their positions by date in graph order.
    placed = iter(sorted(known, key=lambda point: (order[point.revision], point.dirty, point.started)))
    return [next(placed) if point.revision in order else point for point in by_date]


def parameters_of(trend: Trend, others: Sequence[Trend]) -> str:
    """Return what distinguishes a trend from others of its benchmark and metric: differing parameters, its workflow.

    Converted values of another machine are always mentioned.
    """
    alike = [
        item.series
        for item in others
        if (item.series.benchmark, item.series.metric) == (trend.series.benchmark, trend.series.metric)
    ]
    if len(alike) < 2:
        return trend.rebased.text() if trend.rebased else ""
    own, all_params = _params(trend.series), [_params(series) for series in alike]
    differing = [name for name in own if len({str(params.get(name)) for params in all_params}) > 1]
    words = [f"{name}={own[name]}" for name in differing]
    words += [trend.series.workflow] if len({series.workflow for series in alike}) > 1 else []
    words += [trend.series.statistic] if len({series.statistic for series in alike}) > 1 else []
    return ", ".join([*words, trend.rebased.text()] if trend.rebased else words)


def _params(series: Series) -> dict[str, object]:
    found = json.loads(series.params) if series.params else {}
    return found if isinstance(found, dict) else {}
