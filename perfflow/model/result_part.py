"""The base of everything in result.json."""

import math
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


def finite(value: object) -> object:
    """Return the value, or None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(finite)]


class ResultPart(BaseModel):
    """Base of all parts: frozen. Unknown keys are ignored, because later versions may add some."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)
