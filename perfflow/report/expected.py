"""The expected time of a step and of all steps together, and the source of the estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.model.units import brief_duration

_MINUTE, _HOUR = 60.0, 3600.0
_MOST_NAMED = 6
OTHER_BUDGET = " with another budget"
_MOST_PAIRS = 5_000
"""Nobody measures more pairs of one benchmark."""


@dataclass(frozen=True)
class StoredNoise:
    """The noise of a step's noisiest benchmark according to the history.

    ``share``: standard deviation of one sample as a share of the value. ``pairs``: about how many pairs detect a change
    of the share ``change``.
    """

    share: float
    pairs: int
    change: float

    def text(self) -> str:
        """Return text such as ``noise 1.2%, about 40 pairs to detect 5%``."""
        noise = f"noise {self.share:.1%}" if self.share < 1 else "noise over 100%"
        change = f"to detect {self.change * 100:.3g}%"
        return f"{noise}, about {self.pairs} pairs {change}" if self.is_affordable else f"{noise}, too much {change}"

    @property
    def is_affordable(self) -> bool:
        """Whether so many pairs are ever measured."""
        return self.pairs <= _MOST_PAIRS

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"noise": self.share, "pairs": self.pairs, "change": self.change}


@dataclass(frozen=True)
class ExpectedTime:
    """The expected time of one step.

    ``seconds`` is the median of ``runs`` earlier runs. If ``runs`` is 0, it is a limit: ``each`` seconds for each of
    the step's ``benchmarks``, or the step's timeout if ``each`` is 0. It is None while the number of a suite's
    benchmarks is not known. ``other_budget``: the earlier runs had another budget.
    """

    seconds: float | None
    runs: int = 0
    benchmarks: int | None = None
    each: float = 0.0
    noise: StoredNoise | None = None
    other_budget: bool = False

    @property
    def is_limit(self) -> bool:
        """Whether ``seconds`` is an upper limit and not an estimate."""
        return self.runs == 0

    def of(self, benchmarks: int) -> ExpectedTime:
        """Return the expected time of a suite that has so many benchmarks."""
        if self.seconds is not None or not self.each:
            return self
        return ExpectedTime(self.each * benchmarks, benchmarks=benchmarks, each=self.each, noise=self.noise)

    def text(self) -> str:
        """Return text such as ``at most 12 min: 36 benchmarks x 20 s``, followed by the noise if it is known."""
        return f"{self._time_text()}; {self.noise.text()}" if self.noise else self._time_text()

    def _time_text(self) -> str:
        if self.seconds is None:
            return f"at most {span(self.each)} per benchmark"
        if self.runs:
            return f"{_about(self.seconds)}, from {_runs(self.runs)}{OTHER_BUDGET if self.other_budget else ''}"
        if self.each and self.benchmarks != 1:
            return f"at most {span(self.seconds)}: {self.benchmarks} benchmarks x {span(self.each)}"
        return f"at most {span(self.seconds)}" + ("" if self.each else " (timeout)")

    def to_json(self) -> dict[str, Any]:
        """Return plain data; times are in s, null if unknown."""
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
class Total:
    """The expected time of all steps, one after the other.

    ``seconds`` is the sum over the ``known`` steps, an upper limit if ``is_limit``. ``unknown`` are the other steps.
    ``runs``: the largest number of earlier runs behind one of the estimates.
    """

    seconds: float
    is_limit: bool
    runs: int
    known: tuple[str, ...]
    unknown: tuple[str, ...]

    def text(self) -> str:
        """Return one sentence without a full stop, or '' if no time is known."""
        if not self.known:
            return ""
        parts = [f"at most {span(self.seconds)}" if self.is_limit else _about(self.seconds)]
        if self.runs:
            parts.append(f"{'partly ' if self.is_limit else ''}from {_runs(self.runs)}")
        text = ", ".join(parts)
        if not self.unknown:
            return text
        return f"{text}, for {_listed(self.known)}; unknown until the first run: {_listed(self.unknown)}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data; ``seconds`` is null if no time is known."""
        return {
            "seconds": self.seconds if self.known else None,
            "limit": self.is_limit,
            "runs": self.runs,
            "unknown": list(self.unknown),
            "text": self.text(),
        }


def total_of(steps: Mapping[str, ExpectedTime | None], measuring: frozenset[str], budget: float | None = None) -> Total:
    """Return the sum of the expected times of ``steps``; the time of a step is None if nothing is known of it.

    ``budget``: seconds for all steps together, None for no limit; the ``measuring`` ones have what the others leave.
    """
    known = {name: item for name, item in steps.items() if item and item.seconds is not None}
    measured = sum(item.seconds or 0.0 for name, item in known.items() if name in measuring)
    others = sum(item.seconds or 0.0 for name, item in known.items() if name not in measuring)
    unknown = [name for name in steps if name not in known]
    if budget is not None and measuring & steps.keys():
        open_ = [name for name in unknown if name in measuring and steps[name]]
        # The budget limits the time, however many benchmarks a suite has.
        left = max(0.0, budget - others)
        measured = left if open_ else min(measured, left)
        known |= {name: ExpectedTime(0.0) for name in open_}
        unknown = [name for name in unknown if name not in open_]
    return Total(
        seconds=measured + others,
        is_limit=any(item.is_limit for item in known.values()),
        runs=max((item.runs for item in known.values()), default=0),
        known=tuple(name for name in steps if name in known),
        unknown=tuple(unknown),
    )


def gate_plan(kinds: Mapping[str, Mapping[str, ExpectedTime | None]], budget: float | None) -> Iterator[str]:
    """Yield a few lines with the expected time of a gate: one for each kind of work, and the budget.

    ``kinds``: the steps of each kind, by the kind's name, with their expected times. ``budget``: seconds in all.
    """
    yield f"plan: {'no limit' if budget is None else f'at most {brief_duration(budget)} in all'}"
    known = 0.0
    for kind, steps in kinds.items():
        if steps:
            seconds, text = _of_kind(steps)
            known += seconds
            yield f"  {kind}: {text}"
    if budget is not None and known > budget:
        yield f"  together about {span(known)}: what does not fit is left out and named"


def _of_kind(steps: Mapping[str, ExpectedTime | None]) -> tuple[float, str]:
    """Return the known seconds of some steps, and what is known about them as text."""
    known = [item for item in steps.values() if item and item.runs and item.seconds is not None]
    seconds = sum(item.seconds or 0.0 for item in known)
    parts = []
    benchmarks = sum(item.benchmarks or 0 for item in steps.values() if item)
    if benchmarks:
        parts.append(f"{benchmarks} {'benchmark' if benchmarks == 1 else 'benchmarks'}")
    noises = [item.noise for item in known if item.noise and item.noise.is_affordable]
    if noises:
        worst = max(noises, key=lambda noise: noise.pairs)
        parts.append(f"up to {worst.pairs} pairs each to detect {worst.change * 100:.3g}%")
    if known:
        other = OTHER_BUDGET if any(item.other_budget for item in known) else ""
        parts.append(f"{_about(seconds)}, from {_runs(max(item.runs for item in known))}{other}")
    unknown = len(steps) - len(known)
    if unknown:
        which = "unknown until the first run" if not known else f"and {unknown} not run yet"
        parts.append(which)
    return seconds, ", ".join(parts)


def span(seconds: float) -> str:
    """Return a rounded time for people who wait: ``under 1 s``, ``12 s``, ``4 min``, ``2.5 h``."""
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
    """Return the first names, and the number of the others."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"


def _runs(number: int) -> str:
    return "the last run" if number == 1 else f"the last {number} runs"
