"""``report.html`` and the other pages: templates with pictures, each one file that needs no network.

The policy allows scripts and styles only by their hashes, so a script inside a name could never run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Benchmark, Result
from perfflow.model.stacks import StackProfile
from perfflow.model.units import format_threshold
from perfflow.report import bisect_page
from perfflow.report.html import charts
from perfflow.report.html.charts import (
    calibration_bar,
    calibration_span,
    growth_figure,
    ladder_figure,
    layout_figure,
    memory_figures,
)
from perfflow.report.html.elements import Drawings, Filter, anchor, joined, span_html, table_html
from perfflow.report.html.flame import ProfileCosts, flame_graphs, graph_of, in_order
from perfflow.report.page import Page, ProfileTable, page_of
from perfflow.report.rows import ComparisonLine
from perfflow.report.same_function import Joined
from perfflow.report.sanitize import visible
from perfflow.report.table import Span, Table, TextKind, mark, name, table
from perfflow.report.template import Writer
from perfflow.report.terminal import ladders_of
from perfflow.store.calibrations import CalibrationEntry
from perfflow.store.sample_order import TakingOrder, Wanted
from perfflow.verdict.bisection import Bisected, BisectionOutcome


class HtmlWriter(Writer):
    """Writes the parts of a report as HTML. Text is escaped unless the format has written it itself."""

    between = "\n"

    def __init__(self, page: Page | None = None, **variables: Any) -> None:
        super().__init__(page, **variables, joined=self.joined, links=self._links)
        self._titles: list[str] = []

    def own(self, text: str) -> str:
        """Mark text that the format has written itself, so that it is not escaped again."""
        return Markup(text)  # noqa: S704 (its parts are escaped)

    def safe(self, text: str) -> str:
        """Return text that is escaped, unless the format has written it."""
        return escape(text)

    def own_words(self, value: object) -> object:
        """Return what a template writes by ``{{ }}``, which Jinja2 escapes."""
        return value

    def _links(self) -> Markup:
        """Return links to the headings so far; none to a single one."""
        titles = self._titles if len(self._titles) > 1 else []
        return joined([Markup('<li><a href="#{}">{}</a></li>').format(anchor(each), each) for each in titles])

    def _part(self, title: str, body: str) -> str:
        if not title:
            return body
        self._titles.append(title)
        return Markup('<section aria-labelledby="{0}"><h2 id="{0}">{1}</h2>\n{2}</section>').format(
            anchor(title), title, body
        )

    def _paragraph(self, text: str) -> str:
        return Markup("<p>{}</p>").format(text)

    def _bullets(self, items: Sequence[str], *, tasks: bool) -> str:
        row = Markup('<li class="task">{}</li>') if tasks else Markup("<li>{}</li>")
        return Markup("<ul>{}</ul>").format(joined([row.format(item) for item in items]))

    def _code(self, lines: Sequence[str], language: str) -> str:
        shown = "\n".join("\t".join(map(visible, line.split("\t"))) for line in lines)
        return Markup('<pre tabindex="0"><code class="{}">{}</code></pre>').format(language, shown)

    def _fold(self, title: str, body: str) -> str:
        return Markup("<details><summary>{}</summary>\n{}\n</details>").format(title, body)

    def _table(self, table: Table, what: object) -> str:  # noqa: ARG002 (the page of a run draws some)
        return table_html(table)

    def name(self, text: str) -> str:
        """Set a name as code."""
        return span_html(Span(text, TextKind.NAME))

    def words(self, text: str) -> str:
        """Set words, in which text between backticks is code."""
        return span_html(Span(text, TextKind.WORDS))

    def strong(self, text: str) -> str:
        """Set words in bold."""
        return span_html(Span(text, TextKind.STRONG))


@dataclass(frozen=True)
class Head:
    """The head of a page: its kind, what it is about, and a class of its style."""

    kind: str
    name: str
    about: str
    verdict: str = "none"


def page_html(template: str, head: Head, writer: HtmlWriter, script_names: Sequence[str] = ("page.js",)) -> str:
    """Return a self-contained page. Equal arguments give equal bytes."""
    style, scripts = _asset("page.css"), list(map(_asset, script_names))
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src {hashes}; base-uri 'none'; form-action 'none'"
    writer.add(
        policy=Markup(policy),  # noqa: S704 (our own text)
        style=style,
        scripts=joined([Markup("<script>{}</script>").format(script) for script in scripts]),
        kind=head.kind,
        title=visible(head.name),
        about=visible(head.about),
        verdict=head.verdict,
    )
    return writer.render(template) + "\n"


@cache
def _asset(name: str) -> Markup:
    """Return a file beside this module without indentation and comment lines, to be inlined into the page."""
    lines = (line.lstrip() for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines())
    return Markup("\n".join(line for line in lines if line and not line.startswith("//")))  # noqa: S704 (our own file)


@cache
def _hash(text: Markup) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


MOST_ROWS = 2500
"""Most rows of one table. It is more than in Markdown, since tables can be filtered here."""
MOST_CHARTS = 24
"""Most pictures of growths, and of code layouts."""
MOST_SAMPLES, MOST_DRAWN = 2000, 100_000
"""Most samples of one picture, and of all pictures together, since each takes about 50 bytes of the page."""
FIRST_PARTS = 2
"""Parts that are open from the start if nothing is compared."""


def render(result: Result, order: TakingOrder, profiles: Sequence[StackProfile] = ()) -> str:
    """Return the page of a result, with its samples in the ``order`` they were taken, and flame graphs of ``profiles``.

    Equal arguments give equal bytes.
    """
    page = replace(page_of(result, MOST_ROWS), pair=True)
    kind = "Performance Analysis" if page.template == "analysis" else "Performance Report"
    head = Head(kind, page.component, f"{page.workflow}, run {page.run_id}", result.verdict or "none")
    writer = _ReportWriter(page, result, order, profiles)
    return page_html("report.html.j2", head, writer, ("page.js", "flame.js") if profiles else ("page.js",))


class _ReportWriter(HtmlWriter):
    """Writes the page of a run: pictures, and tables with bars and filters."""

    def __init__(self, page: Page, result: Result, order: TakingOrder, profiles: Sequence[StackProfile]) -> None:
        self._page, self._result, self._order, self._profiles = page, result, order, profiles
        self._criteria = criteria_from_json(result.criteria).knowing(row.name for row in result.benchmarks)
        limits = self._criteria.thresholds
        thresholds = [format_threshold(limit) for limit in (limits.concern, limits.action)]
        super().__init__(page, profiles=_profile_files(result), thresholds=thresholds)
        self._room = MOST_DRAWN

    def _table(self, table: Table, what: object) -> str:
        page = self._page
        match what:
            case "requirements":
                return table_html(
                    table, wanted=Filter("Only unmet", [row.status != "met" for row in page.requirements])
                )
            case "benchmarks":
                changed = [row.source.decision != "same" for row in page.comparisons]
                return table_html(table, wanted=Filter("Only changed", changed))
            case "candidates" if page.ledger:
                accept = self._result.run.accept or 0.0
                bars = [charts.effect_bar(row.source, accept) for row in page.ledger.tries]
                return table_html(table, Drawings("Effect and threshold", bars, 3))
            case ProfileTable():
                spots = [(what.benchmark, what.source, spot.location) for spot in what.spots]
                two_sided = any(spot.before is not None and spot.after is not None for spot in what.spots)
                title = page.profiled_sides.capitalize() if two_sided else "Share of the profile"
                drawn = [
                    flame + charts.share_bar(spot.before, spot.after)
                    for flame, spot in zip(self._flames(spots), what.spots, strict=True)
                ]
                return table_html(table, Drawings(title, drawn, 4))
            case Joined():
                return self._with_flames(table, [(what.benchmark, "", row.function) for row in what.rows])
            case "functions" if page.findings.blame:
                shown = page.findings.blame.functions.shown
                return self._with_flames(table, [(row.benchmark, row.tool, row.function) for row in shown])
        return table_html(table)

    def _part(self, title: str, body: str) -> str:
        if not title:
            return body
        self._titles.append(title)
        # Without a comparison, the first tables are what a reader wants.
        state = Markup(" open") if not self._page.forest and len(self._titles) <= FIRST_PARTS else ""
        return Markup(
            '<details class="part"{0}><summary><h2>{1}</h2></summary>\n<div id="{2}">\n{3}\n</div></details>'
        ).format(state, title, anchor(title), body)

    def chart(self, name: str, row: ComparisonLine | None = None) -> str:
        """Return the pictures of a kind, or those of a row."""
        if row is None:
            return self._block(joined(list(self._pictures(name))))
        if name == "change":
            return charts.forest_bar(row, self._criteria.thresholds_of(row.operation, row.source.metric), self._top)
        if name == "flame":
            return self._flames([(row.operation, "", "")])[0]
        return self._samples(row.source)

    @cached_property
    def _profiled(self) -> list[ProfileCosts]:
        kinds = ("regressed", "improved")
        changed = [row.name for kind in kinds for row in self._result.benchmarks if row.decision == kind]
        return in_order(self._profiles, changed)

    def _flames(self, spots: Iterable[tuple[str, str, str]]) -> list[Markup]:
        """Return a link to the flame graph of each benchmark, tool ('' for any) and function, '' if there is none."""
        graphs = [(graph_of(self._profiled, benchmark, tool), function) for benchmark, tool, function in spots]
        link = Markup('<a href="#{}" data-find="{}">flame graph</a>')
        return [link.format(graph, visible(function)) if graph else Markup("") for graph, function in graphs]

    def _with_flames(self, table: Table, spots: Sequence[tuple[str, str, str]]) -> Markup:
        """Return a table of functions with links to flame graphs in its last column."""
        links = self._flames(spots)
        return table_html(table, Drawings("In the stacks", links, len(table.columns)) if any(links) else None)

    @cached_property
    def _top(self) -> float:
        return charts.forest_top(self._page.forest)

    def _samples(self, row: Benchmark) -> Markup:
        """Return the picture of a row's samples; '' if it would show nothing, or if there are too many."""
        both = (("baseline", row.baseline), ("candidate", row.candidate))
        sides = {name: side.samples for name, side in both if side}
        count = sum(map(len, sides.values()))
        # A picture of figures that repeat to the digit shows nothing.
        if count > MOST_SAMPLES or count > self._room or all(len(set(values)) < 2 for values in sides.values()):
            return Markup("")
        self._room -= count
        orders = self._order.of(Wanted(row.step, row.name, row.metric, sides))
        return charts.samples_chart(row, orders, self._criteria, self._page.side_names)

    def _pictures(self, name: str) -> Iterator[Markup]:
        page, result, criteria = self._page, self._result, self._criteria
        match name:
            case "axis":
                yield charts.forest_axis(self._top, criteria.thresholds)
            case "growth":
                figures = (growth_figure(line, criteria, page.side_names) for line in page.growth[:MOST_CHARTS])
                yield from filter(None, figures)
            case "layouts":
                rows = [row for row in result.benchmarks if row.layouts and row.gating][:MOST_CHARTS]
                yield from filter(None, (layout_figure(row, criteria, page.side_names) for row in rows))
            case "memory" if result.memory:
                yield from memory_figures(result, criteria, page.side_names)
            case "ladders":
                yield from map(ladder_figure, ladders_of(result, criteria))
            case "roofline":
                yield charts.roofline_chart(result)
            case "flames" if self._profiles:
                yield from flame_graphs(self._profiled, page.side_names)


