"""The part of result.json about samples: one side of a row, an interval, the code layouts that were drawn, curves."""

from typing import Any, Literal

from pydantic import BaseModel

from perfflow.model.result_base import PART, Number


class SamplesPart(BaseModel):
    """Base of every part here."""

    model_config = PART


class Sample(SamplesPart):
    """One side of a row. ``readings`` is there when values have more to them: a distribution, or being a bound."""

    value: Number
    low: Number
    high: Number
    n: int
    samples: list[float]
    readings: list[dict[str, Any]] | None = None
    screened: list[float] = []


class Bounds(SamplesPart):
    """An estimate with its interval."""

    value: Number
    low: Number
    high: Number


class AsBuilt(SamplesPart):
    """A row as it was before fresh code layouts of both sides were drawn, which decide in its place."""

    design: str
    paired: bool
    baseline: Sample | None
    candidate: Sample | None
    change: Bounds | None


class LayoutsOf(SamplesPart):
    """The code layouts that were drawn of each side.

    ``n`` of each; ``deviation``: the standard deviation between them net of noise, as a share. ``numbers``: the layout
    of each sample of each side where a layout was run more than once.
    """

    n: int
    deviation: float
    numbers: list[list[int]] | None = None
    built: AsBuilt


class MemoryResult(SamplesPart):
    """The bytes that one process of a side held on its heap, at most 200 points of its run.

    ``axis`` says what ``at`` counts: ``instructions``, ``bytes`` that were asked for, or ``time`` in seconds.
    """

    step: str
    benchmark: str
    tree: Literal["baseline", "candidate"]
    axis: Literal["instructions", "bytes", "time"]
    at: list[float]
    held: list[float]


class SizePoint(SamplesPart):
    """A value at a size, in the metric's base unit, with its interval."""

    size: float
    value: Number
    low: Number
    high: Number
