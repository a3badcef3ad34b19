"""The order in which sides and benchmarks are sampled, warm-up, and benchmarks that share a process or a machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from perfflow.model.readings import Reading, Side
from perfflow.sampling import pairs
from perfflow.sampling.pairs import IDLE, BenchmarkToSample, LostError, PairScheduler, Request, Round, Turn, coin
from perfflow.sampling.sampling import EXPENSIVE, FIRST_ANALYSIS
from perfflow.stats.paired_test import FEW, FEW_MORE, MANY
from tests.sampling.worlds import BOTH, Readings

BASELINE, CANDIDATE = BOTH


def run(scheduler: PairScheduler, turns: Iterable[Turn]) -> list[Round]:
    return [item for turn in turns for item in scheduler.take(turn)]


@dataclass
class Taker:
    """Takes samples with a manual clock: the value of each is the number of samples taken before."""

    lasts: float = 0.0
    now: float = 1000.0
    order: list[Side] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Readings:
        self.order.append(request.side)
        self.requests.append(request)
        self.now += self.lasts
        return (Reading("time", float(len(self.order))),)

    def scheduler(self, warmup: int = 1, seed: int = 7) -> PairScheduler:
        return PairScheduler(seed, warmup=warmup, clock=lambda: self.now)

    def subjects(self, names: str = "b", sides: tuple[Side, ...] = BOTH) -> list[BenchmarkToSample]:
        return [BenchmarkToSample(name, sides, self) for name in names]

    def rounds(self, count: int, *, warmup: int = 0, pause: float = 0.0, sides: tuple[Side, ...] = BOTH) -> list[Round]:
        """Warm up and take rounds of one benchmark, with a pause after each."""
        scheduler, subjects = self.scheduler(warmup), self.subjects(sides=sides)
        run(scheduler, scheduler.warm_ups(tuple(subjects)))
        found = []
        for number in range(count):
            found += run(scheduler, scheduler.round(subjects, number))
            self.now += pause
        return found


# -- constants and the coin


def test_what_decides_how_a_benchmark_is_sampled() -> None:
    assert (MANY, FIRST_ANALYSIS, EXPENSIVE, IDLE) == (12, 24, 2.0, 0.1)
    (subject,) = Taker().subjects()
    turn = Turn((subject,), 0, BOTH)
    assert (turn.place, turn.layout, turn.single) == ((1, 1), 0, False)
    found = Round(subject, 0, BASELINE, {})
    assert (found.recalled, found.seconds, found.layout, found.together) == (False, 0.0, 0, 1)
    assert pairs.SamplingProgress("a", 1, "pair").turn == (1, 1)
    assert subject.one_sided is False


def test_the_coin_is_fair_over_pairs_benchmarks_and_seeds() -> None:
    """4 sigma of 10,000 flips are 200; the inputs are fixed, so the test is deterministic."""
    of_pairs = [coin(1, "b", pair) for pair in range(10_000)]
    for flips in (
        of_pairs,
        [coin(1, f"b{number}", 0) for number in range(10_000)],
        [coin(seed, "b", 0) for seed in range(10_000)],
        [one == other for one, other in pairwise(of_pairs)],
    ):
        assert abs(sum(flips) - 5000) < 200
    # Names and numbers do not run together.
    assert [coin(1, "b1", pair) for pair in range(64)] != [coin(11, "b", pair) for pair in range(64)]


def test_the_same_seed_gives_the_same_coins_and_orders_in_every_version() -> None:
    """A run that is resumed by a later version keeps its orders."""
    assert "".join("01"[coin(7, "a", pair)] for pair in range(16)) == "1110001010010011"
    scheduler, (subject,) = PairScheduler(7), Taker().subjects("a")
    first, later = (list(scheduler.random_block(subject, *block)) for block in ((), (FEW_MORE, FEW)))
    assert "".join(turn.order[0].value[0] for turn in first) == "bccbcbbcbc"
    assert "".join(turn.order[0].value[0] for turn in later) == "bbcbcc"
    assert [turn.number for turn in later] == list(range(10, 16))
    found = [(turn.order[0].value[0], turn.layout) for turn in scheduler.layouts_in_turn(subject, 3, 4)]
    assert found == [("b", 1), ("c", 3), ("c", 2), ("c", 1), ("b", 3), ("b", 2)]
    rounds = [scheduler.round(Taker().subjects("abcd"), number) for number in range(3)]
    assert "".join(turn.benchmarks[0].name for turns in rounds for turn in turns) == "abdcabcdbcda"


# -- rounds


def test_each_round_has_one_process_of_each_side_in_the_coins_order() -> None:
    take = Taker()
    found = take.rounds(40)
    assert [item.number for item in found] == list(range(40))
    for number, item in enumerate(found):
        pair = take.order[2 * number : 2 * number + 2]
        assert sorted(pair) == list(item.readings) == [BASELINE, CANDIDATE]
        assert item.first is pair[0] is BOTH[coin(7, "b", number)]
        assert [item.readings[side][0].value for side in pair] == [2 * number + 1, 2 * number + 2]


def test_a_single_side_has_no_coin() -> None:
    take = Taker()
    assert {item.first for item in take.rounds(20, sides=(BASELINE,))} == {BASELINE}
    assert take.order == [BASELINE] * 20
    assert take.rounds(0) == []


def test_a_failing_sample_ends_it() -> None:
    def fails(request: Request) -> Readings:
        raise RuntimeError(request.side)

    scheduler = PairScheduler(1)
    (turn,) = scheduler.round([BenchmarkToSample("b", (BASELINE,), fails)], 0)
    with pytest.raises(RuntimeError):
        list(scheduler.take(turn))


def test_a_round_goes_over_all_its_benchmarks_in_random_order() -> None:
    rounds = [list(Taker().scheduler(0).round(Taker().subjects("abcd"), number)) for number in range(30)]
    names = [tuple(turn.benchmarks[0].name for turn in turns) for turns in rounds]
    assert {tuple(sorted(order)) for order in names} == {tuple("abcd")}
    assert len(set(names)) > 5
    for number, turns in enumerate(rounds):
        assert [(turn.number, turn.place) for turn in turns] == [(number, (place, 4)) for place in (1, 2, 3, 4)]
        assert all(turn.order[0] is BOTH[coin(7, turn.benchmarks[0].name, number)] for turn in turns)
    others = [list(Taker().scheduler(0, 2).round(Taker().subjects("abcd"), number)) for number in range(30)]
    assert names != [tuple(turn.benchmarks[0].name for turn in turns) for turns in others]


def test_few_runs_are_in_completely_random_order() -> None:
    orders = set()
    for seed in range(200):
        take = Taker()
        scheduler = take.scheduler(0, seed)
        found = run(scheduler, scheduler.random_block(take.subjects()[0]))
        assert sorted(take.order) == [BASELINE] * FEW + [CANDIDATE] * FEW
        assert [list(item.readings) for item in found] == [[side] for side in take.order]
        orders.add(tuple(take.order))
    # 252 orders are equally likely; 200 draws produce about 138 different ones.
    assert 110 < len(orders) < 170


@pytest.mark.parametrize(
    ("order", "layout", "single", "seconds"),
    [
        (BOTH, 0, False, 1.5),
        (BOTH, 2, False, 1.5),
        ((BASELINE,), 0, True, 0.5),
        # A single run of a layout is not a round, so its duration is not stored.
        ((BASELINE,), 2, True, 0.0),
    ],
)
def test_what_a_round_took(order: tuple[Side, ...], layout: int, seconds: float, *, single: bool) -> None:
    take = Taker(0.5)
    (found,) = take.scheduler().take(Turn(tuple(take.subjects()), 0, order, layout, single=single))
    assert found.seconds == seconds


@pytest.mark.parametrize(("sides", "recalled"), [(BOTH, True), ((BASELINE,), False)])
def test_what_is_recalled_began_with_the_side_that_began(sides: tuple[Side, ...], *, recalled: bool) -> None:
    take = Taker()
    scheduler = take.scheduler()
    scheduler.taken = {("b", 0): dict.fromkeys(sides, (Reading("time", 1.0),))}
    (found,) = scheduler.take(Turn(tuple(take.subjects()), 0, (CANDIDATE, BASELINE)))
    assert (found.first, found.recalled, take.order == []) == (CANDIDATE, recalled, recalled)


# -- warm-up


def test_warm_up_runs_of_each_side_are_thrown_away() -> None:
    take = Taker()
    (found,) = take.rounds(1, warmup=2)
    assert (take.order[:4], len(take.order)) == ([BASELINE, CANDIDATE] * 2, 6)
    assert {reading.value for (reading,) in found.readings.values()} == {5.0, 6.0}


def test_a_process_knows_whether_it_warms_up_and_how_long_a_run_takes() -> None:
    take = Taker(3.0)
    scheduler, subjects = take.scheduler(), tuple(take.subjects())
    assert scheduler.seconds == 0.0
    for turn in scheduler.warm_ups(subjects):
        list(scheduler.take(turn))
        assert scheduler.seconds == 3.0
    assert take.now == 1006.0
    list(scheduler.take(Turn(subjects, 3, BOTH, 2)))
    seen = [(one.warming, one.number, one.layout) for one in take.requests]
    assert seen == [(True, 0, 0)] * 2 + [(False, 3, 2)] * 2
    assert not list(take.scheduler(0).warm_ups(subjects))


@pytest.mark.parametrize(
    ("lasts", "pause", "warmup", "thrown_away"),
    [
        (0.0, 0.0, 1, 0),
        (0.0, IDLE / 2, 1, 0),
        (0.0, IDLE * 2, 1, 3),
        (0.0, 9, 0, 0),
        (60.0, 0.0, 1, 0),  # a long run is not a pause
    ],
)
def test_a_run_after_a_pause_is_thrown_away(lasts: float, pause: float, warmup: int, thrown_away: int) -> None:
    take = Taker(lasts)
    found = take.rounds(4, warmup=warmup, pause=pause)
    assert len(take.order) == 2 * warmup + 8 + thrown_away
    assert len({reading.value for item in found for (reading,) in item.readings.values()}) == 8
    if thrown_away:
        for item in found[1:]:
            assert take.order[3 * item.number + 1 :][:2] == [item.first] * 2


@pytest.mark.parametrize(("idle", "count"), [(IDLE, 2), (2 * IDLE, 3)])
def test_a_side_that_has_gone_cold_runs_once_more(idle: float, count: int) -> None:
    take = Taker(0.5, 0.0)  # from zero, so that a pause is not rounded
    scheduler, subjects = take.scheduler(), tuple(take.subjects())
    list(scheduler.take(Turn(subjects, 0, BOTH)))
    assert take.order == [BASELINE, BASELINE, CANDIDATE]  # nothing has run before
    scheduler._last, take.now = 0.0, idle
    list(scheduler.take(Turn(subjects, 1, BOTH)))
    assert take.order[3:] == [BASELINE, BASELINE, CANDIDATE][-count:]
    cold = Taker()
    list(cold.scheduler(0).take(Turn(tuple(cold.subjects()), 0, BOTH)))
    assert cold.order == [BASELINE, CANDIDATE]


# -- benchmarks that one process measures


class Suite:
    """A suite in one process: ``broken`` fail anywhere, ``shy`` only among others; ``kills`` ends the process."""

    def __init__(self, *, broken: str = "", shy: str = "", kills: str = "", slow: str = "") -> None:
        self.broken, self.shy, self.kills, self.slow = broken, shy, kills, slow
        self.now = 1000.0
        self.requests: list[tuple[str, Side, int, bool]] = []
        self.said: list[str] = []
        self.scheduler = PairScheduler(7, clock=lambda: self.now, say=self.said.append)
        self.benchmarks = [BenchmarkToSample(name, BOTH, self.take, own_id=name, together=0.5) for name in "abcd"]

    def take(self, request: Request) -> Readings:
        names = "".join(item.name for item in request.benchmarks)
        self.requests.append((names, request.side, request.number, request.warming))
        self.now += 1.0
        several = len(names) > 1
        lasting = [name for name in names if name not in self.broken and not (several and name in self.shy)]
        if not lasting or (self.kills and self.kills in names):
            raise LostError
        return tuple(Reading("time", 0.6 if name in self.slow else 0.1, name) for name in lasting)

    def late(self, request: Request) -> Readings:
        self.take(request)
        raise pairs.TimeUpError

    def rounds(self, count: int) -> list[list[str]]:
        for group in self.scheduler.groups(self.benchmarks):
            run(self.scheduler, self.scheduler.warm_ups(group))
        rounds = [run(self.scheduler, self.scheduler.round(self.benchmarks, number)) for number in range(count)]
        return [[item.benchmark.name for item in found] for found in rounds]

    def processes(self) -> set[str]:
        return {"".join(sorted(names)) for names, _, _, warming in self.requests if not warming}


def test_one_process_of_each_side_measures_all_benchmarks_in_one_order() -> None:
    suite = Suite()
    assert [sorted(names) for names in suite.rounds(20)] == [list("abcd")] * 20
    assert suite.requests[:2] == [("abcd", BASELINE, 0, True), ("abcd", CANDIDATE, 0, True)]
    both = list(zip(suite.requests[2::2], suite.requests[3::2], strict=True))
    assert all(first[0] == second[0] and {first[1], second[1]} == {BASELINE, CANDIDATE} for first, second in both)
    assert len({first[0] for first, _ in both}) > 10
    assert all(first[1] is BOTH[coin(7, "", number)] for number, (first, _) in enumerate(both))


def test_each_benchmark_of_a_round_has_its_share_of_the_time() -> None:
    suite = Suite()
    suite.rounds(0)
    (turn,) = suite.scheduler.round(suite.benchmarks, 0)
    assert [(item.seconds, item.together) for item in suite.scheduler.take(turn)] == [(0.5, 4)] * 4
    assert suite.scheduler.seconds == 0.25


@pytest.mark.parametrize(
    ("how", "measured", "processes", "said"),
    [
        # A benchmark that fails does not lose the others.
        ({"broken": "b"}, "acd", {"acd"}, set()),
        ({"kills": "b"}, "acd", {"acd"}, set()),
        # One that fails only among others, or has long iterations, runs in its own process.
        ({"shy": "c"}, "abcd", {"abd", "c"}, {f"c {pairs.DISTURBED}"}),
        ({"shy": "abcd"}, "abcd", set("abcd"), None),
        ({"slow": "a"}, "abcd", {"a", "bcd"}, None),
    ],
)
def test_what_shares_a_process(how: dict[str, str], measured: str, processes: set[str], said: set[str] | None) -> None:
    suite = Suite(**how)
    assert [sorted(names) for names in suite.rounds(3)] == [list(measured)] * 3
    assert (suite.scheduler.lost, suite.processes()) == (set("abcd") - set(measured), processes)
    assert said in (None, set(suite.said))


def test_a_process_that_the_end_of_the_time_ends_is_not_tried_again() -> None:
    suite = Suite()
    suite.rounds(1)
    before = len(suite.requests)
    ended = [replace(item, take=suite.late) for item in suite.benchmarks]
    assert run(suite.scheduler, suite.scheduler.round(ended, 1)) == []
    assert (len(suite.requests), suite.scheduler.lost) == (before + 1, set("abcd"))


def test_benchmarks_that_were_recalled_are_not_measured_again() -> None:
    suite = Suite()
    suite.scheduler.taken = {("b", 0): dict.fromkeys(BOTH, (Reading("time", 9.0, "b"),))}
    found = run(suite.scheduler, suite.scheduler.round(suite.benchmarks, 0))
    assert {item.benchmark.name: item.recalled for item in found} == {"a": False, "b": True, "c": False, "d": False}
    assert not any("b" in names for names, *_ in suite.requests)


# -- sides that run at the same time


@dataclass(eq=False)
class Requests:
    """Takes a figure of each benchmark of a request, or fails with ``fails`` when two sides run at once."""

    fails: type[LostError] | None = None
    without: str = ""
    """A benchmark that has no figure when both sides run at the same time."""
    seen: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Readings:
        self.seen.append(request)
        if self.fails and request.core is not None:
            raise self.fails
        left = [item.name for item in request.benchmarks if request.core is None or item.name != self.without]
        return tuple(Reading("time", 1.0, name) for name in left)

    def rounds(
        self, count: int, can: str = "abc", cores: Sequence[int] = (2, 5)
    ) -> tuple[PairScheduler, list[list[Round]]]:
        """Take rounds of a suite; what is to run at the same time runs one after the other."""
        both = pairs.SideBySide(tuple(cores), lambda item: item.name in can, lambda first, second: (first(), second()))
        scheduler = PairScheduler(7, warmup=0, side_by_side=both)
        suite = [BenchmarkToSample(name, BOTH, self, own_id=name, together=1.0) for name in "abc"]
        return scheduler, [run(scheduler, scheduler.round(suite, number)) for number in range(count)]


def test_benchmarks_that_compute_run_side_by_side_on_a_random_core_and_the_others_in_turn() -> None:
    take = Requests()
    _, rounds = take.rounds(20, can="ab")
    for found in rounds:
        assert {item.benchmark.name: item.side_by_side for item in found} == {"a": True, "b": True, "c": False}
    cores = set()
    for number in range(20):
        both = [one for one in take.seen if one.number == number and len(one.benchmarks) == 2]
        # Both processes of a pair have the same core, and the coin decides which one starts first.
        assert {one.side for one in both} == {BASELINE, CANDIDATE}
        assert len({one.core for one in both}) == 1
        assert both[0].side is BOTH[coin(7, "", number)]
        cores.add(both[0].core)
        assert [one.core for one in take.seen if one.number == number and len(one.benchmarks) == 1] == [None, None]
    assert cores == {2, 5}


def test_warm_ups_and_single_runs_have_the_machine_alone() -> None:
    take = Requests()
    both = pairs.SideBySide((2, 5), lambda _: True, lambda first, second: (first(), second()))
    scheduler = PairScheduler(7, side_by_side=both)
    (group,) = scheduler.groups([BenchmarkToSample(name, BOTH, take, own_id=name, together=1.0) for name in "abc"])
    run(scheduler, scheduler.warm_ups(group))
    run(scheduler, scheduler.random_block(group[0]))
    assert {request.core for request in take.seen} == {None}


@pytest.mark.parametrize(
    ("take", "cores", "alone", "at_once"),
    [
        (Requests(LostError), (2, 5), "abc", 1),
        (Requests(without="b"), (2, 5), "b", 4),
        (Requests(), (), "abc", 0),  # no core is usable
    ],
)
def test_what_fails_side_by_side_runs_in_turn(take: Requests, cores: Any, alone: str, at_once: int) -> None:
    scheduler, rounds = take.rounds(2, cores=cores)
    for found in rounds:
        assert {item.benchmark.name for item in found if not item.side_by_side} == set(alone)
        assert sorted(item.benchmark.name for item in found) == ["a", "b", "c"]
    assert not scheduler.lost
    assert sum(request.core is not None for request in take.seen) == at_once


def test_time_that_ends_side_by_side_ends_the_benchmarks() -> None:
    scheduler, rounds = Requests(pairs.TimeUpError).rounds(1)
    assert (rounds, scheduler.lost) == ([[]], {"a", "b", "c"})
