"""Test after each append whether the newest points of a history have left its level, and review earlier suspicions.

A suspicion is early and may be wrong: a few disturbed runs at the end look like a change until more points follow.
``review`` confirms it if ``changes`` finds the change as well, or withdraws it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfflow.stats import series_noise
from perfflow.stats.change_points import FoundChanges
from perfflow.stats.partition import SHORT, Sums

TOLD = 4.0
"""Size in standard errors from which a suspicion is reported.

In unchanged series this happens after one append in 8,000 if the noise is normal, and after one in 1,200 if
neighbours have a correlation of 0.6.
"""
SAME = 15
"""Suspicions at most this many points apart are the same one."""
_LEAST_SHIFT, _MOST_SHIFT = 3, 60
_REFERENCE = 100
_FEWEST_BEFORE = 12
_GONE = 2.0
_FOR_FEW = 10


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The newest points may have left the level before them. Levels are logarithms."""

    at: int
    """Index of the first point of the new level."""
    since: int
    """Index of the first point of the reference before it."""
    before: float
    size: float
    z: float
    """The size in standard errors, corrected for dependence and for few points."""


class SuspicionStatus(StrEnum):
    """Status of a suspicion after later points."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    WITHDRAWN = "withdrawn"


def fresh(values: Sequence[float], errors: Sequence[float], start: int = 0) -> Suspicion | None:
    """Return a suspicion if the newest 3 to 60 points have left the level of up to 100 points before them, else None.

    values, errors: as for ``changes``. start: index of the first point after the last reported change; earlier points
    are not used. Fewer than 15 points from ``start`` on give None. Raises ValueError like ``changes``, and for a start
    outside the series.
    """
    series_noise.check(values, errors)
    if not 0 <= start <= len(values):
        raise ValueError(f"start is {start}; it must be from 0 to {len(values)}, the number of values")
    since = max(start, len(values) - _REFERENCE - _MOST_SHIFT)
    if len(values) - since < _LEAST_SHIFT + _FEWEST_BEFORE:
        return None
    ends = _Ends.of(values[since:], errors[since:])
    tried = range(_LEAST_SHIFT, min(_MOST_SHIFT, ends.count - _FEWEST_BEFORE) + 1)
    z, count = max((ends.z(count), -count) for count in tried)
    at = ends.count + count
    if z < TOLD:
        return None
    return Suspicion(since + at, since, ends.center + ends.sums.mean(0, at), ends.size(at), z)


def review(
    suspicion: Suspicion, found: FoundChanges, values: Sequence[float], errors: Sequence[float]
) -> SuspicionStatus:
    """Return the status of a suspicion for a series with more points.

    values, errors: as for ``changes``, whose result for them is ``found``.
    Confirmed: ``found`` has a change within 15 points, or a drift across it, in the same direction. Withdrawn: its
    points are a group of outliers of ``found``, or the mean of 8 or more points since is within two standard errors of
    the level before, or more than 60 points have passed. Otherwise open.
    """
    up, at = suspicion.size > 0, suspicion.at
    steps = any((one.size > 0) == up and abs(one.at - at) <= SAME for one in found.changes)
    if steps or any((one.size > 0) == up and one.begin <= at <= one.end for one in found.drifts):
        return SuspicionStatus.CONFIRMED
    since = len(values) - at
    if since > _MOST_SHIFT or any(begin - SHORT < at < end for begin, end in found.outliers):
        return SuspicionStatus.WITHDRAWN
    if since < SHORT:
        return SuspicionStatus.OPEN
    first = suspicion.since
    ends = _Ends.of(values[first:], errors[first:])
    return SuspicionStatus.WITHDRAWN if ends.z(since) < _GONE else SuspicionStatus.OPEN


@dataclass(frozen=True, slots=True)
class _Ends:
    """A stretch whose last points are compared with the points before them."""

    sums: Sums
    rho: float
    count: int
    center: float

    @classmethod
    def of(cls, values: Sequence[float], errors: Sequence[float]) -> _Ends:
        noise = series_noise.estimate(values, errors)
        return cls(Sums.of(noise.clipped, noise.weights()), noise.cautious_rho, len(values), noise.center)

    def size(self, at: int) -> float:
        return self.sums.mean(at, self.count) - self.sums.mean(0, at)

    def z(self, newest: int) -> float:
        """Return the size of the change ``newest`` points before the end, in standard errors."""
        at = self.count - newest
        inverse = 1 / self.sums.weight(0, at) + self._share(newest) / self.sums.weight(at, self.count)
        return abs(self.size(at)) / math.sqrt(inverse * (1 + _FOR_FEW / self.count))

    def _share(self, count: int) -> float:
        """Return the variance of the mean of ``count`` AR(1) points as a share of the long-run variance, 0 to 1."""
        rho = self.rho
        inflation = (1 + rho) / (1 - rho)
        return 1 - 2 * rho * (1 - rho**count) / (count * (1 - rho) ** 2) / inflation
