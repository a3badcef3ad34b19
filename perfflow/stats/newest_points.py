"""Have the newest points of a history left its level? Asked after each append, and reviewed as more points follow.

A suspicion comes early and may be wrong: a few disturbed runs at the very end look like a change until they are over.
``review`` says what became of it: ``changes`` found it as well, or it is withdrawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from perfflow.stats import series_noise
from perfflow.stats.change_points import Found
from perfflow.stats.partition import SHORT, Sums

TOLD = 4.0
"""Standard errors from which on a suspicion is told.

In quiet series that is after one append in 8,000 if the noise is normal, after one in 1,200 if neighbours are
correlated by 0.6.
"""
SAME = 15
"""A suspicion within so many points of the one told last is the same one."""
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
    """Index of the first point that it was compared with."""
    before: float
    size: float
    z: float
    """The size in standard errors, corrected for dependence and for few points."""


class Standing(StrEnum):
    """What later points say of a suspicion."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    WITHDRAWN = "withdrawn"


def fresh(values: Sequence[float], errors: Sequence[float], start: int = 0) -> Suspicion | None:
    """Return whether the newest 3 to 60 points have left the level of up to 100 points before them, or None.

    values, errors: as for ``changes``. start: index of the first point after the change told last; no point before it
    is compared with. Fewer than 15 points from ``start`` on say nothing. Raises ValueError as ``changes`` does, and for
    a start outside of the series.
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


def review(suspicion: Suspicion, found: Found, values: Sequence[float], errors: Sequence[float]) -> Standing:
    """Return what became of a suspicion now that ``values`` has more points, of which ``changes`` says ``found``.

    Confirmed: ``found`` has a change within 15 points, or a drift over it, of the same direction. Withdrawn: its points
    are a group of outliers of ``found``, or 8 points or more since are within two standard errors of the level before,
    or 60 points have passed. Else open.
    """
    up, at = suspicion.size > 0, suspicion.at
    steps = any((one.size > 0) == up and abs(one.at - at) <= SAME for one in found.changes)
    if steps or any((one.size > 0) == up and one.begin <= at <= one.end for one in found.drifts):
        return Standing.CONFIRMED
    since = len(values) - at
    if since > _MOST_SHIFT or any(begin - SHORT < at < end for begin, end in found.outliers):
        return Standing.WITHDRAWN
    if since < SHORT:
        return Standing.OPEN
    first = suspicion.since
    ends = _Ends.of(values[first:], errors[first:])
    return Standing.WITHDRAWN if ends.z(since) < _GONE else Standing.OPEN


@dataclass(frozen=True, slots=True)
class _Ends:
    """A stretch whose last points are held against those before."""

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
        """The size of the change ``newest`` points before the end, in standard errors."""
        at = self.count - newest
        inverse = 1 / self.sums.weight(0, at) + self._share(newest) / self.sums.weight(at, self.count)
        return abs(self.size(at)) / math.sqrt(inverse * (1 + _FOR_FEW / self.count))

    def _share(self, count: int) -> float:
        """Variance of the mean of a few AR(1) points as a share of the long-run one, which is too large for few."""
        rho = self.rho
        inflation = (1 + rho) / (1 - rho)
        return 1 - 2 * rho * (1 - rho**count) / (count * (1 - rho) ** 2) / inflation
