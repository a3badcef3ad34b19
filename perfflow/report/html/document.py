"""``report.html``: the sections of the Markdown report with pictures, as one file that needs no network.

The whole HTML page: the frame around its sections, with styles and scripts inline.

The policy allows scripts and styles only by their hashes, so a script inside a name could never run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.result import Result
from perfflow.model.stacks import StackProfile
from perfflow.report import bisect_page, sections, tables
from perfflow.report.html import charts
from perfflow.report.html.charts import (
    calibration_bar,
    calibration_span,
    growth_figure,
    ladder_figure,
    layout_figure,
    memory_figures,
)
from perfflow.report.html.elements import Drawings, Drawn, Filter, anchor, block_html, joined
from perfflow.report.html.flame import flame_graphs
from perfflow.report.page import Page, page_of
from perfflow.report.sanitize import visible
from perfflow.report.sections import Block, Fold, ReportSection
from perfflow.report.table import Table, mark, name, table
from perfflow.report.terminal import ladders_of
from perfflow.store.result_file import CalibrationEntry
from perfflow.store.sample_order import TakingOrder, Wanted
from perfflow.verdict.bisection import Bisected, BisectionOutcome

PagePart = Block | Drawn | Markup
_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="{verdict}">
<p class="kind">{kind}</p>
<h1>{component}</h1>
<p class="run">{run}</p>
{opening}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main id="content">
{content}
</main>
<footer><p>{beside}</p></footer>
{scripts}
</body>
</html>
""")


@dataclass(frozen=True)
class Head:
    """The head of a page; ``verdict`` is a class of its style."""

    kind: str
    name: str
    about: str
    verdict: str
    opening: tuple[Block | Markup, ...]
    beside: Markup
    """The footer: files in the folder of the page, or a note."""


def page_html(
    head: Head, shown: Sequence[tuple[str, tuple[PagePart, ...]]], script_names: Sequence[str] = ("page.js",)
) -> str:
    """Return a self-contained page of sections, each with a title, which may be '', and its parts."""
    style, scripts = _asset("page.css"), list(map(_asset, script_names))
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return _PAGE.format(
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src {hashes}; base-uri 'none'; "
        "form-action 'none'",
        title=visible(f"{head.kind}: {head.name}"),
        style=style,
        verdict=head.verdict,
        kind=head.kind,
        component=visible(head.name),
        run=visible(head.about),
        opening=joined([block_html(block) for block in head.opening]),
        beside=head.beside,
        links=joined([_link(title) for title, _ in shown if title]),
        content=joined([_section_html(title, parts) for title, parts in shown]),
        scripts=joined([Markup("<script>{}</script>").format(script) for script in scripts]),
    )


@cache
def _asset(name: str) -> Markup:
    """Return a file beside this module without indentation and comment lines, to be inlined into the page."""
    lines = (line.lstrip() for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines())
    return Markup("\n".join(line for line in lines if line and not line.startswith("//")))  # noqa: S704 (our own file)


@cache
def _hash(text: Markup) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _link(title: str) -> Markup:
    return Markup('<li><a href="#{}">{}</a></li>').format(anchor(title), title)


def _section_html(title: str, parts: Sequence[PagePart]) -> Markup:
    blocks = joined([block_html(part) for part in parts])
    if not title:
        return blocks
    return Markup('<section aria-labelledby="{0}"><h2 id="{0}">{1}</h2>\n{2}</section>').format(
        anchor(title), title, blocks
    )


MOST_ROWS = 2500
"""Most rows of one table. It is more than in Markdown, since tables can be filtered here."""
MOST_CHARTS = 24
"""Most rows whose samples are drawn, regressions first. All samples are in result.json."""
MOST_SAMPLES = 2000
"""Most samples of one picture."""

_RUN = Markup(
    "In the same folder: <code>result.json</code> with every figure, <code>events.jsonl</code> with every sample in "
    "the order it was taken, and <code>receipt.json</code>, which records what ran where. "
    "<code>perfflow receipt verify</code> checks that these files are unchanged."
)
_BISECTED = Markup(
    "In the same folder: <code>bisect.json</code> with every figure, and <code>events.jsonl</code> with every sample."
)
_CALIBRATED = Markup("In the same folder: one file per machine with every figure.")


def render(result: Result, order: TakingOrder, profiles: Sequence[StackProfile] = ()) -> str:
    """Return the page of a result, with its samples in the ``order`` they were taken, and flame graphs of ``profiles``.

    Equal arguments give equal bytes.
    """
    page = page_of(result, MOST_ROWS)
    criteria = criteria_from_json(result.criteria).knowing(row.name for row in result.benchmarks)
    head = Head(
        "Performance Analysis" if page.template == "analysis" else "Performance Report",
        page.component,
        f"{page.workflow}, run {page.run_id}",
        result.verdict or "none",
        sections.opening(page).blocks,
        _RUN,
    )
    shown = [section for section in _sections(page, result, criteria, order, profiles) if section[1]]
    return page_html(head, shown, ("page.js", "flame.js") if profiles else ("page.js",))


