"""Choose the base of ``gate --against best-30d``: the best revision in the history of this machine.

The stored values only choose the revision. It is then measured again, in pairs with head, so a lucky value in the
history cannot fail a gate.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from perfflow.jobs.history.collect import opened as opened_history
from perfflow.jobs.history.trends import SeriesTrend, moment
from perfflow.machine.facts import facts
from perfflow.model.errors import UserError
from perfflow.model.metrics import is_exact
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned
from perfflow.report.history_tables import quantity
from perfflow.session.open_workflow import Opened
from perfflow.stats.paired_test import levels, quantile
from perfflow.store.history.database import StoredSeries, StoredValue
from perfflow.store.history.summary import params_text
from perfflow.tools.adapter import Role
from perfflow.trees import repository as repositories
from perfflow.trees.repository import Repository, describe_project
from perfflow.verdict.comparison import ComparedMetric, SideSummary
from perfflow.verdict.gating import deciding_metrics

Tell = Callable[[str], None]


_SPEC = re.compile(r"best-([1-9][0-9]{0,3})d")


_NOISES = 2
"""A benchmark's loss counts only beyond this multiple of its noise. Otherwise the noisiest would always choose."""


_DEVIATION = 1.4826 / math.sqrt(1.5)
"""Factor from the median distance of a normal value to the middle of two others, to their standard deviation."""


_WIDTH = 2 * 1.96
"""Standard errors in a 95% interval."""


_DEEPEN = "git fetch --unshallow gets the whole history"


