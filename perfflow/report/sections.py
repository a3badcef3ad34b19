"""The sections of a report, one function each. A section without data is left out.

The sections of a report and their order.

The building blocks of a report. Each format renders these types and does not depend on their content.

The output of ``perfflow show`` for a workflow and for a tool.

A plan as text, Mermaid or DOT.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.report import tables
from perfflow.report.findings import Culprit
from perfflow.report.page import Ledger, Page, TryLine
from perfflow.report.sanitize import fitted, shortened, visible, wrapped
from perfflow.report.table import Span, Table, Text, TextKind
from perfflow.report.tables import described


@dataclass(frozen=True)
class Prose:
    """A paragraph. A part that is not a Span is perfflow's own text."""

    content: Text


@dataclass(frozen=True)
class Bullets:
    """A list; with ``tasks``, each item has a checkbox."""

    items: tuple[Text, ...]
    tasks: bool = False


@dataclass(frozen=True)
class CodeBlock:
    """Verbatim lines, with the language for syntax highlighting."""

    lines: tuple[str, ...]
    language: str = "text"


@dataclass(frozen=True)
class Fold:
    """Blocks that are collapsed until the reader opens them."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class ReportSection:
    """A heading and its blocks. A section without a title has no heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class ReportDocument:
    """A whole report."""

    title: Text
    sections: tuple[ReportSection, ...]


Block = Prose | Bullets | CodeBlock | Fold | Table


def named(text: str) -> Span:
    """Return a name given by a user or a tool."""
    return Span(text, TextKind.NAME)


def quoted(text: str) -> Span:
    """Return words that may include text of tools and files."""
    return Span(text, TextKind.WORDS)


def strong(text: str) -> Span:
    """Return emphasized words of perfflow's own."""
    return Span(text, TextKind.STRONG)


def quotes(texts: Iterable[str]) -> tuple[Block, ...]:
    """Return a list of texts that may come from tools and files; () for no texts."""
    items = tuple((quoted(text),) for text in texts)
    return (Bullets(items),) if items else ()


def more(count: int) -> tuple[Block, ...]:
    """Return a paragraph with the number of rows left out; () for 0."""
    return (Prose((f"{count} more are in ", named("result.json"), ".")),) if count else ()


def code(lines: Sequence[str], language: str = "text") -> tuple[Block, ...]:
    """Return verbatim lines; () for no lines."""
    return (CodeBlock(tuple(lines), language),) if lines else ()


RESULT = named("result.json")
LONGEST_TITLE = 120
"""Most letters of a name in a line of its own."""
MOST_CULPRITS = 3
"""Most blamed functions in the first lines of a gate that fails."""
MOST_WORST = 3
"""Most benchmarks that one of these lines names."""


def opening(page: Page) -> ReportSection:
    """Return the verdict, the headline, and the evidence lines for programs."""
    verdict = (strong(f"{page.symbol} {page.verdict}"), " ") if page.verdict else ()
    blocks: list[Block] = [Prose((*verdict, quoted(page.headline)))]
    if page.judged_by:
        blocks.append(Prose(("Judged again by: ", named(page.judged_by))))
    blocks += code([*filter(None, [page.gate]), *page.opening])
    return ReportSection("", (*blocks, *(more(page.others.get("evidence", 0)) if page.opening else ())))


