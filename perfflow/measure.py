"""Which side of which benchmark is sampled next, and when it is enough. The rule that says so is handed in.

Order decides, not the test: measuring all of A and then all of B gives 8-57% false alarms on a noisy machine, and a
fixed ABAB order aliases with periodic noise. So a round goes over all undecided benchmarks in random order, and within
it both sides of each are taken in the order of a coin. Coins and orders depend on the seed, the benchmark and the pair
number alone, so a resumed run goes on exactly where it was.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from perfflow.samples.readings import Reading, Side

Take = Callable[[Side], tuple[Reading, ...]]
"""Run one fresh process of a side and return its readings; raises when it fails."""

IDLE = 0.1
"""After a pause of this many seconds caches and clocks have gone cold: a first run reads up to 39% slower."""
EXPENSIVE = 2.0
"""Commands that take longer than this many seconds are compared with few runs in completely random order."""
FEW = 5
"""Runs of each side of an expensive command: 5 + 5 is the least with which a change can be proven at 1%."""
SCREENED = 12
"""More benchmarks than this are screened first, and what stands out is confirmed with fresh pairs."""
SCREENING: Mapping[int, float] = {9: 0.15, 15: 0.03}
"""Pairs of a screened benchmark -> the p up to which it stands out and goes on to the next stage.

The first stage is coarse, so that few pairs are spent on what did not change and little of what did is lost.
"""
CONFIRMING = (20, 40)
"""Fresh pairs of what stood out in every stage; the second look is for what the first leaves open."""


class Design(StrEnum):
    """How the samples of one benchmark were taken, which decides how they are judged."""

    LOOKS = "looks"
    FIXED = "fixed"
    FEW = "few"
    SCREEN = "screen"
    CONFIRM = "confirm"


@dataclass(frozen=True, slots=True)
class Subject:
    """One benchmark to sample: how to run it, and on which sides.

    ``alone``: two sides are compared, and only one of them has this.
    """

    name: str
    sides: tuple[Side, ...]
    take: Take
    alone: bool = False


class LostError(Exception):
    """A benchmark that can no longer be sampled, while others of its step can."""


@dataclass(frozen=True, slots=True)
class Round:
    """Fresh processes of one benchmark: round ``number`` (from 0), which side went first, and what each said."""

    subject: Subject
    number: int
    first: Side
    readings: Mapping[Side, tuple[Reading, ...]]
    recalled: bool = False
    """Whether it was taken before the run was interrupted."""


Decided = Callable[[Subject, int], bool]
"""(benchmark, finished rounds) -> whether that is enough."""


def coin(seed: int, benchmark: str, pair: int) -> bool:
    """A fair coin that is the same for the same seed, benchmark and pair number."""
    return bool(_digest(f"{seed}\0{benchmark}\0{pair}") & 1)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Taken = Mapping[tuple[str, int], Mapping[Side, tuple[Reading, ...]]]
"""(benchmark, number of the round) -> what was read in it."""


class Sampler:
    """Takes rounds; remembers when it last ran something, since what has been idle is warmed up first.

    ``taken`` and ``taken_few`` are rounds, and single runs of expensive commands, that an interrupted run has taken
    already: they are yielded again in their places, and nothing is run for them.
    """

    def __init__(self, seed: int, *, warmup: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._seed, self._warmup, self._clock = seed, warmup, clock
        self._last = -math.inf
        self.taken: Taken = {}
        self.taken_few: Taken = {}
        self.lost: set[str] = set()
        """Names of the benchmarks that raised LostError."""
        self.warming = False
        """Whether what runs now is thrown away before any sample is taken."""

    def warm_up(self, subject: Subject) -> float:
        """Run each side and throw it away; returns the seconds one process took, the longest of the last ones."""
        longest = 0.0
        self.warming = True
        try:
            for _ in range(self._warmup):
                for side in subject.sides:
                    began = self._clock()
                    self._run(subject, side)
                    longest = max(longest, self._last - began)
        finally:
            self.warming = False
        return longest

    def rounds(self, subjects: Sequence[Subject], decided: Decided, start: int = 0) -> Iterator[Round]:
        """Yield rounds of all undecided subjects in random order until each is decided. ``start`` numbers them.

        One that raises LostError has no further rounds.
        """
        left = [subject for subject in subjects if not decided(subject, 0)]
        number = 0
        while left:
            order = random.Random(_digest(f"{self._seed}\0order\0{start + number}"))  # noqa: S311 (replayable order)
            for subject in order.sample(left, len(left)):
                with suppress(LostError):
                    yield self.pair(subject, start + number)
            number += 1
            left = [subject for subject in left if subject.name not in self.lost and not decided(subject, number)]

    def pair(self, subject: Subject, number: int) -> Round:
        """Take one fresh process of each side, in the coin's order."""
        flip = len(subject.sides) == 2 and coin(self._seed, subject.name, number)
        order = tuple(reversed(subject.sides)) if flip else subject.sides
        known = self.taken.get((subject.name, number))
        if known and set(known) == set(order):
            return Round(subject, number, order[0], known, recalled=True)
        if self._warmup and self._clock() - self._last > IDLE:
            self._run(subject, order[0])
        readings = {side: self._run(subject, side) for side in order}
        return Round(subject, number, order[0], {side: readings[side] for side in subject.sides})

    def few(self, subject: Subject, runs: int = FEW) -> Iterator[Round]:
        """Yield single runs, as many of each side, in completely random order."""
        sides = [side for side in subject.sides for _ in range(runs)]
        random.Random(_digest(f"{self._seed}\0few\0{subject.name}")).shuffle(sides)  # noqa: S311 (replayable order)
        for number, side in enumerate(sides):
            known = self.taken_few.get((subject.name, number))
            if known and set(known) == {side}:
                yield Round(subject, number, side, known, recalled=True)
                continue
            yield Round(subject, number, side, {side: self._run(subject, side)})

    def _run(self, subject: Subject, side: Side) -> tuple[Reading, ...]:
        try:
            readings = subject.take(side)
        except LostError:
            self.lost.add(subject.name)
            raise
        self._last = self._clock()
        return readings
