"""The values of each benchmark in commit order, for tables, charts and the search for changes.

- ``trends`` orders the values. Values of different machines are only compared on request. The results are marked
  everywhere: each series names the machine, the factor with its interval and the number of revisions, and each value
  names the machine.
- ``rebased`` converts values of one machine to the scale of another, by the revisions that both measured.
- ``hotspot_shifts`` compares where a benchmark spent its time before and after a change, from the profiles of runs on
  both sides.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.sanitize import visible
from perfflow.stats.paired_test import mean_interval, quantile
from perfflow.store import result_file
from perfflow.store.history.database import History, StoredSeries, StoredValue
from perfflow.store.history.stored import listed
from perfflow.store.run_folder import HOME, RESULT
from perfflow.trees import repository as repositories
from perfflow.trees.git import Git

NEWEST = 200
"""The number of newest points of a series that are read by default."""
FLAKY, LEAST = 0.05, 8
"""A benchmark is flaky if its noise is above the share FLAKY, over at least LEAST runs. FLAKY is a gate's default
concern threshold, so such noise looks like a change."""
_COMPLETE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REMOTE = re.compile(
    r"(?:(?:https?|ssh)://)?(?:[^/@\s]*@)?(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?::\d+/|:|/)(?P<path>[\w.~/-]+?)(?:\.git)?/?"
)
"""An address of a repository, as git accepts it: a URL, or ``user@host:path``."""
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
class SeriesTrend:
    """A series with its points in commit order."""

    series: StoredSeries
    points: tuple[StoredValue, ...]
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
) -> Iterator[SeriesTrend]:
    """Yield the requested trends by benchmark and metric, each with the requested points.

    Raises UserError if values are to be converted to another machine and that is not possible.
    """
    found = _of_machines(history, asked, order, None if asked.rebase else newest)
    return _with_rebased(history, asked, order, list(found)) if asked.rebase else found


def _with_rebased(
    history: History, query: HistoryFilter, order: Mapping[str, int], own: Sequence[SeriesTrend]
) -> Iterator[SeriesTrend]:
    """Yield one machine's trends, with another machine's values where both have enough revisions in common."""
    known = list(history.machines())
    old = machine_named(query.rebase, "--rebase", known)
    new = machine_named(query.machine or "", "--machine", known)
    if old == new:
        raise UserError.of(f"--rebase {old} and --machine are the same", "name the earlier machine as --rebase")
    others = {key_of(each.series): each for each in _of_machines(history, replace(query, machine=old), order, None)}
    pairs = [(trend, others.get(key_of(trend.series))) for trend in own]
    made = [(trend, other and rebased(trend.points, other.points, old)) for trend, other in pairs]
    if not any(converted for _, converted in made):
        raise too_few(old, new, (overlap(trend.points, other.points) for trend, other in pairs if other))
    for trend, converted in made:
        if converted:
            points, by = converted
            series = replace(trend.series, points=trend.series.points + len(points))
            yield SeriesTrend(series, tuple(in_order([*points, *trend.points], order)), by)
        else:
            yield trend


def _of_machines(
    history: History, query: HistoryFilter, order: Mapping[str, int], newest: int | None
) -> Iterator[SeriesTrend]:
    for series in history.series():
        # Metrics without a direction are only shown if the user names them.
        if query.metric != series.metric and (query.metric or series.better == "none"):
            continue
        if query.benchmark and not (query.benchmark == series.benchmark or query.benchmark in series.benchmark):
            continue
        if query.machine and not series.machine.startswith(query.machine):
            continue
        points = [point for point in history.points(series.id, newest) if _is_wanted(point, query)]
        if points:
            yield SeriesTrend(series, tuple(in_order(points, order)))


def _is_wanted(point: StoredValue, asked: HistoryFilter) -> bool:
    if asked.branch and point.branch != asked.branch:
        return False
    return asked.since is None or moment(point.committed or point.started) >= asked.since


def commit_order(root: Path, revisions: Iterable[str]) -> dict[str, int]:
    """Return revision -> position in the commit graph, parents first and siblings by date; {} without git.

    Revisions that the repository lacks are left out. git walks back only to the oldest revision, so the time depends on
    the span of the revisions, not on the age of the project.
    """
    complete = sorted(revision for revision in set(revisions) if _COMPLETE.fullmatch(revision))
    try:
        git = repositories.look_at(root).git() if complete else None
    except UserError:
        git = None
    dates = _dates(git, complete) if git else {}
    if not git or not dates:
        return {}
    # Committers' clocks differ. If a parent is younger than its child by more than a day, walk the whole graph.
    bounds: list[list[str]] = [[f"--max-age={min(dates.values()) - _DAY}"], []]
    walks = (_walk(git, bound, dates) for bound in bounds)
    by_date = sorted(dates, key=lambda revision: (dates[revision], revision))
    order = next((walk for walk in walks if len(walk) == len(dates)), by_date)
    return {revision: place for place, revision in enumerate(order)}


def commit_pages(root: Path) -> str:
    """Return what a commit follows in the address of its web page, such as ``https://example.org/owner/name/commit/``.

    It is made from the remote ``origin``, without user and token; '' if that is no address of a host.
    """
    try:
        done = repositories.look_at(root).git().attempt("config", "--get", "remote.origin.url")
    except UserError:
        return ""
    found = _REMOTE.fullmatch(done.stdout.decode("utf-8", "replace").strip())
    return f"https://{found['host']}/{found['path']}/commit/" if found else ""


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


def in_order(points: Iterable[StoredValue], order: Mapping[str, int]) -> list[StoredValue]:
    """Sort points by the commit graph if their revisions are known, else by date; points of one revision by date.

    A point without a known revision keeps its position by date among the others.
    """
    by_date = sorted(points, key=lambda point: (point.committed or point.started, point.started))
    known = [point for point in by_date if point.revision in order]
    # The points with known revisions fill their positions by date in graph order.
    placed = iter(sorted(known, key=lambda point: (order[point.revision], point.dirty, point.started)))
    return [next(placed) if point.revision in order else point for point in by_date]


def parameters_of(trend: SeriesTrend, others: Sequence[SeriesTrend]) -> str:
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
    params_of_trend, all_params = _params(trend.series), [_params(series) for series in alike]
    differing = [name for name in params_of_trend if len({str(params.get(name)) for params in all_params}) > 1]
    words = [f"{name}={params_of_trend[name]}" for name in differing]
    words += [trend.series.workflow] if len({series.workflow for series in alike}) > 1 else []
    words += [trend.series.statistic] if len({series.statistic for series in alike}) > 1 else []
    return ", ".join([*words, trend.rebased.text()] if trend.rebased else words)


def _params(series: StoredSeries) -> dict[str, object]:
    found = json.loads(series.params) if series.params else {}
    return found if isinstance(found, dict) else {}


FEWEST = 4
"""Revisions that both machines must have measured. With fewer, the interval is too wide to be useful."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rebased:
    """The factor for the values of ``machine``, its 95% interval, and the number of revisions that it is based on."""

    machine: str
    factor: float
    low: float
    high: float
    revisions: int

    def text(self) -> str:
        """Return ``values of machine 0123456789ab × 1.32 [1.30, 1.34], by 6 revisions``."""
        interval = f"{self.factor:.4g} [{self.low:.4g}, {self.high:.4g}]"
        return f"values of machine {self.machine[:12]} × {interval}, by {self.revisions} revisions"


