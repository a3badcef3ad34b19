"""The states a step can end in."""

from __future__ import annotations

from enum import StrEnum


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    CACHED = "cached"
