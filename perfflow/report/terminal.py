"""The page as a short text for a terminal: verdict, reasons, requirements, comparisons, and the report's path.

``render_summary`` is the output of ``perfflow compare``: one sentence with the result, a few figures, and the samples
of both commands. ``ladders_of`` orders the effects of candidates one after the other: times better than the baseline
after each kept candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.metrics import TIMES, Better, in_words
from perfflow.model.result import FAILING, Benchmark, Optimization, ReasonKind, Result
from perfflow.model.units import significant
from perfflow.report import tables
from perfflow.report.findings import Culprit
from perfflow.report.page import FEW_LINES, FailedStep, Page, ProfileTable, TryLine, failed_steps, page_of
from perfflow.report.requirements import without_repeated_reasons
from perfflow.report.rows import OTHER_THAN_MEDIANS, ComparisonLine, differ_from_medians, grown_memory, values_of
from perfflow.report.sanitize import MARKS, NO_EDGE, ascii_text, cells, fitted, shortened, visible, wrapped
from perfflow.report.table import Span, Table, TextKind, Tone
from perfflow.report.tables import distributions
from perfflow.report.text_table import LONGEST_NAME, LONGEST_NOTE, Line, RowGroup, folded, laid_out
from perfflow.stats.paired_test import Interval
from perfflow.verdict.decide import remaining
from perfflow.verdict.row_text import unit_of_row

_GREEN, _RED, _YELLOW = "32", "31", "33"
_COLORS = {"✅": _GREEN, "❌": _RED, "❔": _YELLOW}
_TONES = {Tone.GOOD: _GREEN, Tone.BAD: _RED, Tone.UNSURE: _YELLOW, Tone.STILL: ""}
_HEAD = "2"
_SIDES = {"baseline": "  baseline   ", "candidate": "  candidate  "}
_STATUSES = ("not met", "not measured", "unproven", "not held by base", "met", "not looked at")
MOST_ROWS = 25
"""Rows of the text. Unmet targets and the sides of stored results are shown even if that takes more rows."""
MOST_LINES = 8
MOST_PROFILES = 3
MOST_SAMPLES = 2
"""Stored comparisons whose samples are drawn."""
MOST_CULPRITS = 4
MOST_FAILED = 3
NARROWEST = 20
GROWTH = 6
"""Columns by which arrows and bounds written in ASCII may widen a row of figures."""


def render(result: Result, *, width: int, color: bool, unicode: bool, where: str = "", evidence: bool = False) -> str:
    """Return the page as text, no line wider than ``width``. With NO_EDGE no text is cut, but rows are still folded.

    ``evidence``: with the gate line and the evidence lines, which are for programs.
    """
    lines: list[str] = []
    page = page_of(result)
    page = page if evidence else replace(page, gate="", evidence=(), others={**page.others, "evidence": 0})
    for line, paint in _lines(page, max(NARROWEST, width), where, 0 if unicode else GROWTH):
        shown = fitted(visible(line) if unicode else ascii_text(visible(line)), width, "…" if unicode else "...")
        lines.append(f"\x1b[{paint}m{shown}\x1b[0m" if color and paint and shown else shown)
    return "\n".join(lines) + "\n"


def _lines(page: Page, width: int, where: str, growth: int) -> Iterator[Line]:
    requirements = _requirements(page, width - growth)
    culprits = RowGroup(
        [_wrapped("  why: ", _culprit(item, width), width) for item in page.findings.culprits],
        page.findings.others.get("culprits", 0),
        MOST_CULPRITS,
        what="functions",
    )
    reasons = RowGroup(
        [_wrapped("  why: ", why, width) for why in _whys(page)],
        page.others["reasons"],
        MOST_LINES,
        least=2,
        what="reasons",
    )
    warned = RowGroup(
        _noted([item.text for item in page.warned], width), page.others["warned"], MOST_LINES, least=1, what="warnings"
    )
    comparisons, samples = _comparisons(page, width - growth), _samples(page, width - growth)
    cells_of_one = RowGroup(
        [_wrapped(f"  by {item.key}: ", f"{item.benchmark}: {item.text}", width) for item in page.findings.by_cell],
        page.findings.others.get("by_cell", 0),
        MOST_LINES,
        what="benchmarks",
    )
    median_note = RowGroup([_wrapped("  note: ", page.median_note, width)] if page.median_note else [], least=0)
    figures = _figures(page, width - growth)
    hotspots = RowGroup(
        [*(_hotspots(table, width) for table in page.profiles[:MOST_PROFILES]), *_of_gpus(page, width)], least=0
    )
    tries = _tries(page, width - growth, where)
    taking = RowGroup([_wrapped("  ", text, width) for text in _taking(page)])
    failing = [_failed(item, width, where) for item in page.failed if item.log_tail or not item.in_reasons]
    failed = RowGroup(failing, most=MOST_FAILED, what="failed steps")
    skipped = RowGroup(
        [_wrapped("  skipped: ", text, width, _YELLOW) for text in _skipped(page)],
        most=MOST_LINES,
        what="skipped steps",
    )
    cautions = RowGroup(_noted(page.cautions, width), most=MOST_LINES, what="notes")
    # Evidence repeats the tables for programs, which read the report, so it may disappear without a count.
    values = [_wrapped("perf: ", line.removeprefix("perf: "), width) for line in page.evidence]
    evidence = RowGroup(values, page.others["evidence"], MOST_LINES, 0, "values")
    following = [
        _wrapped("next: ", route.next, width) + (_whole(f"      {route.command}", width) if route.command else [])
        for route in page.findings.routes[:1]
    ]
    gate = [[(page.gate, "")]] if page.gate else []
    blocks = [
        [RowGroup([_head(page, width)]), culprits, reasons, failed, warned, skipped],
        [RowGroup([_wrapped(_SIDES[name], text, width) for name, text in page.sides])],
        [requirements],
        [comparisons, cells_of_one, median_note, figures],
        [samples],
        [tries, taking],
        [hotspots, cautions],
        [RowGroup([*gate, *following]), evidence, RowGroup([_whole(f"report: {where}", width)] if where else [])],
    ]
    details = (evidence, median_note, hotspots, figures, samples, tries, cautions)
    giving_way = (*details, failed, warned, reasons, skipped, comparisons, cells_of_one, culprits)
    yield from folded(blocks, giving_way, MOST_ROWS)


def _whys(page: Page) -> list[str]:
    """Return the reasons without those that a row of the requirements shows with its figures."""
    shown = [(row.benchmark, dict(row.key)) for row in page.requirements]
    whys = [
        item
        for item in page.reasons
        if (item.benchmark, item.values) not in shown
        and not (item.kind == ReasonKind.REGRESSED and (item.benchmark, item.values["metric"]) in page.findings.blamed)
    ]
    if whys and page.reasons[0] not in whys and whys[0].kind not in FAILING and not page.findings.culprits:
        # Without the first reason, the run would seem to fail because of something unproven or not measured.
        whys.insert(0, page.reasons[0])
    return [item.text for item in whys]


def _noted(texts: Sequence[str], width: int) -> list[list[Line]]:
    return [_wrapped("  note: ", text, width, _YELLOW) for text in texts]


def _skipped(page: Page) -> list[str]:
    """Return the skipped steps, grouped by reason."""
    names: dict[str, list[str]] = {}
    for name, how, why in page.troubles:
        if how == "skipped":
            names.setdefault(why, []).append(name)
    return [f"{', '.join(skipped)}: {why}" for why, skipped in names.items()]


def _failed(item: FailedStep, width: int, where: str) -> list[Line]:
    """Return a failed step, its reason unless shown before, the last lines of its log, and the log's path."""
    head = item.name if item.in_reasons else f"{item.name}: {item.reason}"
    lines = _wrapped("  failed: ", head, width, _RED)
    lines += [line for text in item.last for line in _wrapped("    | ", text, width)]
    return lines + (_whole(f"    log: {_in_folder(item.log, where)}", width) if item.log else [])