def red_gate(page: Page) -> Iterator[ReportSection]:
    """Yield what a reader of a gate that fails by its rows needs first, in ten lines."""
    red = page.findings.red
    if red is None:
        return
    shown = page.findings.culprits[:MOST_CULPRITS]
    causes: list[Text] = [_cause(item) for item in shown]
    if red.unexplained:
        worst = [part for name, change in red.unexplained[:MOST_WORST] for part in (", ", _short(name), f" {change}")]
        left = len(red.unexplained) - MOST_WORST
        causes.append((*worst[1:], f" and {left} more" if left > 0 else "", ": no function is blamed"))
    left = len(page.findings.culprits) - len(shown) + _others(page, "culprits")
    causes += [(f"{left} more functions are blamed, see Hotspot Analysis",)] if left else []
    if red.unprofiled:
        names = [part for name in red.unprofiled[:MOST_WORST] for part in (", ", _short(name))]
        left = len(red.unprofiled) - MOST_WORST
        causes.append(("Not profiled: ", *names[1:], f" and {left} more" if left > 0 else ""))
    blocks: list[Block] = [Bullets(tuple(causes))]
    blocks += code((red.bisect,), "sh") if red.bisect else ()
    if red.accept:
        left_out = (f"  # and for {red.beyond} more rows",) if red.beyond else ()
        blocks += code((*red.accept, *left_out), "yaml")
    yield ReportSection("", tuple(blocks))


def by_cell(page: Page) -> Iterator[ReportSection]:
    """Yield what changed with which value of the key of ``compare``, such as a compiler."""
    rows = page.findings.by_cell
    for key in dict.fromkeys(row.key for row in rows):
        items = tuple((named(row.benchmark), ": ", quoted(row.text)) for row in rows if row.key == key)
        yield ReportSection("", (Prose(("By ", named(key), ":")), Bullets(items)))
    if left := _others(page, "by_cell"):
        yield ReportSection("", more(left))


def _cause(item: Culprit) -> Text:
    """Return a blamed function: its benchmarks, its change, its place, its share of the change, and its commit."""
    others = f" {item.others}" if item.others else ""
    place = (" ", _short(item.place)) if item.place else ()
    share = f", {item.share} of it" if item.share else ""
    commit = (", last touched by ", quoted(shortened(item.commit, LONGEST_TITLE))) if item.commit else ()
    return (_short(item.benchmark), f" {item.change}{others}: ", _short(item.function), *place, share, *commit)


def _short(name: str) -> Span:
    """Return a name that leaves room for the others in the first lines; the tables have it whole."""
    return named(shortened(name, LONGEST_TITLE))


def reasons(page: Page) -> Iterator[ReportSection]:
    """Yield the reasons of the verdict, and the warnings."""
    for title, texts, name in (("Why", page.reasons, "reasons"), ("Warnings", page.warned, "warned")):
        if texts:
            yield ReportSection(title, (*quotes([item.text for item in texts]), *more(page.others.get(name, 0))))


def compared(page: Page) -> Iterator[ReportSection]:
    """Yield the description of two stored results."""
    if page.sides:
        yield ReportSection("Compared", (tables.sides(page),))


def benchmarks(page: Page) -> Iterator[ReportSection]:
    """Yield the comparisons, the figures of one side, and further figures, folded."""
    if page.comparisons:
        yield ReportSection(
            "Benchmarks", (tables.comparisons(page, page.comparisons, left_out=_others(page, "comparisons")),)
        )
    if page.figures:
        yield ReportSection(page.sides_titles[0], (tables.figures(page.figures, _others(page, "figures")),))
    if page.further:
        left_out = _others(page, "further")
        table = (
            tables.two_sided_figures(page.further, page.sides_titles, left_out)
            if page.compared
            else tables.figures(page.further, left_out)
        )
        yield ReportSection("", (Fold("Further figures", (table,)),))


def baseline(page: Page) -> Iterator[ReportSection]:
    """Yield all figures of the baseline whose metric has a direction."""
    if page.before:
        yield ReportSection("Baseline", (tables.figures(page.before, _others(page, "before")),))


def machines(page: Page) -> Iterator[ReportSection]:
    """Yield the machines of a cluster with the benchmarks that each measured."""
    if page.machines:
        yield ReportSection("Machines", (tables.machines(page.machines),))


def growth(page: Page) -> Iterator[ReportSection]:
    """Yield the growth of benchmarks that were measured at several sizes."""
    if page.growth:
        note = "The growth class and the exponent, with its 95% interval, are fitted over all measured sizes."
        yield ReportSection("Growth", (tables.growth(page), Prose(note)))


