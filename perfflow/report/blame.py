"""What a gate reports about regressions: counts, blamed functions, impact, and next steps.

- ``summary_of`` counts the rows by decision, and lists the regressions with their thresholds.
- ``blame_of`` lists the functions that are blamed for a regression, their cost on both sides, and the commits that
  touched them.
- ``impact_of`` gives the absolute change of each value, and the remaining distance to its targets.
- ``actions_of`` makes a task list with owners, and ``routed`` gives the route that the run takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.criteria import Accepted, Criteria
from perfflow.model.metrics import TIMES, in_words
from perfflow.model.readings import Side
from perfflow.model.result import Attribution, Benchmark, CommitInfo, Result, RouteTaken, TargetResult
from perfflow.model.targets import Names
from perfflow.model.tree_facts import KEPT, STORED, tree_of
from perfflow.model.units import (
    Dimension,
    Relation,
    Requirement,
    column_unit,
    format_quantity,
    format_threshold,
    significant,
    with_interval,
)
from perfflow.report.bounds import bound_of
from perfflow.report.requirements import target_name
from perfflow.report.rows import values_of
from perfflow.report.table import NOTHING
from perfflow.report.text_table import Truncated, rank_of_row, truncated
from perfflow.verdict.acceptance import taken
from perfflow.verdict.attribution import loss_share_text
from perfflow.verdict.comparison import without_inverse_rates
from perfflow.verdict.decide import by_cpu, remaining
from perfflow.verdict.routing import OWN
from perfflow.verdict.row_text import change_of, estimate_of, judged, unit_beside_targets

_COUNTED = ("improved", "same", "concern", "action", "unproven", "not run", "new", "removed")
_BELOW, _ACCEPTED = "regressed below concern", "accepted"
_SYMBOLS = {"action": "❌", "concern": "❔"}


@dataclass(frozen=True)
class Regressed:
    """One regression: both values, the change, its thresholds, and a remark on its confirmation."""

    benchmark: str
    metric: str
    values: str
    change: str
    concern: str
    action: str
    symbol: str
    level: str
    remark: str


@dataclass(frozen=True)
class GateSummary:
    """The rows of a gate: the number of each kind, and the regressions.

    ``accepted`` are rows that pass by a trade-off, with that trade-off; ``refuted`` are suspected rows that fresh pairs
    did not confirm, with their decision.
    """

    counts: tuple[tuple[str, int], ...]
    regressed: Truncated[Regressed]
    accepted: Truncated[tuple[str, str]]
    refuted: Truncated[tuple[str, str]]


def is_gate(result: Result) -> bool:
    """Return whether two revisions were compared, each in its own tree."""
    kinds = [tree_of(result.trees, side).kind for side in Side]
    return all(kind and kind not in (STORED, KEPT) for kind in kinds)


def summary_of(result: Result, criteria: Criteria) -> GateSummary:
    """Count the rows that the verdict rests on, including expected benchmarks that were not measured."""
    rows = [row for row in without_inverse_rates(result.benchmarks) if row.gating]
    confirmed = {(item.get("benchmark"), item.get("metric")): item for item in result.confirmations}
    passing = {id(row): item for row in rows if (item := taken(row, criteria))}
    counted = [_kind(row, accepted=id(row) in passing) for row in rows] + ["not run" for _ in not_run(result)]
    refuted = [row for row in rows if row.decision in ("same", "unproven") and (row.name, row.metric) in confirmed]
    return GateSummary(
        counts=tuple(
            (kind, counted.count(kind))
            for kind in (*_COUNTED, _BELOW, _ACCEPTED)
            if kind in _COUNTED or kind in counted
        ),
        regressed=truncated(worst_first(rows), rank_of_row).each(
            lambda row: _regressed(row, criteria, confirmed.get((row.name, row.metric)), accepted=id(row) in passing)
        ),
        accepted=truncated([row for row in rows if id(row) in passing]).each(
            lambda row: (row.title, f"{change_of(row, criteria)}, {trade_off(passing[id(row)])}")
        ),
        refuted=truncated(refuted).each(
            lambda row: (row.title, f"{row.decision}, {_fresh(confirmed[row.name, row.metric])}")
        ),
    )


def worst_first(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the proven regressions of gating rows: failures first, then the largest change."""
    worse = [row for row in without_inverse_rates(rows) if row.gating and row.decision == "regressed"]
    return sorted(worse, key=lambda row: (rank_of_row(row), -(worst_of(row) or 0.0)))


