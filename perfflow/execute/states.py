"""The states a step can end in."""

from __future__ import annotations

from enum import StrEnum

UNABLE = 77
"""Exit status by which a step of `setup` says that the machine lacks what the workflow needs, as with Automake."""


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    CACHED = "cached"
