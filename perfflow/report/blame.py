"""The functions that are blamed for a regression, their cost on both sides, and the commits that touched them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.model.metrics import TIMES, in_words
from perfflow.model.result import Attribution, CommitInfo, Result
from perfflow.model.units import Dimension, column_unit, format_quantity, significant
from perfflow.report.regressions import worst_first
from perfflow.report.table import NOTHING
from perfflow.report.truncate import Truncated, truncated
from perfflow.verdict.attribution import loss_share_text

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
class Blame:
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


def blame_of(result: Result) -> Blame:
    """Return the blamed functions in the order of the result, the largest increase first."""
    costs: dict[str, list[float | None]] = {}
    for each in result.attributions:
        costs.setdefault(each.unit, []).extend((each.baseline, each.candidate))
    units = {unit: shown_unit(values, unit) for unit, values in costs.items()}
    return Blame(
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


def blamed(item: Attribution, column: str = "") -> Blamed:
    """Return the texts of one blamed function. ``column``: the unit of the costs in a column, '' for one that suits."""
    shown = column or shown_unit((item.baseline, item.candidate), item.unit)
    return Blamed(
        benchmark=item.benchmark,
        metric=in_words(item.metric),
        function=item.function,
        place=place_of(item),
        crate=item.crate,
        region=item.region,
        values=f"{cost(item.baseline, item.unit, shown)} → {cost(item.candidate, item.unit, shown)}",
        share=interval_text(item),
        commits=tuple((short(commit), commit.subject) for commit in item.commits[:MOST_COMMITS]),
        more=max(0, len(item.commits) - MOST_COMMITS),
        tool=item.tool,
        note=item.note,
    )


def _areas(attributions: Sequence[Attribution]) -> Iterator[Area]:
    """Yield regions before crates, each in the order of its first function."""
    groups: dict[tuple[str, str, str, str], list[Attribution]] = {}
    for kind in ("region", "crate"):
        for item in attributions:
            if getattr(item, kind):
                groups.setdefault((kind, getattr(item, kind), item.metric, item.unit), []).append(item)
    added = {key: _added(items) for key, items in groups.items()}
    for (kind, name, metric, unit), items in groups.items():
        beside = shown_unit([total for (*_, other), total in added.items() if other == unit], unit)
        total = added[kind, name, metric, unit]
        yield Area(
            kind=kind,
            name=name,
            metric=in_words(metric),
            functions=len(items),
            benchmarks=tuple(dict.fromkeys(item.benchmark for item in items)),
            added=NOTHING if total is None else signed(total, unit, beside),
        )


def _added(items: Sequence[Attribution]) -> float | None:
    """Return the sum of the differences of both sides; None if one is not known."""
    sides = [(item.baseline, item.candidate) for item in items]
    known = [after - before for before, after in sides if before is not None and after is not None]
    return sum(known) if len(known) == len(items) else None
