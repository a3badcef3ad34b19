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
from dataclasses import dataclass, replace
from enum import StrEnum

from perfflow.samples.readings import Reading, Side

Take = Callable[[Side], tuple[Reading, ...]]
"""Run one fresh process of a side and return its readings; raises when it fails."""

IDLE = 0.1
"""After a pause of this many seconds caches and clocks have gone cold: a first run reads up to 39% slower."""
EXPENSIVE = 2.0
"""Commands that take longer than this many seconds are compared with few runs in completely random order."""
FIRST_LOOK = 24
"""So are those of which the time for one benchmark holds fewer runs than these: eleven pairs, and some to spare."""
FEW = 5
"""Runs of each side of an expensive command: 5 + 5 is the least with which a change can be proven at 1%."""
FEW_MORE = 3
"""Runs of each side in each further block of an expensive command."""
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
    LAYOUTS = "layouts"
    FIXED_LAYOUTS = "fixed layouts"
    FEW_LAYOUTS = "few layouts"


@dataclass(frozen=True, slots=True)
class Subject:
    """One benchmark to sample: how to run it, and on which sides.

    ``alone``: two sides are compared, and only one of them has this.
    """

    name: str
    sides: tuple[Side, ...]
    take: Take
    alone: bool = False


def blocks_of(runs: int) -> list[int]:
    """The runs of each side in each whole block that so many of an expensive command make, or the only one so far."""
    return [FEW, *[FEW_MORE] * ((runs - FEW) // FEW_MORE)] if runs >= FEW else [runs]


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
    seconds: float = 0.0
    """What it took."""
    layout: int = 0
    """The number of the code layout that each side had, from 1; 0 is the program as it was built."""
    turn: tuple[int, int] = (1, 1)
    """The how manyth it is of how many benchmarks that have a turn in this round."""


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
        self.seconds = 0.0
        """What the last process took."""
        self.number = 0
        """The round that is being taken."""
        self.layout = 0
        """The number of the code layout that the next process is to have; 0 is the program as it was built."""
        self.first_with_layouts: int | None = None
        """From this round on each has a fresh code layout of each side."""

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
            for place, subject in enumerate(order.sample(left, len(left)), 1):
                with suppress(LostError):
                    yield replace(self.pair(subject, start + number), turn=(place, len(left)))
            number += 1
            left = [subject for subject in left if subject.name not in self.lost and not decided(subject, number)]

    def pair(self, subject: Subject, number: int) -> Round:
        """Take one fresh process of each side, in the coin's order."""
        flip = len(subject.sides) == 2 and coin(self._seed, subject.name, number)
        order = tuple(reversed(subject.sides)) if flip else subject.sides
        known = self.taken.get((subject.name, number))
        self.number = number
        self.layout = layout = 0 if self.first_with_layouts is None else number - self.first_with_layouts + 1
        if known and set(known) == set(order):
            return Round(subject, number, order[0], known, recalled=True, layout=layout)
        began = self._clock()
        if self._warmup and began - self._last > IDLE:
            self._run(subject, order[0])
        readings = {side: self._run(subject, side) for side in order}
        sides = {side: readings[side] for side in subject.sides}
        return Round(subject, number, order[0], sides, seconds=self._last - began, layout=layout)

    def few(self, subject: Subject, runs: int = FEW, done: int = 0) -> Iterator[Round]:
        """Yield single runs, as many of each side, in completely random order; ``done``: runs of each side before."""
        sides = [side for side in subject.sides for _ in range(runs)]
        block = f"\0{done}" if done else ""
        random.Random(_digest(f"{self._seed}\0few\0{subject.name}{block}")).shuffle(sides)  # noqa: S311 (replayable order)
        for number, side in enumerate(sides, start=done * len(subject.sides)):
            self.number = number
            known = self.taken_few.get((subject.name, number))
            if known and set(known) == {side}:
                yield Round(subject, number, side, known, recalled=True)
                continue
            began = self._clock()
            readings = {side: self._run(subject, side)}
            yield Round(subject, number, side, readings, seconds=self._last - began)

    def layouts_in_turn(self, subject: Subject, layouts: int, start: int) -> Iterator[Round]:
        """Yield a single run of each of ``layouts`` code layouts of each side, in completely random order.

        ``start`` numbers the runs.
        """
        both = [(side, layout) for side in subject.sides for layout in range(1, layouts + 1)]
        random.Random(_digest(f"{self._seed}\0layouts\0{subject.name}\0{start}")).shuffle(both)  # noqa: S311
        for number, (side, layout) in enumerate(both, start):
            self.number, self.layout = number, layout
            known = self.taken_few.get((subject.name, number))
            recalled = known is not None and set(known) == {side}
            readings = known if known is not None and recalled else {side: self._run(subject, side)}
            yield Round(subject, number, side, readings, recalled, layout=layout)

    def _run(self, subject: Subject, side: Side) -> tuple[Reading, ...]:
        began = self._clock()
        try:
            readings = subject.take(side)
        except LostError:
            self.lost.add(subject.name)
            raise
        self._last = self._clock()
        self.seconds = self._last - began
        return readings
