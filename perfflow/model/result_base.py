"""What the parts of result.json share: their set-up, and numbers, which are null where they are not finite."""

import math
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict

PART = ConfigDict(extra="ignore", frozen=True, defer_build=True)
"""Of every part; later versions may add keys."""


def finite(value: object) -> object:
    """The value, None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(finite)]
