"""What every format shows: each number formatted once, each word chosen once. Formats only lay it out and escape it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfflow.result import HAS_TARGET, Benchmark, HotspotResult, Result, Sample, TargetResult
from perfflow.samples.criteria import Criteria, criteria_from_json
from perfflow.samples.metrics import COMPARED_STATISTICS, QUANTILES, TIMES
from perfflow.units import UNITS, Dimension, format_change, format_quantity, parse_quantity, significant

VERDICT_SYMBOLS = {"pass": "✅", "fail": "❌", "unproven": "❔", "error": "❌"}
STATUS_SYMBOLS = {"met": "✅", "not met": "❌", "unproven": "❔", "not measured": "❔"}
CHECK_SYMBOLS = {"passed": "✅", "failed": "❌", "skipped": "❔", "not run": "❔"}
TOP_HOTSPOTS = 3
NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the benchmarks table."""

    operation: str
    metric: str
    baseline: str
    candidate: str
    speedup: str
    decision: str
    level: str
    gating: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the metric table: a value of each side and the change."""

    benchmark: str
    metric: str
    baseline: str
    candidate: str
    change: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One target: what was measured against what is required."""

    symbol: str
    status: str
    name: str
    measured: str
    interval: str
    required: str
    detail: str


@dataclass(frozen=True, slots=True)
class Spot:
    """One hotspot, with its share on both sides where both were profiled."""

    rank: int
    location: str
    place: str
    share: str
    impact: str
    cause: str


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """The top hotspots one step found."""

    step: str
    benchmark: str
    source: str
    unit: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything a report shows, in order."""

    component: str
    workflow: str
    run_id: str
    verdict: str
    symbol: str
    gate: str
    headline: str
    evidence: tuple[str, ...]
    reasons: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    figures: tuple[Figure, ...]
    further: tuple[Figure, ...]
    profiles: tuple[ProfileTable, ...]
    requirements: tuple[Requirement, ...]
    checks: tuple[tuple[str, str, str, str], ...]
    troubles: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    reproduce: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    counts: Mapping[str, int] = field(default_factory=dict)


def page_of(result: Result) -> Page:
    """Build the page of a result; the same result gives the same page."""
    criteria = criteria_from_json(result.criteria)
    rows = result.benchmarks
    requirements = tuple(_requirement(target, criteria) for target in result.targets)
    return Page(
        component=result.run.component,
        workflow=result.run.workflow,
        run_id=result.run.id,
        verdict=result.verdict.upper(),
        symbol=VERDICT_SYMBOLS[result.verdict],
        gate=f"{result.gate.name} = {result.gate.status}",
        headline=_headline(result),
        evidence=tuple(result.evidence),
        reasons=tuple(result.reasons),
        comparisons=tuple(_comparison(row, criteria) for row in rows if _is_shown(row)),
        figures=tuple(_figure(row, criteria) for row in rows if row.better != "none"),
        further=tuple(_figure(row, criteria) for row in rows if row.better == "none"),
        profiles=tuple(_profiles(result.hotspots)),
        requirements=requirements,
        checks=tuple((CHECK_SYMBOLS[item.status], item.id, item.status, item.detail) for item in result.verification),
        troubles=tuple(
            (step.id, step.status, step.reason) for step in result.steps if _is_trouble(step.status, step.reason)
        ),
        notes=tuple(_notes(result, criteria)),
        reproduce=tuple(_reproduce(result)),
        environment=tuple(_environment(result)),
        counts={status: sum(item.status == status for item in requirements) for status in STATUS_SYMBOLS},
    )


def _is_shown(row: Benchmark) -> bool:
    """Rows of the first table: those a verdict rests on, and wall time beside them."""
    return row.gating or row.metric == "time"


def _is_trouble(status: str, reason: str) -> bool:
    return status in ("failed", "timeout") or (status == "skipped" and reason != "not selected")


def _headline(result: Result) -> str:
    """One sentence: targets by status, decisions by kind."""
    targets = [item.status for item in result.targets]
    decisions = [row.decision for row in result.benchmarks if row.gating and row.decision]
    parts = [f"{targets.count(status)} {status}" for status in STATUS_SYMBOLS if status in targets]
    found = [f"{decisions.count(word)} {word}" for word in dict.fromkeys(decisions)]
    said = []
    if parts:
        said.append("targets: " + ", ".join(parts))
    if found:
        said.append("comparisons: " + ", ".join(found))
    if result.run.interrupted:
        said.append("interrupted")
    return "; ".join(said) or ("nothing was measured" if not result.benchmarks else f"{len(result.benchmarks)} figures")


def _dimension(row: Benchmark, criteria: Criteria) -> Dimension:
    return criteria.metric(row.metric).dimension


def value_with_interval(sample: Sample | None, dimension: Dimension) -> str:
    """``25.3 ms ±2.1%``: half the interval's width as a share, or what it would take to have one."""
    if sample is None or sample.value is None:
        return NOTHING
    text = format_quantity(sample.value, dimension)
    if sample.readings and any(item.get("at_most") for item in sample.readings):
        return f"≤ {text}"
    if sample.low is None or sample.high is None:
        return f"{text} ± ∞"
    if sample.value == 0 or sample.low == sample.high:
        return text
    return f"{text} ±{(sample.high - sample.low) / 2 / abs(sample.value):.1%}"


