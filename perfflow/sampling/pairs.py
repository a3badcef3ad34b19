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
from enum import StrEnum

from perfflow.model.later import dataclass
from perfflow.model.readings import Reading, Side
from perfflow.stats.designs import FEW

Take = Callable[[Side], tuple[Reading, ...]]
"""Run one fresh process of a side and return its readings; raises when it fails."""

IDLE = 0.1
"""After a pause of this many seconds caches and clocks have gone cold: a first run reads up to 39% slower."""
EXPENSIVE = 2.0
"""Commands that take longer than this many seconds are compared with few runs in completely random order."""
SCREENED = 12
"""More benchmarks than this are screened first, and what stands out is confirmed with fresh pairs."""
FIRST_LOOK = 24
"""So are those of which the time for one benchmark holds fewer runs than these: eleven pairs, and some to spare."""


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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Turn:
    """What runs next: round ``number`` (from 0) of one benchmark, and its sides in the order in which they run."""

    subject: Subject
    number: int
    order: tuple[Side, ...]
    layout: int = 0
    """The number of the code layout that each side has, from 1; 0 is the program as it was built."""
    single: bool = False
    """Whether it is one run in completely random order, and no pair."""
    place: tuple[int, int] = (1, 1)
    """The how manyth it is of how many benchmarks that have a turn in this round."""
    warming: bool = False
    """Whether it is thrown away, and tells how long the benchmark takes."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Sampled:
    """How much has been sampled of one benchmark: ``count`` of ``unit``, which is ``pair`` or ``run``.

    ``turn``: the how manyth it is of how many benchmarks of the step that have a turn in this round. With a ``count``
    of 0 the round is one of warming up.
    """

    benchmark: str
    count: int
    unit: str
    turn: tuple[int, int] = (1, 1)


def coin(seed: int, benchmark: str, pair: int) -> bool:
    """A fair coin that is the same for the same seed, benchmark and pair number."""
    return bool(_digest(f"{seed}\0{benchmark}\0{pair}") & 1)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Recalled = Mapping[tuple[str, int], Mapping[Side, tuple[Reading, ...]]]
"""(benchmark, number of the round) -> what was read in it."""


class Sampler:
    """Says what runs next, and runs it; what has been idle is warmed up first.

    ``taken`` and ``taken_few`` are rounds, and single runs of expensive commands, that an interrupted run has taken
    already: they are given again in their places, and nothing is run for them.
    """

    def __init__(self, seed: int, *, warmup: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._seed, self._warmup, self._clock = seed, warmup, clock
        self._last = -math.inf
        self.taken: Recalled = {}
        self.taken_few: Recalled = {}
        self.lost: set[str] = set()
        """Names of the benchmarks that raised LostError."""
        self.warming = False
        """Whether the process that runs, or ran last, is thrown away before any sample is taken."""
        self.seconds = 0.0
        """What the last process took."""
        self.number = 0
        """The round that is being taken."""
        self.layout = 0
        """The number of the code layout that the next process is to have; 0 is the program as it was built."""
        self.first_with_layouts: int | None = None
        """From this round on each has a fresh code layout of each side."""

    def warm_ups(self, subject: Subject) -> Iterator[Turn]:
        """Yield runs of each side that are thrown away."""
        for _ in range(self._warmup):
            for side in subject.sides:
                yield Turn(subject, 0, (side,), single=True, warming=True)

    def round(self, subjects: Sequence[Subject], number: int) -> Iterator[Turn]:
        """Yield one turn of each subject in random order, both sides of it in the coin's order."""
        layout = 0 if self.first_with_layouts is None else number - self.first_with_layouts + 1
        order = random.Random(_digest(f"{self._seed}\0order\0{number}"))  # noqa: S311 (replayable order)
        for place, subject in enumerate(order.sample(subjects, len(subjects)), 1):
            flip = len(subject.sides) == 2 and coin(self._seed, subject.name, number)
            sides = tuple(reversed(subject.sides)) if flip else subject.sides
            yield Turn(subject, number, sides, layout, place=(place, len(subjects)))

    def few(self, subject: Subject, runs: int = FEW, done: int = 0) -> Iterator[Turn]:
        """Yield single runs, as many of each side, in completely random order; ``done``: runs of each side before."""
        sides = [side for side in subject.sides for _ in range(runs)]
        block = f"\0{done}" if done else ""
        random.Random(_digest(f"{self._seed}\0few\0{subject.name}{block}")).shuffle(sides)  # noqa: S311 (replayable order)
        for number, side in enumerate(sides, start=done * len(subject.sides)):
            yield Turn(subject, number, (side,), single=True)

    def layouts_in_turn(self, subject: Subject, layouts: int, start: int) -> Iterator[Turn]:
        """Yield a single run of each of ``layouts`` code layouts of each side, in completely random order.

        ``start`` numbers the runs.
        """
        both = [(side, layout) for side in subject.sides for layout in range(1, layouts + 1)]
        random.Random(_digest(f"{self._seed}\0layouts\0{subject.name}\0{start}")).shuffle(both)  # noqa: S311
        for number, (side, layout) in enumerate(both, start):
            yield Turn(subject, number, (side,), layout, single=True)

    def take(self, turn: Turn) -> Round:
        """Run one fresh process of each side, unless this was done before the run was interrupted. Raises LostError."""
        subject, order = turn.subject, turn.order
        self.number, self.layout, self.warming = turn.number, turn.layout, turn.warming
        known = (self.taken_few if turn.single else self.taken).get((subject.name, turn.number))
        if known and set(known) == set(order):
            return Round(subject, turn.number, order[0], known, recalled=True, layout=turn.layout, turn=turn.place)
        began = self._clock()
        if self._warmup and not turn.single and began - self._last > IDLE:
            # What the first process says of a side that has gone cold is thrown away.
            order = (order[0], *order)
        readings = {}
        for side in order:
            started = self._clock()
            try:
                readings[side] = subject.take(side)
            except LostError:
                self.lost.add(subject.name)
                raise
            self._last = self._clock()
            self.seconds = self._last - started
        sides = {side: readings[side] for side in subject.sides if side in readings}
        seconds = 0.0 if turn.single and turn.layout else self._last - began
        return Round(subject, turn.number, order[0], sides, seconds=seconds, layout=turn.layout, turn=turn.place)
