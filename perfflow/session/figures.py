"""Convert the readings of one sample to figures per operation, and add rates from the declared work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfflow.execute.invoke import Failure
from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import Cost, Hotspot, Parsed, Reading
from perfflow.workflow.expressions import render
from perfflow.workflow.model import Work

_RATES = {"bytes": "throughput", "elements": "rate", "flops": "flops"}


def per_operation(found: Sequence[tuple[Reading, ...]], counts: Sequence[int]) -> tuple[Reading, ...]:
    """Divide totals by the number of operations; with two counts return the slope, which cancels the fixed part.

    ``found``: readings of each process; ``counts``: its operations (empty: nothing is divided).
    """
    if not counts:
        return found[-1]
    if len(counts) == 1:
        return tuple(_divided(item, counts[0]) for item in found[0])
    few = {(item.benchmark, item.metric): item for item in found[0]}
    more = counts[1] - counts[0]
    sloped = []
    for item in found[1]:
        other = few.get((item.benchmark, item.metric))
        if not is_total(item) or other is None:
            sloped.append(item)
        else:
            sloped += _slope(replace(item, tick=(item.tick + other.tick) / more), (item.value - other.value) / more)
    return tuple(sloped)


def _slope(item: Reading, value: float) -> list[Reading]:
    """Return the figure of one operation; drop a negative one. Raises Failure if noise exceeds a time difference."""
    if item.metric in TIMES and value <= 0:
        reason = f"the run with more operations did not take more {item.metric}: noise hides the difference"
        raise Failure(f"{reason}; choose two numbers of `ops` that are further apart")
    return [replace(item, value=value, inner={})] if value >= 0 else []


def is_total(item: Reading) -> bool:
    """Return whether the metric is a total over the run. Only built-in metrics can be, also if ``parse`` names one."""
    known = METRICS.get(item.metric)
    return known is not None and known.total


def _divided(item: Reading, count: int) -> Reading:
    if not is_total(item):
        return item
    inner = {name: value / count if name != "n" else value for name, value in item.inner.items()}
    return replace(item, value=item.value / count, inner=inner, tick=item.tick / count)


def costs_of_more(few: Parsed, many: Parsed) -> tuple[Cost, ...]:
    """Return the costs of functions in the additional iterations of ``many``."""
    less: dict[tuple[str, str, str], float] = {}
    for cost in few.costs:
        key = (cost.metric, cost.function, cost.file)
        less[key] = less.get(key, 0.0) + cost.count
    found = []
    for cost in many.costs:
        left = cost.count - less.pop((cost.metric, cost.function, cost.file), 0.0)
        if left > 0:
            found.append(replace(cost, count=left))
    return tuple(found)


def hotspots_per_operation(many: Parsed, costs: Sequence[Cost], more: int) -> tuple[Hotspot, ...]:
    """Return the largest functions of ``more`` additional iterations.

    many: the run with all iterations, whose hotspots say what is counted. costs: from ``costs_of_more``.
    """
    if not many.hotspots or not costs:
        return ()
    first, metric = many.hotspots[0], many.costs[0].metric
    own = sorted((cost for cost in costs if cost.metric == metric), key=lambda cost: (-cost.count, cost.function))
    whole = sum(cost.count for cost in own)
    return tuple(
        Hotspot(
            cost.function,
            cost.count / whole,
            first.unit,
            first.source,
            cost.file,
            cost.line,
            f"measured: {cost.count / more:,.6g} {first.unit} per operation",
        )
        for cost in own[: len(many.hotspots)]
    )


def with_work(readings: tuple[Reading, ...], work: Work | None, context: Mapping[str, Any]) -> tuple[Reading, ...]:
    """Add throughput, rate and flops: the declared work of a run or operation divided by its time."""
    if work is None:
        return readings
    added = []
    for key, metric in _RATES.items():
        amount = render(getattr(work, key), context)
        if amount is None:
            continue
        timed = [item for item in readings if item.metric == "time" and item.value > 0]
        number = _number(key, amount)
        added += [_rate(metric, _finite(key, number / item.value), item) for item in timed]
    return (*readings, *added)


def _rate(metric: str, value: float, time: Reading) -> Reading:
    """Return a rate with the same relative resolution as the time."""
    return Reading(metric, value, time.benchmark, statistic=time.statistic, tick=value * time.tick / time.value)


def _finite(key: str, value: float) -> float:
    if not math.isfinite(value):
        raise Failure(f"work.{key} gives {value} per second, which is not a finite number", exit_code=0)
    return value


def _number(key: str, amount: object) -> float:
    try:
        number = float(str(amount))
    except ValueError as error:
        raise Failure(f"work.{key} is {amount!r}, not a number") from error
    if not 0 < number < math.inf:
        raise Failure(f"work.{key} is {amount!r}; it must be above 0 and finite")
    return number
