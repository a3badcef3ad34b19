"""Find the functions that cost more or less than before, by profiles of both sides.

Only the own cost of a function is compared, without the functions that it calls, so a change belongs to that function
alone. A difference is significant if it is larger than ``z`` standard deviations of its noise. ``z`` is at least 3, and
larger if many functions are compared, so that a pair of equal programs shows a change of any function in at most one
of twenty cases.

The samples in a function vary like a Poisson count, but costs vary more between processes of one program: the memory
layout differs, other processes use the machine, and a process that waits has many samples in one place. In 16
profiles of one Python program on an overloaded machine the variance of a function was 13 to 130 times that of a
Poisson count, and each of the 120 pairs showed changes where twice the Poisson variance was assumed. So the noise has
the shape ``SAMPLING * Poisson variance + (run to run * cost)^2``, and its level is taken from the profiles:

- With at least `ENOUGH` profiles of each side, it is measured: the variance of all functions within their sides. A
  function that varies more gets its own variance. Three profiles of each side showed a false change in 5 of 100 draws.
- With fewer profiles, it is estimated from the differences of the two sides, assuming that most functions did not
  change: the level at which noise explains the median and the upper quartile of all differences. This left one false
  change in 14 of the 120 pairs. If more than a quarter of the functions change at once, fewer of them are found.
- With fewer functions than `FEW`, it cannot be estimated. The level is then that of the overloaded machine.

Counted costs (instructions, bytes, allocations) have no sampling noise, and vary much less between processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist

SAMPLING = 2.0
"""Variance of samples relative to a Poisson count, at the lowest level."""
SAMPLED, COUNTED = 0.05, 0.01
"""Relative standard deviation of the cost of a function between processes, at the lowest level."""
ENOUGH = 3
"""Number of profiles of each side needed to measure the noise from their spread."""
FEW = 12
"""Number of functions needed to estimate the noise from their differences."""
OVERLOADED = 10.0
"""Level of noise if it can neither be measured nor estimated."""
LEAST_Z = 3.0
FALSE_ALARMS = 0.05
"""Share of comparisons of equal programs that may show any changed function."""


class Trend(Enum):
    """The change of the own cost of a function."""

    SAME = "same"
    """No significant difference."""
    MORE = "more"
    LESS = "less"
    NEW = "new"
    """The function had no cost before."""
    GONE = "gone"
    """The function has no cost now."""


class Noise(Enum):
    """The source of the noise level."""

    MEASURED = "measured"
    """The spread of several profiles of each side."""
    SEEN = "seen"
    """The differences of most functions."""
    COUNTED = "counted"
    """Costs were counted: the lowest level."""
    OVERLOADED = "overloaded"
    """Too few functions to estimate it: the level of an overloaded machine."""


@dataclass(frozen=True)
class Changes:
    """The trend of each function, the source of the noise, and the required number of standard deviations."""

    trends: Mapping[str, Trend]
    noise: Noise
    needed: float


@dataclass(frozen=True)
class OwnCosts:
    """The own cost of each function in one profile: ``counts`` times ``scale``, in the same unit for all profiles.

    ``sample`` is the count of one sample, 0 if costs were counted instead of sampled.
    """

    counts: Mapping[str, int]
    scale: float
    sample: float


def function_changes(before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> Changes:
    """Return the change of each function in any of the profiles. Each side needs at least one profile."""
    names = sorted({name for profile in (*before, *after) for name in profile.counts})
    noise = _noise(len(names), before, after)
    if noise is Noise.MEASURED:
        level = _measured_level(names, before, after)
        pairs = {name: (_measured(name, before, level), _measured(name, after, level)) for name in names}
        level = 1.0
    else:
        pairs = {name: (_assumed(name, before)[:2], _assumed(name, after)[:2]) for name in names}
        level = {Noise.SEEN: _seen_level(pairs), Noise.OVERLOADED: OVERLOADED}.get(noise, 1.0)
    needed = needed_z(len(names))
    limit = needed * math.sqrt(level)
    found = {name: _trend(old[0], new[0]) if _z(old, new) > limit else Trend.SAME for name, (old, new) in pairs.items()}
    return Changes(found, noise, needed)


def _noise(functions: int, before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> Noise:
    if min(len(before), len(after)) >= ENOUGH:
        return Noise.MEASURED
    if not any(profile.sample for profile in (*before, *after)):
        return Noise.COUNTED
    return Noise.SEEN if functions >= FEW else Noise.OVERLOADED


def needed_z(functions: int) -> float:
    """Return the number of standard deviations that a change must have if so many ``functions`` are compared."""
    return max(LEAST_Z, NormalDist().inv_cdf(1 - FALSE_ALARMS / 2 / max(1, functions)))


_Estimate = tuple[float, float]
"""The mean cost of a function, and the variance of this mean."""


def _z(old: _Estimate, new: _Estimate) -> float:
    """Return the difference in standard deviations."""
    variance = old[1] + new[1]
    return abs(new[0] - old[0]) / math.sqrt(variance) if variance else 0.0


def _trend(old: float, new: float) -> Trend:
    if old == 0 or new == 0:
        return Trend.NEW if old == 0 else Trend.GONE
    return Trend.MORE if new > old else Trend.LESS


def _assumed(name: str, side: Sequence[OwnCosts]) -> tuple[float, float, float]:
    """Return the mean cost of a function, the variance of the mean at the lowest level, and its sampling variance."""
    mean = assumed = sampled = 0.0
    for profile in side:
        cost = profile.counts.get(name, 0) * profile.scale
        noise = cost * profile.sample * profile.scale
        mean += cost
        sampled += noise
        assumed += SAMPLING * noise + ((SAMPLED if profile.sample else COUNTED) * cost) ** 2
    number = len(side)
    return mean / number, assumed / number**2, sampled / number**2


def _measured(name: str, side: Sequence[OwnCosts], level: float) -> _Estimate:
    mean, assumed, sampled = _assumed(name, side)
    return mean, max(_variance(name, side, mean) / len(side), level * assumed, sampled)


def _variance(name: str, side: Sequence[OwnCosts], mean: float) -> float:
    """Return the variance between profiles."""
    return sum((profile.counts.get(name, 0) * profile.scale - mean) ** 2 for profile in side) / (len(side) - 1)


def _measured_level(names: Sequence[str], before: Sequence[OwnCosts], after: Sequence[OwnCosts]) -> float:
    """Return the ratio of the variance between profiles to the assumed one, over all functions of both sides."""
    found = expected = 0.0
    for side in (before, after):
        for name in names:
            mean, assumed, _ = _assumed(name, side)
            found += (len(side) - 1) * _variance(name, side, mean)
            expected += (len(side) - 1) * assumed * len(side)
    return found / expected if expected else 0.0


def _seen_level(pairs: Mapping[str, tuple[_Estimate, _Estimate]]) -> float:
    """Return the noise level that explains the differences of most functions."""
    differences = sorted(_z(old, new) for old, new in pairs.values())
    spreads = (differences[int(len(differences) * part)] / NormalDist().inv_cdf((1 + part) / 2) for part in (0.5, 0.75))
    return max(1.0, *(spread**2 for spread in spreads))
