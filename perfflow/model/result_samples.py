"""Parts of result.json about samples: one side of a row, intervals, code layouts, curves."""

from typing import Any, Literal

from pydantic import BaseModel

from perfflow.model.result_base import PART, Number


class SamplesPart(BaseModel):
    """Base of all parts in this module."""

    model_config = PART


class Sample(SamplesPart):
    """One side of a row. ``readings`` is set if values have further properties, such as a distribution or a bound."""

    value: Number
    low: Number
    high: Number
    n: int
    samples: list[float]
    readings: list[dict[str, Any]] | None = None
    confirming: list[int] = []
    """For each sample, the number of the confirmation that it is from, or 0; empty without confirmations."""


class Bounds(SamplesPart):
    """An estimate with its confidence interval."""

    value: Number
    low: Number
    high: Number


class ConfirmationOf(SamplesPart):
    """Fresh pairs, or runs of each side, that were taken because those before proved a change.

    ``change`` is that of the fresh ones alone, with its p-value; ``before`` that of the earlier ones.
    """

    pairs: int
    change: Bounds
    p: float
    before: Bounds
    agrees: bool


class AsBuilt(SamplesPart):
    """A row of the programs as built, which was replaced by one over new code layouts of both sides."""

    design: str
    paired: bool
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None


class LayoutsOf(SamplesPart):
    """The code layouts that were drawn of each side.

    ``n``: layouts per side; ``deviation``: the standard deviation between them without noise, as a share. ``numbers``:
    the layout of each sample of each side, if layouts were run more than once.
    """

    n: int
    deviation: float
    numbers: list[list[int]] | None = None
    built: AsBuilt


class MemoryResult(SamplesPart):
    """Heap memory (bytes) of one process of a side over its run, at most 200 points.

    ``axis`` is the unit of ``at``: ``instructions``, allocated ``bytes``, or ``time`` in seconds.
    """

    step: str
    benchmark: str
    tree: Literal["baseline", "candidate"]
    axis: Literal["instructions", "bytes", "time"]
    at: list[float]
    held: list[float]


class SizePoint(SamplesPart):
    """A value at a size, in the metric's base unit, with its confidence interval."""

    size: float
    value: Number
    low: Number
    high: Number
