"""The page model: every number and word of a report as text. Formats only lay it out and escape it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import BASH_START, UNREAD_OUTPUT
from perfflow.model.result import WARNED, Benchmark, HotspotResult, Result, TargetResult
from perfflow.report.bars import requirement_bar
from perfflow.report.counters import Counted, counted
from perfflow.report.failed_steps import FailedStep, failed_steps
from perfflow.report.findings import Findings, findings_of
from perfflow.report.footer import commands_of, environment_of, median_note, notes, sides_of
from perfflow.report.function_table import Joined, joined_of
from perfflow.report.growth_table import GrowthLine, growth_lines
from perfflow.report.kernels import Kernels, kernels_of
from perfflow.report.ledger import Ledger, ledger_of
from perfflow.report.machines import Machine, machines_of
from perfflow.report.requirements import STATUS_SYMBOLS, Requirement, requirement_of
from perfflow.report.roofs import Roofline, roofline_of
from perfflow.report.rows import Comparison, Figure, comparison_of, figures_of, grown_memory, is_first
from perfflow.report.table import NOTHING
from perfflow.report.truncate import MOST_ROWS, Truncated, rank_of_row, rank_of_target, truncated
from perfflow.report.untimed import blind_line, untimed_line
from perfflow.verdict import gating
from perfflow.verdict.comparison import without_inverse_rates

VERDICT_SYMBOLS = {"pass": "✅", "fail": "❌", "unproven": "❔", "error": "❌"}
CHECK_SYMBOLS = {"passed": "✅", "failed": "❌", "skipped": "❔", "not run": "❔"}
TOP_HOTSPOTS = 3
MANY = 12
"""Number of benchmarks above which the first table has only rows that the verdict rests on."""
MOST_OPENING = 10
"""Evidence lines at the start of a report. More would hide the verdict, so they are folded at the end."""


@dataclass(frozen=True)
class Spot:
    """One hotspot, with its share on both sides if both were profiled."""

    rank: int
    location: str
    place: str
    share: str
    impact: str
    cause: str
    before: float | None
    after: float | None
    """The share on each side, 0 to 1, for drawings; None if the side has no profile or does not list this hotspot."""


@dataclass(frozen=True)
class ProfileTable:
    """The top hotspots of one profile."""

    step: str
    benchmark: str
    source: str
    unit: str
    two_sided: bool
    caused: bool
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class Page:
    """The content of a report."""

    template: str
    component: str
    workflow: str
    run_id: str
    verdict: str
    """In capitals; '' if nothing is judged, and then ``symbol`` and ``gate`` are '' as well."""
    symbol: str
    gate: str
    headline: str
    judged_by: str
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    warned: tuple[str, ...]
    """Reasons that pass with a warning."""
    sides: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    compared: bool
    comparisons: tuple[Comparison, ...]
    figures: tuple[Figure, ...]
    further: tuple[Figure, ...]
    growth: tuple[GrowthLine, ...]
    joined: tuple[Joined, ...]
    profiles: tuple[ProfileTable, ...]
    roofline: Roofline | None
    kernels: Kernels | None
    """GPU kernels and their warp stalls."""
    counters: Truncated[Counted] | None
    """Counters beside the profiles: SIMD, cache misses, occupancy, before → after."""
    ledger: Ledger | None
    before: tuple[Figure, ...]
    """All figures of the baseline whose metric has a direction."""
    after: tuple[Figure, ...]
    """The same figures for rows that were also measured with the kept changes."""
    requirements: tuple[Requirement, ...]
    findings: Findings
    checks: tuple[tuple[str, str, str, str], ...]
    troubles: tuple[tuple[str, str, str], ...]
    failed: tuple[FailedStep, ...]
    notes: tuple[str, ...]
    median_note: str
    """The note that explains why changes and the values beside them differ, or ''."""
    reproduce: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    machines: tuple[Machine, ...]
    """The machines of a cluster that measured parts of the run; empty for a run on one machine."""
    counts: Mapping[str, int]
    others: Mapping[str, int]
    """Number of rows left out of each long table, by the table's name."""

    @property
    def opening(self) -> tuple[str, ...]:
        """The evidence if it is short enough for the start of a report, else ()."""
        return self.evidence if len(self.evidence) <= MOST_OPENING else ()

    @property
    def sides_titles(self) -> tuple[str, str]:
        """The names of both sides in titles. A report has one pair of names everywhere."""
        if self.gated:
            return "Base", "Head"
        worse = any(row.decides and row.source.decision == "regressed" for row in self.comparisons)
        return "Baseline", "Optimized" if self.ledger and self.ledger.kept and not worse else "Candidate"

    @property
    def profiled_sides(self) -> str:
        """The names of both sides in titles about profiles."""
        return "base → head" if self.gated else "before → after"

    @property
    def side_names(self) -> Mapping[str, str]:
        """The names of both sides in texts, by their names in a result."""
        return dict(zip(("baseline", "candidate"), map(str.lower, self.sides_titles), strict=True))

    @property
    def gated(self) -> bool:
        """Whether two revisions were compared: then the sides are base and head, and tables show the change."""
        return self.findings.summary is not None