def profiles(page: Page, heading: str = "Profiling Results") -> Iterator[ReportSection]:
    """Yield a table of each function in all profiles, then each profile by itself with its counters."""
    if page.joined:
        blocks: list[Block] = []
        for found in page.joined:
            sides = f" {page.profiled_sides}" if found.two_sided else ""
            blocks += [
                Prose((named(found.benchmark), f": own share of each function{sides}, by profile")),
                tables.functions(found),
            ]
            if found.contradictions:
                blocks += [Prose("Profilers contradict each other:"), *quotes(found.contradictions)]
        yield ReportSection("Hotspots by Function", tuple(blocks))
    if page.profiles or page.counters:
        blocks = []
        for each in page.profiles:
            by = (named(each.benchmark), " by ", named(each.source), " (", quoted(each.unit), ")")
            blocks += [Prose(by), tables.hotspots(page, each)]
        if page.counters:
            blocks.append(tables.counters(page, page.counters.shown, page.counters.others))
        yield ReportSection(heading, tuple(blocks))


def kernels(page: Page) -> Iterator[ReportSection]:
    """Yield the GPU kernels, their warp stalls, and the kernels that ran on several GPUs."""
    found = page.kernels
    if not found:
        return
    means = (
        ". Time is the median of all launches, share is the part of the time of all kernels. Achieved and possible "
        "occupancy come from the tool; the model value is computed by perfflow."
    )
    explained = ("Measured on ", quoted("; ".join(found.devices)), means)
    because = tuple((named(name), ": ", quoted(why)) for name, why in found.because)
    blocks: list[Block] = [tables.kernels(found, _others(page, "kernels")), Prose(explained)]
    yield ReportSection("GPU Kernels", (*blocks, *((Bullets(because),) if because else ())))
    if found.stalls.shown:
        blocks = [tables.stalls(found.stalls.shown, two_sided=found.two_sided, left_out=_others(page, "stalls"))]
        if found.pressing:
            pressing = tuple((named(name), ": ", quoted(why)) for name, why in found.pressing)
            blocks += [Prose("Worth acting on:"), Bullets(pressing)]
        yield ReportSection("Warp Stalls", tuple(blocks))
    if found.across.shown:
        note = "Differences between GPUs are not regressions and do not affect the verdict."
        yield ReportSection("Across GPUs", (tables.across(found.across.shown, _others(page, "across")), Prose(note)))


def roofline(page: Page) -> Iterator[ReportSection]:
    """Yield each benchmark's performance as a share of the roof."""
    found = page.roofline
    if found:
        rows = (tables.roofline(found, _others(page, "roofline")),) if found.rows.shown else ()
        roof = tuple((f"{name}: {value}, ", quoted(source)) for name, value, source in found.peaks)
        yield ReportSection("Roofline", (*rows, *((Prose("Peaks that form the roof:"), Bullets(roof)) if roof else ())))


def optimizations(page: Page) -> Iterator[ReportSection]:
    """Yield the plan, the outcome of each candidate, and the location of the kept changes."""
    ledger = page.ledger
    if ledger:
        yield ReportSection("Optimization Plan", (tables.plan(ledger.plan),))
    if ledger and ledger.tries:
        yield ReportSection("Optimizations Applied", tuple(_tries(ledger)))
    if page.after:
        table = tables.two_sided_figures(page.after, page.sides_titles, _others(page, "after"))
        yield ReportSection("After Optimization", (table,))


