"""Check the times that a suite gives for itself by the clock of the process, which its code cannot change.

A suite times its benchmarks in a process that also has the candidate's code, which may slow down the suite's clock or
change its figures. What no benchmark accounts for, such as the start of the process, is the same on both sides: if it
grows by much of what the benchmarks claim to save, they did not save it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfflow.execute.invoke import Failure, Invoked
from perfflow.model.judging import Code
from perfflow.model.metrics import in_words
from perfflow.model.readings import BATCH, MEAN, Reading, Side
from perfflow.stats.paired_test import quantile_interval

LOOKS = (3, 6, 9)
"""Runs of each side after which they are looked at, until they tell. They are full ones, as brief runs spend too little
of their time in the benchmark."""
LONGEST = 60.0
"""Seconds after which no more runs are made."""
_CONFIDENCE = 0.95
_LONGEST_RUN, _FACTOR, _SPARE = 60.0, 4.0, 5.0
"""Seconds for a run of the base; of the candidate, so many times those of the base and some more."""
_SHARE = 0.5
"""Share of the claimed saving that must be missing elsewhere."""
_CLOCKS = ("time", "cpu")


@dataclass(frozen=True)
class _Process:
    """Seconds that no benchmark of a process accounts for, and its benchmarks: mean time (s) and iterations."""

    rest: float
    benchmarks: Mapping[str, tuple[float, float]]


def limit_of(before: Sequence[Invoked]) -> float:
    """Return the seconds for the next run, after these of the base."""
    return _FACTOR * max(item.usage.wall for item in before) + _SPARE if before else _LONGEST_RUN


def too_slow(before: Sequence[Invoked]) -> Failure:
    """Return the failure of a candidate whose run does not end in that time."""
    usual, most = median(item.usage.wall for item in before), limit_of(before)
    reason = f"a full run of the suite takes {usual:.1f} s on the base, and more than {most:.1f} s on the candidate"
    return Failure(reason, exit_code=0, code=Code.CLOCKS_DISAGREE)


def is_saved(processes: Mapping[Side, Sequence[Invoked]]) -> bool | None:
    """Return whether a clock of the process shows that the candidate's benchmarks save what they claim.

    False: more runs may show it. None: no number of runs does, since the suite does not tell its iterations. Raises
    Failure if a clock shows that it is spent beside them.
    """
    found: bool | None = None
    for clock in _CLOCKS:
        before, after = ([_process(item, clock) for item in processes[side]] for side in Side)
        saved = list(_savings(before, after))
        if max(saved) <= 0:
            continue
        moved = [item.rest - base.rest for base, item in zip(before, after, strict=True)]
        # How much more of the saving is missing than is allowed (s).
        beyond = [more - _SHARE * claimed for more, claimed in zip(moved, saved, strict=True)]
        if len(beyond) == LOOKS[0]:
            least, most = (end(item.rest for item in before) for end in (min, max))
            refuted = min(item.rest for item in after) > most and median(beyond) > 0
            confirmed = max(item.rest - _SHARE * claimed for item, claimed in zip(after, saved, strict=True)) < least
        else:
            interval = quantile_interval(beyond, 0.5, _CONFIDENCE)
            refuted, confirmed = interval.low > 0, interval.high < 0
        if refuted:
            share = median(more / claimed for more, claimed in zip(moved, saved, strict=True) if claimed > 0)
            reason = (
                "the suite's own clock shows a gain that the clock of its process does not: "
                f"{share:.0%} of the saved {in_words(clock)} is spent elsewhere in the process"
            )
            raise Failure(reason, exit_code=0, code=Code.CLOCKS_DISAGREE)
        found = bool(found) or confirmed
    return found


def _process(invoked: Invoked, clock: str) -> _Process:
    usage = invoked.usage
    inside = dict(_accounted(invoked.parsed.readings, clock))
    outside = usage.wall if clock == "time" else usage.user + usage.system
    return _Process(outside - sum(mean * number for mean, number in inside.values()), inside)


def _savings(before: Sequence[_Process], after: Sequence[_Process]) -> Iterator[float]:
    """Yield what each process of the candidate claims to save (s); 0 for a suite that does not tell its iterations."""
    means: dict[str, list[float]] = {}
    for process in before:
        for name, (mean, _) in process.benchmarks.items():
            means.setdefault(name, []).append(mean)
    for process in after:
        known = ((means[name], figures) for name, figures in process.benchmarks.items() if name in means)
        yield sum((median(usual) - mean) * number for usual, (mean, number) in known)


def _accounted(readings: Sequence[Reading], clock: str) -> Iterator[tuple[str, tuple[float, float]]]:
    for reading in readings:
        if reading.metric == clock and "n" in reading.inner:
            mean = reading.inner.get(MEAN, reading.value)
            yield reading.benchmark, (mean, reading.inner["n"] * reading.inner.get(BATCH, 1.0))
