"""The page model: every number and word of a report as text. Formats only lay it out and escape it.

- ``page_of`` makes the page.
- ``before_each``: the outcome of cheaper techniques before each costlier technique was tried.
- ``untimed_line`` and ``blind_line``: the words for benchmarks that were not timed, and for changed lines that none
  executes.
- ``failed_steps``: failed steps with the last lines of their logs, and the paths of the logs.
- ``ledger_of``: the optimization ledger, with planned candidates and their bounds, and the tries that were kept or
  reverted.
- ``machines_of``: the machines of a cluster with the benchmarks that each measured.
- ``counted``: counters that explain a time, shown beside the profiles, before → after.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from typing import Any

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.judging import Flag
from perfflow.model.metrics import METRICS, TIMES, rank
from perfflow.model.readings import Side
from perfflow.model.result import (
    Benchmark,
    Cheaper,
    HotspotResult,
    NodeResult,
    Optimization,
    Reason,
    Result,
    StepResult,
    TargetResult,
    is_untimed,
)
from perfflow.model.tree_facts import tree_of
from perfflow.model.units import format_change, format_together
from perfflow.report.findings import FindingSections, findings_of
from perfflow.report.footer import commands_of, environment_of, median_note, notes, sides_of
from perfflow.report.growth_table import GrowthLine, growth_lines
from perfflow.report.kernels import Kernels, Roofline, kernels_of, roofline_of
from perfflow.report.outcomes import FLAGS
from perfflow.report.requirements import STATUS_SYMBOLS, RequirementLine, requirement_of
from perfflow.report.rows import (
    MATTERS,
    ComparisonLine,
    FigureLine,
    comparison_of,
    figures_of,
    grown_memory,
    is_first,
    value_of,
    values_of,
)
from perfflow.report.same_function import Joined, joined_of
from perfflow.report.sanitize import visible
from perfflow.report.table import NOTHING
from perfflow.report.text_table import MOST_ROWS, Truncated, rank_of_row, rank_of_target, requirement_bar, truncated
from perfflow.trees.commits import PREFIX
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
    reasons: tuple[Reason, ...]
    warned: tuple[Reason, ...]
    """Reasons that pass with a warning."""
    sides: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    compared: bool
    comparisons: tuple[ComparisonLine, ...]
    figures: tuple[FigureLine, ...]
    further: tuple[FigureLine, ...]
    growth: tuple[GrowthLine, ...]
    joined: tuple[Joined, ...]
    profiles: tuple[ProfileTable, ...]
    roofline: Roofline | None
    kernels: Kernels | None
    """GPU kernels and their warp stalls."""
    counters: Truncated[Counted] | None
    """Counters beside the profiles: SIMD, cache misses, occupancy, before → after."""
    ledger: Ledger | None
    before: tuple[FigureLine, ...]
    """All figures of the baseline whose metric has a direction."""
    after: tuple[FigureLine, ...]
    """The same figures for rows that were also measured with the kept changes."""
    requirements: tuple[RequirementLine, ...]
    findings: FindingSections
    checks: tuple[tuple[str, str, str, str], ...]
    troubles: tuple[tuple[str, str, str], ...]
    failed: tuple[FailedStep, ...]
    notes: tuple[str, ...]
    median_note: str
    """The note that explains why changes and the values beside them differ, or ''."""
    reproduce: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    machines: tuple[MachineLine, ...]
    """The machines of a cluster that measured parts of the run; empty for a run on one machine."""
    counts: Mapping[str, int]
    others: Mapping[str, int]
    """Number of rows left out of each long table, by the table's name."""
    pair: bool = False
    """Whether profiles call the sides what all other tables call them, as in report.html."""

    @property
    def opening(self) -> tuple[str, ...]:
        """The evidence if it is short enough for the start of a report, else ()."""
        return self.evidence if len(self.evidence) <= MOST_OPENING else ()

    @property
    def forest(self) -> Sequence[ComparisonLine]:
        """The deciding rows whose change is known: those that matter most first, then the largest changes."""
        known = [(row, row.source.change.value) for row in self.comparisons if row.decides and row.source.change]
        found = [(MATTERS.index(row.group), -abs(change), row) for row, change in known if change is not None]
        return [row for *_, row in sorted(found, key=lambda item: item[:2])]

    @property
    def groups(self) -> Mapping[str, int]:
        """The number of those rows in each group of `MATTERS` that has any."""
        return Counter(row.group for row in self.forest)

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
        return " → ".join(self.side_names.values()) if self.gated or self.pair else "before → after"

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
    findings, roofline, kernels = (
        findings_of(result, criteria),
        _roofline(result),
        kernels_of(result) if result.kernels else None,
    )
    noted = tuple(notes(result))
    latencies = {(row.name, "time") for row in rows if row.metric == "service_cpu"}

    def figures_in(shown: Iterable[Benchmark]) -> tuple[FigureLine, ...]:
        each = (figures_of(row, criteria, is_latency=(row.name, row.metric) in latencies) for row in shown)
        return tuple(chain.from_iterable(each))

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
        cautions=(*_about_part(result), *result.run.warnings, *(str(note) for note in noted if note.is_caution)),
        compared=any(row.decision for row in rows) or bool(result.across_gpus),
        comparisons=tuple(comparison_of(row, criteria, _marks(result)) for row in compared.shown),
        figures=figures_in(measured.shown),
        further=figures_in(further.shown),
        growth=tuple(growth_lines(result)),
        joined=tuple(joined_of(result)),
        profiles=tuple(_profiles(result.hotspots)),
        roofline=roofline,
        kernels=kernels,
        counters=counted(rows, criteria),
        ledger=ledger,
        before=figures_in(before.shown),
        after=figures_in(after.shown),
        requirements=tuple(_requirements(targets.shown, criteria, rows)),
        findings=findings,
        checks=tuple((CHECK_SYMBOLS[item.status], item.id, item.status, item.detail) for item in result.verification),
        troubles=tuple(_troubles(result)),
        failed=tuple(failed_steps(result)),
        notes=tuple(str(note) for note in noted if not note.is_caution),
        median_note=median_note(result),
        reproduce=tuple(commands_of(result)),
        environment=tuple(environment_of(result)),
        machines=tuple(machines_of(result)),
        counts=_counts(result),
        others=_others(
            findings.others,
            {"comparisons": compared, "figures": measured, "further": further, "before": before, "after": after},
            {"requirements": targets, "evidence": evidence, "reasons": reasons, "warned": warned},
            {"roofline": roofline.rows if roofline else truncated([]), **(kernels.tables if kernels else {})},
        ),
    )