def _tries(ledger: Ledger) -> Iterator[Block]:
    if ledger.accept:
        yield Prose(
            f"A change is kept if the whole confidence interval of its effect is beyond {ledger.accept}, all "
            "correctness steps pass, and no guarded benchmark regressed."
        )
    yield tables.tries(ledger.tries, ledger.others)
    if ledger.before:
        yield Prose("Outcome of the cheaper techniques before each costlier one was tried:")
        before = ((named(name), " (", quoted(by), "): ", quoted(outcome)) for name, by, outcome in ledger.before)
        yield Bullets(tuple(before))
    for row in ledger.kept:
        why = (": ", quoted(row.why)) if row.why else ()
        commit = (" (commit ", named(row.revision), ")") if row.revision else ()
        yield Prose((strong("Kept:"), " ", named(row.name), *why, *commit))
        yield from _diff(row)
    if not ledger.kept:
        yield Prose("Nothing was kept.")
    yield from _taking(ledger)
    if ledger.reverted:
        yield Fold("Changes that were not kept", tuple(block for row in ledger.reverted for block in _reverted(row)))


def _reverted(row: TryLine) -> Iterator[Block]:
    yield Prose((named(row.name), f" ({row.decision}): ", quoted(row.reason)))
    if row.log_tail:
        yield Prose(("Last lines of ", named(row.log), " in the run folder:"))
        yield from code(row.log_tail)
    yield from _diff(row)


def _diff(row: TryLine) -> Iterator[Block]:
    diff = row.diff
    yield from code(diff.lines, "diff")
    if diff.left_out and diff.lines:
        yield Prose((f"{diff.left_out} more lines are in ", named(diff.file), " in the run folder."))
    elif diff.file and not diff.lines:
        yield Prose(("The diff is in ", named(diff.file), " in the run folder."))
    if row.settings:
        parts = [part for line in row.settings for part in (", ", named(line))][1:]
        yield Prose(("Settings: ", *parts))


def _taking(ledger: Ledger) -> Iterator[Block]:
    """Yield the branch with the kept changes, and the kept settings for the workflow file."""
    if ledger.branch:
        own = (
            " The first commit holds your uncommitted changes. The second command leaves it out, and fails if the same "
            "files have uncommitted changes: commit those first."
            if ledger.own_changes
            else ""
        )
        yield Prose(
            f"The kept changes are on a separate branch, one commit per change.{own} To review and to take them over:"
        )
        yield CodeBlock((ledger.look, ledger.take), "sh")
    elif ledger.no_branch:
        yield Prose(("There is no branch with the kept changes: ", quoted(ledger.no_branch), "."))
    if ledger.settings:
        file = named(ledger.file) if ledger.file else "the workflow"
        apply = (" (", named("perfflow run --apply"), " writes them; a parameter becomes the default):")
        yield Prose(("Kept settings for ", file, *apply))
        yield CodeBlock(ledger.settings, "yaml")


def verification(page: Page) -> Iterator[ReportSection]:
    """Yield the steps that check correctness."""
    if page.checks:
        yield ReportSection("Verification", (tables.checks(page),))


def requirements(page: Page) -> Iterator[ReportSection]:
    """Yield each target with the measured value."""
    if page.requirements:
        yield ReportSection(
            "Requirements Met", (tables.requirements(page.requirements, _others(page, "requirements")),)
        )


def summary(page: Page) -> Iterator[ReportSection]:
    """Yield the rows of a gate, counted by decision, and the regressions."""
    found = page.findings.summary
    if not found:
        return
    blocks: list[Block] = [tables.counts(found.counts)]
    if found.regressed.shown:
        blocks.append(tables.regressed(found.regressed.shown, _others(page, "regressed")))
    for title, name, rows in (
        ("Accepted:", "accepted", found.accepted),
        ("Suspected at first, not confirmed by fresh pairs:", "refuted", found.refuted),
    ):
        if rows.shown:
            items = tuple((named(row), " ", quoted(what)) for row, what in rows.shown)
            blocks += [Prose(title), Bullets(items), *more(_others(page, name))]
    yield ReportSection("Regression Summary", tuple(blocks))