def _comparison(row: Benchmark, criteria: Criteria) -> Comparison:
    dimension = _dimension(row, criteria)
    return Comparison(
        operation=row.name,
        metric=row.metric,
        baseline=value_with_interval(row.baseline, dimension),
        candidate=value_with_interval(row.candidate, dimension),
        speedup=speedup_text(row),
        decision=_decision_text(row),
        level=row.level or "",
        gating=row.gating,
        notes=tuple(row.warnings),
    )


def speedup_text(row: Benchmark) -> str:
    """``1.62x [1.55x, 1.70x]``; a dash where nothing is compared."""
    speedup = row.speedup
    if speedup is None or speedup.value is None:
        return NOTHING
    text = f"{significant(speedup.value)}x"
    if speedup.low == speedup.high:
        return text
    low = f"{significant(speedup.low)}x" if speedup.low is not None else "0x"
    high = f"{significant(speedup.high)}x" if speedup.high is not None else "∞"
    return f"{text} [{low}, {high}]"


def _decision_text(row: Benchmark) -> str:
    if row.decision is None:
        return ""
    if row.decision == "unproven" and row.more:
        return f"unproven (about {row.more} more pairs would decide)"
    if row.level in ("concern", "action"):
        return f"{row.decision} ({row.level})"
    return row.decision


def _figure(row: Benchmark, criteria: Criteria) -> Figure:
    dimension = _dimension(row, criteria)
    name = row.metric if row.statistic == "value" else f"{row.metric} {row.statistic}"
    change = NOTHING
    if row.change and row.change.value is not None:
        change = (
            format_change(row.change.value) if row.decision != "unproven" else f"~ ({format_change(row.change.value)})"
        )
    baseline, candidate = (value_with_interval(side, dimension) for side in (row.baseline, row.candidate))
    return Figure(row.name, name, baseline, candidate, change)


def _requirement(target: TargetResult, criteria: Criteria) -> Requirement:
    metric = criteria.metric(target.metric)
    compared = target.statistic in COMPARED_STATISTICS
    dimension = Dimension.RATIO if compared else metric.dimension
    unit = "x" if target.statistic == "speedup" else _written_unit(target.requirement)
    if target.measured is not None and unit != "x" and not _reads_well(target.measured, unit):
        unit = ""
    texts = [
        format_quantity(value, dimension, unit=unit) if value is not None else "∞"
        for value in (target.measured, target.low, target.high)
    ]
    measured = texts[0] if target.measured is not None else NOTHING
    one_value = target.low == target.high or target.measured is None
    return Requirement(
        symbol=STATUS_SYMBOLS[target.status],
        status=target.status,
        name=f"{target.benchmark} {target.metric}" + ("" if target.statistic == "value" else f" {target.statistic}"),
        measured=measured,
        interval="" if one_value else f"[{texts[1] if target.low is not None else '-∞'}, {texts[2]}]",
        required=target.requirement,
        detail=target.detail,
    )