def worst_of(row: Benchmark) -> float | None:
    """Return by which share of the baseline a row got worse: the estimate, or the far end if unproven."""
    if row.change is None:
        return None
    far = row.change.low if row.better == "higher" else row.change.high
    worst = far if row.decision == "unproven" else row.change.value
    return worst if worst is None or row.better != "higher" else -worst


def not_run(result: Result) -> Iterator[str]:
    """Yield what is missing: expected benchmarks, failed measure steps, and rows that were not measured."""
    names = Names(row.name for row in result.benchmarks)
    measured = {row.step for row in result.benchmarks}
    for step in result.steps:
        missing = [glob for glob in step.expect or () if step.selected and not names.matching(glob)]
        yield from missing
        silent = step.role == "measure" and step.selected and step.status in ("failed", "timeout", "skipped")
        if silent and not missing and step.id not in measured:
            yield step.benchmark if step.benchmark and "*" not in step.benchmark else step.id
    yield from (row.name for row in result.benchmarks if row.gating and row.decision == "not measured")


def trade_off(item: Accepted) -> str:
    """Return the limit, the end date and the reason of an accepted regression."""
    return f"accepted up to {format_threshold(item.change)} until {item.until}: {item.why}"


def _kind(row: Benchmark, *, accepted: bool) -> str:
    if row.decision == "regressed":
        return _ACCEPTED if accepted else row.level if row.level in ("concern", "action") else _BELOW
    return "" if row.decision == "not measured" else row.decision or ""


def _regressed(row: Benchmark, criteria: Criteria, confirmed: Mapping[str, Any] | None, *, accepted: bool) -> Regressed:
    thresholds = criteria.thresholds_of(row.name, row.metric)
    level = row.level if row.level in _SYMBOLS else "below concern"
    return Regressed(
        benchmark=row.name,
        metric=in_words(row.metric),
        values=values_of(row, criteria),
        change=change_of(row, criteria),
        concern=format_threshold(thresholds.concern),
        action=format_threshold(thresholds.action),
        symbol="✅" if accepted else _SYMBOLS.get(level, "✅"),
        level=_ACCEPTED if accepted else level,
        remark=f"confirmed with {_fresh(confirmed)}" if confirmed else "",
    )


def _fresh(item: Mapping[str, Any]) -> str:
    return f"{item.get('pairs')} fresh pairs"


MOST_COMMITS = 3
_SHORT = 7
_PROFILED = {
    "time": {*TIMES, "throughput", "rate", "flops"},
    "instructions": {"instructions"},
    "bytes": {"alloc", "allocs", "heap_peak", "rss"},
}
"""The metrics that a profile in this unit breaks down by function."""


@dataclass(frozen=True)
class Blamed:
    """One function: its location, its own cost before and after, and its share of the benchmark's regression.

    ``commits`` are pairs of short hash and subject, with an empty hash for uncommitted changes; ``more`` counts the
    commits that are not listed.
    """

    benchmark: str
    metric: str
    function: str
    place: str
    crate: str
    region: str
    values: str
    share: str
    commits: tuple[tuple[str, str], ...]
    more: int
    tool: str
    note: str

    @property
    def touched(self) -> str:
        """The commits as one line: ``3fa2c1d Parse twice, 77e01aa Inline and 2 more``."""
        named = ", ".join(" ".join(filter(None, commit)) for commit in self.commits)
        return f"{named} and {self.more} more" if self.more else named


@dataclass(frozen=True)
class Area:
    """The total added cost of the functions of one region or crate, for one operation of each of their benchmarks."""

    kind: str
    name: str
    metric: str
    functions: int
    benchmarks: tuple[str, ...]
    added: str


@dataclass(frozen=True)
class GateBlame:
    """All blamed functions of a gate, their sums by area, and the regressions for which profiles blame no function."""

    functions: Truncated[Blamed]
    areas: Truncated[Area]
    unexplained: Truncated[tuple[str, str]]
    """Pairs of benchmark and metric."""

    @property
    def has_crates(self) -> bool:
        """Whether a shown function belongs to a crate."""
        return any(item.crate for item in self.functions.shown)

    @property
    def has_regions(self) -> bool:
        """Whether a shown function belongs to a region."""
        return any(item.region for item in self.functions.shown)