def _about_part(result: Result) -> Iterator[str]:
    if result.run.shard:
        yield f"this is part {result.run.shard} of the benchmarks; `perfflow merge` judges all parts together"


def _ledger(result: Result, criteria: Criteria) -> Ledger | None:
    if not (result.optimizations or result.run.ruled_out or any(step.role == "candidate" for step in result.steps)):
        return None

    return ledger_of(result, criteria)


def _roofline(result: Result) -> Roofline | None:
    if not (result.roofline or result.peaks):
        return None

    return roofline_of(result)


def _reasons(result: Result, *, warned: bool) -> Truncated[Reason]:
    """Return the reasons why the verdict is not a pass, or the warnings if ``warned``."""
    return truncated(result.warned if warned else result.causes)


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
) -> Iterator[RequirementLine]:
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
    counts = [f"{decisions.count(word)} {word}" for word in dict.fromkeys(decisions)]
    texts = []
    if parts:
        texts.append("targets: " + ", ".join(parts))
    if counts:
        unpaired = any(row.leading for row in result.benchmarks)
        across = ", across machines" if result.run.across_machines else ""
        texts.append((f"unpaired{across}: " if unpaired else "comparisons: ") + ", ".join(counts))
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
    for (step, benchmark, source, unit), of_profile in groups.items():
        before, after = (
            _by_location(spot for spot in of_profile if spot.tree == tree) for tree in ("baseline", "candidate")
        )
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


