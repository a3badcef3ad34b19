"""Order the processes of all benchmarks and sides, and run them.

The order matters more than the test: measuring all of A and then all of B gives 8-57% false alarms on a noisy machine,
and a fixed ABAB order aliases with periodic noise. So each round visits all undecided benchmarks in random order, and a
coin flip decides which side of each runs first. Benchmarks of a suite that one process can measure together are one
group with one coin, and both processes of a pair measure them in the same random order. Coins and orders depend only on
the seed, the names and the pair number, so a resumed run continues exactly where it stopped.

Benchmarks that only compute run side by side: both processes of a pair run at the same time on one core. The kernel
gives each a few ms in turn, so what disturbs the machine disturbs both alike. If the processes run in turn, seconds lie
between the figures of both sides.
"""

from __future__ import annotations

import hashlib
import math
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from perfflow.model.readings import Reading, Side
from perfflow.stats.paired_test import FEW
from perfflow.tools.adapter import pace_of

IDLE = 0.1
"""Pause in s after which caches and clocks are cold, so that the next run is up to 39% slower."""
DISTURBED = "fails among the other benchmarks of its suite but not alone, so it runs in its own process"


@dataclass(frozen=True)
class BenchmarkToSample:
    """One benchmark: its sides, and the function that runs it.

    ``own_id``: its id in its suite; '' for a command, or a suite as a whole. ``together``: the longest iteration (s)
    with which one process measures it together with others that have the same ``take``; 0 if it always runs alone.
    ``one_sided``: two sides are compared, but only one of them has this benchmark.
    """

    name: str
    sides: tuple[Side, ...]
    take: Take
    one_sided: bool = False
    own_id: str = ""
    together: float = 0.0


@dataclass(frozen=True)
class Request:
    """One process to run: its benchmarks in their order, the side, and what its random state depends on.

    ``number``: the round, from 0. ``layout``: the code layout of the side, from 1; 0 is the ordinary build.
    ``warming``: a warm-up, which shows the duration of the benchmarks, and whose readings are discarded. ``core``: the
    core on which the other side's process runs at the same time, None if both run in turn. ``single``: no process of
    the other side has the same number.
    """

    benchmarks: tuple[BenchmarkToSample, ...]
    side: Side
    number: int = 0
    layout: int = 0
    warming: bool = False
    core: int | None = None
    single: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the benchmarks in their suite; () for a command, or a suite as a whole."""
        return tuple(item.own_id for item in self.benchmarks if item.own_id)


Take = Callable[[Request], tuple[Reading, ...]]
"""Run one fresh process and return its readings. Raises LostError if it fails, and whatever ends the whole step."""


class LostError(Exception):
    """The benchmarks of a request could not be measured, but others of their step can."""


class TimeUpError(LostError):
    """The time to measure ended during the process, so the benchmarks of the request get no further ones."""


_Taken = tuple[Reading, ...]


@dataclass(frozen=True)
class SideBySide:
    """How to run both processes of a pair at the same time.

    ``cores``: the cores that can be used. ``can``: returns whether a benchmark only computes, in one thread, so that
    the other process does not change what its clocks without core waits show. ``at_once``: calls two functions at the
    same time, and raises what one of them raises.
    """

    cores: Sequence[int]
    can: Callable[[BenchmarkToSample], bool]
    at_once: Callable[[Callable[[], _Taken], Callable[[], _Taken]], tuple[_Taken, _Taken]]


@dataclass(frozen=True)
class Turn:
    """The next processes: one of each side in ``order``, for the benchmarks of one group."""

    benchmarks: tuple[BenchmarkToSample, ...]
    number: int
    order: tuple[Side, ...]
    layout: int = 0
    single: bool = False
    """True for a single run in completely random order, False for a pair."""
    place: tuple[int, int] = (1, 1)
    """Position in this round from 1, and the number of turns in the round."""
    warming: bool = False


@dataclass(frozen=True)
class Round:
    """The readings of one benchmark in a turn: the ``number`` of the round, the first side, and the readings."""

    benchmark: BenchmarkToSample
    number: int
    first: Side
    readings: Mapping[Side, tuple[Reading, ...]]
    recalled: bool = False
    """True if it was taken before the run was interrupted."""
    seconds: float = 0.0
    """Its share of the duration (s)."""
    layout: int = 0
    together: int = 1
    """Number of benchmarks that the processes measured."""
    side_by_side: bool = False
    """Whether both processes ran at the same time on one core."""


@dataclass(frozen=True)
class SamplingProgress:
    """Progress of one benchmark: it has ``count`` samples, counted in ``unit`` (``pair`` or ``run``).

    ``turn``: position in this round from 1, and the number of turns in the round. A ``count`` of 0 means warm-up.
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


