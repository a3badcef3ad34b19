"""A bisection and a calibration, each as text for a terminal and as a page.

``text`` and ``variables`` are for a bisection. ``render`` shows a calibration as a table with one block per benchmark
and one line per metric.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from perfflow.model.metrics import in_words
from perfflow.model.units import Dimension, format_quantity
from perfflow.report.sanitize import NO_EDGE, ascii_text, fitted, shortened, visible, wrapped
from perfflow.report.table import NOTHING, Cell, Table, drawn, mark, name, table, value, with_aside, words
from perfflow.report.text_table import laid_out, on_one_axis, ratio_of_interval
from perfflow.store.calibrations import CalibrationEntry, CalibrationFinding
from perfflow.trees.line_history import Described
from perfflow.verdict.bisection import Bisected, BisectionOutcome, JudgedRevision, change_text
from perfflow.verdict.judge import percent

SHORT = 12
_MOST_FILES = 12
_MOST_LEFT = 20


def tried_text(item: JudgedRevision) -> str:
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


def variables(found: Bisected) -> dict[str, Any]:
    """Return what the templates of a bisection show."""
    revisions = _tried(found) if found.tried else None
    return {"found": found, "headline_lines": list(_headline(found)), "revisions": revisions}


def _headline(bisected: Bisected) -> Iterator[str]:
    first, regression = bisected.first_bad, bisected.regression
    if first and regression:
        yield f"first bad commit: {first.revision} {first.subject}"
        yield f"  author:     {first.author}"
        yield f"  date:       {first.date}"
        known = bisected.of(first.revision)
        what = f"{regression.benchmark} {in_words(regression.metric)}"
        yield f"  regression: {what} {change_text(known.change if known else None)} from good {_short(bisected.good)}"
        for parent in first.parents:
            yield f"  its parent: {parent[:SHORT]} {_parent(bisected, parent)}"
        shown = ", ".join(bisected.files[:_MOST_FILES])
        more = len(bisected.files) - _MOST_FILES
        yield f"  files:      {shown}" + (f" and {more} more" if more > 0 else "")
        return
    if regression and bisected.left:
        yield f"{bisected.outcome.value}: {bisected.why}; the first bad commit is one of {len(bisected.left)}:"
        yield from (f"  {_short(item)} {item.subject}" for item in bisected.left[:_MOST_LEFT])
        if len(bisected.left) > _MOST_LEFT:
            yield f"  and {len(bisected.left) - _MOST_LEFT} more"
        yield f"  regression: {regression.benchmark} {in_words(regression.metric)} {change_text(regression.change)}"
        return
    texts = {BisectionOutcome.NOT_MEASURED: "could not measure", BisectionOutcome.SAME: "nothing to bisect (same)"}
    yield f"{texts.get(bisected.outcome, bisected.outcome.value)}: {bisected.why}"
    yield f"  good: {_short(bisected.good)} {bisected.good.subject}"
    yield f"  bad:  {_short(bisected.bad)} {bisected.bad.subject}"


def _parent(found: Bisected, parent: str) -> str:
    if parent == found.good.revision:
        return "the good revision itself"
    known = found.of(parent)
    return change_text(known.change) if known else "not measured: a descendant of it lacks the regression"


def _short(commit: Described) -> str:
    return commit.revision[:SHORT]


def _tried(bisected: Bisected) -> Table:
    """Return each tried revision with its change from the good one."""
    changes = [ratio_of_interval(item.change if item.pairs else None) for item in bisected.tried]
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
    return table(columns, map(_row, bisected.tried, bars))


def _row(item: JudgedRevision, bar: Cell) -> tuple[Cell, ...]:
    took = f"{item.seconds:.1f}s" if item.built else NOTHING
    change = change_text(item.change) if item.pairs else NOTHING
    pairs = str(item.pairs or NOTHING)
    return item.commit.revision[:SHORT], with_aside(change), bar, item.holds.value, pairs, took, item.commit.subject


_COLUMNS = (
    mark(""),
    name("metric"),
    value("noise"),
    value("detects"),
    value("within", rank=3),
    mark("alarms"),
    value("same", rank=4),
    value("takes", rank=5),
    value("pairs", rank=6),
)
_LEGEND = (
    "noise: spread between the two runs of a pair. detects: smallest change found in 9 of 10 replays of these pairs "
    "within the step's budget. within: time of such a comparison. alarms: comparisons of the step with itself that "
    "proved a change, and the upper bound of their share (95%). same: comparisons that proved `same`. takes, pairs: "
    "time and pairs of the median comparison. *: the verdict rests on this metric."
)
_PROSE = 100
"""Width of the legend in columns if the output has no width."""


def render(findings: Sequence[CalibrationFinding], *, width: int, unicode: bool) -> str:
    """Return the table with its legend, no line wider than ``width``; '' without findings."""

    def plain(text: str) -> str:
        return visible(text) if unicode else ascii_text(visible(text))

    if not findings:
        return ""
    noisy = laid_out(table(_COLUMNS, (tuple(_cells(finding)) for finding in findings if not finding.exact)), width)
    lines = [noisy.head] if noisy.entries else []
    rows = iter(noisy.entries)
    benchmark = ""
    for finding in findings:
        if finding.benchmark != benchmark:
            benchmark = finding.benchmark
            lines.append(shortened(benchmark, width))
        lines += [_exact(finding)] if finding.exact else next(rows)
        for text in () if finding.exact else _remarks(finding):
            lines += wrapped(f"    {visible(text)}", width, "    ")
    if noisy.entries:
        lines += ["", *wrapped(_LEGEND, min(width, _PROSE))]
    return "\n".join(fitted(plain(line), width, "…" if unicode else "...") for line in lines) + "\n"


def calibration_headline(entries: Sequence[CalibrationEntry]) -> str:
    """Return the smallest change that the machine detects, as a sentence."""
    judged = [item for item in findings_of(entries) if item.judged and item.smallest_change is not None]
    if not judged:
        return "The smallest change that this machine detects is not known yet for any metric that decides the verdict."
    worst = max(item.smallest_change or 0.0 for item in judged)
    of = f" to each of {len(judged)} benchmarks" if len(judged) > 1 else ""
    return f"In 9 of 10 comparisons, this machine detects a change of {percent(worst)} or more{of}."


def about(entries: Sequence[CalibrationEntry]) -> Iterator[tuple[str, str]]:
    """Yield facts about the calibrations of one workflow."""
    yield "calibrated", ", ".join(dict.fromkeys(entry.calibrated for entry in entries))
    params = dict.fromkeys(" ".join(f"{key}={item}" for key, item in entry.params.items()) for entry in entries)
    if any(params):
        yield "params", "; ".join(params)
    for item in findings_of(entries):
        if item.judged and item.why:
            yield f"{item.benchmark} is judged by {in_words(item.metric)}", item.why
    if machines := ", ".join(dict.fromkeys(entry.machine for entry in entries if entry.machine)):
        yield "machine noise", machines


def findings_of(entries: Sequence[CalibrationEntry]) -> list[CalibrationFinding]:
    """Return the findings of the entries."""
    return [entry.finding for entry in entries]


def noisy_of(entries: Sequence[CalibrationEntry]) -> list[CalibrationFinding]:
    """Return the findings that have noise, which are the rows of the table."""
    return [item for item in findings_of(entries) if not item.exact]


def exact_of(entries: Sequence[CalibrationEntry]) -> list[tuple[str, str]]:
    """Return the benchmarks that have metrics without noise, each with such a metric."""
    return [(item.benchmark, _exact(item).strip()) for item in findings_of(entries) if item.exact]


def calibration_table(entries: Sequence[CalibrationEntry]) -> Table:
    """Return the metrics that have noise."""
    columns = [name("Benchmark"), *(replace(column, title=str(column.title).capitalize()) for column in _COLUMNS)]
    rows = [(item.benchmark, *_cells(item)) for item in noisy_of(entries)]
    return table(columns, rows)


def _remarks(item: CalibrationFinding) -> Iterator[str]:
    if item.judged and item.why:
        yield f"judged by {in_words(item.metric)}: {item.why}"
    if item.alone is not None:
        changed = f"its time changes by {item.alone:+.0%} if it runs alone"
        yield f"{changed}: the benchmarks of its suite disturb each other, so each runs in its own process"
    if item.judged and not item.trials:
        yield "no comparison finished in the given time"


def _exact(item: CalibrationFinding) -> str:
    return f"  {item.metric or 'all metrics'}: exact, needs no calibration"


def _cells(item: CalibrationFinding) -> Iterator[str]:
    yield "*" if item.judged else ""
    yield in_words(item.metric)
    yield NOTHING if item.noise is None else f"±{percent(math.expm1(item.noise))}"
    yield NOTHING if item.smallest_change is None else percent(item.smallest_change)
    yield _time(item.within)
    bound = f" ≤{percent(item.alarm_bound)}" if item.alarm_bound is not None else ""
    yield f"{item.alarms}/{item.trials}{bound}" if item.trials else NOTHING
    yield f"{item.same}/{item.trials}" if item.trials else NOTHING
    yield _time(item.seconds)
    yield NOTHING if item.pairs is None else f"{item.pairs:g}"


def _time(seconds: float | None) -> str:
    return NOTHING if seconds is None else format_quantity(seconds, Dimension.TIME)
