"""The output of ``perfflow compare``: one sentence with the result, a few figures, and the samples of both commands."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import criteria_from_json
from perfflow.model.metrics import in_words
from perfflow.model.result import Benchmark, Result
from perfflow.model.units import significant
from perfflow.report.failed_steps import failed_steps
from perfflow.report.rows import OTHER_THAN_MEDIANS, differ_from_medians, grown_memory, values_of
from perfflow.report.sanitize import NO_EDGE, visible, wrapped
from perfflow.report.tables import distributions
from perfflow.report.text_table import laid_out
from perfflow.verdict.decide import remaining
from perfflow.verdict.row_text import unit_of_row

_SHOWN = ("time", "cpu", "rss")


def render(result: Result, folder: str = "", *, width: int = NO_EDGE) -> str:
    """Return the answer (which is faster, by how much, its interval), then the figures and samples of both commands.

    ``folder`` is the run folder, for the paths of logs. No line is wider than ``width`` columns.
    """
    return "".join(f"{part}\n" for line in _lines(result, folder, width) for part in wrapped(line, width, "  "))


def _lines(result: Result, folder: str, width: int) -> Iterator[str]:
    row = deciding(result)
    if row is None:
        yield from ("could not measure", *(f"  {visible(reason)}" for reason in result.reasons))
        yield from _failed(result, folder)
        return
    why = f" ({row.why})" if row.why else ""
    pairs = f"{row.pairs} {'pair' if row.pairs == 1 else 'pairs'}"
    concerns = "".join(f"; concern: {text}" for text in grown_memory(result, criteria_from_json(result.criteria)))
    yield (_unfinished(result) or _sentence(row)) + concerns
    yield from _failed(result, folder)
    yield from _figures(result)
    yield f"  judged by {in_words(row.metric)}{why}, {pairs}"
    if any(map(differ_from_medians, result.benchmarks)):
        yield f"  note: {OTHER_THAN_MEDIANS}"
    yield from (f"  note: {visible(text)}" for step in result.steps for text in step.warnings)
    criteria = criteria_from_json(result.criteria)
    dimension, unit = criteria.metric(row.metric).dimension, unit_of_row(row, criteria)
    for table in distributions(row, dimension, ("first", "second"), in_words(row.metric), unit):
        laid = laid_out(table, width)
        yield from ("", laid.head, *(line for entry in laid.entries for line in entry))


def deciding(result: Result) -> Benchmark | None:
    """Return the row that decides the answer, or None if nothing could be measured."""
    gating = [row for row in result.benchmarks if row.gating and row.change]
    # If one clock proves a regression, it decides over a clock that shows no difference.
    return min(gating, key=lambda row: row.decision != "regressed", default=None)


def shown_rows(result: Result) -> Iterator[Benchmark]:
    """Yield the rows whose figures are printed below the answer."""
    for row in result.benchmarks:
        if (row.metric in _SHOWN or row.gating) and row.baseline is not None and row.candidate is not None:
            yield row


def _failed(result: Result, folder: str) -> Iterator[str]:
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


def _figures(result: Result) -> Iterator[str]:
    criteria = criteria_from_json(result.criteria)
    shown = [(in_words(row.metric), values_of(row, criteria)) for row in shown_rows(result)]
    width = max((len(name) for name, _ in shown), default=0)
    for name, values in shown:
        yield f"  {name:<{width}}  {values}"