def blame(page: Page) -> Iterator[ReportSection]:
    """Yield the functions that got slower, and the commits that touched them."""
    found = page.findings.blame
    if not found or not (found.functions.shown or found.unexplained.shown):
        return
    blocks: list[Block] = []
    if found.functions.shown:
        blocks += [
            Prose(
                (
                    "Functions that got slower: own cost, per operation if ",
                    named("ops"),
                    " is set, and share of the benchmark's regression.",
                )
            ),
            tables.blamed(found, _others(page, "blamed")),
        ]
        notes = tuple((named(row.function), ": ", quoted(row.note)) for row in found.functions.shown if row.note)
        blocks += [Bullets(notes)] if notes else []
    if found.unexplained.shown:
        rows = tuple((named(name), " ", named(metric)) for name, metric in found.unexplained.shown)
        note = (
            "No function stands out: each function in the profiles of both sides differs by no more than noise, or "
            "by too small a part of the regression."
        )
        blocks += [Prose(note), Bullets(rows), *more(_others(page, "unexplained"))]
    yield ReportSection("Hotspot Analysis", tuple(blocks))


def impact(page: Page) -> Iterator[ReportSection]:
    """Yield the absolute change of each regression, and the remaining distance to its targets."""
    found = page.findings
    if found.impact:
        blocks: list[Block] = [tables.impact(found.impact, _others(page, "impact"))]
        if found.blame and found.blame.areas.shown:
            areas = tables.areas(found.blame.areas.shown, _others(page, "areas"))
            blocks += [Prose("By area, for one operation of each of its benchmarks:"), areas]
        yield ReportSection("Impact Assessment", tuple(blocks))


def advice(page: Page) -> Iterator[ReportSection]:
    """Yield the recommendations of rules, and the task list."""
    found = page.findings
    if found.recommendations:
        items = []
        for item in found.recommendations:
            of = (named(item.benchmark), ": ") if item.benchmark else ()
            if item.source:
                gain = "" if item.gain is None else f", estimated gain {100 * item.gain:.0f}%"
                items.append(
                    (*of, quoted(item.advice), " (", quoted(item.source), " rule ", named(item.rule), gain, ")")
                )
            else:
                rule = ("; rule ", named(item.rule)) if item.rule else ()
                why = (" (evidence: ", quoted(item.evidence), *rule, ")")
                items.append((*of, quoted(item.finding), ". ", quoted(item.advice), *why))
        yield ReportSection("Recommendations", (Bullets(tuple(items)), *more(_others(page, "recommendations"))))
    if found.actions:
        tasks = tuple(
            (
                *(quoted(item.verb), " ", named(item.name)),
                *((": ", quoted(item.detail)) if item.detail else ()),
                *(" (owner: ", quoted(item.owner) if item.owner else "–", ")"),
            )
            for item in found.actions
        )
        yield ReportSection("Action Items", (Bullets(tasks, tasks=True), *more(_others(page, "actions"))))


def gates(page: Page, *, short: bool = False) -> Iterator[ReportSection]:
    """Yield the status of each gate. ``short``: without names of rows, for a page whose other tables show them."""
    if page.findings.gates:
        yield ReportSection("Gates", (tables.gates(page.findings.gates, short=short, left_out=_others(page, "gates")),))


def routing(page: Page) -> Iterator[ReportSection]:
    """Yield the next route with its brief."""
    if not page.findings.routes:
        return
    blocks: list[Block] = []
    for route in page.findings.routes:
        why = (": ", quoted(route.why)) if route.why else ()
        blocks.append(Prose((strong("Next:"), " ", quoted(route.next))))
        blocks += code((route.command,), "sh") if route.command else ()
        blocks.append(Prose(("Route: ", named(route.to), " by the rule ", named(route.rule), *why)))
        for title, lines in route.lists:
            blocks += [Prose((strong(title),)), *quotes(lines.shown), *more(lines.others)]
        blocks += code(route.commands, "sh")
    yield ReportSection("Routing", tuple(blocks))


