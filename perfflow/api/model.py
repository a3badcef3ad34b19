"""Rows of a stored run as frozen objects, with the names of result.json (docs/result.md explains each field)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from perfflow.model.result import Decision, Level, TargetStatus


@dataclass(frozen=True, slots=True)
class Bounds:
    """An estimate with its interval. An end is None if the samples do not bound it.

    ``value``, ``low``, ``high``: shares for ``Benchmark.change`` (0.2 is +20%), factors for ``Benchmark.speedup``.

    >>> import perfflow
    >>> change = perfflow.load("latest").benchmark("count", "time").change
    >>> round(change.value, 3)
    0.2
    >>> change.low < 0.2 < change.high
    True
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One side of a row, in the row's base unit.

    ``value`` is the row's statistic, ``low`` and ``high`` its 95% interval, None if there are too few samples.
    ``n`` is the number of ``samples``, which are in the order of the pairs. ``at_most``: for each sample, whether it is
    an upper bound, below which the tool cannot see; empty if none is.

    >>> import perfflow
    >>> baseline = perfflow.load("latest").benchmark("count", "time").baseline
    >>> baseline.value, baseline.n, len(baseline.samples)
    (0.125, 10, 10)
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    # Not in repr, since a notebook shows the row and there may be thousands of samples.
    samples: tuple[float, ...] = field(repr=False)
    at_most: tuple[bool, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One metric of one benchmark: a row of the report, with both sides.

    ``metric``, ``statistic``, ``unit``: such as ``time``, ``p50``, ``s``; values are in this base unit.
    ``better``: ``lower``, ``higher`` or ``none``. ``baseline``, ``candidate``: None if the side was not measured.
    ``change``: candidate/baseline - 1. ``speedup``: how many times better; above 1 is better for every metric.
    ``confidence``: of both intervals; None if they have none, as for exact figures.
    ``decision``: None if nothing is decided about the row. ``level``: ``ok``, ``concern`` or ``action``.
    ``gating``: whether the verdict rests on the row. ``why``: the reason for that.
    ``pairs``: number of pairs that judge the row. ``in_pairs``: whether sample i of one side is the partner of sample i
    of the other. ``design``: how samples were taken.
    ``more``: about how many more pairs would settle an unproven row.
    ``warnings``: cautions for reading the row.

    >>> import perfflow
    >>> row = perfflow.load("latest").benchmark("count", "time")
    >>> row.baseline.value, row.candidate.value, row.unit
    (0.125, 0.15, 's')
    >>> row.decision, row.level, row.pairs
    ('regressed', 'action', 10)
    """

    name: str
    step: str
    tool: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None
    speedup: Bounds | None
    confidence: float | None
    decision: Decision | None
    level: Level | None
    gating: bool
    why: str
    pairs: int
    in_pairs: bool
    design: str | None
    more: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """One requirement on one benchmark. ``measured``, ``low`` and ``high`` are in the base unit ``unit``.

    ``status``: ``met``, ``not met``, ``unproven``, ``not measured``, ``not held by base`` if base of a gate is not
    proven to meet it either, or ``not looked at`` if ``--benchmark`` chose others. ``detail``: the reason, or ''.

    >>> import perfflow
    >>> [(target.requirement, target.status) for target in perfflow.load("latest").targets]
    [('<1s', 'met')]
    """

    benchmark: str
    metric: str
    statistic: str
    requirement: str
    measured: float | None
    low: float | None
    high: float | None
    unit: str
    status: TargetStatus
    detail: str = ""