def render_bisection(found: Bisected) -> str:
    """Return the page of a bisection."""
    document = bisect_page.document(found)
    opening, *others = document.sections
    verdict = {BisectionOutcome.FOUND: "fail", BisectionOutcome.SAME: "pass"}.get(found.outcome, "unproven")
    head = Head("Bisection", found.workflow, found.outcome.value, verdict, opening.blocks, _BISECTED)
    return page_html(head, [(section.title, section.blocks) for section in others])


def render_calibration(entries: Sequence[CalibrationEntry], identity: str) -> str:
    """Return the page of the calibrations of a machine; ``identity`` is its hash."""
    opening, *others = bisect_page.calibration_document(entries).sections
    span = calibration_span(bisect_page.noisy_of(entries))

    def with_bars(title: str, part: Block) -> PagePart:
        if not isinstance(part, Table):
            return part
        rows = bisect_page.noisy_of([entry for entry in entries if bisect_page.title_of(entry.workflow) == title])
        return Drawn(part, Drawings("Noise and detectable change", [calibration_bar(row, span) for row in rows], 3))

    head = Head(
        "Calibration", f"machine {identity}", "each step compared with itself", "none", opening.blocks, _CALIBRATED
    )
    return page_html(
        head, [(section.title, tuple(with_bars(section.title, part) for part in section.blocks)) for section in others]
    )


def _sections(
    page: Page, result: Result, criteria: Criteria, order: TakingOrder, profiles: Sequence[StackProfile]
) -> Iterator[tuple[str, tuple[PagePart, ...]]]:
    """Yield the sections by importance: reasons, requirements, changes, then their explanation."""
    yield from _plain(chain(sections.red_gate(page), sections.by_cell(page), sections.reasons(page)))
    yield "Requirements Met", tuple(_requirements(page))
    yield from _plain(sections.compared(page))
    yield "Benchmarks", tuple(_benchmarks(page))
    yield "Samples", tuple(_samples(page, result, criteria, order))
    yield from _plain(sections.machines(page))
    for title, parts in _plain(sections.growth(page)):
        yield title, (*parts, *_growth(page, criteria))
    yield "Code Layouts", tuple(_layouts(page, result, criteria))
    yield "Memory over the Run", tuple(_memory(page, result, criteria))
    yield from _plain(sections.baseline(page) if page.template == "analysis" else ())
    for title, parts in _plain(sections.profiles(page)):
        yield title, tuple(_with_shares(parts, page))
    yield "Flame Graphs", tuple(_flame_graphs(result, profiles))
    yield from _plain(sections.kernels(page))
    for title, parts in _plain(sections.roofline(page)):
        yield title, (charts.roofline_chart(result), *parts)
    for title, parts in _plain(sections.optimizations(page)):
        ladders = _ladders(result, criteria) if title == "Optimizations Applied" else ()
        yield title, (*ladders, *_with_effects(parts, page, result))
    yield from _plain(
        chain(
            sections.verification(page),
            sections.summary(page),
            sections.blame(page),
            sections.impact(page),
            sections.advice(page),
            sections.gates(page),
            sections.routing(page),
            sections.troubles(page),
            sections.evidence(page),
            sections.notes(page),
            sections.reproduce(page),
            sections.environment(page),
            _profile_files(result),
        )
    )


def _profile_files(result: Result) -> Iterator[ReportSection]:
    """Yield the table of profile files in the run folder, folded."""
    if result.profiles:
        columns = [name("Benchmark"), name("Tool's file"), mark("Side"), name("Path"), name("sha256")]
        rows = [(item.benchmark, item.kind, item.tree, item.path, item.sha256[:16]) for item in result.profiles]
        left_out = max(0, len(rows) - MOST_ROWS)
        yield ReportSection("", (Fold("Files of profilers", (table(columns, rows[:MOST_ROWS], left_out),)),))


def _plain(found: Iterator[ReportSection] | tuple[()]) -> Iterator[tuple[str, tuple[PagePart, ...]]]:
    for section in found:
        yield section.title, section.blocks


def _requirements(page: Page) -> Iterator[PagePart]:
    if page.requirements:
        table = tables.requirements(page.requirements, page.others.get("requirements", 0))
        yield Drawn(table, filter=Filter("Only unmet", [row.status != "met" for row in page.requirements]))


