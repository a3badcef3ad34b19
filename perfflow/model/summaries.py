"""One value that stands for many samples which nobody kept: its standard error and their number are in ``inner``."""

from __future__ import annotations

from collections.abc import Sequence

from perfflow.model.readings import Reading
from perfflow.stats.paired_test import LogMean, log_mean, log_mean_of_summary

ERROR, COUNT = "stderr", "n"


def is_summary(readings: Sequence[Reading]) -> bool:
    """Whether a series is one value that stands for many."""
    return len(readings) == 1 and ERROR in readings[0].inner


def log_mean_of(readings: Sequence[Reading]) -> LogMean:
    """The logs of single positive values, or of one that stands for many."""
    first = readings[0]
    if is_summary(readings):
        return log_mean_of_summary(first.value, first.inner[ERROR], int(first.inner[COUNT]))
    return log_mean([reading.value for reading in readings])
