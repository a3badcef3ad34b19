"""Make every table of a report, one function each. Formats render `Table` and do not depend on its content.

``NAMED`` has the tables that templates call by name. ``described`` lays out names and wrapped texts in two columns for
a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from perfflow.model.result import Benchmark
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.blame import Area, Blamed, GateBlame, Impact, Regressed
from perfflow.report.gate_table import GateLine
from perfflow.report.kernels import GpuRow, Kernels, Roofline, StallRow
from perfflow.report.page import Counted, MachineLine, Page, PlannedLine, ProfileTable, TryLine
from perfflow.report.requirements import RequirementLine
from perfflow.report.rows import ComparisonLine, FigureLine
from perfflow.report.same_function import Joined
from perfflow.report.sanitize import NO_EDGE, cells, padded, visible, wrapped
from perfflow.report.table import (
    NOTHING,
    Cell,
    Column,
    Span,
    Table,
    TextKind,
    Tone,
    drawn,
    mark,
    name,
    optional,
    table,
    value,
    with_aside,
    words,
)
from perfflow.report.text_table import densities, on_one_axis, ratio_of_change, ratio_of_speedup

BENCHMARK, METRIC, LOCATION = name("Benchmark"), name("Metric"), name("Location")
ADDED, ADDED_BY_ALL = (Column(title, TextKind.WORDS, right=True) for title in ("Absolute change", "Cost added"))


def sides(page: Page) -> Table:
    """Return the descriptions of two stored results."""
    return table([mark("Side"), words("Description")], page.sides)


def comparisons(page: Page, rows: Iterable[ComparisonLine], *, short: bool = False, left_out: int = 0) -> Table:
    """Return both sides of each row with its change and decision.

    ``short``: the page does not show the reasons, and a benchmark is named only in its first row.
    """
    rows = tuple(rows)
    title, bars = _change_bars(page, rows)
    cells = (
        (
            () if short and row.operation == before else row.operation,
            row.metric if row.decides else (row.metric, Span(" (not judged)", TextKind.VALUE)),
            row.baseline,
            row.candidate,
            with_aside(row.change if page.gated else row.speedup),
            bar,
            row.pairs,
            row.decision + (f": {row.remark}" if row.remark and (short or not row.explained) else ""),
        )
        for row, bar, before in zip(rows, bars, [None, *(row.operation for row in rows)], strict=False)
    )
    columns = [
        name("Benchmark" if page.gated else "Operation"),
        METRIC,
        *(value(side, rank=2) for side in page.sides_titles),
        value("Change" if page.gated else "Speedup"),
        drawn(title, bars),
        value("Pairs", rank=3),
        mark("Decision"),
    ]
    return table(columns, cells, left_out, (row.tone for row in rows))


def _change_bars(page: Page, rows: Sequence[ComparisonLine]) -> tuple[str, list[Cell]]:
    """Return the title and the bars of the change, or of the speedup, as in the column beside them."""
    if page.gated:
        return on_one_axis([ratio_of_change(row.source.change, row.bound, row.tone) for row in rows], percent=True)
    speedups = []
    for row in rows:
        faster = row.source.better == "higher"
        bound = None if row.bound is None else 1 + row.bound if faster else 1 / (1 + row.bound)
        speedups.append(ratio_of_speedup(row.source.speedup, bound, row.tone))
    return on_one_axis(speedups, percent=False)


def distributions(
    row: Benchmark, dimension: Dimension, names: Sequence[str], title: str | Span, unit: str = ""
) -> Iterator[Table]:
    """Yield a table with the samples of both sides on one axis; nothing if there are too few or all are equal.

    ``unit``: the unit of the row, '' for one that suits each value.
    """
    sides = [side for side in (row.baseline, row.candidate) if side]
    placed = densities(sides, dimension, unit) if len(sides) == len(names) else None
    if not placed:
        return
    axis, pictures = placed
    outside = [len(side.samples) - len(picture.places) for side, picture in zip(sides, pictures, strict=True)]
    columns = [
        Column(title, TextKind.NAME),
        drawn(axis, pictures, rank=0),
        *(value(title, rank) for title, rank in (("Lowest", 1), ("Median", 0), ("Highest", 1), ("Samples", 3))),
        value("Not drawn") if any(outside) else None,
    ]
    cells = (
        (
            label,
            picture,
            *(format_quantity(number, dimension, unit=unit) for number in (low, side.value or 0.0, high)),
            str(len(side.samples)),
            str(others or NOTHING),
        )
        for label, picture, side, others, low, high in zip(
            names,
            pictures,
            sides,
            outside,
            (min(side.samples) for side in sides),
            (max(side.samples) for side in sides),
            strict=True,
        )
    )
    yield table(columns, cells)


def figures(rows: Iterable[FigureLine], left_out: int = 0) -> Table:
    """Return the values of one side."""
    cells = ((row.benchmark, row.metric, row.baseline, row.samples) for row in rows)
    return table([BENCHMARK, METRIC, value("Value"), value("Samples", rank=3)], cells, left_out)


def two_sided_figures(rows: Iterable[FigureLine], titles: Sequence[str], left_out: int = 0) -> Table:
    """Return the values of both sides; ``titles`` are the names of the sides."""
    cells = ((row.benchmark, row.metric, row.baseline, row.candidate, row.change, row.samples) for row in rows)
    return table([BENCHMARK, METRIC, *map(value, titles), value("Change"), value("Samples")], cells, left_out)


def requirements(rows: Iterable[RequirementLine], left_out: int = 0) -> Table:
    """Return each target with the measured value, and its interval against the bound."""
    rows = tuple(rows)
    columns = [
        mark(""),
        name("Requirement"),
        name("Required"),
        value("Measured"),
        mark("95% interval", rank=2),
        drawn("Bound ┊", [row.bar or "" for row in rows]),
        words("Note"),
    ]
    cells = (
        (
            f"{row.symbol} {row.status}",
            row.name,
            row.required,
            row.measured,
            row.interval,
            row.bar or "",
            row.detail,
        )
        for row in rows
    )
    return table(columns, cells, left_out, (row.tone for row in rows))


def checks(page: Page) -> Table:
    """Return the steps that check correctness."""
    return table([mark(""), name("Check"), mark("Status"), words("Detail")], page.checks, page.others.get("checks", 0))


def troubles(page: Page) -> Table:
    """Return the steps that did not run or failed."""
    return table([name("Step"), mark("Status"), words("Reason")], page.troubles, page.others.get("troubles", 0))


def gates(rows: Iterable[GateLine], *, short: bool = False, left_out: int = 0) -> Table:
    """Return the status of each gate. ``short``: without names of rows, for a page whose other tables show them."""
    cells = (
        (
            (row.gate, *((Span(" ", TextKind.VALUE), Span(row.group, TextKind.NAME)) if row.group else ())),
            f"{row.symbol} {row.status}",
            row.counted if short else row.evidence,
        )
        for row in rows
    )
    return table([words("Gate"), mark("Status"), words("Evidence")], cells, left_out)


def counts(found: Sequence[tuple[str, int]]) -> Table:
    """Return the number of rows of each kind."""
    return table([value(kind.capitalize()) for kind, _ in found], [[str(count) for _, count in found]])


def regressed(rows: Iterable[Regressed], left_out: int = 0) -> Table:
    """Return the regressions with their thresholds."""
    columns = [
        mark(""),
        BENCHMARK,
        METRIC,
        *map(value, ("Base → head", "Change", "Concern", "Action")),
        words("Remark"),
    ]
    cells = (
        (
            f"{row.symbol} {row.level}",
            row.benchmark,
            row.metric,
            row.values,
            row.change,
            row.concern,
            row.action,
            row.remark,
        )
        for row in rows
    )
    return table(columns, cells, left_out)


def blamed(blame: GateBlame, left_out: int = 0) -> Table:
    """Return the functions that got slower; a benchmark is named only in its first row."""
    columns = [
        BENCHMARK,
        METRIC,
        name("Function"),
        LOCATION,
        name("Crate") if blame.has_crates else None,
        name("Region") if blame.has_regions else None,
        Column("Cost base → head", TextKind.WORDS, right=True),
        value("Share"),
        name("Tool"),
        words("Commits"),
    ]
    rows = blame.functions.shown
    first = {0, *(number for number, (one, other) in enumerate(pairwise(rows), 1) if one.benchmark != other.benchmark)}
    cells = (
        (
            row.benchmark if number in first else (),
            row.metric,
            row.function,
            optional(row.place),
            optional(row.crate),
            optional(row.region),
            row.values,
            row.share,
            row.tool,
            _commits(row),
        )
        for number, row in enumerate(rows)
    )
    return table(columns, cells, left_out)


def _commits(row: Blamed) -> Cell:
    found: list[str | Span] = []
    for number, (revision, subject) in enumerate(row.commits):
        found += [Span(", ", TextKind.VALUE)] if number else []
        found += [Span(revision, TextKind.NAME), Span(" ", TextKind.VALUE)] if revision else []
        found.append(subject)
    found += [] if row.commits else [Span("–", TextKind.VALUE)]
    return (*found, Span(f" and {row.more} more", TextKind.VALUE)) if row.more else tuple(found)


def impact(rows: Iterable[Impact], left_out: int = 0) -> Table:
    """Return the absolute change of each regression, and the distance to its targets."""
    columns = [BENCHMARK, METRIC, ADDED, mark("Distance to its targets, base → head")]
    return table(columns, ((row.benchmark, row.metric, row.added, _headroom(row)) for row in rows), left_out)


def _headroom(row: Impact) -> Cell:
    found: list[str | Span] = []
    for number, (required, left) in enumerate(row.headroom):
        found += [Span("; ", TextKind.VALUE)] if number else []
        found += [Span(required, TextKind.NAME), Span(f": {left}", TextKind.VALUE)]
    return tuple(found) or "–"


def areas(rows: Iterable[Area], left_out: int = 0) -> Table:
    """Return the added cost of each crate or region."""
    columns = [
        mark("Area"),
        METRIC,
        value("Functions"),
        value("Benchmarks"),
        Column("Cost added", TextKind.WORDS, right=True),
    ]
    cells = (
        (
            (f"{row.kind} ", Span(row.name, TextKind.NAME)),
            row.metric,
            str(row.functions),
            str(len(row.benchmarks)),
            row.added,
        )
        for row in rows
    )
    return table(columns, cells, left_out)


def growth(page: Page) -> Table:
    """Return the growth of each metric with a size."""
    titles = page.sides_titles
    two_sided = any(row.source.candidate for row in page.growth)
    columns = [
        BENCHMARK,
        METRIC,
        name("With"),
        mark(titles[0] if two_sided else "Growth"),
        mark(titles[1]) if two_sided else None,
        mark("Decision") if two_sided else None,
        words("Note"),
    ]
    cells = (
        (row.benchmark, row.metric, row.key, row.baseline, row.candidate, row.decision, row.detail)
        for row in page.growth
    )
    return table(columns, cells)


def kernels(of_gpu: Kernels, left_out: int = 0) -> Table:
    """Return the GPU kernels with their time, bound and occupancy."""
    columns = [
        name("Kernel"),
        mark("Side") if of_gpu.two_sided else None,
        words("GPU") if len(of_gpu.devices) > 1 else None,
        value("Time"),
        value("Share"),
        mark("Bound"),
        mark("Occupancy achieved / possible → model"),
        words("Limited by"),
        words("How to raise it"),
    ]
    cells = (
        (row.kernel, row.side, row.device, row.time, row.share, row.bound, row.occupancy, row.limiter, row.lifts)
        for row in of_gpu.rows.shown
    )
    return table(columns, cells, left_out)


def stalls(page: Page, rows: Iterable[StallRow], *, two_sided: bool, left_out: int = 0) -> Table:
    """Return the stall reasons of the kernels' warps."""
    columns = [
        name("Kernel"),
        name("Reason"),
        value(f"Share {page.profiled_sides}" if two_sided else "Share"),
        words("Meaning"),
        words("How to lower it"),
    ]
    return table(columns, ((row.kernel, row.reason, row.share, row.means, row.lowers) for row in rows), left_out)


