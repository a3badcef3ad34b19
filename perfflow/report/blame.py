"""Which functions a regression is in, what they cost on both sides, and the commits that touched them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.model.later import dataclass
from perfflow.model.metrics import TIMES
from perfflow.model.result import Attribution, CommitInfo, Result
from perfflow.model.units import Dimension, format_quantity, significant
from perfflow.report.regressions import worst_first
from perfflow.report.table import NOTHING
from perfflow.report.truncate import Leading, leading
from perfflow.verdict.attribution import loss_share_text

MOST_COMMITS = 3
_SHORT = 7
_PROFILED = {
    "time": {*TIMES, "throughput", "rate", "flops"},
    "instructions": {"instructions"},
    "bytes": {"alloc", "allocs", "heap_peak", "rss"},
}
"""The metrics of which a profile by these units tells function by function."""


@dataclass(frozen=True)
class Blamed:
    """One function: where it is, its own cost before and after, and its share of what the benchmark lost.

    ``commits`` are short hash and subject, the hash empty of what is not committed; ``more`` counts the others.
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
        """The commits in one line: ``3fa2c1d Parse twice, 77e01aa Inline and 2 more``."""
        named = ", ".join(" ".join(filter(None, commit)) for commit in self.commits)
        return f"{named} and {self.more} more" if self.more else named


@dataclass(frozen=True)
class Area:
    """What the functions of one region or crate lost together, in one operation of each of their benchmarks."""

    kind: str
    name: str
    metric: str
    functions: int
    benchmarks: tuple[str, ...]
    added: str


@dataclass(frozen=True)
class Blame:
    """All functions that a gate blames, what they come to by area, and the rows of which profiles blame none."""

    functions: Leading[Blamed]
    areas: Leading[Area]
    unexplained: Leading[tuple[str, str]]
    """Benchmark, and its metric."""

    @property
    def has_crates(self) -> bool:
        """Whether any of the functions shown belongs to a crate."""
        return any(item.crate for item in self.functions.shown)

    @property
    def has_regions(self) -> bool:
        """Whether any of the functions shown belongs to a region."""
        return any(item.region for item in self.functions.shown)


def blame_of(result: Result) -> Blame:
    """The functions in the order of the result: what lost most first."""
    return Blame(
        functions=leading(result.attributions).each(blamed),
        areas=leading([*_areas(result.attributions)]),
        unexplained=leading([*_unexplained(result)]),
    )


def _unexplained(result: Result) -> Iterator[tuple[str, str]]:
    """What regressed and was profiled on both sides, with no function that stands out."""
    told = {(item.benchmark, item.metric) for item in result.attributions}
    sides: dict[tuple[str, str], set[str]] = {}
    for spot in result.hotspots:
        sides.setdefault((spot.benchmark, spot.unit), set()).add(spot.tree)
    for row in worst_first(result.benchmarks):
        units = (unit for unit, metrics in _PROFILED.items() if row.metric in metrics)
        both = any(len(sides.get((row.name, unit), ())) == 2 for unit in units)
        if both and row.level in ("concern", "action") and (row.name, row.metric) not in told:
            yield row.name, row.metric


def cost(value: float | None, unit: str) -> str:
    """A cost in base units, scaled: ``4.20 ms``; a dash where it is not known."""
    if value is None:
        return NOTHING
    known = next((dimension for dimension in Dimension if dimension.base_unit == unit), None)
    return f"{significant(value)} {unit}".strip() if known is None else format_quantity(value, known)


def signed(value: float, unit: str) -> str:
    """A difference of costs with its sign: ``+602 μs``."""
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{cost(abs(value), unit)}"


def place_of(item: Attribution) -> str:
    """``src/parse.rs:214``; without the line, or empty, where they are not known."""
    return f"{item.file}:{item.line}" if item.file and item.line else item.file


def short(commit: CommitInfo) -> str:
    """The beginning of its hash, as git shows it."""
    return commit.revision[:_SHORT]


def commit_text(commit: CommitInfo) -> str:
    """``3fa2c1d "Parse twice"``; of what is not committed the words alone."""
    return f'{short(commit)} "{commit.subject}"' if commit.revision else commit.subject


def share_text(share: float | None) -> str:
    """A share of the whole: ``61%``."""
    return NOTHING if share is None else loss_share_text(share)


def blamed(item: Attribution) -> Blamed:
    """One function as the texts of a report."""
    return Blamed(
        benchmark=item.benchmark,
        metric=item.metric,
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
    """Regions before crates, each in the order of its first function."""
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
                metric=metric,
                functions=len(items),
                benchmarks=tuple(dict.fromkeys(item.benchmark for item in items)),
                added=signed(sum(known), unit) if len(known) == len(items) else NOTHING,
            )