def troubles(page: Page, *, short: bool = False) -> Iterator[ReportSection]:
    """Yield the steps that did not run or failed, with the last lines of their logs; a few lines each if ``short``."""
    words: list[Block] = []
    for item in page.failed:
        if item.log_tail:
            rest = (" (full log: ", named(item.log), " in the run folder):")
            words.append(Prose(("Last lines of ", named(item.name), *rest)))
            words += code(item.last if short else item.log_tail)
    if page.troubles:
        yield ReportSection("Steps that did not run or failed", (tables.troubles(page), *words))
    elif words:
        yield ReportSection("", tuple(words))


def evidence(page: Page) -> Iterator[ReportSection]:
    """Yield the evidence lines, folded, unless the report opens with them."""
    if page.evidence and not page.opening:
        yield ReportSection("", (Fold("Evidence", (*code(page.evidence), *more(_others(page, "evidence")))),))


def notes(page: Page) -> Iterator[ReportSection]:
    """Yield cautions and notes."""
    if page.notes or page.cautions:
        yield ReportSection("Notes", quotes((*page.cautions, *page.notes)))


def reproduce(page: Page) -> Iterator[ReportSection]:
    """Yield the commands that reproduce the run."""
    if page.reproduce:
        yield ReportSection("How to reproduce it", code(page.reproduce, "sh"))


def environment(page: Page) -> Iterator[ReportSection]:
    """Yield the environment of the run, folded."""
    if page.environment:
        items = tuple((quoted(name), ": ", quoted(value)) for name, value in page.environment)
        yield ReportSection("", (Fold("Environment", (Bullets(items),)),))


def _others(page: Page, name: str) -> int:
    return page.others.get(name, 0)


def report_of(page: Page) -> ReportDocument:
    """Return the whole report by the workflow's template."""
    analysis = page.template == "analysis"
    title = "Performance Analysis" if analysis else "Performance Report"
    return ReportDocument((f"{title}: ", quoted(page.component)), tuple((_analysis if analysis else _report)(page)))


def _report(page: Page) -> Iterator[ReportSection]:
    yield opening(page)
    yield from red_gate(page)
    yield from by_cell(page)
    yield from reasons(page)
    yield from compared(page)
    yield from benchmarks(page)
    yield from profiles(page)
    yield from _measured_and_found(page)


def _analysis(page: Page) -> Iterator[ReportSection]:
    yield opening(page)
    yield from reasons(page)
    yield from baseline(page)
    yield from profiles(page, "Bottlenecks")
    yield from _measured_and_found(page)


def _measured_and_found(page: Page) -> Iterator[ReportSection]:
    yield from machines(page)
    yield from growth(page)
    yield from kernels(page)
    yield from roofline(page)
    yield from optimizations(page)
    yield from verification(page)
    yield from requirements(page)
    yield from summary(page)
    yield from blame(page)
    yield from impact(page)
    yield from advice(page)
    yield from gates(page)
    yield from routing(page)
    yield from troubles(page)
    yield from evidence(page)
    yield from notes(page)
    yield from reproduce(page)
    yield from environment(page)


MOST_LINES = 6
"""Lines of one command on a terminal; elsewhere all lines are shown."""
_INDENT = " " * 7
_FURTHER = " " * 4
_OUTCOMES: Mapping[str, str] = {
    "runs": "runs",
    "left out": "left out by its `if`",
    "skipped": "skipped",
    "fails": "fails (allowed)",
    "nothing is run": "missing, so nothing is run",
}
"""Text for each outcome of a preview, in the order of the output."""
Steps = Sequence[Mapping[str, Any]]


