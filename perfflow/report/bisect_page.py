"""A bisection as text for a terminal, and as the page of its run."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.report.plain import cells, padded, visible
from perfflow.trees.bisection import Described
from perfflow.verdict.bisected import Bisected, Outcome, Tried
from perfflow.verdict.bisection import change_text

SHORT = 12
_MOST_FILES = 12
_MOST_LEFT = 20
_HEAD = ("revision", "change from good", "decision", "pairs", "took", "subject")


def tried_text(item: Tried) -> str:
    """One revision in one line: what was found of it, and of what it is known."""
    parts = [item.commit.revision[:SHORT], item.holds.value]
    if item.change is not None and item.pairs:
        parts.append(change_text(item.change))
    if item.reason:
        parts.append(f"({item.reason})")
    return visible("  ".join([*parts, f"{item.seconds:.1f}s", item.commit.subject]))


def text(found: Bisected, where: str) -> str:
    """What is printed at the end; ``where`` is the report."""
    lines = [*_headline(found), ""]
    if found.tried:
        lines += [*_columns([_HEAD, *map(_row, found.tried)]), ""]
    lines += [f"note: {note}" for note in found.notes]
    lines.append(f"report: {where}")
    return "\n".join(visible(line) for line in lines) + "\n"


def markdown(found: Bisected) -> str:
    """The page of the run."""
    lines = [f"## Bisection: {_plain(found.workflow)}", ""]
    lines += [f"    {visible(line)}" for line in _headline(found)]
    if found.tried:
        lines += ["", f"{found.builds} revisions were built and measured.", ""]
        rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, found.tried)]
        lines += ["| " + " | ".join(_plain(cell) for cell in row) + " |" for row in rows]
    if found.notes:
        lines += ["", *(f"- {_plain(note)}" for note in found.notes)]
    skipped = [item for item in found.tried if item.reason]
    if skipped:
        lines += ["", *(f"- `{item.commit.revision[:SHORT]}`: {_plain(item.reason)}" for item in skipped)]
    return "\n".join(lines) + "\n"


def _headline(found: Bisected) -> Iterator[str]:
    first, regression = found.first_bad, found.regression
    if first and regression:
        yield f"first bad commit: {first.revision} {first.subject}"
        yield f"  author:     {first.author}"
        yield f"  date:       {first.date}"
        known = found.of(first.revision)
        what = f"{regression.benchmark} {regression.metric}"
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
        yield f"  regression: {regression.benchmark} {regression.metric} {change_text(regression.change)}"
        return
    says = {Outcome.NOT_MEASURED: "could not measure", Outcome.SAME: "nothing to bisect (same)"}
    yield f"{says.get(found.outcome, found.outcome.value)}: {found.why}"
    yield f"  good: {_short(found.good)} {found.good.subject}"
    yield f"  bad:  {_short(found.bad)} {found.bad.subject}"


def _parent(found: Bisected, parent: str) -> str:
    if parent == found.good.revision:
        return "the good revision itself"
    known = found.of(parent)
    return change_text(known.change) if known else "not measured itself: a revision that lacks it descends from it"


def _short(commit: Described) -> str:
    return commit.revision[:SHORT]


def _row(item: Tried) -> tuple[str, ...]:
    took = f"{item.seconds:.1f}s" if item.built else "-"
    change = change_text(item.change) if item.pairs else "-"
    return item.commit.revision[:SHORT], change, item.holds.value, str(item.pairs or "-"), took, item.commit.subject


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(cells(visible(cell)) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(padded(visible(c), w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in visible(text))