def _reads_well(value: float, unit: str) -> bool:
    """Whether a value has neither leading zeros nor a long tail of digits in the unit the author wrote."""
    return unit in UNITS and 0.1 <= abs(value) / float(UNITS[unit][1]) < 1000


def _written_unit(requirement: str) -> str:
    """The unit the author wrote, so that measured and required can be compared at a glance."""
    try:
        unit = parse_quantity(requirement.lstrip("<>=≤≥ ")).unit
    except ValueError:
        return ""
    return unit if unit in UNITS and unit != "%" else ""


def _profiles(hotspots: list[HotspotResult]) -> Iterator[ProfileTable]:
    """Top hotspots of each step, ranked by the candidate's shares where there are two sides, else the baseline's."""
    for step in dict.fromkeys(spot.step for spot in hotspots):
        own = [spot for spot in hotspots if spot.step == step]
        before = {spot.location: spot for spot in own if spot.tree == "baseline"}
        after = {spot.location: spot for spot in own if spot.tree == "candidate"}
        leading = [spot for spot in own if spot.tree == "baseline"][:TOP_HOTSPOTS] or own[:TOP_HOTSPOTS]
        spots = [_spot(rank, spot, before, after) for rank, spot in enumerate(leading, 1)]
        risen = [
            spot
            for spot in own
            if spot.tree == "candidate" and spot.location not in {item.location for item in leading}
        ]
        spots += [_spot(len(spots) + 1, spot, before, after) for spot in risen[:1] if spot.rank == 1]
        yield ProfileTable(step, own[0].benchmark, own[0].source, own[0].unit, tuple(spots))


def _spot(
    rank: int, spot: HotspotResult, before: Mapping[str, HotspotResult], after: Mapping[str, HotspotResult]
) -> Spot:
    place = f"{spot.file}:{spot.line}" if spot.file and spot.line else spot.file
    share = f"{spot.share:.0%}"
    if after:
        shares = [f"{side[spot.location].share:.0%}" if spot.location in side else NOTHING for side in (before, after)]
        share = " → ".join(shares)
    return Spot(rank, spot.location, place, share, spot.impact, spot.cause or "supposed: its own work")


def _notes(result: Result, criteria: Criteria) -> Iterator[str]:
    """Warnings travel to the foot of the page, each once."""
    seen: dict[str, None] = {}
    for row in result.benchmarks:
        if row.gating and row.why and row.metric in TIMES and row.why != HAS_TARGET:
            seen[f"{row.name}: judged by {row.metric}: {row.why}"] = None
        if not row.paired and row.decision and not criteria.metric(row.metric).exact:
            seen[f"{row.name} {row.metric}: unpaired"] = None
        for text in row.warnings:
            seen[f"{row.name} {row.metric}: {text}"] = None
    for step in result.steps:
        for text in step.warnings:
            seen[f"step {step.id}: {text}"] = None
    quantiles = {target.statistic for target in result.targets} & (set(QUANTILES) - {"p50"})
    if quantiles:
        seen["percentiles of a command are taken over its processes"] = None
    yield from seen


def _reproduce(result: Result) -> Iterator[str]:
    settings = "".join(f" --set {name}={value}" for name, value in result.run.params.items())
    if result.run.file:
        yield f"perfflow run {result.run.file}{settings} --seed {result.run.seed}"
    yield f"perfflow report {result.run.id}"


def _environment(result: Result) -> Iterator[tuple[str, str]]:
    machine = result.machine
    virtual = {True: ", virtual", False: "", None: ""}[machine.get("virtual")]
    yield "machine", f"{machine.get('cpu')}, {machine.get('cores')} cores, {machine.get('memory_gib')} GiB{virtual}"
    yield "system", f"{machine.get('system')} {machine.get('kernel_series')}, Python {machine.get('python')}"
    yield "load at the start", ", ".join(str(value) for value in machine.get("load", []))
    tree = result.trees.get("baseline") or {}
    if tree.get("revision"):
        yield "tree", f"{tree['revision'][:12]}{' with uncommitted changes' if tree.get('dirty') else ''}"
    yield "run", f"{result.run.id}, perfflow {result.run.version}, seed {result.run.seed}, started {result.run.started}"
