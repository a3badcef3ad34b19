"""Measured rows as text: values with their intervals, and decisions as words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import METRICS, in_words
from perfflow.model.readings import BATCH
from perfflow.model.result import Benchmark, Result, Sample
from perfflow.model.units import (
    Dimension,
    common_unit,
    digits_for,
    format_change,
    format_factor,
    format_threshold,
    shown_quantity,
)
from perfflow.report.table import NOTHING, Tone
from perfflow.stats.paired_test import quantile
from perfflow.verdict import gating
from perfflow.verdict.acceptance import taken
from perfflow.verdict.decide import ACCIDENT, remaining
from perfflow.verdict.judge import detectable_change
from perfflow.verdict.row_text import change_of, estimate_of, unit_beside_targets, unit_of_row

MOST_GROWN = 3
"""Memory rows that a headline names."""
WIDE = 0.1
"""An interval is shown by its ends if half its width is more than this share of the value."""


@dataclass(frozen=True)
class ComparisonLine:
    """One line of the benchmarks table: both sides, the change and the decision."""

    operation: str
    metric: str
    baseline: str
    candidate: str
    values: str
    speedup: str
    change: str
    pairs: str
    decision: str
    remark: str
    level: str
    explained: bool
    """Whether a reason of the verdict repeats the remark."""
    gating: bool
    decides: bool
    """Whether the verdict rests on it, or would rest on it."""
    first: bool
    """Whether a short page shows it: rows that decide, and all that got worse or changed."""
    source: Benchmark
    """The row of the result, for drawings."""
    dimension: Dimension
    unit: str
    """The unit of both sides; '' if each value has the same unit anyway."""
    bound: float | None
    """The action threshold as a relative change; None for a metric without a direction."""
    tone: Tone

    @property
    def group(self) -> str:
        """The group of a deciding row, one of `MATTERS`."""
        word = self.source.level if self.source.level in ("action", "concern") else self.source.decision
        return word if word in MATTERS else "unproven"


MATTERS = ("action", "concern", "unproven", "regressed", "improved", "same")
"""The groups of compared rows, those that matter most first: ``regressed`` are small regressions."""


@dataclass(frozen=True)
class FigureLine:
    """One line of a metric table: the value of each measured side, the change, and the number of samples."""

    benchmark: str
    metric: str
    baseline: str
    candidate: str
    change: str
    samples: str
    first: bool
    """Whether a short page shows it."""


IGNORED = "ignored"
OTHER_THAN_MEDIANS = "the change is computed from pairs of runs, the values beside it are the medians of each side"
_TONES = {"improved": Tone.GOOD, "regressed": Tone.BAD, "removed": Tone.BAD, "same": Tone.STILL, "new": Tone.STILL}
_APART = 0.05
_OPPOSITE = 0.01


def shown_though_ignored(row: Benchmark) -> bool:
    """Return whether a short page shows a row that decides nothing because the workflow ignores its benchmark."""
    return row.ignored and (row.metric == "time" or row.metric not in METRICS)


def differ_from_medians(row: Benchmark) -> bool:
    """Return whether the change is far from the change of the two medians, or has the opposite sign."""
    if row.statistic != "p50" or not row.change or row.change.value is None or not row.baseline or not row.candidate:
        return False
    if not row.baseline.value or row.candidate.value is None or row.change.value <= -1:
        return False
    shown = row.candidate.value / row.baseline.value - 1
    apart = abs((1 + shown) / (1 + row.change.value) - 1)
    return apart > (_OPPOSITE if shown * row.change.value < 0 else _APART)


def _dimension(row: Benchmark, criteria: Criteria) -> Dimension:
    return criteria.metric(row.metric).dimension


def value_with_interval(sample: Sample | None, dimension: Dimension, unit: str = "") -> str:
    """Return text such as ``25.3 ms ±2.1%``, ``3.9 ms [1.2 ms, 7.9 ms]`` if wide, or ``3 ms (n=3)`` if unknown.

    ``unit``: the unit of the row, '' for one that suits the value.
    """
    if sample is None or sample.value is None:
        return NOTHING
    unit = unit or common_unit([sample.value], dimension)
    if sample.at_most:
        return value_of(sample, dimension, unit)
    digits = digits_for(sample.value, sample.low, sample.high)
    text = shown_quantity(sample.value, dimension, unit=unit, digits=digits)
    if sample.low is None or sample.high is None:
        return f"{text} (n={sample.n})"
    if sample.low == sample.high:
        return text
    half = (sample.high - sample.low) / 2
    if half > abs(sample.value) * WIDE:
        low, high = (shown_quantity(end, dimension, unit=unit, digits=digits) for end in (sample.low, sample.high))
        return f"{text} [{low}, {high}]"
    share = half / abs(sample.value)
    return f"{text} ±{share:.1%}" if share >= 0.0005 else f"{text} ±<0.1%"


def value_of(sample: Sample | None, dimension: Dimension, unit: str = "") -> str:
    """Return the value of one side without its interval, in ``unit`` if it is not ''."""
    if sample is None or sample.value is None:
        return NOTHING
    return ("≤ " if sample.at_most else "") + shown_quantity(sample.value, dimension, unit=unit)


def comparison_of(row: Benchmark, criteria: Criteria, marks: Sequence[str] = ()) -> ComparisonLine:
    """Return the line of one compared row; ``marks`` are added to the decision if both sides were measured."""
    dimension = _dimension(row, criteria)
    unit = unit_of_row(row, criteria)
    word, details, remark = _decision(row, criteria)
    shown = [*details, *(marks if row.baseline and row.candidate else ())]
    return ComparisonLine(
        operation=row.name,
        metric=in_words(row.metric),
        baseline=value_with_interval(row.baseline, dimension, unit),
        candidate=value_with_interval(row.candidate, dimension, unit),
        values=values_of(row, criteria),
        speedup=speedup_text(row),
        change=change_of(row, criteria) if row.change else NOTHING,
        pairs=str(row.pairs) if row.paired and row.confidence else NOTHING,
        decision="changed" if row.changed else f"{word} ({', '.join(shown)})" if shown else word,
        remark=remark,
        level=row.level or "",
        explained=row.gating and row.decision == "unproven" and row.level is None,
        gating=row.gating,
        decides=row.gating or row.leading,
        first=is_first(row),
        source=row,
        dimension=dimension,
        unit=unit,
        bound=_action_of(row, criteria),
        tone=_tone_of(row),
    )


def is_first(row: Benchmark) -> bool:
    """Return whether a short page shows a row: it decides, or it got worse, or changed in an unknown direction.

    Of an ignored benchmark it also shows the row that would decide.
    """
    return row.gating or row.leading or row.decision == "regressed" or row.changed or shown_though_ignored(row)


def _action_of(row: Benchmark, criteria: Criteria) -> float | None:
    limit = criteria.thresholds_of(row.name, row.metric).action
    return {"lower": limit, "higher": -limit}.get(row.better)


def _tone_of(row: Benchmark) -> Tone:
    return Tone.BAD if row.level == "action" else _TONES.get(row.decision or "", Tone.UNSURE)


def values_of(row: Benchmark, criteria: Criteria) -> str:
    """Return both values without intervals: ``3.98 ms → 4.58 ms``."""
    dimension = _dimension(row, criteria)
    unit = unit_of_row(row, criteria)
    return " → ".join(value_of(side, dimension, unit) for side in (row.baseline, row.candidate))


def speedup_text(row: Benchmark) -> str:
    """Return text such as ``1.62x [1.55x, 1.70x]``, or a dash if nothing is compared."""
    speedup = row.speedup
    if speedup is None:
        return NOTHING
    return "∞" if speedup.value is None else format_factor(speedup.value, speedup.low, speedup.high)


def grown_memory(result: Result, criteria: Criteria) -> list[str]:
    """Return texts such as ``decode rss +203.1%`` for memory growth that is only a concern.

    The benchmark's name is left out if there is only one benchmark.
    """
    rows = list(gating.memory_concerns(result.benchmarks, criteria))
    alone = len({row.name for row in result.benchmarks}) == 1
    texts = [f"{'' if alone else f'{row.name} '}{row.metric} {estimate_of(row, criteria)}" for row in rows]
    return [
        *texts[:MOST_GROWN],
        *([f"{len(texts) - MOST_GROWN} more memory metrics"] if len(texts) > MOST_GROWN else []),
    ]


def _decision(row: Benchmark, criteria: Criteria) -> tuple[str, list[str], str]:
    """Return the decision of a row, its marks, and a remark."""
    if row.changed:
        return "", [], f"say `better: {{{row.metric}: lower}}` or `higher` under `parse`, so that it can be judged"
    decision, remark = row.decision or "", ""
    marks: list[str] = []
    if row.ignored:
        marks = [IGNORED]
    elif decision == "unproven":
        accepted = taken(row, criteria)
        limit = accepted.change if accepted else criteria.thresholds_of(row.name, row.metric).action
        excluded = f"no regression above {format_threshold(limit)}" if row.level == "ok" else ""
        # What would settle a row that excludes a regression of the action threshold is nobody's concern.
        remark = excluded or "; ".join(filter(None, (remaining(row, grants=False), detectable_change(row.expected))))
        marks = [f"not over {format_threshold(limit)}"] if row.level == "ok" else []
        if row.layouts:
            remark = "; ".join((f"layouts differ by ±{row.layouts.deviation:.0%}", *filter(None, (remark,))))
    elif row.accepted:
        marks = ["accepted"]
    elif row.level in ("concern", "action"):
        thresholds = criteria.thresholds_of(row.name, row.metric)
        marks = [f"over {format_threshold(thresholds.action if row.level == 'action' else thresholds.concern)}"]
    elif row.layouts and row.layouts.built.change and row.layouts.is_accident:
        remark = f"{format_change(row.layouts.built.change.value or 0.0)} as built: {ACCIDENT}"
    if row.layouts and row.gating:
        marks = [*marks, f"{row.layouts.n} layouts"]
    return decision, marks, remark


def figures_of(row: Benchmark, criteria: Criteria, *, is_latency: bool = False) -> Iterator[FigureLine]:
    """Yield the row's own statistic, and the 99th percentile if each process took many values.

    ``is_latency``: it is the time of requests to a service.
    """
    dimension = _dimension(row, criteria)
    metric = in_words(row.metric)
    name = metric if row.statistic == "value" else f"{metric} {row.statistic}"
    name += f" ({IGNORED})" if row.ignored else ""
    # What a request costs a service decides, and whoever waits for the answer looks at its latency.
    first = row.gating or shown_though_ignored(row) or is_latency
    change = NOTHING
    if row.change and row.change.value is not None:
        text = format_change(row.change.value)
        change = f"~ ({text})" if row.decision == "unproven" else text
    sides = row.baseline, row.candidate
    samples = "/".join(dict.fromkeys(str(side.n) for side in sides if side))
    unit = unit_of_row(row, criteria)
    texts = [value_with_interval(side, dimension, unit) for side in sides]
    yield FigureLine(row.name, name, texts[0], texts[1], change, samples, first)
    tails = [inner_p99(side) for side in sides]
    if any(tail is not None for tail in tails):
        unit = unit_beside_targets(row, common_unit(tails, dimension), criteria)
        texts = [NOTHING if tail is None else shown_quantity(tail, dimension, unit=unit) for tail in tails]
        # The mean of a batch hides the outliers in it.
        of_what = " of averages" if any(map(is_of_batches, sides)) else ""
        yield FigureLine(row.name, f"{metric} p99{of_what}", texts[0], texts[1], NOTHING, samples, first)


def is_of_batches(sample: Sample | None) -> bool:
    """Return whether each value of a side is the mean of many calls."""
    inner = [item.get("inner") or {} for item in (sample.readings or [] if sample else [])]
    return any(item.get(BATCH, 1.0) > 1.0 for item in inner)


def inner_p99(sample: Sample | None, least: float = 100.0) -> float | None:
    """Return the median of the p99 of all processes that took at least ``least`` values, or None if none did.

    With fewer than 100 values, no value lies beyond p99.
    """
    inner = [item.get("inner") or {} for item in (sample.readings or [] if sample else [])]
    values = [item["p99"] for item in inner if "p99" in item and item.get("n", math.inf) >= least]
    return quantile(values, 0.5) if values else None
