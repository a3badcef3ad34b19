"""The time of events: the wall clock at the start, advanced by a clock that nobody can set."""

from __future__ import annotations

import time
from datetime import UTC, datetime

# CLOCK_BOOTTIME keeps running while a laptop sleeps, so later events are not stamped hours too early.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_OFFSET = time.time() - time.clock_gettime(_CLOCK)


def now() -> str:
    """Return the time in UTC as ISO 8601 with milliseconds. It never goes back within one process."""
    moment = datetime.fromtimestamp(_OFFSET + time.clock_gettime(_CLOCK), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
