"""The part of result.json about samples: one side of a row, an interval, and the code layouts that were drawn."""

from typing import Any

from pydantic import BaseModel

from perfflow.result_part import PART, Number


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