def page_of(result: Result, most: int = MOST_ROWS) -> Page:
    """Return the page of a result with at most ``most`` rows per table; equal results give equal pages."""
    criteria = criteria_from_json(result.criteria).knowing(row.name for row in result.benchmarks)
    # What an audit measured of equal code is in result.json. Beside `same` it would look like a change.
    timed = [row for row in result.benchmarks if not (row.unchanged and row.decision == "same")]
    rows, targets = _together(timed), truncated(result.targets, rank_of_target, most)
    sides = tuple(sides_of(result))
    compared, measured, further = _tables(rows, most, stored=bool(sides))
    evidence, ledger = truncated(result.evidence), _ledger(result, criteria)
    reasons, warned = (_reasons(result, warned=is_warned) for is_warned in (False, True))
    before, after = _before_and_after(result, rows, ledger)
    findings, roofline, kernels = findings_of(result, criteria), _roofline(result), _kernels(result)
    noted = tuple(notes(result))
    return Page(
        template=result.run.template,
        component=result.run.component,
        workflow=result.run.workflow,
        run_id=result.run.id,
        verdict=(result.verdict or "").upper(),
        symbol=VERDICT_SYMBOLS[result.verdict] if result.verdict else "",
        gate=f"{result.gate.name} = {result.gate.status}" if result.gate else "",
        headline=_headline(result, criteria),
        judged_by="; ".join(result.run.judged_by),
        evidence=evidence.shown,
        reasons=reasons.shown,
        warned=warned.shown,
        sides=sides,
        cautions=(*_about_part(result), *result.run.warnings, *(text for text in noted if _is_caution(text))),
        compared=any(row.decision for row in rows) or bool(result.across_gpus),
        comparisons=tuple(comparison_of(row, criteria, _marks(result)) for row in compared.shown),
        figures=tuple(line for row in measured.shown for line in figures_of(row, criteria)),
        further=tuple(line for row in further.shown for line in figures_of(row, criteria)),
        growth=_growth(result),
        joined=_joined(result),
        profiles=tuple(_profiles(result.hotspots)),
        roofline=roofline,
        kernels=kernels,
        counters=counted(rows, criteria),
        ledger=ledger,
        before=tuple(line for row in before.shown for line in figures_of(row, criteria)),
        after=tuple(line for row in after.shown for line in figures_of(row, criteria)),
        requirements=tuple(_requirements(targets.shown, criteria, rows)),
        findings=findings,
        checks=tuple((CHECK_SYMBOLS[item.status], item.id, item.status, item.detail) for item in result.verification),
        troubles=tuple(_troubles(result)),
        failed=tuple(failed_steps(result)),
        notes=tuple(text for text in noted if not _is_caution(text)),
        median_note=median_note(result),
        reproduce=tuple(commands_of(result)),
        environment=tuple(environment_of(result)),
        machines=_machines(result),
        counts=_counts(result),
        others=_others(
            findings.others,
            {"comparisons": compared, "figures": measured, "further": further, "before": before, "after": after},
            {"requirements": targets, "evidence": evidence, "reasons": reasons, "warned": warned},
            {"roofline": roofline.rows if roofline else truncated([]), **(kernels.tables if kernels else {})},
        ),
    )


# Modules of tables that few runs have are imported only when needed.


def _about_part(result: Result) -> Iterator[str]:
    if result.run.shard:
        yield f"this is part {result.run.shard} of the benchmarks; `perfflow merge` judges all parts together"


def _is_caution(note: str) -> bool:
    """Return whether a note says how to read the figures, so that it is shown beside them."""
    return UNREAD_OUTPUT in note or BASH_START in note


def _growth(result: Result) -> tuple[GrowthLine, ...]:
    if not result.growth:
        return ()

    return tuple(growth_lines(result))


