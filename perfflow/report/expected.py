"""How long a step is expected to take, how long all of them together, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perfflow.model.later import dataclass

_MINUTE, _HOUR = 60.0, 3600.0
_MOST_NAMED = 6


@dataclass(frozen=True)
class Noise:
    """What the history says of a step's benchmarks, of several the noisiest: the deviation of one sample as a share.

    ``pairs``: about how many tell a change of the share ``change``.
    """

    share: float
    pairs: int
    change: float

    def text(self) -> str:
        """``noise 1.2%, about 40 pairs to detect 5%``."""
        return f"noise {self.share:.1%}, about {self.pairs} pairs to detect {self.change * 100:.3g}%"

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"noise": self.share, "pairs": self.pairs, "change": self.change}


@dataclass(frozen=True)
class Expected:
    """What is known of the time of one step.

    ``seconds`` is the median of so many earlier ``runs``; with 0 of them it is a limit: ``each`` seconds of measuring
    for each of its ``benchmarks``, or its timeout where ``each`` is 0. None where a suite has not yet said how many
    benchmarks it has.
    """

    seconds: float | None
    runs: int = 0
    benchmarks: int | None = None
    each: float = 0.0
    noise: Noise | None = None

    @property
    def is_limit(self) -> bool:
        """Whether it may well take less."""
        return self.runs == 0

    def of(self, benchmarks: int) -> Expected:
        """The same of a suite that has said how many benchmarks it has."""
        if self.seconds is not None or not self.each:
            return self
        return Expected(self.each * benchmarks, benchmarks=benchmarks, each=self.each, noise=self.noise)

    def text(self) -> str:
        """``about 12 s, from the last run``, ``at most 12 min: 36 benchmarks x 20 s``, and the noise behind it."""
        return f"{self._time_text()}; {self.noise.text()}" if self.noise else self._time_text()

    def _time_text(self) -> str:
        if self.seconds is None:
            return f"at most {span(self.each)} per benchmark"
        if self.runs:
            return f"{_about(self.seconds)}, from {_runs(self.runs)}"
        if self.each and self.benchmarks != 1:
            return f"at most {span(self.seconds)}: {self.benchmarks} benchmarks x {span(self.each)}"
        return f"at most {span(self.seconds)}" + ("" if self.each else " (timeout)")

    def to_json(self) -> dict[str, Any]:
        """Plain data; times in s, null where unknown."""
        source = "runs" if self.runs else "budget" if self.each else "timeout"
        return {
            "seconds": self.seconds,
            "from": source,
            "runs": self.runs,
            "benchmarks": self.benchmarks,
            "each": self.each or None,
            "spread": self.noise.to_json() if self.noise else None,
        }


@dataclass(frozen=True)
class Whole:
    """What is known of the time of all steps, one after the other.

    ``seconds`` are those of the steps of which something is known, and a limit where ``is_limit``; ``unknown`` are the
    others. ``runs``: from how many earlier runs it is, at most.
    """

    seconds: float
    is_limit: bool
    runs: int
    known: tuple[str, ...]
    unknown: tuple[str, ...]

    def text(self) -> str:
        """One sentence without its end, '' where nothing is known."""
        if not self.known:
            return ""
        parts = [f"at most {span(self.seconds)}" if self.is_limit else _about(self.seconds)]
        if self.runs:
            parts.append(f"{'partly ' if self.is_limit else ''}from {_runs(self.runs)}")
        said = ", ".join(parts)
        if not self.unknown:
            return said
        return f"{said}, for {_listed(self.known)}; unknown until the first run: {_listed(self.unknown)}"

    def to_json(self) -> dict[str, Any]:
        """Plain data; ``seconds`` is null where nothing is known."""
        return {
            "seconds": self.seconds if self.known else None,
            "limit": self.is_limit,
            "runs": self.runs,
            "unknown": list(self.unknown),
            "text": self.text(),
        }


def whole(steps: Mapping[str, Expected | None], measuring: frozenset[str], budget: float | None = None) -> Whole:
    """Add up what is known of each step, None where nothing is.

    ``budget``: seconds for all ``measuring`` steps together, None without a limit.
    """
    known = {name: item for name, item in steps.items() if item and item.seconds is not None}
    measured = sum(item.seconds or 0.0 for name, item in known.items() if name in measuring)
    others = sum(item.seconds or 0.0 for name, item in known.items() if name not in measuring)
    unknown = [name for name in steps if name not in known]
    if budget is not None and measuring & steps.keys():
        open_ = [name for name in unknown if name in measuring and steps[name]]
        # With the limit of them all, it does not matter how many benchmarks a suite has.
        measured = budget if open_ else min(measured, budget)
        known |= {name: Expected(0.0) for name in open_}
        unknown = [name for name in unknown if name not in open_]
    return Whole(
        seconds=measured + others,
        is_limit=any(item.is_limit for item in known.values()),
        runs=max((item.runs for item in known.values()), default=0),
        known=tuple(name for name in steps if name in known),
        unknown=tuple(unknown),
    )


def span(seconds: float) -> str:
    """A time for people who wait: ``under 1 s``, ``12 s``, ``4 min``, ``2.5 h``."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 1.5 * _MINUTE:
        return f"{round(seconds)} s"
    if seconds < 1.5 * _HOUR:
        return f"{round(seconds / _MINUTE)} min"
    return f"{seconds / _HOUR:.1f} h"


def _about(seconds: float) -> str:
    return span(seconds) if seconds < 1 else f"about {span(seconds)}"


def _listed(names: Sequence[str]) -> str:
    """The names, of many the first ones."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"


def _runs(number: int) -> str:
    return "the last run" if number == 1 else f"the last {number} runs"
