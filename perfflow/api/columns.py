"""The columns of tidy tables, shared by rows, CSV and data frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, get_type_hints

from perfflow.model.result import Decision, Level


class SampleRow(TypedDict):
    """One sample: a process that was run on one side.

    ``run``, ``benchmark``, ``step``, ``metric``: its origin. ``value`` is in the base unit ``unit``.
    ``side``: ``baseline`` or ``candidate``. ``at_most``: the value is an upper bound, below which the tool cannot see.
    ``pair``: number of the pair from 0; the sample of the other side with this number is its partner. None if the
    samples were not taken in pairs. ``order``: position among all samples of its benchmark and metric in the order in
    which they were taken, from 0. None if the run's events are missing or do not have it.

    >>> import perfflow
    >>> first, *_ = perfflow.load("latest").to_rows()
    >>> first["metric"], first["unit"], first["side"], first["pair"]
    ('time', 's', 'baseline', 0)
    """

    run: str
    benchmark: str
    step: str
    metric: str
    unit: str
    side: Literal["baseline", "candidate"]
    pair: int | None
    order: int | None
    value: float
    at_most: bool


class DecisionRow(TypedDict):
    """One metric of one benchmark with its decision: a ``Benchmark`` with flattened bounds.

    ``baseline``, ``candidate``: the statistic of each side in the base unit ``unit``, with the ends of its interval.
    ``change``: candidate/baseline - 1. ``speedup``: above 1 is better. Unknown values are None.

    >>> import perfflow
    >>> (row,) = perfflow.load("latest").decisions()
    >>> row["baseline"], row["candidate"], round(row["change"], 3), row["decision"]
    (0.125, 0.15, 0.2, 'regressed')
    """

    run: str
    benchmark: str
    step: str
    tool: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    baseline: float | None
    baseline_low: float | None
    baseline_high: float | None
    candidate: float | None
    candidate_low: float | None
    candidate_high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    confidence: float | None
    decision: Decision | None
    level: Level | None
    gating: bool
    pairs: int


_TYPES: tuple[type, ...] = (bool, int, float)


def columns_of(row: type[SampleRow | DecisionRow]) -> Mapping[str, type]:
    """Return the names of a table's columns in order, with the type of the values that are not None."""
    hints = get_type_hints(row)
    return {name: _type(hint) for name, hint in hints.items()}


def _type(hint: object) -> type:
    inside = getattr(hint, "__args__", ())
    return next((known for known in _TYPES if hint is known or known in inside), str)
