"""Order the runs of all benchmarks and sides, and run them.

The order matters more than the test: measuring all of A and then all of B gives 8-57% false alarms on a noisy machine,
and a fixed ABAB order aliases with periodic noise. So each round visits all undecided benchmarks in random order, and a
coin flip decides which side of each runs first. Coins and orders depend only on the seed, the benchmark and the pair
number, so a resumed run continues exactly where it stopped.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from perfflow.model.lazy import dataclass
from perfflow.model.readings import Reading, Side
from perfflow.stats.designs import FEW

Take = Callable[[Side], tuple[Reading, ...]]
"""Run one fresh process of a side and return its readings; raises when it fails."""

IDLE = 0.1
"""Pause in s after which caches and clocks are cold, so that the next run is up to 39% slower."""
EXPENSIVE = 2.0
"""Duration in s from which a command is compared by a few runs in completely random order."""
SCREENED = 12
"""If there are more benchmarks than this, they are screened first, and noticeable changes are confirmed."""
FIRST_LOOK = 24
"""A command is also expensive if its budget allows fewer runs than this: 11 pairs and a reserve."""


@dataclass(frozen=True)
class Subject:
    """One benchmark to sample: its sides, and the function that runs it.

    ``alone``: two sides are compared, but only one of them has this benchmark. ``own_id``: its id in its suite.
    """

    name: str
    sides: tuple[Side, ...]
    take: Take
    alone: bool = False
    own_id: str = ""


class LostError(Exception):
    """A benchmark can no longer be sampled, but others of its step can."""


@dataclass(frozen=True)
class Turn:
    """The next runs: round ``number`` (from 0) of one benchmark, and the order of its sides."""

    subject: Subject
    number: int
    order: tuple[Side, ...]
    layout: int = 0
    """Number of the code layout of each side, from 1; 0 is the ordinary build."""
    single: bool = False
    """True for a single run in completely random order, False for a pair."""
    place: tuple[int, int] = (1, 1)
    """Position in this round from 1, and the number of benchmarks in the round."""
    warming: bool = False
    """True for a warm-up run: it gives the duration of the benchmark, and its readings are discarded."""


@dataclass(frozen=True)
class Round:
    """One round of fresh processes of a benchmark: its ``number`` (from 0), the first side, and the readings."""

    subject: Subject
    number: int
    first: Side
    readings: Mapping[Side, tuple[Reading, ...]]
    recalled: bool = False
    """True if it was taken before the run was interrupted."""
    seconds: float = 0.0
    """Duration (s)."""
    layout: int = 0
    """Number of the code layout of each side, from 1; 0 is the ordinary build."""
    turn: tuple[int, int] = (1, 1)
    """Position in this round from 1, and the number of benchmarks in the round."""


@dataclass(frozen=True)
class Sampled:
    """Progress of one benchmark: it has ``count`` samples, counted in ``unit`` (``pair`` or ``run``).

    ``turn``: position in this round from 1, and the number of benchmarks of the step in the round. A ``count`` of 0
    means warm-up.
    """

    benchmark: str
    count: int
    unit: str
    turn: tuple[int, int] = (1, 1)


def coin(seed: int, benchmark: str, pair: int) -> bool:
    """Return a fair coin flip that depends only on the seed, the benchmark and the pair number."""
    return bool(_digest(f"{seed}\0{benchmark}\0{pair}") & 1)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Recalled = Mapping[tuple[str, int], Mapping[Side, tuple[Reading, ...]]]
"""(benchmark, number of the round) -> readings."""


class Sampler:
    """Orders and runs the processes of benchmarks; after a pause, a discarded run comes first.

    ``taken`` and ``taken_few`` have the pairs, and the single runs of expensive commands, from before an interruption.
    They are returned in their places without running anything.
    """

    def __init__(self, seed: int, *, warmup: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._seed, self._warmup, self._clock = seed, warmup, clock
        self._last = -math.inf
        self.taken: Recalled = {}
        self.taken_few: Recalled = {}
        self.lost: set[str] = set()
        """Names of the benchmarks that raised LostError."""
        self.warming = False
        """True if the current or last process is a warm-up run."""
        self.seconds = 0.0
        """Duration of the last process (s)."""
        self.number = 0
        """Number of the current round."""
        self.layout = 0
        """Number of the code layout of the next process; 0 is the ordinary build."""
        self.first_with_layouts: int | None = None
        """First round with a fresh code layout of each side; None if layouts are not used."""

    def warm_ups(self, subject: Subject) -> Iterator[Turn]:
        """Yield the warm-up runs of each side."""
        for _ in range(self._warmup):
            for side in subject.sides:
                yield Turn(subject, 0, (side,), single=True, warming=True)

    def round(self, subjects: Sequence[Subject], number: int) -> Iterator[Turn]:
        """Yield one turn of each subject in random order; a coin flip orders its two sides."""
        layout = 0 if self.first_with_layouts is None else number - self.first_with_layouts + 1
        order = random.Random(_digest(f"{self._seed}\0order\0{number}"))  # noqa: S311 (replayable order)
        for place, subject in enumerate(order.sample(subjects, len(subjects)), 1):
            flip = len(subject.sides) == 2 and coin(self._seed, subject.name, number)
            sides = tuple(reversed(subject.sides)) if flip else subject.sides
            yield Turn(subject, number, sides, layout, place=(place, len(subjects)))

    def few(self, subject: Subject, runs: int = FEW, done: int = 0) -> Iterator[Turn]:
        """Yield ``runs`` single runs of each side in completely random order; ``done``: earlier runs of each side."""
        sides = [side for side in subject.sides for _ in range(runs)]
        block = f"\0{done}" if done else ""
        random.Random(_digest(f"{self._seed}\0few\0{subject.name}{block}")).shuffle(sides)  # noqa: S311 (replayable order)
        for number, side in enumerate(sides, start=done * len(subject.sides)):
            yield Turn(subject, number, (side,), single=True)

    def layouts_in_turn(self, subject: Subject, layouts: int, start: int) -> Iterator[Turn]:
        """Yield a single run of each of ``layouts`` code layouts of each side, in completely random order.

        ``start`` is the number of the first run.
        """
        both = [(side, layout) for side in subject.sides for layout in range(1, layouts + 1)]
        random.Random(_digest(f"{self._seed}\0layouts\0{subject.name}\0{start}")).shuffle(both)  # noqa: S311
        for number, (side, layout) in enumerate(both, start):
            yield Turn(subject, number, (side,), layout, single=True)

    def take(self, turn: Turn) -> Round:
        """Run one fresh process of each side, or return the readings from before an interruption. Raises LostError."""
        subject, order = turn.subject, turn.order
        self.number, self.layout, self.warming = turn.number, turn.layout, turn.warming
        known = (self.taken_few if turn.single else self.taken).get((subject.name, turn.number))
        if known and set(known) == set(order):
            return Round(subject, turn.number, order[0], known, recalled=True, layout=turn.layout, turn=turn.place)
        began = self._clock()
        if self._warmup and not turn.single and began - self._last > IDLE:
            # Run the first side twice, since its first process runs cold; the second reading replaces the first.
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
