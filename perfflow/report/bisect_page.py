"""A bisection as text for a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.metrics import in_words
from perfflow.report.bars import on_one_axis, ratio_of_interval
from perfflow.report.blocks import Bullets, Code, Document, Prose, Section, named, quoted, quotes
from perfflow.report.sanitize import NO_EDGE, visible
from perfflow.report.table import NOTHING, Cell, Table, drawn, mark, name, table, value, with_aside, words
from perfflow.report.text_table import laid_out
from perfflow.trees.line_history import Described
from perfflow.verdict.bisection import Bisected, Outcome, Tried, change_text

SHORT = 12
_MOST_FILES = 12
_MOST_LEFT = 20


def tried_text(item: Tried) -> str:
    """Return one line about a revision: the decision, the change or the reason, the time it took, and its subject."""
    parts = [item.commit.revision[:SHORT], item.holds.value]
    if item.change is not None and item.pairs:
        parts.append(change_text(item.change))
    if item.reason:
        parts.append(f"({item.reason})")
    return visible("  ".join([*parts, f"{item.seconds:.1f}s", item.commit.subject]))


def text(found: Bisected, where: str, width: int = NO_EDGE) -> str:
    """Return the final output, with a table that fits ``width`` columns; ``where`` is the path of the report."""
    lines = [*_headline(found), ""]
    if found.tried:
        laid = laid_out(_tried(found), width)
        lines += [laid.head, *(line for entry in laid.entries for line in entry), ""]
    lines += [f"note: {note}" for note in found.notes]
    lines.append(f"report: {where}")
    return "\n".join(visible(line) for line in lines) + "\n"


def document(found: Bisected) -> Document:
    """Return the page of a bisection."""
    sections = [Section("", (Code(tuple(_headline(found))),))]
    if found.tried:
        note = f"{found.builds} revisions were built and measured."
        sections.append(Section("Revisions", (Prose(note), _tried(found))))
    skipped = tuple(
        (named(item.commit.revision[:SHORT]), ": ", quoted(item.reason)) for item in found.tried if item.reason
    )
    notes = (*quotes(found.notes), *((Bullets(skipped),) if skipped else ()))
    if notes:
        sections.append(Section("Notes", notes))
    return Document(("Bisection: ", quoted(found.workflow)), tuple(sections))


def _headline(found: Bisected) -> Iterator[str]:
    first, regression = found.first_bad, found.regression
    if first and regression:
        yield f"first bad commit: {first.revision} {first.subject}"
        yield f"  author:     {first.author}"
        yield f"  date:       {first.date}"
        known = found.of(first.revision)
        what = f"{regression.benchmark} {in_words(regression.metric)}"
        yield f"  regression: {what} {change_text(known.change if known else None)} from good {_short(found.good)}"
        for parent in first.parents:
            yield f"  its parent: {parent[:SHORT]} {_parent(found, parent)}"
        shown = ", ".join(found.files[:_MOST_FILES])
        more = len(found.files) - _MOST_FILES
        yield f"  files:      {shown}" + (f" and {more} more" if more > 0 else "")
        return
    if regression and found.left:
        yield f"{found.outcome.value}: {found.why}; the first bad commit is one of {len(found.left)}:"
        yield from (f"  {_short(item)} {item.subject}" for item in found.left[:_MOST_LEFT])
        if len(found.left) > _MOST_LEFT:
            yield f"  and {len(found.left) - _MOST_LEFT} more"
        yield f"  regression: {regression.benchmark} {in_words(regression.metric)} {change_text(regression.change)}"
        return
    texts = {Outcome.NOT_MEASURED: "could not measure", Outcome.SAME: "nothing to bisect (same)"}
    yield f"{texts.get(found.outcome, found.outcome.value)}: {found.why}"
    yield f"  good: {_short(found.good)} {found.good.subject}"
    yield f"  bad:  {_short(found.bad)} {found.bad.subject}"


def _parent(found: Bisected, parent: str) -> str:
    if parent == found.good.revision:
        return "the good revision itself"
    known = found.of(parent)
    return change_text(known.change) if known else "not measured: a descendant of it lacks the regression"


def _short(commit: Described) -> str:
    return commit.revision[:SHORT]


def _tried(found: Bisected) -> Table:
    """Return each tried revision with its change from the good one."""
    changes = [ratio_of_interval(item.change if item.pairs else None) for item in found.tried]
    axis, bars = on_one_axis(changes, percent=True)
    columns = [
        name("Revision"),
        value("Change from good"),
        drawn(axis, bars),
        mark("Decision"),
        value("Pairs", rank=3),
        value("Took", rank=3),
        words("Subject"),
    ]
    return table(columns, map(_row, found.tried, bars))


def _row(item: Tried, bar: Cell) -> tuple[Cell, ...]:
    took = f"{item.seconds:.1f}s" if item.built else NOTHING
    change = change_text(item.change) if item.pairs else NOTHING
    pairs = str(item.pairs or NOTHING)
    return item.commit.revision[:SHORT], with_aside(change), bar, item.holds.value, pairs, took, item.commit.subject