class PairScheduler:
    """Orders and runs the processes of benchmarks; after a pause, a discarded run comes first.

    ``taken`` and ``taken_few`` have the pairs, and the single runs of expensive commands, from before an interruption.
    They are returned in their places without running anything. ``say`` receives warnings.
    """

    def __init__(
        self,
        seed: int,
        *,
        warmup: int = 1,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
        side_by_side: SideBySide | None = None,
    ) -> None:
        """``side_by_side``: None if both processes of a pair always run in turn."""
        self._seed, self._warmup, self._clock, self._say = seed, warmup, clock, say
        self._side_by_side = side_by_side
        self._last = -math.inf
        self.taken: Recalled = {}
        self.taken_few: Recalled = {}
        self.lost: set[str] = set()
        """Names of the benchmarks that could not be measured."""
        self._separate: set[str] = set()
        """Names of the benchmarks that one process cannot measure together with others, or not well."""
        self._in_turn: set[str] = set()
        """Names of the benchmarks that failed side by side."""
        self.seconds = 0.0
        """Duration of the last process, divided by the number of its benchmarks (s)."""
        self.first_with_layouts: int | None = None
        """First round with a fresh code layout of each side; None if layouts are not used."""

    def groups(self, benchmarks: Sequence[BenchmarkToSample]) -> list[tuple[BenchmarkToSample, ...]]:
        """Return the benchmarks by process: those that are measured together, and each of the others."""
        together: dict[tuple[Take, bool], list[BenchmarkToSample]] = {}
        for item in benchmarks:
            if item.together and item.name not in self._separate:
                together.setdefault((item.take, self._is_side_by_side(item)), []).append(item)
        grouped = {item.name for group in together.values() for item in group}
        return [*map(tuple, together.values()), *((item,) for item in benchmarks if item.name not in grouped)]

    def _is_side_by_side(self, benchmark: BenchmarkToSample) -> bool:
        how = self._side_by_side
        return bool(how and how.cores and benchmark.name not in self._in_turn and how.can(benchmark))

    def separate(self, benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Measure each of these benchmarks in its own process from now on."""
        self._separate.update(item.name for item in benchmarks)

    def warm_ups(self, group: tuple[BenchmarkToSample, ...]) -> Iterator[Turn]:
        """Yield the warm-up runs of each side."""
        for _ in range(self._warmup):
            for side in group[0].sides:
                yield Turn(group, 0, (side,), single=True, warming=True)

    def round(self, benchmarks: Sequence[BenchmarkToSample], number: int) -> Iterator[Turn]:
        """Yield one turn of each group in random order; a coin flip orders its two sides."""
        layout = 0 if self.first_with_layouts is None else number - self.first_with_layouts + 1
        chance = random.Random(_digest(f"{self._seed}\0order\0{number}"))  # noqa: S311 (replayable order)
        groups = self.groups(benchmarks)
        for place, group in enumerate(chance.sample(groups, len(groups)), 1):
            name = group[0].name if len(group) == 1 else ""
            sides = group[0].sides
            flip = len(sides) == 2 and coin(self._seed, name, number)
            order = tuple(chance.sample(group, len(group))) if len(group) > 1 else group
            yield Turn(order, number, sides[::-1] if flip else sides, layout, place=(place, len(groups)))

    def random_block(self, benchmark: BenchmarkToSample, runs: int = FEW, done: int = 0) -> Iterator[Turn]:
        """Yield ``runs`` single runs of each side in completely random order; ``done``: earlier runs of each side."""
        sides = [side for side in benchmark.sides for _ in range(runs)]
        block = f"\0{done}" if done else ""
        chance = random.Random(_digest(f"{self._seed}\0few\0{benchmark.name}{block}"))  # noqa: S311 (replayable order)
        chance.shuffle(sides)
        for number, side in enumerate(sides, start=done * len(benchmark.sides)):
            yield Turn((benchmark,), number, (side,), single=True)

    def layouts_in_turn(self, benchmark: BenchmarkToSample, layouts: int, start: int) -> Iterator[Turn]:
        """Yield a single run of each of ``layouts`` code layouts of each side, in completely random order.

        ``start`` is the number of the first run.
        """
        both = [(side, layout) for side in benchmark.sides for layout in range(1, layouts + 1)]
        random.Random(_digest(f"{self._seed}\0layouts\0{benchmark.name}\0{start}")).shuffle(both)  # noqa: S311
        for number, (side, layout) in enumerate(both, start):
            yield Turn((benchmark,), number, (side,), layout, single=True)

    def take(self, turn: Turn) -> Iterator[Round]:
        """Run one fresh process of each side, or return the readings from before an interruption.

        Benchmarks that cannot be measured are left out and added to ``lost``.
        """
        known = self.taken_few if turn.single else self.taken
        left = []
        for benchmark in turn.benchmarks:
            readings = {} if turn.warming else known.get((benchmark.name, turn.number), {})
            if readings and set(readings) == set(turn.order):
                if turn.number == 0:
                    self._notice_pace(benchmark, readings)
                yield Round(benchmark, turn.number, turn.order[0], readings, recalled=True, layout=turn.layout)
            elif benchmark.name not in self.lost:
                left.append(benchmark)
        if left:
            turn = replace(turn, benchmarks=tuple(left))
            if self._side_by_side and len(turn.order) == 2 and all(map(self._is_side_by_side, left)):
                yield from self._run_at_once(turn, self._side_by_side)
            else:
                yield from self._run_in_turn(turn)

    def _run_at_once(self, turn: Turn, how: SideBySide) -> Iterator[Round]:
        """Run both processes at the same time on one core. Benchmarks without a figure of both run in turn instead."""
        began, taken, take = self._clock(), _Found(), turn.benchmarks[0].take
        core = how.cores[_digest(f"{self._seed}\0core\0{turn.number}") % len(how.cores)]
        requests = [Request(turn.benchmarks, side, turn.number, turn.layout, core=core) for side in turn.order]
        first, second = (partial(take, request) for request in requests)
        try:
            for request, readings in zip(requests, how.at_once(first, second), strict=True):
                taken.add(request, readings)
        except TimeUpError:
            self.lost.update(item.name for item in turn.benchmarks)
            return
        except LostError:
            pass
        self._last = self._clock()
        self.seconds = (self._last - began) / len(turn.benchmarks)
        missing = yield from self._rounds(turn, taken, self._last - began, side_by_side=True)
        self._in_turn.update(item.name for item in missing)
        if missing:
            yield from self._run_in_turn(replace(turn, benchmarks=tuple(missing)))

    def _run_in_turn(self, turn: Turn) -> Iterator[Round]:
        order, began, taken = turn.order, self._clock(), _Found()
        if self._warmup and not turn.single and began - self._last > IDLE:
            # Run the first side twice, since its first process runs cold; the second reading replaces the first.
            order = (order[0], *order)
        for side in order:
            started = self._clock()
            request = Request(turn.benchmarks, side, turn.number, turn.layout, turn.warming, single=turn.single)
            try:
                readings = turn.benchmarks[0].take(request)
            except TimeUpError:
                self.lost.update(item.name for item in turn.benchmarks)
                return
            except LostError:
                break
            self._last = self._clock()
            self.seconds = (self._last - started) / len(turn.benchmarks)
            taken.add(request, readings)
        whole = 0.0 if turn.single and turn.layout else self._last - began
        missing = yield from self._rounds(turn, taken, whole)
        if len(turn.benchmarks) == 1:
            self.lost.update(item.name for item in missing)
        elif missing:
            yield from self._run_each(missing, turn)

    def _rounds(
        self, turn: Turn, taken: _Found, whole: float, *, side_by_side: bool = False
    ) -> Generator[Round, None, list[BenchmarkToSample]]:
        """Yield the round of each benchmark that was found on all sides, and return the others.

        whole: duration of all processes (s).
        """
        missing = []
        for benchmark in turn.benchmarks:
            sides = {
                side: taken.readings[benchmark.name, side]
                for side in benchmark.sides
                if (benchmark.name, side) in taken.readings
            }
            if set(sides) != set(turn.order):
                missing.append(benchmark)
                continue
            if turn.warming:
                self._notice_pace(benchmark, sides)
            seconds = whole / len(turn.benchmarks)
            yield Round(
                benchmark,
                turn.number,
                turn.order[0],
                sides,
                seconds=seconds,
                layout=turn.layout,
                together=len(turn.benchmarks),
                side_by_side=side_by_side,
            )
        return missing

    def _run_each(self, missing: Sequence[BenchmarkToSample], turn: Turn) -> Iterator[Round]:
        """Run each benchmark without a figure alone, so that a failure is attributed to the benchmark that fails.

        If none of them fails alone, they disturb each other, and are no longer measured together.
        """
        for item in missing:
            yield from self._run_in_turn(replace(turn, benchmarks=(item,)))
        if self.lost.isdisjoint(item.name for item in missing):
            self.separate(missing)
            for item in missing:
                self._say(f"{item.name} {DISTURBED}")

    def _notice_pace(self, benchmark: BenchmarkToSample, sides: Mapping[Side, tuple[Reading, ...]]) -> None:
        """Separate a benchmark of which one iteration takes long: the others would take fewer samples for it."""
        paces = filter(None, map(pace_of, sides.values()))
        if benchmark.together and any(pace.seconds > benchmark.together for pace in paces):
            self.separate([benchmark])


@dataclass
class _Found:
    """The readings of the processes of a turn, by benchmark and side."""

    readings: dict[tuple[str, Side], tuple[Reading, ...]] = field(default_factory=dict)

    def add(self, request: Request, readings: tuple[Reading, ...]) -> None:
        """Add the readings of a process. If it has one benchmark, they are all of it, whatever their names are."""
        for item in request.benchmarks:
            own = (
                readings
                if len(request.benchmarks) == 1
                else tuple(one for one in readings if one.benchmark == item.name)
            )
            if own or len(request.benchmarks) == 1:
                self.readings[item.name, request.side] = own