@dataclass(frozen=True)
class Best:
    """The chosen revision, and why: the benchmark that decided, its stored value, and how old the revision is.

    ``value`` is in base units. ``lost`` is the share by which the newest level is worse than the best. ``days`` and
    ``commits`` are the revision's age. It was chosen from ``of`` revisions. ``others`` of ``benchmarks`` were best at
    another revision.
    """

    spec: str
    revision: str
    series: StoredSeries
    value: float
    measured: str
    days: int
    commits: int
    lost: float
    of: int
    benchmarks: int
    others: int

    @property
    def text(self) -> str:
        """The sentence for the report."""
        series = self.series
        back = f"{_number(self.days, 'day')} and {_number(self.commits, 'commit')} back"
        now = f"{self.lost:.1%} worse" if self.lost >= 0.0005 else "no worse"
        sentence = (
            f"base: {self.revision[:12]}, the best of {_number(self.of, 'revision')} of the last {days_of(self.spec)} "
            f"days in this machine's history: {series.benchmark} {series.metric} was {quantity(self.value, series)} "
            f"on {self.measured[:10]}, {back}, and the level is {now} now"
        )
        if not self.others:
            return sentence
        many = f"{self.others} of {_number(self.benchmarks, 'benchmark')}"
        return f"{sentence}; {many} were best at another revision, and {series.benchmark} has lost most since its best"

    @property
    def about(self) -> dict[str, Any]:
        """The facts about the base for the result, beside its revision."""
        names = ("value", "measured", "days", "commits", "lost")
        series = {name: getattr(self.series, name) for name in ("benchmark", "metric", "unit")}
        return {"name": self.spec, "best": series | {name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class _Line:
    """Head's history, oldest commit first, and the commits that cannot be the base because their code is head's.

    ``shallow``: this clone lacks the older commits.
    """

    places: Mapping[str, int]
    same_code: frozenset[str]
    shallow: bool


@dataclass(frozen=True)
class _Followed:
    """One deciding metric of one benchmark: a value for each revision, in the order of the commits."""

    trend: SeriesTrend
    revisions: tuple[str, ...]
    values: tuple[float, ...]
    levels: tuple[float, ...]
    best: int
    """Index of the best revision that can be the base."""

    @property
    def lost(self) -> float:
        """The share by which the newest level is worse than the best one."""
        best, newest = self.levels[self.best], self.levels[-1]
        old, new = (best, newest) if self.trend.series.better == "lower" else (newest, best)
        if old == 0:
            return math.inf if new > 0 else 0.0
        return new / old - 1

    @property
    def rank(self) -> tuple[float, float]:
        """The loss beyond the noise, then the whole loss."""
        exact = is_exact(self.trend.series.statistic)
        return self.lost - (0 if exact else _NOISES * _noise(self.trend, self.values)), self.lost


def days_of(spec: str) -> int:
    """Return the number of days in ``best-Nd``. Raises UserError for any other text."""
    found = _SPEC.fullmatch(spec)
    if not found:
        hint = "write --against best-30d: the revision with the best value of the last 30 days in the history"
        raise UserError.of(f"--against {spec!r} is not best-Nd", hint)
    return int(found[1])


def best_revision(opened: Opened, selected: Collection[str], spec: str, head: str | None, tell: Tell) -> Best:
    """Choose the base: take the deciding metric that has lost most since its best, and return its best revision.

    Only head's own history counts, and only values of this machine, workflow and parameters.
    head: a revision; None for the working tree. Raises UserError if there is no such value or its commit is missing.
    """
    days = days_of(spec)
    repository = repositories.look_at(opened.root)
    line = _line(opened, repository, head)
    now = datetime.now(UTC)
    series, elsewhere = _series(opened, now - timedelta(days=days), line, tell)
    of = {point.revision for trend in series for point in trend.points}
    ranked = [item for trend in _deciding(opened, selected, series) if (item := _followed(trend, line))]
    if not ranked:
        raise _nothing(opened, spec, of, elsewhere, shallow=line.shallow)
    first = max(ranked, key=lambda item: item.rank)
    revision = first.revisions[first.best]
    if revision not in line.places:
        text = f"the best revision of the last {days} days, {revision[:12]}, is not in this shallow clone"
        raise UserError.of(text, _DEEPEN)
    measured = max(point.started for point in first.trend.points if point.revision == revision)
    return Best(
        spec,
        revision,
        first.trend.series,
        first.values[first.best],
        measured,
        max(0, (now - moment(measured)).days),
        len(line.places) - 1 - line.places[revision],
        max(0.0, first.lost),
        len(of),
        len({item.trend.series.benchmark for item in ranked}),
        len({item.trend.series.benchmark for item in ranked if item.revisions[item.best] != revision}),
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _line(opened: Opened, repository: Repository, head: str | None) -> _Line:
    tip = repository.revision(head) if head else repository.head()
    if tip is None:
        raise UserError.of("the repository has no commit yet", "commit the state that the gate should compare with")
    lines = repository.git().run("rev-list", "--date-order", "--reverse", "--format=%H %T", tip).decode().splitlines()
    trees = dict(line.split(" ") for line in lines if not line.startswith("commit "))
    # Head compared with itself would always pass.
    changed = not head and bool(describe_project(opened.root, inspecting=True).get("dirty"))
    same = frozenset() if changed else frozenset(name for name, tree in trees.items() if tree == trees[tip])
    return _Line({name: place for place, name in enumerate(trees)}, same, repository.shallow)


def _series(opened: Opened, since: datetime, line: _Line, tell: Tell) -> tuple[list[SeriesTrend], int]:
    """Return the eligible values of this machine, and the number of series of other machines."""
    identity, params = facts()["identity"], params_text(opened.plan.params)
    trends, elsewhere = [], 0
    with opened_history(opened.root, tell) as history:
        for series in history.series():
            if (series.workflow, series.params) != (opened.plan.workflow.name, params):
                continue
            if series.machine != identity:
                elsewhere += 1
                continue
            points = [point for point in history.points(series.id) if _counts(point, since, line)]
            points.sort(key=lambda point: (line.places.get(point.revision, -1), point.started))
            if points:
                trends.append(SeriesTrend(series, tuple(points)))
    return trends, elsewhere


def _counts(point: StoredValue, since: datetime, line: _Line) -> bool:
    # In a shallow clone, an unknown commit may be an ancestor of head.
    known = point.revision in line.places or (line.shallow and bool(point.revision))
    return known and not point.dirty and moment(point.started) >= since


def _deciding(opened: Opened, selected: Collection[str], trends: Sequence[SeriesTrend]) -> Iterator[SeriesTrend]:
    """Yield, for each benchmark to be measured, the metrics that decide a gate and the metrics with a target."""
    steps = [item for item in opened.plan.steps if item.id in selected and item.role is Role.MEASURE]
    # Steps that compare two commands or variants do not compare base with head.
    steps = [item for item in steps if not item.in_one_tree]
    by_name: dict[str, dict[str, SeriesTrend]] = defaultdict(dict)
    for trend in sorted(trends, key=lambda trend: trend.points[-1].started):
        by_name[trend.series.benchmark][trend.series.metric] = trend
    for name, by_metric in by_name.items():
        measuring = [item for item in steps if may_measure(item, name)]
        if not measuring:
            continue
        comparisons = {metric: _as_comparison(opened, trend) for metric, trend in by_metric.items()}
        metrics = set(deciding_metrics([item.step.metric for item in measuring], comparisons))
        metrics |= {item.metric.name for item in opened.plan.criteria.targets if matches(item.benchmark, name)}
        yield from (by_metric[metric] for metric in by_metric if metric in metrics)


def may_measure(item: Planned, name: str) -> bool:
    """Return whether a step may measure a benchmark. In a suite step's pattern, ``*`` stands for the suite's ids."""
    before, star, after = item.pattern.partition("*")
    if star:
        return name.startswith(before) and name.endswith(after)
    return not item.pattern or matches(item.pattern, name)


def _as_comparison(opened: Opened, trend: SeriesTrend) -> ComparedMetric:
    """Return the newest value in the form that ``deciding_metrics`` takes."""
    series, point = trend.series, trend.points[-1]
    summary = SideSummary(point.value, point.low, point.high, point.n, (point.value,))
    metric = opened.plan.criteria.metric(series.metric)
    return ComparedMetric(series.benchmark, metric, series.statistic, "", "", None, summary)


def _followed(trend: SeriesTrend, line: _Line) -> _Followed | None:
    by_revision: dict[str, list[float]] = defaultdict(list)
    for point in trend.points:
        by_revision[point.revision].append(point.value)
    revisions = tuple(by_revision)
    values = tuple(quantile(each, 0.5) for each in by_revision.values())
    smooth = values if is_exact(trend.series.statistic) else tuple(levels(values))
    sign = -1 if trend.series.better == "higher" else 1
    able = [at for at, revision in enumerate(revisions) if revision not in line.same_code]
    if not able or trend.series.better == "none":
        return None
    # Of equal values the newest, since it differs least from head.
    best = min(able, key=lambda at: (sign * smooth[at], sign * values[at], -at))
    return _Followed(trend, revisions, values, smooth, best)


def _noise(trend: SeriesTrend, values: Sequence[float]) -> float:
    """Return the relative standard deviation of a value, estimated from its neighbours and from its own interval.

    The median distance from the middle of the two neighbours is not affected by steps and drifts.
    """
    threes = zip(values, values[1:], values[2:], strict=False)
    apart = [abs(at - (before + behind) / 2) / at for before, at, behind in threes if at]
    between = quantile(apart, 0.5) * _DEVIATION if apart else 0.0
    ends = [(point.low, point.high, point.value) for point in trend.points]
    widths = [(high - low) / _WIDTH / at for low, high, at in ends if low is not None and high is not None and at]
    return max(between, quantile(widths, 0.5) if widths else 0.0)


def _nothing(opened: Opened, spec: str, of: Collection[str], elsewhere: int, *, shallow: bool) -> UserError:
    name, days = opened.plan.workflow.name, days_of(spec)
    if of:
        text = f"the history of the last {days} days has values of {name} only for the code of head"
        return UserError.of(text, "the next commit can be compared with it; --base REV compares with any revision")
    text = f"the history has no value of {name} from the last {days} days, by this machine, for a commit of head"
    others = "; values of other machines are never compared" if elsewhere else ""
    deepen = f"; {_DEEPEN}" if shallow else ""
    hint = "`perfflow run` adds values of the checked-out commit; --base REV compares with any revision"
    return UserError.of(f"{text}{others}", f"{hint}{deepen}")