def _machines(result: Result) -> tuple[Machine, ...]:
    if not result.nodes:
        return ()

    return tuple(machines_of(result))


def _joined(result: Result) -> tuple[Joined, ...]:
    if not result.hotspots:
        return ()

    return tuple(joined_of(result))


def _kernels(result: Result) -> Kernels | None:
    if not result.kernels:
        return None

    return kernels_of(result)


def _ledger(result: Result, criteria: Criteria) -> Ledger | None:
    if not (result.optimizations or result.run.ruled_out or any(step.role == "candidate" for step in result.steps)):
        return None

    return ledger_of(result, criteria)


def _roofline(result: Result) -> Roofline | None:
    if not (result.roofline or result.peaks):
        return None

    return roofline_of(result)


def _reasons(result: Result, *, warned: bool) -> Truncated[str]:
    """Return the reasons why the verdict is not a pass, or the warnings if ``warned``."""
    return truncated([text for text in result.reasons if text.startswith(WARNED) is warned])


def _tables(
    rows: Sequence[Benchmark], most: int, *, stored: bool
) -> tuple[Truncated[Benchmark], Truncated[Benchmark], Truncated[Benchmark]]:
    """Return the compared rows, the rows of one side, and the further rows."""
    # In a comparison of stored results no row gates, so all compared rows are in one table.
    whole = {id(row) for row in rows if stored and row.baseline and row.candidate}
    # Wall time beside the deciding metric is useful for a few benchmarks, but hides the decisions of many.
    few = len({row.name for row in rows}) <= MANY
    first = [
        row
        for row in without_inverse_rates(rows)
        if (row.decision or row.changed) and (is_first(row) or (few and row.metric == "time") or id(row) in whole)
    ]
    single = [row for row in rows if not row.decision and row.better != "none" and id(row) not in whole]
    shown = {id(row) for row in (*first, *single)}
    return (
        truncated(first, rank_of_row, most),
        truncated(single, most=most),
        truncated([row for row in rows if id(row) not in shown]),
    )


def _before_and_after(
    result: Result, rows: Sequence[Benchmark], ledger: Ledger | None
) -> tuple[Truncated[Benchmark], Truncated[Benchmark]]:
    """Return the rows of the baseline, and those with both sides in an analysis or if a change was kept."""
    before = [row for row in rows if row.better != "none" and row.baseline]
    has_after = result.run.template == "analysis" or (ledger is not None and ledger.kept)
    return truncated(before), truncated([row for row in before if row.candidate and has_after])


def _requirements(
    targets: Sequence[TargetResult], criteria: Criteria, rows: Sequence[Benchmark]
) -> Iterator[Requirement]:
    by_key = {(row.name, row.metric): row for row in rows}
    for target in targets:
        found = requirement_of(target, criteria, by_key.get((target.benchmark, target.metric)))
        yield replace(found, bar=requirement_bar(target, criteria))


def _marks(result: Result) -> list[str]:
    """Return the marks beside the decisions of a comparison of stored results."""
    unpaired = ["unpaired"] if any(sides_of(result)) else []
    return unpaired + (["across machines"] if result.run.across_machines else [])


def _counts(result: Result) -> dict[str, int]:
    return {status: sum(item.status == status for item in result.targets) for status in STATUS_SYMBOLS}


def _others(also: Mapping[str, int], *tables: Mapping[str, Truncated[Any]]) -> dict[str, int]:
    return {name: found.others for lists in tables for name, found in lists.items()} | dict(also)


def _together(rows: Sequence[Benchmark]) -> list[Benchmark]:
    """Return the rows grouped by benchmark in order of appearance, with metrics in the order of `METRICS`."""
    names = {name: number for number, name in enumerate(dict.fromkeys(row.name for row in rows))}
    metrics = {name: number for number, name in enumerate(METRICS)}
    return sorted(rows, key=lambda row: (names[row.name], metrics.get(row.metric, len(metrics))))


def _troubles(result: Result) -> Iterator[tuple[str, str, str]]:
    for step in result.steps:
        if step.status in ("failed", "timeout") or (step.status == "skipped" and step.reason != "not selected"):
            yield step.id, step.status, step.reason