def before_each(tries: Sequence[Optimization]) -> Iterator[tuple[str, str, str]]:
    """Yield name, technique and the outcome of the cheaper techniques; only for the first of consecutive equal ones."""
    last: tuple[str, list[Cheaper]] = ("", [])
    for item in tries:
        if item.cheaper and item.decision != "skipped" and (item.technique, item.cheaper) != last:
            last = (item.technique, item.cheaper)
            yield item.id, item.technique, "; ".join(map(_text, item.cheaper))


def _text(item: Cheaper) -> str:
    status = "not tried" if item.status == "open" else item.status
    return f"{item.technique} {status}" + (f" ({item.detail})" if item.detail else "")


_PLACES = 5


def untimed_line(result: Result) -> Iterator[str]:
    """Yield how many of the benchmarks were not timed, if any."""
    names = {row.name for row in result.benchmarks}
    untimed = {row.name for row in result.benchmarks if is_untimed(row)}
    if untimed:
        verb = "runs the same code and was" if len(untimed) == 1 else "run the same code and were"
        audited = len({row.name for row in result.benchmarks if row.unchanged} - untimed)
        more = f", {audited} more {'were' if audited > 1 else 'was'} timed to check the method" if audited else ""
        yield f"{len(untimed)} of {len(names)} {'benchmarks' if len(names) > 1 else 'benchmark'} {verb} not timed{more}"


def blind_line(result: Result) -> Iterator[str]:
    """Yield how many of the changed lines no benchmark executes, and the first of them, if there are any."""
    found = result.blind
    if found and found.missed:
        places = [f"{file}:{lines}" for file, ranges in found.lines.items() for lines in ranges]
        shown = ", ".join(islice(places, _PLACES)) + (", ..." if len(places) > _PLACES else "")
        which = (
            "the only changed line is" if found.changed == 1 else f"{found.missed} of {found.changed} changed lines are"
        )
        yield f"blind: {which} executed by no benchmark: {shown}"


MOST_LINES = 20
FEW_LINES = 4
"""Lines of one log on a short page."""
_LONGEST = 400
"""Characters of one line."""


@dataclass(frozen=True)
class FailedStep:
    """A failed step; ``log_tail`` are the last lines of its log, ``log`` is the log's path in the run folder.

    ``in_reasons``: the reasons of the verdict name the step.
    """

    name: str
    reason: str
    log_tail: tuple[str, ...]
    log: str
    in_reasons: bool

    @property
    def last(self) -> tuple[str, ...]:
        """The last few lines, for a short page."""
        return self.log_tail[-FEW_LINES:]


def failed_steps(result: Result) -> Iterator[FailedStep]:
    """Yield every step that failed or timed out, including steps that do not affect the verdict."""
    for step in result.steps:
        if step.status in ("failed", "timeout"):
            in_reasons = any(item.values.get("step") == step.id for item in result.reasons)
            yield FailedStep(step.id, step.reason, last_words(step.tail), step.log if step.tail else "", in_reasons)


def last_words(tail: list[str]) -> tuple[str, ...]:
    """Return the last lines of a log, safe for display and without blank lines at the end."""
    lines = [visible(line)[:_LONGEST].rstrip() for line in tail[-MOST_LINES:]]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


CANDIDATE = "candidate"
"""Role of a candidate step."""
MOST_DIFF_LINES = 120
"""Lines of one diff that a report shows; the file in the run folder has all."""
MOST_DIFF_TEXT = 200_000
"""Characters of all diffs together, kept changes first: GitHub cuts a summary at 1 MB."""
_WORDS = {"accepted": "kept", "rejected": "reverted", "skipped": "not tried"}
_SYMBOLS = {"accepted": "✅", "rejected": "❌", "skipped": "❔"}


@dataclass(frozen=True)
class PlannedLine:
    """One line of the plan: a candidate with all its alternatives or attempts, or a technique that is ruled out."""

    priority: str
    name: str
    technique: str
    why: str
    remark: str
    expected: str


@dataclass(frozen=True)
class Diff:
    """The shown lines of a diff, the number of the other lines, and the file that has all of them."""

    lines: tuple[str, ...]
    left_out: int
    file: str


