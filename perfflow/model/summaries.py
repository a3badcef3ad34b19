"""One value that summarizes many samples which were not stored; ``inner`` has its standard error and their number."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.readings import Reading
from perfflow.stats.paired_test import LogMean, log_mean, log_mean_of_summary

ERROR, COUNT = "stderr", "n"


def is_summary(readings: Sequence[Reading]) -> bool:
    """Return whether a series is one value that summarizes many samples."""
    return len(readings) == 1 and ERROR in readings[0].inner


def log_mean_of(readings: Sequence[Reading]) -> LogMean:
    """Return the mean of the logarithms of positive values, or of one value that summarizes many."""
    first = readings[0]
    if is_summary(readings):
        return log_mean_of_summary(first.value, first.inner[ERROR], int(first.inner[COUNT]))
    return log_mean([reading.value for reading in readings])
