"""Shared definitions of the parts of result.json: their configuration, and numbers that are null if not finite."""

import math
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict

PART = ConfigDict(extra="ignore", frozen=True, defer_build=True)
"""Configuration of every part. Unknown keys are ignored, because later versions may add some."""


def finite(value: object) -> object:
    """Return the value, or None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(finite)]