@dataclass(frozen=True)
class TryLine:
    """One try and its outcome; ``where`` is the benchmark and metric that judged it."""

    name: str
    technique: str
    why: str
    symbol: str
    decision: str
    effect: str
    where: str
    values: str
    pairs: str
    outcome: str
    """Its outcome and the code of the reason, such as ``incorrect: check-failed``; '' in results of version 0.1."""
    reason: str
    flags: tuple[str, ...]
    """What a reader of a kept candidate should know."""
    log_tail: tuple[str, ...]
    """The last lines of the command that failed; the whole log is the file ``log`` in the run folder."""
    log: str
    diff: Diff
    settings: tuple[str, ...]
    revision: str
    source: Optimization
    """The entry of the result, for drawings."""

    @property
    def kept(self) -> bool:
        """Whether the later tries were built on it."""
        return self.decision == _WORDS["accepted"]


@dataclass(frozen=True)
class Ledger:
    """The content of the optimize stage in a report.

    ``settings`` are YAML lines of the kept settings, ``file`` is the workflow they belong to. ``look`` is the command
    that shows the commits of ``branch``, ``take`` the command that takes them over. ``own_changes``: the first commit
    holds the user's uncommitted changes and is not taken over. ``no_branch`` is the reason why kept code has no branch.
    """

    plan: tuple[PlannedLine, ...]
    accept: str
    tries: tuple[TryLine, ...]
    others: int
    """Number of tries left out of a long table."""
    before: tuple[tuple[str, str, str], ...]
    """Name and technique of a try, and the outcome of the cheaper techniques before it."""
    settings: tuple[str, ...]
    file: str
    branch: str
    look: str
    take: str
    own_changes: bool
    no_branch: str
    apart: str
    """Prefix of the branches, if each kept change has one of its own; else ''."""

    @property
    def kept(self) -> tuple[TryLine, ...]:
        """The tries that were kept."""
        return tuple(item for item in self.tries if item.kept)

    @property
    def reverted(self) -> tuple[TryLine, ...]:
        """The tries that were reverted or not tried."""
        return tuple(item for item in self.tries if not item.kept)


def starts_with_own_changes(result: Result) -> bool:
    """Return whether the branch with the kept changes begins with a commit of the user's uncommitted files."""
    start = tree_of(result.trees, Side.BASELINE)
    return bool(start.dirty or start.untracked)


def taking_over(result: Result) -> str | None:
    """Return the command that applies the kept changes to the user's branch; None if the run made no branch.

    A merge would also bring the commit of the user's uncommitted files, and git refuses that.
    """
    branch = tree_of(result.trees, Side.CANDIDATE).branch or ""
    if not branch or result.run.independent:
        return None
    # Count back from the end of the branch: a resumed run makes its first commits anew.
    count = sum(1 for item in result.optimizations if item.decision == "accepted" and item.files)
    if starts_with_own_changes(result) and count:
        return shlex.join(["git", "cherry-pick", f"{branch}~{count}..{branch}"])
    return shlex.join(["git", "merge", branch])


def ledger_of(result: Result, criteria: Criteria) -> Ledger | None:
    """Return the ledger of a result, or None if the run had no candidates."""
    plan = tuple(_plan(result))
    if not plan:
        return None
    tries = truncated(result.optimizations, lambda item: item.decision != "accepted")
    diffs = dict(_diffs(tries.shown))
    kept = [item for item in result.optimizations if item.decision == "accepted"]
    code = any(item.files for item in kept)
    branch = tree_of(result.trees, Side.CANDIDATE).branch or ""
    start = tree_of(result.trees, Side.BASELINE)
    base = start.branch or (start.revision or "")[:12]
    return Ledger(
        plan=plan,
        accept=f"{result.run.accept * 100:.3g}%" if result.run.accept is not None else "",
        tries=tuple(
            _try(item, criteria, diffs[item.id], with_commit=bool(branch) or result.run.independent)
            for item in tries.shown
        ),
        others=tries.others,
        before=tuple(before_each(tries.shown)),
        settings=(
            *_settings("params", {name: value for item in kept for name, value in item.params.items()}),
            *_settings("env", {name: value for item in kept for name, value in item.env.items()}),
        ),
        file=result.run.file,
        branch=branch,
        look=shlex.join(["git", "log", "-p", f"{base}..{branch}" if base else branch]),
        take=taking_over(result) or "",
        own_changes=starts_with_own_changes(result),
        no_branch=_why_no_branch(result) if code and not branch and not result.run.independent else "",
        apart=f"{PREFIX}{result.run.id}/" if code and result.run.independent else "",
    )