def across(rows: Iterable[GpuRow], left_out: int = 0) -> Table:
    """Return the kernels that ran on several GPUs."""
    columns = [
        name("Kernel"),
        words("GPU"),
        *map(value, ("Time", "Share of roof", "Time vs fastest", "Share vs best")),
    ]
    cells = ((row.kernel, row.device, row.time, row.share, row.slower, row.of_best) for row in rows)
    return table(columns, cells, left_out)


def roofline(placed: Roofline, left_out: int = 0) -> Table:
    """Return each benchmark's performance as a share of the roof."""
    columns = [
        BENCHMARK,
        mark("Side") if placed.two_sided else None,
        *map(value, ("Intensity", "Attained", "Attainable", "Share of roof")),
        mark("Bound"),
    ]
    cells = (
        (
            row.benchmark,
            row.side,
            row.intensity,
            row.attained,
            row.attainable,
            row.share,
            (row.bound, Span(", ", TextKind.VALUE), Span(row.note, TextKind.WORDS)) if row.note else row.bound,
        )
        for row in placed.rows.shown
    )
    return table(columns, cells, left_out)


def machines(rows: Iterable[MachineLine]) -> Table:
    """Return the machines of a cluster that measured."""
    columns = [name("Machine"), words("Description"), words("Jobs"), words("Benchmarks")]
    return table(columns, ((row.name, row.about, row.jobs, row.benchmarks) for row in rows))