def _profile_files(result: Result) -> Table | None:
    """Return the table of profile files in the run folder."""
    if not result.profiles:
        return None
    columns = [name("Benchmark"), name("Tool's file"), mark("Side"), name("Path"), name("sha256")]
    rows = [(item.benchmark, item.kind, item.tree, item.path, item.sha256[:16]) for item in result.profiles]
    return table(columns, rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS))


def render_bisection(found: Bisected) -> str:
    """Return the page of a bisection."""
    verdict = {BisectionOutcome.FOUND: "fail", BisectionOutcome.SAME: "pass"}.get(found.outcome, "unproven")
    head = Head("Bisection", found.workflow, found.outcome.value, verdict)
    return page_html("bisection.html.j2", head, HtmlWriter(**bisect_page.variables(found)))


def render_calibration(entries: Sequence[CalibrationEntry], identity: str) -> str:
    """Return the page of the calibrations of a machine; ``identity`` is its hash."""
    span = calibration_span(bisect_page.noisy_of(entries))
    workflows = []
    for workflow in dict.fromkeys(entry.workflow for entry in entries):
        of_workflow = [entry for entry in entries if entry.workflow == workflow]
        rows = bisect_page.noisy_of(of_workflow)
        drawings = Drawings("Noise and detectable change", [calibration_bar(row, span) for row in rows], 3)
        noisy = table_html(bisect_page.calibration_table(of_workflow), drawings) if rows else ""
        workflows.append(
            (f"Workflow {visible(workflow)}", noisy, bisect_page.about(of_workflow), bisect_page.exact_of(of_workflow))
        )
    head = Head("Calibration", f"machine {identity}", "each step compared with itself")
    writer = HtmlWriter(workflows=workflows, headline=bisect_page.calibration_headline(entries))
    return page_html("calibration.html.j2", head, writer)