def _headline(result: Result, criteria: Criteria) -> str:
    """Return one line: targets by status, decisions by kind, and memory that grew."""
    targets = [item.status for item in result.targets]
    rows = without_inverse_rates(result.benchmarks)
    decisions = [row.decision for row in rows if (row.gating or row.leading) and row.decision]
    parts = [f"{targets.count(status)} {status}" for status in STATUS_SYMBOLS if status in targets]
    found = [f"{decisions.count(word)} {word}" for word in dict.fromkeys(decisions)]
    texts = []
    if parts:
        texts.append("targets: " + ", ".join(parts))
    if found:
        unpaired = any(row.leading for row in result.benchmarks)
        across = ", across machines" if result.run.across_machines else ""
        texts.append((f"unpaired{across}: " if unpaired else "comparisons: ") + ", ".join(found))
        if unpaired:
            texts.append("changes do not affect the verdict" if result.verdict else "nothing is judged")
    texts += [*untimed_line(result), *blind_line(result)]
    texts += [f"concern: {text}" for text in grown_memory(result, criteria)]
    texts += _shown_only(rows, criteria)
    if result.run.interrupted:
        texts.append("interrupted")
    count = len(result.benchmarks)
    if result.profiles and not count:
        texts.append(f"{len(result.profiles)} {'profiles' if len(result.profiles) > 1 else 'profile'}")
    figures = f"{count} {'figures' if count > 1 else 'figure'}" if count else "nothing"
    return "; ".join(texts) or f"{figures} measured"


def _shown_only(rows: Sequence[Benchmark], criteria: Criteria) -> Iterator[str]:
    """Yield the number of rows that got worse but do not decide, and of those that changed in an unknown direction.

    A change below `concern` has its row in the table, and is not worth a word beside the verdict.
    """
    grown = {(row.name, row.metric) for row in gating.memory_concerns(rows, criteria)}
    timed = {row.name for row in rows if row.gating and row.metric in TIMES and row.decision == "regressed"}
    worse = sum(
        row.decision == "regressed"
        and row.level != "ok"
        and not (row.gating or row.leading or (row.name, row.metric) in grown)
        and not (row.metric in TIMES and row.name in timed)
        for row in rows
    )
    if worse:
        yield f"{worse} more regressed (not judged)"
    if changed := sum(row.changed for row in rows):
        yield f"{changed} changed (its direction is not known)"


def _by_location(spots: Iterable[HotspotResult]) -> dict[str, HotspotResult]:
    """Return the largest hotspot of each function, since a line profiler lists several lines of one function."""
    found: dict[str, HotspotResult] = {}
    for spot in spots:
        known = found.get(spot.location)
        if known is None or spot.share > known.share:
            found[spot.location] = spot
    return found


def _profiles(hotspots: list[HotspotResult]) -> Iterator[ProfileTable]:
    """Yield the top hotspots of each profile by the baseline's shares, and the candidate's top one if it is another.

    A step may profile several benchmarks, or one benchmark with several tools. Equal tables are shown once.
    """
    groups: dict[tuple[str, str, str, str], list[HotspotResult]] = {}
    for spot in hotspots:
        groups.setdefault((spot.step, spot.benchmark, spot.source, spot.unit), []).append(spot)
    seen = set()
    for (step, benchmark, source, unit), own in groups.items():
        before, after = (_by_location(spot for spot in own if spot.tree == tree) for tree in ("baseline", "candidate"))
        leading = [*before.values()][:TOP_HOTSPOTS] or [*after.values()][:TOP_HOTSPOTS]
        spots = [_spot(rank, spot, before, after) for rank, spot in enumerate(leading, 1)]
        # The candidate's first hotspot, unless it is among the leading ones of the baseline.
        risen = [spot for spot in [*after.values()][:1] if spot.location not in {item.location for item in leading}]
        spots += [_spot(len(spots) + 1, spot, before, after) for spot in risen]
        caused = any(spot.cause for spot in spots)
        table = ProfileTable(step, benchmark, source, unit, bool(before and after), caused, tuple(spots))
        if (key := (benchmark, source, unit, table.spots)) not in seen:
            seen.add(key)
            yield table


def _spot(
    rank: int, spot: HotspotResult, before: Mapping[str, HotspotResult], after: Mapping[str, HotspotResult]
) -> Spot:
    place = f"{spot.file}:{spot.line}" if spot.file and spot.line else spot.file
    sides = [side[spot.location].share if spot.location in side else None for side in (before, after)]
    texts = [NOTHING if share is None else f"{share:.0%}" for share in sides]
    share = " → ".join(texts) if before and after else f"{spot.share:.0%}"
    return Spot(rank, spot.location, place, share, spot.impact, spot.cause, *sides)