def _settings(key: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a key of the workflow file with its values as YAML; JSON scalars are valid YAML."""
    if values:
        yield f"{key}:"
        yield from (f"  {name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _why_no_branch(result: Result) -> str:
    if result.run.interrupted:
        return "the run was interrupted"
    failed = [item.id for item in result.verification if item.status == "failed"]
    return f"{', '.join(failed)} failed on the kept changes" if failed else "it could not be created"


def _plan(result: Result) -> Iterator[PlannedLine]:
    """Yield the plan in the order of the hierarchy: candidates in file order, and the techniques that are ruled out."""
    tried: dict[str, list[Optimization]] = {}
    owners = [step.id for step in result.steps if step.role == CANDIDATE]
    for item in result.optimizations:
        tried.setdefault(_group(item.id, owners), []).append(item)
    steps: dict[str, StepResult] = {}
    for step in result.steps:
        if step.role == CANDIDATE:
            steps.setdefault(_group(step.id, owners), step)
    rows: list[tuple[int, PlannedLine]] = []
    for name, step in steps.items():
        tries = tried.get(name, [])
        first = tries[0] if tries else None
        technique, why = (first.technique, first.why) if first else (step.technique, step.why)
        expected = _expected(first.bound) if first else f"not tried: {step.reason or 'the run ended first'}"
        rows.append((rank(technique), PlannedLine("", name, technique, why, _remark(tries, owners), expected)))
    for technique, why in result.run.ruled_out.items():
        rows.append((rank(technique), PlannedLine(NOTHING, "", technique, "", "", f"ruled out: {why}")))
    number = 0
    for _, row in sorted(rows, key=lambda item: item[0]):
        number += not row.priority
        yield row if row.priority else replace(row, priority=str(number))


def _group(name: str, owners: Sequence[str]) -> str:
    """Return the step of a try: ``level[n=2]`` is a cell of ``level``, ``propose.2`` an attempt of ``propose``."""
    step = name if name in owners else name.rpartition(".")[0]
    return step.partition("[")[0]


def _remark(found: Sequence[Optimization], owners: Sequence[str]) -> str:
    if len(found) < 2:
        return ""
    return f"{len(found)} {'alternatives' if found[0].id in owners else 'attempts'}"


def _expected(bound: float | None) -> str:
    """Return Amdahl's bound as text, from the share of time that the hotspot takes."""
    if bound is None:
        return "unknown: no profile of its hotspot"
    if bound >= 1:
        return "no bound: its hotspot takes all of the time"
    share = f"{bound:.0%}" if bound >= 0.01 else f"{bound:.1%}"
    return f"at most {1 / (1 - bound):.2f}x: its hotspot takes {share}"


def _try(attempt: Optimization, criteria: Criteria, diff: Diff, *, with_commit: bool) -> TryLine:
    return TryLine(
        name=attempt.id,
        technique=attempt.technique,
        why=attempt.why,
        symbol=_SYMBOLS[attempt.decision],
        decision=_WORDS[attempt.decision],
        effect=_effect(attempt),
        where=attempt.benchmark if attempt.metric in ("", "time") else f"{attempt.benchmark} {attempt.metric}",
        values=_values(attempt, criteria),
        pairs=str(attempt.pairs) if attempt.pairs else NOTHING,
        outcome=f"{attempt.outcome}: {attempt.code}" if attempt.outcome and attempt.code else "",
        reason=attempt.reason,
        flags=tuple(_flags(attempt)),
        log_tail=last_words(attempt.tail),
        source=attempt,
        log=attempt.log,
        diff=diff,
        settings=(
            *(f"params: {name}={_word(value)}" for name, value in attempt.params.items()),
            *(f"env: {name}={value}" for name, value in attempt.env.items()),
        ),
        revision=(attempt.revision or "")[:12] if with_commit and attempt.files else "",
    )


def _flags(attempt: Optimization) -> Iterator[str]:
    """Yield what a reader of a kept candidate should know, with the bound that the number of attempts asks for."""
    for flag in attempt.flags:
        low = format_change(attempt.surely) if attempt.surely is not None else "unknown"
        told = f" ({attempt.attempts} attempts; at their confidence, the effect is at least {low})"
        yield f"{FLAGS[flag]}{told if flag is Flag.MANY_ATTEMPTS else ''}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _effect(item: Optimization) -> str:
    """Return text such as ``+28.1% [+26.0%, +30.3%]``, without an interval for an exact figure."""
    effect = item.effect
    if effect is None or effect.value is None:
        return NOTHING
    text = format_change(effect.value)
    if effect.low is None or effect.high is None or effect.low == effect.high:
        return text
    return f"{text} [{format_change(effect.low)}, {format_change(effect.high)}]"


def _values(item: Optimization, criteria: Criteria) -> str:
    if item.before is None or item.after is None:
        return NOTHING
    dimension = criteria.metric(item.metric).dimension
    return " → ".join(format_together([item.before, item.after], dimension))


def _diffs(tries: Sequence[Optimization]) -> Iterator[tuple[str, Diff]]:
    """Yield the diff of each try with its id, cut to the room that is left."""
    room = MOST_DIFF_TEXT
    for item in sorted(tries, key=lambda item: item.decision != "accepted"):
        found = _diff(item, room)
        room -= sum(map(len, found.lines))
        yield item.id, found


def _diff(item: Optimization, room: int) -> Diff:
    """Return the beginning of a diff. A result does not store a very long diff: it is only in the file."""
    lines = item.diff.removesuffix("\n").split("\n") if item.diff else []
    ends = accumulate(map(len, lines))
    shown = sum(end <= room for end in islice(ends, MOST_DIFF_LINES))
    return Diff(tuple(lines[:shown]), len(lines) - shown, item.diff_file)


MOST_NAMED = 6
"""Most benchmarks of one machine that are named."""


@dataclass(frozen=True)
class MachineLine:
    """A machine, its description, its job numbers, and the benchmarks that it measured."""

    name: str
    about: str
    jobs: str
    benchmarks: str


def machines_of(result: Result) -> Iterator[MachineLine]:
    """Yield the machines of a run that was distributed over a cluster."""
    for node in result.nodes:
        names = list(dict.fromkeys(row.name for row in result.benchmarks if row.node == node.name))
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        jobs = ", ".join(job.id + (" (a second attempt)" if job.lost else "") for job in node.jobs)
        yield MachineLine(node.name, _about(node), jobs, ", ".join(names[:MOST_NAMED]) + more or "none")


def _about(node: NodeResult) -> str:
    facts, noise = node.machine, node.machine.get("noise", {})
    parts = [facts.get("cpu"), f"{facts.get('cores')} cores", facts.get("governor") and f"governor {facts['governor']}"]
    parts += [noise.get("kind") and f"noise: {noise['kind']}", f"kind {node.identity[:8]}" if node.identity else None]
    return ", ".join(str(part) for part in parts if part)


EXPLAIN = frozenset(
    {"simd_share", "vector_width", "occupancy", "warp_efficiency", "branch_misses", "branch_miss_rate"}
    | {"cache_misses", "cache_misses_i1", "cache_misses_d1", "cache_miss_rate", "cache_miss_rate_d1"}
)


@dataclass(frozen=True)
class Counted:
    """One line: one value, or both values with an arrow between."""

    benchmark: str
    metric: str
    values: str


def counted(rows: Sequence[Benchmark], criteria: Criteria) -> Truncated[Counted] | None:
    """Return the lines of the rows with such metrics, or None if there are none."""
    found = [row for row in rows if row.metric in EXPLAIN and (row.baseline or row.candidate)]
    return truncated(found).each(lambda row: _line(row, criteria)) if found else None


def _line(row: Benchmark, criteria: Criteria) -> Counted:
    if row.baseline and row.candidate:
        return Counted(row.name, row.metric, values_of(row, criteria))
    return Counted(row.name, row.metric, value_of(row.baseline or row.candidate, criteria.metric(row.metric).dimension))