def plan(rows: Iterable[PlannedLine]) -> Table:
    """Return the candidates in their planned order."""
    cells = ((row.priority, _change(row), row.expected) for row in rows)
    return table([value("Priority"), words("Change"), words("Expected Impact")], cells)


def _change(row: PlannedLine) -> Cell:
    found: list[str | Span] = [row.technique]
    found += [Span(": ", TextKind.VALUE)] if row.technique and row.name else []
    found += [Span(row.name, TextKind.NAME)] if row.name else []
    found += [Span(", ", TextKind.VALUE), row.why] if row.why else []
    return (*found, Span(f" ({row.remark})", TextKind.VALUE)) if row.remark else tuple(found)


def tries(rows: Iterable[TryLine], left_out: int = 0) -> Table:
    """Return the outcome of each candidate."""
    rows = tuple(rows)
    columns = [
        mark(""),
        name("Change"),
        value("Effect"),
        Column("Judged by", TextKind.NAME, rank=1),
        value("Before → after", rank=2),
        value("Pairs", rank=3),
        Column("Outcome", TextKind.NAME, rank=2),
        words("Reason"),
    ]
    cells = (
        (
            f"{row.symbol} {row.decision}",
            row.name,
            with_aside(row.effect),
            optional(row.where),
            row.values,
            row.pairs,
            optional(row.outcome),
            row.reason,
        )
        for row in rows
    )
    return table(columns, cells, left_out, (Tone.GOOD if row.kept else Tone.STILL for row in rows))


