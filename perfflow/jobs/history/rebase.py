"""Convert values of one machine to the scale of another, by the revisions that both measured.

Values of different machines are only compared on request. The results are marked everywhere: each series names the
machine, the factor with its interval and the number of revisions, and each value names the machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from perfflow.model.errors import UserError
from perfflow.stats.paired_test import mean_interval, quantile
from perfflow.store.history.database import Measured, Series
from perfflow.store.history.suggestions import listed

FEWEST = 4
"""Revisions that both machines must have measured. With fewer, the interval is too wide to be useful."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rebased:
    """The factor for the values of ``machine``, its 95% interval, and the number of revisions that it is based on."""

    machine: str
    factor: float
    low: float
    high: float
    revisions: int

    def text(self) -> str:
        """Return ``values of machine 0123456789ab × 1.32 [1.30, 1.34], by 6 revisions``."""
        interval = f"{self.factor:.4g} [{self.low:.4g}, {self.high:.4g}]"
        return f"values of machine {self.machine[:12]} × {interval}, by {self.revisions} revisions"


def machine_named(word: str, option: str, known: Sequence[str]) -> str:
    """Return the identity of the machine in the history that begins with ``word``. Raises UserError."""
    found = [name for name in known if name == word] or [name for name in known if word and name.startswith(word)]
    if len(found) == 1:
        return found[0]
    if not word:
        hint = f"add --machine with one of: {listed(known)}"
        raise UserError.of("--rebase needs the machine to convert values to", hint)
    said = "names several machines" if found else "is not a machine of the history"
    raise UserError.of(f"{option} {word} {said}", f"write one of: {listed(found or known)}")


def rebased(new: Sequence[Measured], old: Sequence[Measured], machine: str) -> tuple[list[Measured], Rebased] | None:
    """Return the ``old`` points of ``machine`` on the scale of the ``new`` ones, and the factor.

    Points of revisions that ``new`` contains are left out. None if both have too few revisions in common.
    """
    ours, theirs = _levels(new), _levels(old)
    both = sorted(ours.keys() & theirs.keys())
    if len(both) < FEWEST or any(point.value <= 0 for point in old):
        return None
    logs = [ours[revision] - theirs[revision] for revision in both]
    ends = mean_interval(logs, _CONFIDENCE)
    found = Rebased(machine, math.exp(fmean(logs)), math.exp(ends.low), math.exp(ends.high), len(both))
    return [_scaled(point, found) for point in old if point.revision not in ours], found


def _levels(points: Sequence[Measured]) -> dict[str, float]:
    """Return the logarithm of the median value of each revision, without values of uncommitted changes."""
    values: dict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.revision and not point.dirty and point.value > 0:
            values[point.revision].append(math.log(point.value))
    return {revision: quantile(found, 0.5) for revision, found in values.items()}


def _scaled(point: Measured, by: Rebased) -> Measured:
    low, high = (None if end is None else end * by.factor for end in (point.low, point.high))
    return point._replace(value=point.value * by.factor, low=low, high=high, rebased=by.machine)


def key_of(series: Series) -> tuple[str, ...]:
    """Return the fields that two series of different machines must share to be comparable."""
    return (series.benchmark, series.metric, series.statistic, series.workflow, series.params)


def too_few(old: str, new: str, overlaps: Iterator[int]) -> UserError:
    """Return the error that no series can be converted."""
    most = max(overlaps, default=0)
    text = f"machines {old[:12]} and {new[:12]} have {most} revisions of a benchmark in common; {FEWEST} are needed"
    hint = f"on {new[:12]}, check out revisions that {old[:12]} measured, and `perfflow run` the workflow at each"
    return UserError.of(text, hint)


def overlap(new: Sequence[Measured], old: Sequence[Measured]) -> int:
    """Return how many revisions both measured."""
    return len(_levels(new).keys() & _levels(old).keys())