def plan_lines(steps: Steps, width: int, expected: str = "") -> Iterator[str]:
    """Yield one block per stage and one line per step, with its commands below. Steps that need the machine are marked.

    ``expected`` is the expected time of all steps. No line is wider than ``width`` columns.
    """
    stage = ""
    for number, step in enumerate(steps, 1):
        if step["stage"] != stage:
            stage = step["stage"]
            yield from wrapped(f"{visible(stage)}:", width)
        lane = "  [alone]" if step["alone"] else "  [background]" if step["background"] is not None else ""
        yield from wrapped(f"  {number:>3}. {visible(step['id'])}  ({visible(_kind(step))}){lane}", width, _INDENT)
        if step["background"]:
            yield from _block(f"{_INDENT}ready: {visible(step['background'])}", width)
        for text in step.get("changes", ()):
            yield from _block(f"{_INDENT}{visible(text)}", width)
        if step.get("hotspot"):
            yield from _block(f"{_INDENT}works on: {visible(step['hotspot'])}", width)
        for text in _prepared(step):
            yield from _block(f"{_INDENT}{visible(text)}", width)
        for side, argv in step["argv"].items():
            yield from _block(
                f"{_INDENT}{side + ': ' if len(step['argv']) > 1 else ''}{visible(shlex.join(argv))}", width
            )
        if step["condition"]:
            state = " (false)" if step["outcome"] == "left out" else ""
            yield from wrapped(f"{_INDENT}if: {visible(step['condition'])}{state}", width, _INDENT)
        if step["missing"]:
            yield from wrapped(f"{_INDENT}missing: {visible(step['missing'])}", width, _INDENT)
        yield from _time(step, width)
    yield from wrapped(f"total time: {visible(expected)}", width, _FURTHER) if expected else ()
    yield from _here(steps, width)