def functions(found: Joined) -> Table:
    """Return each function's own share in each profile."""
    columns = [
        name("Function"),
        LOCATION,
        *(Column(Span(title, TextKind.WORDS), right=True) for title in found.columns),
    ]
    return table(columns, ((row.function, optional(row.place), *row.cells) for row in found.rows), found.others)


def hotspots(page: Page, profile: ProfileTable) -> Table:
    """Return the top hotspots of one profile."""
    columns = [
        value("#"),
        name("Hotspot"),
        LOCATION,
        value(f"Share {page.profiled_sides}" if profile.two_sided else "Share"),
        words("Impact"),
        words("Cause") if profile.caused else None,
    ]
    cells = (
        (str(spot.rank), spot.location, optional(spot.place), spot.share, spot.impact, spot.cause or "–")
        for spot in profile.spots
    )
    return table(columns, cells)


def counters(page: Page, rows: Iterable[Counted], left_out: int = 0) -> Table:
    """Return the counters beside the profiles, of both sides."""
    cells = ((row.benchmark, row.metric, row.values) for row in rows)
    return table([BENCHMARK, METRIC, value(page.profiled_sides.capitalize())], cells, left_out)


def _comparisons(page: Page, rows: Sequence[ComparisonLine] | None = None, *, short: bool = False) -> Table | None:
    """Return the table of benchmarks, or of some ``rows`` of it."""
    left_out = page.others.get("comparisons", 0) if rows is None else 0
    shown = page.comparisons if rows is None else rows
    return comparisons(page, shown, short=short, left_out=left_out) if shown else None


def _further(page: Page) -> Table | None:
    left_out = page.others.get("further", 0)
    if not page.further:
        return None
    if not page.compared:
        return figures(page.further, left_out)
    return two_sided_figures(page.further, page.sides_titles, left_out)


def _gates(page: Page, *, short: bool = False) -> Table | None:
    found = page.findings.gates
    return gates(found, short=short, left_out=page.others.get("gates", 0)) if found else None


def _regressions(page: Page) -> Table | None:
    found = page.findings.summary
    return (
        regressed(found.regressed.shown, page.others.get("regressed", 0)) if found and found.regressed.shown else None
    )


def _areas(page: Page) -> Table | None:
    found = page.findings.blame
    return areas(found.areas.shown, page.others.get("areas", 0)) if found and found.areas.shown else None


def _functions(page: Page) -> Table | None:
    found = page.findings.blame
    return blamed(found, page.others.get("blamed", 0)) if found and found.functions.shown else None