def blame_of(result: Result) -> GateBlame:
    """Return the blamed functions in the order of the result, the largest increase first."""
    costs: dict[str, list[float | None]] = {}
    for each in result.attributions:
        costs.setdefault(each.unit, []).extend((each.baseline, each.candidate))
    units = {unit: shown_unit(values, unit) for unit, values in costs.items()}
    return GateBlame(
        functions=truncated(result.attributions).each(lambda item: blamed(item, units[item.unit])),
        areas=truncated([*_areas(result.attributions)]),
        unexplained=truncated([*_unexplained(result)]),
    )


def _unexplained(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the regressions that were profiled on both sides but have no blamed function."""
    explained = {(item.benchmark, item.metric) for item in result.attributions}
    sides: dict[tuple[str, str], set[str]] = {}
    for spot in result.hotspots:
        sides.setdefault((spot.benchmark, spot.unit), set()).add(spot.tree)
    for row in worst_first(result.benchmarks):
        units = (unit for unit, metrics in _PROFILED.items() if row.metric in metrics)
        both = any(len(sides.get((row.name, unit), ())) == 2 for unit in units)
        if both and row.level in ("concern", "action") and (row.name, row.metric) not in explained:
            yield row.name, row.metric


_DIMENSIONS = {dimension.base_unit: dimension for dimension in reversed(Dimension)}


def shown_unit(values: Sequence[float | None], unit: str) -> str:
    """Return the unit in which to show costs in base units beside each other; '' if each needs its own."""
    known = _DIMENSIONS.get(unit)
    return column_unit(values, known) if known else ""


def cost(value: float | None, unit: str, shown: str = "") -> str:
    """Return a cost in base units as text such as ``4.20 ms``, in the unit ``shown`` if given; a dash for None."""
    if value is None:
        return NOTHING
    known = _DIMENSIONS.get(unit)
    return f"{significant(value)} {unit}".strip() if known is None else format_quantity(value, known, unit=shown)


def signed(value: float, unit: str, shown: str = "") -> str:
    """Return a difference of costs with its sign, such as ``+602 μs``."""
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{cost(abs(value), unit, shown)}"


def place_of(item: Attribution) -> str:
    """Return a location such as ``src/parse.rs:214``, without the line or '' if they are not known."""
    return f"{item.file}:{item.line}" if item.file and item.line else item.file


def short(commit: CommitInfo) -> str:
    """Return the short hash of a commit, as git shows it."""
    return commit.revision[:_SHORT]


def commit_text(commit: CommitInfo) -> str:
    """Return text such as ``3fa2c1d "Parse twice"``, without a hash for uncommitted changes."""
    return f'{short(commit)} "{commit.subject}"' if commit.revision else commit.subject


def share_text(share: float | None) -> str:
    """Return a share as text such as ``61%``, or a dash for None."""
    return NOTHING if share is None else loss_share_text(share)


def interval_text(item: Attribution) -> str:
    """Return the share of a function with its interval: ``61% [48%, 74%]``."""
    if item.share is None or item.share_low is None or item.share_high is None:
        return share_text(item.share)
    return f"{share_text(item.share)} [{share_text(item.share_low)}, {share_text(item.share_high)}]"


def blamed(culprit: Attribution, column: str = "") -> Blamed:
    """Return the texts of one blamed function. ``column``: the unit of the costs in a column, '' for one that suits."""
    shown = column or shown_unit((culprit.baseline, culprit.candidate), culprit.unit)
    return Blamed(
        benchmark=culprit.benchmark,
        metric=in_words(culprit.metric),
        function=culprit.function,
        place=place_of(culprit),
        crate=culprit.crate,
        region=culprit.region,
        values=f"{cost(culprit.baseline, culprit.unit, shown)} → {cost(culprit.candidate, culprit.unit, shown)}",
        share=interval_text(culprit),
        commits=tuple((short(commit), commit.subject) for commit in culprit.commits[:MOST_COMMITS]),
        more=max(0, len(culprit.commits) - MOST_COMMITS),
        tool=culprit.tool,
        note=culprit.note,
    )


def _areas(attributions: Sequence[Attribution]) -> Iterator[Area]:
    """Yield regions before crates, each in the order of its first function."""
    groups: dict[tuple[str, str, str, str], list[Attribution]] = {}
    for kind in ("region", "crate"):
        for attribution in attributions:
            if getattr(attribution, kind):
                groups.setdefault((kind, getattr(attribution, kind), attribution.metric, attribution.unit), []).append(
                    attribution
                )
    added = {key: _added(items) for key, items in groups.items()}
    for (kind, name, metric, unit), items in groups.items():
        beside = shown_unit([total for (*_, other), total in added.items() if other == unit], unit)
        total = added[kind, name, metric, unit]
        yield Area(
            kind=kind,
            name=name,
            metric=in_words(metric),
            functions=len(items),
            benchmarks=tuple(dict.fromkeys(attribution.benchmark for attribution in items)),
            added=NOTHING if total is None else signed(total, unit, beside),
        )


def _added(items: Sequence[Attribution]) -> float | None:
    """Return the sum of the differences of both sides; None if one is not known."""
    sides = [(item.baseline, item.candidate) for item in items]
    known = [after - before for before, after in sides if before is not None and after is not None]
    return sum(known) if len(known) == len(items) else None


@dataclass(frozen=True)
class Impact:
    """One regression: its absolute change, and the distance to each target before and after."""

    benchmark: str
    metric: str
    added: str
    headroom: tuple[tuple[str, str], ...]


def impact_of(result: Result, criteria: Criteria) -> Truncated[Impact]:
    """Return a line for each regression."""
    regressed = worst_first(result.benchmarks)
    units = {
        unit: shown_unit([_difference(row) for row in regressed if row.unit == unit], unit)
        for unit in dict.fromkeys(row.unit for row in regressed)
    }
    return truncated(regressed).each(
        lambda row: Impact(
            row.name,
            in_words(row.metric),
            _added_costs(row, units[row.unit], criteria),
            tuple(_headroom(row, result.targets, criteria)),
        )
    )


def _difference(row: Benchmark) -> float | None:
    """Return the absolute change: the relative change times the baseline's value."""
    before = row.baseline.value if row.baseline else None
    after = row.candidate.value if row.candidate else None
    if before is None or after is None:
        return None
    change = row.change.value if row.change else None
    return before * change if change is not None and before else after - before


def _added_costs(row: Benchmark, column: str, criteria: Criteria) -> str:
    """Return the absolute change with its interval, in the unit of the column if that is not ''."""
    added, change = _difference(row), row.change
    if added is None:
        return NOTHING
    before = row.baseline.value if row.baseline else None
    ends = [change.low, change.high] if change and change.value is not None and before else [None, None]
    values = [added, *(None if end is None or not before else before * end for end in ends)]
    unit = unit_beside_targets(row, column or shown_unit(values, row.unit), criteria)
    text, low, high = (None if value is None else signed(value, row.unit, unit) for value in values)
    return with_interval(str(text), low, high) if low is not None and high is not None else str(text)


def _headroom(row: Benchmark, targets: Sequence[TargetResult], criteria: Criteria) -> Iterator[tuple[str, str]]:
    """Yield each target on the row's own statistic with the distance of both values to it."""
    for target in targets:
        if (target.benchmark, target.metric, target.statistic) != (row.name, row.metric, row.statistic):
            continue
        bound = bound_of(target, criteria)
        sides = [side.value if side else None for side in (row.baseline, row.candidate)]
        left = [None if bound is None or value is None else _left(bound, value) for value in sides]
        if any(value is not None for value in left):
            dimension = criteria.metric(row.metric).dimension
            unit = unit_beside_targets(row, column_unit(left, dimension), criteria)
            texts = [NOTHING if value is None else _distance(value, dimension, unit) for value in left]
            yield target.requirement, f"{texts[0]} → {texts[1]}"


def _left(requirement: Requirement, value: float) -> float | None:
    """Return the distance to a bound, negative if the bound is missed; None if only equality is allowed."""
    match requirement.relation:
        case Relation.LESS | Relation.AT_MOST:
            return requirement.bound - value
        case Relation.GREATER | Relation.AT_LEAST:
            return value - requirement.bound
        case Relation.BETWEEN:
            far = value - requirement.bound
            return far if requirement.high is None else min(far, requirement.high - value)
        case Relation.EQUAL:
            return None


def _distance(left: float, dimension: Dimension, unit: str) -> str:
    text = format_quantity(abs(left), dimension, unit=unit)
    return f"{text} left" if left >= 0 else f"missed by {text}"


@dataclass(frozen=True)
class Action:
    """One task: the verb, its object, the reason, and the owner, which may be ''."""

    verb: str
    name: str
    detail: str
    owner: str


@dataclass(frozen=True)
class Routed:
    """The route of a run, the rule that chose it, and the brief with its long lists cut."""

    to: str
    rule: str
    why: str
    next: str
    command: str
    """The command for the next step, '' if there is none."""
    lists: tuple[tuple[str, Truncated[str]], ...]
    """The lists of the brief that are not empty, with their titles."""
    commands: tuple[str, ...]


def actions_of(result: Result, criteria: Criteria) -> Truncated[Action]:
    """Return the tasks: failures first, then missing and unproven measurements, then warnings."""
    # A built-in rule names a kind of work, one of the workflow's own names somebody.
    to = next((route.to for route in result.routes if route.rule.startswith(OWN)), "")
    return truncated([*_failing(result, criteria, to), *_unknown(result, to), *_warned(result, criteria, to)])


def routed(route: RouteTaken) -> Routed:
    """Return a route with its brief."""
    brief = route.brief
    lists = (
        ("Regressed", brief.regressed),
        ("Undecided", brief.undecided),
        ("Thresholds", brief.thresholds),
        ("Hotspots", brief.hotspots),
    )
    return Routed(
        to=route.to,
        rule=route.rule,
        why=route.why,
        next=route.next,
        command=route.command,
        lists=tuple((title, truncated(lines)) for title, lines in lists if lines),
        commands=truncated(brief.commands).shown,
    )


def _failing(result: Result, criteria: Criteria, to: str) -> Iterator[Action]:
    for row in worst_first(result.benchmarks):
        if row.level == "action":
            yield _regression(result, row, criteria, "Fix", to)
    for target in result.targets:
        if target.status == "not met":
            yield Action("Meet", f"{target_name(target)} {target.requirement}", target.detail, to)
    for check in result.verification:
        if check.status == "failed" and not _allowed(result, check.id):
            yield Action("Fix", check.id, check.detail, to)


def _unknown(result: Result, to: str) -> Iterator[Action]:
    for row in result.benchmarks:
        if row.gating and row.decision == "removed":
            yield Action("Restore", row.name, "measured at base, missing at head", to)
    for name in dict.fromkeys(not_run(result)):
        yield Action("Measure", name, "expected, but not measured", to)
    for row in result.benchmarks:
        if row.gating and row.decision == "unproven" and row.level is None:
            hints = filter(None, (remaining(row), by_cpu(row, result.benchmarks)))
            yield Action("Measure longer", row.title, "; ".join(hints), to)


def _warned(result: Result, criteria: Criteria, to: str) -> Iterator[Action]:
    for row in worst_first(result.benchmarks):
        accepted = taken(row, criteria)
        if accepted:
            action = format_threshold(criteria.thresholds_of(row.name, row.metric).action)
            detail = f"{estimate_of(row, criteria)} is accepted until then; afterwards a change over {action} fails"
            owner = _owner(result, row, to)
            yield Action(f"Fix before {accepted.until}:", row.title, detail, owner)
        elif row.level == "concern":
            yield _regression(result, row, criteria, "Look at", to)


def _regression(result: Result, row: Benchmark, criteria: Criteria, verb: str, to: str) -> Action:
    place = next(_blamed(result, row), None)
    share = f"{share_text(place.share)} of it" if place and place.share is not None else "some of it"
    where = f", {share} in {place.function} {place_of(place)}".rstrip() if place else ""
    since = f", touched by {commit_text(place.commits[0])}" if place and place.commits else ""
    detail = f"{judged(row, criteria)}{where}{since}"
    return Action(verb, row.title, detail, _owner(result, row, to))


def _owner(result: Result, row: Benchmark, to: str) -> str:
    """Return the author of the newest commit to the most blamed function; if unknown, ``to``."""
    authors = (commit.author for item in _blamed(result, row) for commit in item.commits)
    return next(filter(None, authors), to)


def _blamed(result: Result, row: Benchmark) -> Iterator[Attribution]:
    return (item for item in result.attributions if (item.benchmark, item.metric) == (row.name, row.metric))


def _allowed(result: Result, step_id: str) -> bool:
    return any(step.id == step_id and step.allowed for step in result.steps)
