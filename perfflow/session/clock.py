"""The time of events: the wall clock as it was at the start, and from there on a clock that nobody sets."""

from __future__ import annotations

import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME goes on while a laptop sleeps, so what ends after that is not stamped hours too early.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSET = time.time() - time.clock_gettime(_CLOCK)


def now() -> str:
    """Now in UTC as ISO 8601 with milliseconds; within one process never earlier than before."""
    moment = datetime.fromtimestamp(_OFFSET + time.clock_gettime(_CLOCK), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