def _stalls(page: Page) -> Table | None:
    found = page.kernels
    if not found or not found.stalls.shown:
        return None
    return stalls(page, found.stalls.shown, two_sided=found.two_sided, left_out=page.others.get("stalls", 0))


def _gpus(page: Page) -> Table | None:
    found = page.kernels
    return across(found.across.shown, page.others.get("across", 0)) if found and found.across.shown else None


def _requirements(page: Page) -> Table | None:
    return requirements(page.requirements, page.others.get("requirements", 0)) if page.requirements else None


def _left_out(page: Page, name: str) -> int:
    return page.others.get(name, 0)


def _after(page: Page) -> Table | None:
    return two_sided_figures(page.after, page.sides_titles, _left_out(page, "after")) if page.after else None


class NamedTable(NamedTuple):
    """A table that templates call by its name: what it has, and its builder, which returns None without data."""

    about: str
    build: Callable[..., Table | None]


NAMED: Mapping[str, NamedTable] = {
    "benchmarks": NamedTable("both sides of each benchmark with the change", _comparisons),
    "figures": NamedTable(
        "figures of one side",
        lambda page: figures(page.figures, _left_out(page, "figures")) if page.figures else None,
    ),
    "further": NamedTable("figures that do not decide", _further),
    "baseline": NamedTable(
        "all figures of the baseline",
        lambda page: figures(page.before, _left_out(page, "before")) if page.before else None,
    ),
    "after": NamedTable("figures with the kept changes", _after),
    "requirements": NamedTable("each target with the measured value", _requirements),
    "verification": NamedTable("the steps that check correctness", lambda page: checks(page) if page.checks else None),
    "steps": NamedTable("the steps that did not run or failed", lambda page: troubles(page) if page.troubles else None),
    "gates": NamedTable("the status of each gate; option `short`", _gates),
    "counts": NamedTable(
        "the rows of a gate, counted by decision",
        lambda page: counts(page.findings.summary.counts) if page.findings.summary else None,
    ),
    "regressions": NamedTable("the regressions of a gate", _regressions),
    "functions": NamedTable("the functions that got slower", _functions),
    "impact": NamedTable(
        "the absolute change of each regression",
        lambda page: impact(page.findings.impact, _left_out(page, "impact")) if page.findings.impact else None,
    ),
    "areas": NamedTable("the regressions by area", _areas),
    "growth": NamedTable(
        "how times grow with the size of the input", lambda page: growth(page) if page.growth else None
    ),
    "counters": NamedTable(
        "counters beside the profiles",
        lambda page: counters(page, page.counters.shown, page.counters.others) if page.counters else None,
    ),
    "kernels": NamedTable(
        "GPU kernels", lambda page: kernels(page.kernels, _left_out(page, "kernels")) if page.kernels else None
    ),
    "stalls": NamedTable("why the warps of kernels waited", _stalls),
    "gpus": NamedTable("kernels that ran on several GPUs", _gpus),
    "roofline": NamedTable(
        "each benchmark as a share of the roof",
        lambda page: roofline(page.roofline, _left_out(page, "roofline")) if page.roofline else None,
    ),
    "plan": NamedTable(
        "the candidates in their planned order", lambda page: plan(page.ledger.plan) if page.ledger else None
    ),
    "candidates": NamedTable(
        "the outcome of each candidate",
        lambda page: tries(page.ledger.tries, page.ledger.others) if page.ledger else None,
    ),
    "machines": NamedTable(
        "the machines of a cluster", lambda page: machines(page.machines) if page.machines else None
    ),
    "compared": NamedTable("what two stored results are", lambda page: sides(page) if page.sides else None),
}


_GAP = "  "
_LEAST = 20
"""Least width of a text beside its name; with less room, it goes below the name."""


def described(rows: Sequence[tuple[str, str]], width: int = NO_EDGE, indent: str = "  ") -> list[str]:
    """Return each name with its wrapped text, beside the name or, if that leaves too little width, below it."""
    pairs = [(visible(name), visible(text)) for name, text in rows]
    column = max((cells(name) for name, _ in pairs), default=0)
    start = len(indent) + column + len(_GAP)
    lines = []
    for title, text in pairs:
        if width - start >= _LEAST:
            lines += wrapped(f"{indent}{padded(title, column)}{_GAP}{text}".rstrip(), width, " " * start)
        else:
            lines += wrapped(f"{indent}{title}", width, indent)
            lines += wrapped(f"{indent}{_GAP}{text}", width, indent + _GAP) if text else []
    return lines