def _in_folder(file: str, report: str) -> str:
    """Return the path of a file in the folder of the run whose report is ``report``."""
    folder = report.rpartition("/")[0]
    return f"{folder}/{file}" if folder else file


def _of_gpus(page: Page, width: int) -> list[list[Line]]:
    """Return one entry for each of the hottest GPU kernels: its bound and occupancy."""
    return [_wrapped("  ", text, width) for text in page.kernels.hottest] if page.kernels else []


def _head(page: Page, width: int) -> list[Line]:
    """Return the verdict with its counts, on one line if they fit."""
    paint = f"1;{_COLORS[page.symbol]}" if page.symbol else "1"
    mark = f"{MARKS[page.symbol][0]} {page.verdict}  " if page.symbol else ""
    start = f"{mark}{_name(page.component, width)}"
    line = f"{start}   {page.headline}"
    lines = [(line, paint)]
    if cells(line) > width:
        whole = cells(page.headline) <= width - 2
        counts = [page.headline] if whole else page.headline.split("; ")
        lines = [(start, paint), *(row for text in counts for row in _wrapped("  ", text, width))]
    if page.judged_by:
        lines += _wrapped("  ", f"judged again by: {page.judged_by}", width, _YELLOW)
    return lines


def _wrapped(start: str, text: str, width: int, paint: str = "") -> list[Line]:
    """Return a text wrapped over several lines, since its end matters. A very long text loses its middle."""
    indent = " " * min(cells(start), width // 2)
    if width != NO_EDGE:
        text = shortened(text, min(LONGEST_NOTE, 3 * max(1, width - len(indent))))
    return [(line, paint) for line in wrapped(start + visible(text), width, indent)]


def _whole(text: str, width: int) -> list[Line]:
    """Return text for copying, such as a path, broken at the edge as the terminal itself would break it."""
    text = visible(text)
    if width == NO_EDGE:
        return [(text, "")]
    return [(text[start : start + width], "") for start in range(0, len(text), width)]


def _name(name: str, width: int) -> str:
    return name if width == NO_EDGE else shortened(name, max(LONGEST_NAME, width // 3))


def _culprit(item: Culprit, width: int) -> str:
    """Return text such as ``decode +25.0% in parse src/parse.rs:214 (61% of it) by 3fa2c1d "Parse twice"``."""
    share = f"({item.share} of it)" if item.share else ""
    place = f"{_name(item.function, width)} {_name(item.place, width)}".rstrip()
    by = f"by {_name(item.commit, width)}" if item.commit else ""
    return " ".join(filter(None, (_name(item.benchmark, width), item.change, item.others, "in", place, share, by)))


def _requirements(page: Page, width: int) -> RowGroup:
    """Return the targets, unmet ones first. These are always shown, unless even the report leaves some out.

    Met targets become a count if there are many targets.
    """
    rows = list(without_repeated_reasons(sorted(page.requirements, key=lambda row: _STATUSES.index(row.status))))
    if len(rows) > MOST_LINES:
        rows = [row for row in rows if row.status != "met"]
    head, entries = _table(tables.requirements(rows), width)
    met = page.counts["met"] - sum(row.status == "met" for row in rows)
    last = [[(f"✓ {met} {'more ' if rows else ''}targets met", _GREEN)]] if met else []
    others = page.others["requirements"]
    return RowGroup(entries, others, MOST_LINES if others else None, last=last, what="targets", head=head)


def _table(table: Table, width: int, *, titles: bool = False) -> tuple[list[Line], list[list[Line]]]:
    """Return the title line of a table, if it needs one, and the lines of each row in the row's colour."""
    laid = laid_out(table, width, titles=titles)
    colors = [_TONES[tone] for tone in table.tones] or [""] * len(table.rows)
    rows = zip(laid.entries, colors, strict=True)
    return [(laid.head, _HEAD)] if laid.head else [], [[(line, color) for line in entry] for entry, color in rows]


def _comparisons(page: Page, width: int) -> RowGroup:
    """Return the rows that the verdict rests on, regressions first. The reasons explain the unproven rows."""
    # Another clock of a benchmark that is shown to be slower adds nothing; the report has it.
    slower = {row.operation for row in page.comparisons if row.gating and _is_slower(row)}
    known = {id(row) for row in page.comparisons if not row.decides and row.operation in slower and _is_slower(row)}
    rows = sorted(
        (
            row if row.source.changed else replace(row, remark="")
            for row in page.comparisons
            if row.first and id(row) not in known
        ),
        key=lambda row: (row.decision.split(" ")[0] in ("same", "improved"), row.level != "action"),
    )
    head, entries = _table(tables.comparisons(page, rows), width)
    return RowGroup(entries, page.others["comparisons"], MOST_LINES, least=2, what="comparisons", head=head)


def _is_slower(row: ComparisonLine) -> bool:
    return row.source.metric in TIMES and row.source.decision == "regressed"


def _samples(page: Page, width: int) -> RowGroup:
    """Return the distributions of two stored results that have samples."""
    distributions = (
        table
        for row in page.comparisons
        if page.sides and row.first
        for table in tables.distributions(
            row.source, row.dimension, tuple(_SIDES), Span(f"{row.operation} {row.metric}", TextKind.NAME), row.unit
        )
    )
    entries = []
    for table in islice(distributions, MOST_SAMPLES):
        head, rows = _table(table, width, titles=True)
        entries.append([*head, *(line for row in rows for line in row)])
    return RowGroup(entries, least=0)


def _figures(page: Page, width: int) -> RowGroup:
    """Return the measurements of one side."""
    head, entries = _table(tables.figures(row for row in page.figures if row.first), width)
    return RowGroup(entries, page.others["figures"], MOST_LINES, what="figures", head=head)


def _tries(page: Page, width: int, where: str) -> RowGroup:
    """Return the kept candidates with their effects, then the others with their reasons."""
    if page.ledger is None:
        return RowGroup([])
    kept_rows = (replace(row, name=f"kept {row.name}", outcome="", reason="") for row in page.ledger.kept)
    head, kept = _table(tables.tries(kept_rows), width)
    reverted = [[(text, "") for text in _reverted(row, where)] for row in page.ledger.reverted]
    return RowGroup([*kept, *reverted], page.ledger.others, MOST_LINES, what="candidates", head=head if kept else [])


def _reverted(row: TryLine, where: str) -> Iterator[str]:
    """Yield the reason why a try was not kept, and the last lines of the command that failed."""
    outcome = f" ({row.outcome})" if row.outcome else ""
    yield f"  - {shortened(row.name, LONGEST_NAME)}: {row.reason}{outcome}"
    yield from (f"      | {line}" for line in row.log_tail[-FEW_LINES:])
    if row.log_tail:
        yield f"      log: {_in_folder(row.log, where)}"


def _taking(page: Page) -> Iterator[str]:
    """Yield the branch with the kept changes, and the kept settings for the workflow file."""
    if page.ledger is None:
        return
    if not page.ledger.kept:
        yield "nothing was kept"
    for row in page.ledger.kept:
        yield from (f"note: {row.name}: {text}" for text in row.flags)
    if page.ledger.apart:
        yield f"branches: {page.ledger.apart}NAME"
    if page.ledger.branch:
        yield f"branch: {page.ledger.take}"
    elif page.ledger.no_branch:
        yield f"no branch: {page.ledger.no_branch}"
    if page.ledger.settings:
        yield f"settings for {page.ledger.file or 'the workflow'}: {' '.join(map(str.strip, page.ledger.settings))}"


def _hotspots(table: ProfileTable, width: int) -> list[Line]:
    """Return one line with as many of the top hotspots as fit. Their locations are in the report."""
    line = f"  {_name(table.benchmark, width)} {table.unit} ({table.source}):"
    for number, spot in enumerate(table.spots):
        more = f"{',' if number else ''} {spot.share} {_name(spot.location, width)}"
        if number and cells(visible(line + more)) > width:
            break
        line += more
    return [(line, "")]


_SHOWN = ("time", "cpu", "rss")


def render_summary(result: Result, folder: str = "", *, width: int = NO_EDGE) -> str:
    """Return the answer (which is faster, by how much, its interval), then the figures and samples of both commands.

    ``folder`` is the run folder, for the paths of logs. No line is wider than ``width`` columns.
    """
    return "".join(f"{part}\n" for line in _summary_lines(result, folder, width) for part in wrapped(line, width, "  "))


def _summary_lines(result: Result, folder: str, width: int) -> Iterator[str]:
    row = deciding_rows(result)
    if row is None:
        yield from ("could not measure", *(f"  {visible(reason.text)}" for reason in result.reasons))
        yield from _failed_lines(result, folder)
        return
    why = f" ({row.why})" if row.why else ""
    pairs = f"{row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    concerns = "".join(f"; concern: {text}" for text in grown_memory(result, criteria_from_json(result.criteria)))
    yield (_unfinished(result) or _sentence(row)) + concerns
    yield from _failed_lines(result, folder)
    yield from _figure_lines(result)
    yield f"  judged by {in_words(row.metric)}{why}, {pairs}"
    if any(map(differ_from_medians, result.benchmarks)):
        yield f"  note: {OTHER_THAN_MEDIANS}"
    yield from (f"  note: {visible(text)}" for step in result.steps for text in step.warnings)
    criteria = criteria_from_json(result.criteria)
    dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
    for table in distributions(row, dimension, ("first", "second"), in_words(row.metric), unit):
        laid = laid_out(table, width)
        yield from ("", laid.head, *(line for entry in laid.entries for line in entry))


def deciding_rows(result: Result) -> Benchmark | None:
    """Return the row that decides the answer, or None if nothing could be measured."""
    gating = [row for row in result.benchmarks if row.gating and row.change]
    # If one clock proves a regression, it decides over a clock that shows no difference.
    return min(gating, key=lambda row: row.decision != "regressed", default=None)


def shown_rows(result: Result) -> Iterator[Benchmark]:
    """Yield the rows whose figures are printed below the answer."""
    for row in result.benchmarks:
        if (row.metric in _SHOWN or row.gating) and row.baseline is not None and row.candidate is not None:
            yield row


def _failed_lines(result: Result, folder: str) -> Iterator[str]:
    """Yield the last lines of each failed step's log, and the path of the log."""
    for item in failed_steps(result):
        yield from (f"    | {line}" for line in item.last)
        if item.log:
            yield f"    log: {visible(f'{folder}/' if folder else '')}{item.log}"


def _unfinished(result: Result) -> str:
    """Return why the comparison has no final answer, or '' if it has one."""
    failed = next((step for step in result.steps if step.status in ("failed", "timeout")), None)
    if failed:
        return f"comparison failed: {visible(failed.reason)}; results so far:"
    return "interrupted before the difference was settled; results so far:" if result.run.interrupted else ""


def _sentence(row: Benchmark) -> str:
    speedup = row.speedup
    if speedup is None or speedup.value is None or speedup.low is None or speedup.high is None:
        return "; ".join(filter(None, ("unproven: too few pairs", remaining(row, options=True))))
    interval = f"[{significant(speedup.low)}x, {significant(speedup.high)}x]"
    if row.decision == "improved":
        return f"the second is {significant(speedup.value)}x faster {interval}"
    if row.decision == "regressed":
        low, high = (significant(1 / bound) for bound in (speedup.high, speedup.low) if bound)
        return f"the second is {significant(1 / speedup.value)}x slower [{low}x, {high}x]"
    if row.decision == "same":
        return f"no difference that matters: {significant(speedup.value)}x {interval}"
    parts = [f"unproven: {significant(speedup.value)}x {interval}"]
    if row.level == "ok":
        parts.append("no slowdown that matters")
    return "; ".join(filter(None, (*parts, remaining(row, options=True))))


def _figure_lines(result: Result) -> Iterator[str]:
    criteria = criteria_from_json(result.criteria)
    shown = [(in_words(row.metric), values_of(row, criteria)) for row in shown_rows(result)]
    width = max((len(name) for name, _ in shown), default=0)
    for name, values in shown:
        yield f"  {name:<{width}}  {values}"


@dataclass(frozen=True)
class Rung:
    """One try, from ``start`` (the changes kept before it) to ``reached``; both are times better than the baseline.

    An unknown end of ``reached`` is 0 or infinite.
    """

    name: str
    decision: str
    start: float
    reached: Interval


@dataclass(frozen=True)
class Ladder:
    """The tries that one metric of one benchmark judged.

    ``together`` is the speedup of all kept tries measured together, None if that was not measured.
    """

    benchmark: str
    metric: str
    rungs: tuple[Rung, ...]
    together: Interval | None


def ladders_of(result: Result, criteria: Criteria) -> Iterator[Ladder]:
    """Yield a ladder for each metric that judged candidates, in order of appearance."""
    rows = {(row.name, row.metric): row for row in result.benchmarks}
    judged = [item for item in result.optimizations if item.effect and item.effect.value is not None]
    for benchmark, metric in dict.fromkeys((item.benchmark, item.metric) for item in judged):
        own = [item for item in judged if (item.benchmark, item.metric) == (benchmark, metric)]
        rungs = tuple(_rungs(own, higher=criteria.metric(metric).better is Better.HIGHER))
        if rungs:
            kept = any(rung.decision == "accepted" for rung in rungs)
            yield Ladder(benchmark, metric, rungs, _together(rows.get((benchmark, metric))) if kept else None)


def _rungs(tries: Sequence[Optimization], *, higher: bool) -> Iterator[Rung]:
    """Yield each try on top of the changes kept before it; alternatives of one candidate share their start."""
    level, group, after = 1.0, "", 1.0
    for attempt in tries:
        if attempt.id.partition("[")[0] != group:
            group, level = attempt.id.partition("[")[0], after
        effect = attempt.effect
        if effect is None or effect.value is None:
            continue
        estimate, low, high = (
            level * unknown if share is None else level * _times(share, higher=higher)
            for share, unknown in ((effect.value, 0.0), (effect.low, 0.0), (effect.high, math.inf))
        )
        if not math.isfinite(estimate):
            continue
        yield Rung(attempt.id, attempt.decision, level, Interval(estimate, low, high))
        if attempt.decision == "accepted":
            after = estimate


def _times(share: float, *, higher: bool) -> float:
    """Return an effect as a ratio; the effect on a time is the share of time saved."""
    if higher:
        return max(0.0, 1 + share)
    return 1 / (1 - share) if share < 1 else math.inf


def _together(row: Benchmark | None) -> Interval | None:
    speedup = row.speedup if row else None
    if speedup is None or speedup.value is None or speedup.low is None or speedup.high is None:
        return None
    return Interval(speedup.value, speedup.low, speedup.high)
