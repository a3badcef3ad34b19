"""The functions that are blamed for a regression, their cost on both sides, and the commits that touched them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.lazy import dataclass
from perfflow.model.metrics import TIMES, in_words
from perfflow.model.result import Attribution, CommitInfo, Result
from perfflow.model.units import Dimension, format_quantity, significant
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
    return Blame(
        functions=truncated(result.attributions).each(blamed),
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


def cost(value: float | None, unit: str) -> str:
    """Return a cost in base units as text such as ``4.20 ms``, or a dash for None."""
    if value is None:
        return NOTHING
    known = next((dimension for dimension in Dimension if dimension.base_unit == unit), None)
    return f"{significant(value)} {unit}".strip() if known is None else format_quantity(value, known)


def signed(value: float, unit: str) -> str:
    """Return a difference of costs with its sign, such as ``+602 μs``."""
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{cost(abs(value), unit)}"


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


def blamed(item: Attribution) -> Blamed:
    """Return the texts of one blamed function."""
    return Blamed(
        benchmark=item.benchmark,
        metric=in_words(item.metric),
        function=item.function,
        place=place_of(item),
        crate=item.crate,
        region=item.region,
        values=f"{cost(item.baseline, item.unit)} → {cost(item.candidate, item.unit)}",
        share=share_text(item.share),
        commits=tuple((short(commit), commit.subject) for commit in item.commits[:MOST_COMMITS]),
        more=max(0, len(item.commits) - MOST_COMMITS),
        tool=item.tool,
        note=item.note,
    )


def _areas(attributions: Sequence[Attribution]) -> Iterator[Area]:
    """Yield regions before crates, each in the order of its first function."""
    for kind in ("region", "crate"):
        groups: dict[tuple[str, str, str], list[Attribution]] = {}
        for item in attributions:
            if getattr(item, kind):
                groups.setdefault((getattr(item, kind), item.metric, item.unit), []).append(item)
        for (name, metric, unit), items in groups.items():
            known = [
                item.candidate - item.baseline
                for item in items
                if item.candidate is not None and item.baseline is not None
            ]
            yield Area(
                kind=kind,
                name=name,
                metric=in_words(metric),
                functions=len(items),
                benchmarks=tuple(dict.fromkeys(item.benchmark for item in items)),
                added=signed(sum(known), unit) if len(known) == len(items) else NOTHING,
            )