def _benchmarks(page: Page) -> Iterator[PagePart]:
    """Yield the section of benchmarks, with a filter for changed rows."""
    for section in sections.benchmarks(page):
        parts: tuple[PagePart, ...] = section.blocks
        if section.title == "Benchmarks":
            changed = Filter("Only changed", [row.source.decision != "same" for row in page.comparisons])
            left_out = page.others.get("comparisons", 0)
            parts = (Drawn(tables.comparisons(page, page.comparisons, left_out=left_out), filter=changed),)
        elif section.title:
            parts = (Markup("<h3>{}</h3>").format(section.title), *section.blocks)
        yield from parts


def _samples(page: Page, result: Result, criteria: Criteria, order: TakingOrder) -> Iterator[PagePart]:
    """Yield pictures of the rows that the verdict rests on: regressions, then unproven rows, then improvements."""
    ranks = {"regressed": 0, "unproven": 1, "improved": 2}
    rows = [row for row in result.benchmarks if (row.gating or row.leading) and row.baseline and row.candidate]
    rows.sort(key=lambda row: ranks.get(row.decision or "", 3))
    drawn = 0
    for row in rows[:MOST_CHARTS]:
        both = (("baseline", row.baseline), ("candidate", row.candidate))
        sides = {name: side.samples for name, side in both if side}
        # A picture of figures that repeat to the digit shows nothing.
        if sum(map(len, sides.values())) > MOST_SAMPLES or all(len(set(values)) < 2 for values in sides.values()):
            continue
        orders = order.of(Wanted(row.step, row.name, row.metric, sides))
        picture = charts.samples_chart(row, orders, criteria, page.side_names)
        if picture:
            drawn += 1
            yield Markup("<figure><figcaption><code>{}</code> <code>{}</code>: {}</figcaption>{}</figure>").format(
                visible(row.name), visible(row.metric), row.decision, picture
            )
    if drawn:
        yield Markup(
            '<p class="key"><span class="before">●</span> {} <span class="after">▲</span> {}; lines are '
            "medians, bands their 95% intervals.</p>"
        ).format(*page.side_names.values())
    if len(rows) > MOST_CHARTS:
        more = Markup("<p>The samples of {} more rows are in <code>result.json</code>.</p>")
        yield more.format(len(rows) - MOST_CHARTS)


def _growth(page: Page, criteria: Criteria) -> Iterator[Markup]:
    yield from filter(None, (growth_figure(line, criteria, page.side_names) for line in page.growth[:MOST_CHARTS]))


def _layouts(page: Page, result: Result, criteria: Criteria) -> Iterator[Markup]:
    rows = [row for row in result.benchmarks if row.layouts and row.gating]
    if rows:
        yield from filter(None, (layout_figure(row, criteria, page.side_names) for row in rows[:MOST_CHARTS]))


def _memory(page: Page, result: Result, criteria: Criteria) -> Iterator[Markup]:
    if result.memory:
        yield from memory_figures(result, criteria, page.side_names)


def _ladders(result: Result, criteria: Criteria) -> Iterator[Markup]:
    yield from map(ladder_figure, ladders_of(result, criteria))


def _with_shares(parts: Sequence[PagePart], page: Page) -> Iterator[PagePart]:
    """Yield the parts, with a bar for each share in the tables of profiles."""
    known = {tables.hotspots(page, each): each for each in page.profiles}
    for part in parts:
        found = known.get(part) if isinstance(part, Table) else None
        if found and isinstance(part, Table):
            bars = [charts.share_bar(spot.before, spot.after) for spot in found.spots]
            two_sided = any(spot.before is not None and spot.after is not None for spot in found.spots)
            yield Drawn(
                part, Drawings(page.profiled_sides.capitalize() if two_sided else "Share of the profile", bars, 4)
            )
        else:
            yield part


def _with_effects(parts: Sequence[PagePart], page: Page, result: Result) -> Iterator[PagePart]:
    """Yield the parts, with bars of effect and threshold in the table of candidates."""
    ledger = page.ledger
    tried = tables.tries(ledger.tries, ledger.others) if ledger and ledger.tries else None
    for part in parts:
        if ledger and tried is not None and part == tried:
            bars = [charts.effect_bar(row.source, result.run.accept or 0.0) for row in ledger.tries]
            yield Drawn(tried, Drawings("Effect and threshold", bars, 3))
        else:
            yield part


def _flame_graphs(result: Result, profiles: Sequence[StackProfile]) -> Iterator[PagePart]:
    """Yield the flame graphs, those of changed benchmarks first."""
    if profiles:
        changed = [row.name for kind in ("regressed", "improved") for row in result.benchmarks if row.decision == kind]
        yield from flame_graphs(profiles, changed)
