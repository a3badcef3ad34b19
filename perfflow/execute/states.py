"""The states a step can end in."""

from __future__ import annotations

from enum import StrEnum

UNABLE = 77
"""Exit status of a `setup` step if the machine lacks something that the workflow needs (as in Automake)."""


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    CACHED = "cached"