def machine_named(word: str, option: str, known: Sequence[str]) -> str:
    """Return the identity of the machine in the history that begins with ``word``. Raises UserError."""
    found = [name for name in known if name == word] or [name for name in known if word and name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if not word:
        hint = f"add --machine with one of: {listed(known)}"
        raise UserError.of("--rebase needs the machine to convert values to", hint)
    said = "names several machines" if found else "is not a machine of the history"
    raise UserError.of(f"{option} {word} {said}", f"write one of: {listed(found or known)}")


def rebased(
    new: Sequence[StoredValue], old: Sequence[StoredValue], machine: str
) -> tuple[list[StoredValue], Rebased] | None:
    """Return the ``old`` points of ``machine`` on the scale of the ``new`` ones, and the factor.

    Points of revisions that ``new`` contains are left out. None if both have too few revisions in common.
    """
    ours, theirs = _levels(new), _levels(old)
    both = sorted(ours.keys() & theirs.keys())
    if len(both) < FEWEST or any(point.value <= 0 for point in old):
        return None
    logs = [ours[revision] - theirs[revision] for revision in both]
    ends = mean_interval(logs, _CONFIDENCE)
    factor = Rebased(machine, math.exp(fmean(logs)), math.exp(ends.low), math.exp(ends.high), len(both))
    return [_scaled(point, factor) for point in old if point.revision not in ours], factor


def _levels(points: Sequence[StoredValue]) -> dict[str, float]:
    """Return the logarithm of the median value of each revision, without values of uncommitted changes."""
    values: dict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.revision and not point.dirty and point.value > 0:
            values[point.revision].append(math.log(point.value))
    return {revision: quantile(found, 0.5) for revision, found in values.items()}


def _scaled(point: StoredValue, by: Rebased) -> StoredValue:
    low, high = (None if end is None else end * by.factor for end in (point.low, point.high))
    return point._replace(value=point.value * by.factor, low=low, high=high, rebased=by.machine)


def key_of(series: StoredSeries) -> tuple[str, ...]:
    """Return the fields that two series of different machines must share to be comparable."""
    return (series.benchmark, series.metric, series.statistic, series.workflow, series.params)


def too_few(old: str, new: str, overlaps: Iterator[int]) -> UserError:
    """Return the error that no series can be converted."""
    most = max(overlaps, default=0)
    text = f"machines {old[:12]} and {new[:12]} have {most} revisions of a benchmark in common; {FEWEST} are needed"
    hint = f"on {new[:12]}, check out revisions that {old[:12]} measured, and `perfflow run` the workflow at each"
    return UserError.of(text, hint)


def overlap(new: Sequence[StoredValue], old: Sequence[StoredValue]) -> int:
    """Return how many revisions both measured."""
    return len(_levels(new).keys() & _levels(old).keys())


_LOOKED_AT = 5
"""The most runs on each side of a change that are searched for a profile."""
_LEAST = 0.01
"""The smallest cost change of a function that is reported, as a share of the whole cost before."""
MOST = 3


@dataclass(frozen=True)
class HotspotShift:
    """A function with its share of the profile on both sides, 0 to 1.

    ``cost`` is the cost that it added, as a share of the whole cost before. ``runs`` are the profiled runs before and
    after the change.
    """

    function: str
    before: float
    after: float
    cost: float
    runs: tuple[str, str]

    def text(self) -> str:
        """Return ``parse 12% → 35% of the profile``."""
        return f"{visible(self.function)} {self.before:.0%} → {self.after:.0%} of the profile"


def hotspot_shifts(
    root: Path, benchmark: str, before: Iterable[StoredValue], after: Iterable[StoredValue], change: float
) -> tuple[HotspotShift, ...]:
    """Return the functions whose cost moved most in the direction of a change, at most 3, the largest first.

    before, after: points on both sides, nearest first. change: that of the benchmark, as a share. Empty if the same
    tool did not profile the benchmark on both sides.
    """
    for old, old_run in _profiled(root, benchmark, before):
        for new, new_run in _profiled(root, benchmark, after):
            source = next((name for name in old if name in new), "")
            if source:
                return _moved(old[source], new[source], change, (old_run, new_run))
    return ()


_Shares = dict[str, float]


def _profiled(root: Path, benchmark: str, points: Iterable[StoredValue]) -> list[tuple[dict[str, _Shares], str]]:
    """Return (tool → function → share, run) of the benchmark for each profiled run."""
    runs = list(dict.fromkeys(point.run for point in points))[:_LOOKED_AT]
    found = [(_shares(root, run, benchmark), run) for run in runs]
    return [(shares, run) for shares, run in found if shares]


def _shares(root: Path, run: str, benchmark: str) -> dict[str, _Shares]:
    result = _result(root, run)
    shares: dict[str, _Shares] = {}
    if result is None:
        return shares
    trees = {spot.tree for spot in result.hotspots}
    tree = "candidate" if "candidate" in trees else "baseline"
    for spot in result.hotspots:
        if spot.benchmark == benchmark and spot.tree == tree:
            by_function, name = shares.setdefault(spot.source, {}), spot.function or spot.location
            by_function[name] = by_function.get(name, 0.0) + (
                spot.share if spot.self_share is None else spot.self_share
            )
    return shares


@cache
def _result(root: Path, run: str) -> Result | None:
    # The name of the run, without the name of the machine in it.
    path = root / HOME / "runs" / run.partition("/")[0] / RESULT
    # A run of another machine or tool has no folder here.
    if not path.is_file():
        return None

    try:
        return result_file.read(path)
    except (UserError, OSError):
        return None


def _moved(old: _Shares, new: _Shares, change: float, runs: tuple[str, str]) -> tuple[HotspotShift, ...]:
    found = []
    for name in {**old, **new}:
        before, after = old.get(name, 0.0), new.get(name, 0.0)
        # Relative to the whole cost before, since the whole cost changed as well.
        cost = after * (1 + change) - before
        if abs(cost) >= _LEAST and (cost > 0) == (change > 0):
            found.append(HotspotShift(name, before, after, cost, runs))
    return tuple(sorted(found, key=lambda item: (-abs(item.cost), item.function))[:MOST])