def _prepared(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands before every sample, once if both sides have the same."""
    sides = step.get("prepare", {})
    differ = len({*map(tuple, sides.values())}) > 1
    for side, texts in [*sides.items()][: None if differ else 1]:
        for text in texts:
            yield f"{f'{side}, ' if differ else ''}before every sample: {text}"


def _here(steps: Steps, width: int) -> Iterator[str]:
    """Yield which steps run on this machine and which do not, and why, if something is missing."""
    if not any(step["lacks"] for step in steps):
        return
    yield "on this machine:"
    without: dict[str, list[str]] = {}
    for step in steps:
        for reason in step["lacks"] if step["outcome"] != "left out" else ():
            without.setdefault(reason, []).append(step["id"])
    for outcome, text in _OUTCOMES.items():
        if ids := [step["id"] for step in steps if step["outcome"] == outcome]:
            yield from wrapped(f"  {text}: {visible(', '.join(ids))} ({len(ids)} of {len(steps)})", width, _FURTHER)
    for reason, ids in without.items():
        steps_without = "1 step" if len(ids) == 1 else f"{len(ids)} steps"
        yield from wrapped(f"  reason for {steps_without}: {visible(reason)}", width, _FURTHER)


def _time(step: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the expected time of a step, if it is known."""
    if step.get("expected"):
        yield from wrapped(f"{_INDENT}time: {step['expected']['text']}", width, _INDENT)


def _kind(step: Mapping[str, Any]) -> str:
    """Return the tool of a step, or the technique of a candidate."""
    if step["role"] == "compare":
        return "kept changes against the baseline"
    return str(step.get("technique") or step["tool"])


def _block(text: str, width: int) -> Iterator[str]:
    """Yield the wrapped text, at most `MOST_LINES` lines of it."""
    shown = wrapped(text, width, _INDENT)
    yield from shown[:MOST_LINES]
    if len(shown) > MOST_LINES:
        yield fitted(f"{_INDENT}… {len(shown) - MOST_LINES} more lines", width)


def plan_mermaid(steps: Steps) -> str:
    """Return a Mermaid flowchart; labels are quoted, since ids may hold any character."""
    numbers = {step["id"]: f"s{number}" for number, step in enumerate(steps)}
    lines = ["flowchart TD"]
    for step in steps:
        label = visible(step["id"]).replace('"', "#quot;")
        lines.append(f'  {numbers[step["id"]]}["{step["stage"]}: {label}"]')
    lines += [
        f"  {numbers[need]} --> {numbers[step['id']]}" for step in steps for need in step["needs"] if need in numbers
    ]
    return "\n".join(lines)


def plan_dot(steps: Steps) -> str:
    """Return a Graphviz digraph."""
    ids = {step["id"] for step in steps}
    lines = ["digraph workflow {"]
    lines += [f"  {json.dumps(step['id'])} [label={json.dumps(step['stage'] + ': ' + step['id'])}];" for step in steps]
    edges = [(need, step["id"]) for step in steps for need in step["needs"] if need in ids]
    lines += [f"  {json.dumps(need)} -> {json.dumps(name)};" for need, name in edges]
    return "\n".join([*lines, "}"])


Facts = Mapping[str, Any]


def show_workflow(facts: Facts, width: int) -> Iterator[str]:
    """Yield name, command, parameters, targets, steps and tools of a workflow, in lines of ``width`` columns."""
    library = facts["origin"] != "project"
    whose = "ships with perfflow" if facts["origin"].startswith("lib:") else f"from {facts['origin']}"
    yield from wrapped(
        f"{visible(facts['name'])}  (workflow, {visible(whose) if library else 'from this project'})", width
    )
    yield from _line(facts["description"], width)
    yield from _line(f"file: {facts['path']}", width)
    if facts["extends"]:
        parents = facts["extends"]
        yield from _line(f"extends: {parents if isinstance(parents, str) else ', '.join(parents)}", width)
    name = facts["origin"] if library else facts["path"]
    words = [word for param in facts["params"] if param["required"] for word in ("--set", f"{param['name']}=...")]
    yield from _line(f"run it: {shlex.join(['perfflow', 'run', name, *words])}", width)
    yield from _table("parameters", facts["params"], width)
    if facts["targets"]:
        yield "targets:"
        rows = [(who, f"{key}: {text}") for who, of in facts["targets"].items() for key, text in of.items()]
        yield from described(rows, width)
    yield "steps:"
    yield from (f"  {line}" for line in plan_lines(facts["steps"], width - 2))
    if facts["tools"]:
        yield "tools:"
        yield from described([(item["name"], _installed(item)) for item in facts["tools"]], width)


_ROLES = {
    "measure": "measures",
    "profile": "profiles",
    "machine": "measures the peak performance of the machine",
    "check": "checks correctness",
    "work": "runs commands",
}


def show_tool(facts: Facts, width: int) -> Iterator[str]:
    """Yield purpose, program, metrics and keys of a tool, in lines of ``width`` columns."""
    yield from wrapped(f"{visible(facts['name'])}  (tool, from {visible(facts['origin'])})", width)
    yield from _line(facts["description"], width)
    always = ", with the same result every time" if facts["deterministic"] else ""
    yield from _line(f"role: {_ROLES[facts['role']]}{always}", width)
    yield from _line(f"program: {_installed(facts)}", width)
    if facts["metrics"]:
        yield from _line(f"metrics: {', '.join(facts['metrics'])}", width)
    if facts["step"]:
        yield from _line(f"keys of the step: {', '.join(facts['step'])}", width)
    yield from _table("with", facts["with"], width)


def _line(text: str, width: int) -> list[str]:
    return wrapped(f"  {visible(text)}", width, "    ") if text else []


def _installed(item: Facts) -> str:
    if not item["program"]:
        return "none needed"
    if item["available"]:
        remark = f"({item['remark']})" if item["remark"] else ""
        return visible(" ".join(filter(None, (item["program"], item["version"], remark))))
    return visible(f"{item['program']} is missing: {item['install']}")


def _table(title: str, items: Sequence[Facts], width: int) -> Iterator[str]:
    if items:
        yield f"{title}:"
        yield from described([(item["name"], _value(item)) for item in items], width)


def _value(item: Facts) -> str:
    given = "required" if item["required"] else f"default {_shown(item['default'])}" if _has_default(item) else ""
    choices = f"one of {', '.join(map(_shown, item['enum']))}" if item.get("enum") else ""
    return "; ".join(part for part in (item["type"], choices, given, item["help"]) if part)


def _has_default(item: Facts) -> bool:
    return item["default"] is not None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if value == "" or isinstance(value, list) else str(value)
