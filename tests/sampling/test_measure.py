"""The order in which sides and benchmarks are sampled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.readings import Reading, Side
from perfflow.sampling.pairs import (
    DISTURBED,
    IDLE,
    BenchmarkToSample,
    LostError,
    PairScheduler,
    Request,
    Round,
    SideBySide,
    TimeUpError,
    Turn,
    coin,
)
from perfflow.sampling.sampling import EXPENSIVE, FIRST_ANALYSIS
from perfflow.stats.paired_test import FEW, MANY

BASELINE, CANDIDATE = Side.BASELINE, Side.CANDIDATE


@dataclass
class Clock:
    """A clock that moves only when a test sets it."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Taker:
    """Takes a sample in no time: its value is the number of samples taken before."""

    clock: Clock
    lasts: float = 0.0
    order: list[Side] = field(default_factory=list)

    def __call__(self, request: Request) -> tuple[Reading, ...]:
        self.order.append(request.side)
        self.clock.now += self.lasts
        return (Reading("time", float(len(self.order))),)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def rounds(take: Taker, sides: tuple[Side, ...], count: int, warmup: int = 0) -> Iterator[Round]:
    scheduler = PairScheduler(7, warmup=warmup, clock=take.clock)
    subject = BenchmarkToSample("b", sides, take)
    run(scheduler, scheduler.warm_ups((subject,)))
    for number in range(count):
        yield from run(scheduler, scheduler.round([subject], number))


def run(scheduler: PairScheduler, turns: Iterable[Turn]) -> list[Round]:
    return [item for turn in turns for item in scheduler.take(turn)]


def taken(take: Taker, sides: tuple[Side, ...], count: int, warmup: int = 0) -> list[Round]:
    return list(rounds(take, sides, count, warmup))


def test_what_decides_how_a_benchmark_is_sampled() -> None:
    assert (EXPENSIVE, MANY, FIRST_ANALYSIS, IDLE) == (2.0, 12, 24, 0.1)


@given(st.integers(0, 2**63), st.text(), st.integers(0, 10**6))
def test_the_coin_is_a_pure_function(seed: int, benchmark: str, pair: int) -> None:
    assert coin(seed, benchmark, pair) is coin(seed, benchmark, pair)


def test_the_coin_is_fair_over_pairs_benchmarks_and_seeds() -> None:
    """4 sigma of 10,000 flips are 200; the inputs are fixed, so the test is deterministic."""
    for flips in (
        [coin(1, "b", pair) for pair in range(10_000)],
        [coin(1, f"b{number}", 0) for number in range(10_000)],
        [coin(seed, "b", 0) for seed in range(10_000)],
    ):
        assert abs(sum(flips) - 5000) < 200
    neighbours = [coin(1, "b", pair) == coin(1, "b", pair + 1) for pair in range(10_000)]
    assert abs(sum(neighbours) - 5000) < 200


def test_names_and_numbers_do_not_run_together() -> None:
    flips = [[coin(1, "b1", pair) for pair in range(64)], [coin(11, "b", pair) for pair in range(64)]]
    assert flips[0] != flips[1]


def test_each_round_has_one_process_of_each_side_in_the_coins_order(clock: Clock) -> None:
    take = Taker(clock)
    found = taken(take, (BASELINE, CANDIDATE), 40)
    assert [item.number for item in found] == list(range(40))
    for number, item in enumerate(found):
        pair = take.order[2 * number : 2 * number + 2]
        assert sorted(pair) == [BASELINE, CANDIDATE]
        assert item.first is pair[0]
        assert (item.first is CANDIDATE) == coin(7, "b", number)
        assert list(item.readings) == [BASELINE, CANDIDATE]
        first, second = item.readings[pair[0]], item.readings[pair[1]]
        assert (first[0].value, second[0].value) == (2 * number + 1, 2 * number + 2)


def test_a_single_side_has_no_coin(clock: Clock) -> None:
    take = Taker(clock)
    found = taken(take, (BASELINE,), 20)
    assert take.order == [BASELINE] * 20
    assert {item.first for item in found} == {BASELINE}


def test_warm_up_runs_of_each_side_are_thrown_away(clock: Clock) -> None:
    take = Taker(clock)
    found = taken(take, (BASELINE, CANDIDATE), 1, warmup=2)
    assert take.order[:4] == [BASELINE, CANDIDATE] * 2
    assert len(take.order) == 6
    assert {reading.value for item in found for (reading,) in item.readings.values()} == {5.0, 6.0}


@pytest.mark.parametrize(
    ("pause", "warmup", "thrown_away"), [(0.0, 1, 0), (IDLE / 2, 1, 0), (IDLE * 2, 1, 3), (9, 0, 0)]
)
def test_after_a_pause_a_run_is_thrown_away(clock: Clock, pause: float, warmup: int, thrown_away: int) -> None:
    take = Taker(clock)
    walking = rounds(take, (BASELINE, CANDIDATE), 4, warmup)
    readings = []
    for item in walking:
        readings += [reading.value for (reading,) in item.readings.values()]
        clock.now += pause
    assert len(take.order) == 2 * warmup + 8 + thrown_away
    assert len(set(readings)) == 8


def test_a_long_run_is_not_a_pause(clock: Clock) -> None:
    take = Taker(clock, lasts=60.0)
    taken(take, (BASELINE, CANDIDATE), 3, warmup=1)
    assert len(take.order) == 8


def test_the_run_before_a_cold_pair_is_of_the_side_that_goes_first(clock: Clock) -> None:
    take = Taker(clock)
    for item in rounds(take, (BASELINE, CANDIDATE), 12, 1):
        if item.number:
            assert take.order[-3] is take.order[-2] is item.first
        clock.now += 1


def test_a_failing_sample_ends_it_and_nothing_is_taken_for_none(clock: Clock) -> None:
    assert taken(Taker(clock), (BASELINE,), 0) == []

    def fails(request: Request) -> tuple[Reading, ...]:
        raise RuntimeError(request.side)

    scheduler = PairScheduler(1)
    (turn,) = scheduler.round([BenchmarkToSample("b", (BASELINE,), fails)], 0)
    with pytest.raises(RuntimeError):
        list(scheduler.take(turn))


def test_a_round_goes_over_all_its_benchmarks_in_random_order(clock: Clock) -> None:
    subjects = [BenchmarkToSample(name, (BASELINE, CANDIDATE), Taker(clock)) for name in "abcd"]
    scheduler = PairScheduler(7, warmup=0, clock=clock)
    rounds = [list(scheduler.round(subjects, number)) for number in range(30)]
    names = [tuple(turn.benchmarks[0].name for turn in turns) for turns in rounds]
    assert {tuple(sorted(order)) for order in names} == {tuple("abcd")}
    assert len(set(names)) > 5
    for number, turns in enumerate(rounds):
        assert [(turn.number, turn.place) for turn in turns] == [(number, (place, 4)) for place in (1, 2, 3, 4)]
        assert all((turn.order[0] is CANDIDATE) == coin(7, turn.benchmarks[0].name, number) for turn in turns)


def test_the_same_seed_gives_the_same_orders(clock: Clock) -> None:
    def names(seed: int) -> list[tuple[str, Side]]:
        subjects = [BenchmarkToSample(name, (BASELINE, CANDIDATE), Taker(clock)) for name in "abcd"]
        scheduler = PairScheduler(seed, warmup=0, clock=clock)
        turns = [turn for number in range(8) for turn in scheduler.round(subjects, number)]
        return [(turn.benchmarks[0].name, turn.order[0]) for turn in turns]

    assert names(1) == names(1) != names(2)


def test_few_runs_are_in_completely_random_order(clock: Clock) -> None:
    orders = set()
    for seed in range(200):
        take = Taker(clock)
        scheduler = PairScheduler(seed, warmup=0, clock=clock)
        found = run(scheduler, scheduler.random_block(BenchmarkToSample("b", (BASELINE, CANDIDATE), take)))
        assert sorted(take.order) == [BASELINE] * FEW + [CANDIDATE] * FEW
        assert [list(item.readings) for item in found] == [[side] for side in take.order]
        orders.add(tuple(take.order))
    # 252 orders are equally likely; 200 draws produce about 138 different ones.
    assert 110 < len(orders) < 170


def test_warming_up_says_how_long_a_run_takes(clock: Clock) -> None:
    subject = BenchmarkToSample("b", (BASELINE, CANDIDATE), Taker(clock, lasts=3.0))
    scheduler = PairScheduler(1, warmup=1, clock=clock)
    for turn in scheduler.warm_ups((subject,)):
        list(scheduler.take(turn))
        assert scheduler.seconds == 3.0
    assert clock.now == 1006.0
    assert not list(PairScheduler(1, warmup=0, clock=clock).warm_ups((subject,)))


class Suite:
    """A suite in one process: ``broken`` fail anywhere, ``shy`` only among others; ``kills`` ends the process."""

    def __init__(self, clock: Clock, *, broken: str = "", shy: str = "", kills: str = "", slow: str = "") -> None:
        self.clock, self.broken, self.shy, self.kills, self.slow = clock, broken, shy, kills, slow
        self.requests: list[tuple[str, Side, int, bool]] = []
        self.said: list[str] = []
        self.scheduler = PairScheduler(7, clock=clock, say=self.said.append)
        self.benchmarks = [
            BenchmarkToSample(name, (BASELINE, CANDIDATE), self.take, own_id=name, together=0.5) for name in "abcd"
        ]

    def take(self, request: Request) -> tuple[Reading, ...]:
        names = "".join(item.name for item in request.benchmarks)
        self.requests.append((names, request.side, request.number, request.warming))
        self.clock.now += 1.0
        if self.kills and self.kills in names:
            raise LostError
        several = len(names) > 1
        lasting = [name for name in names if name not in self.broken and not (several and name in self.shy)]
        if not lasting:
            raise LostError
        return tuple(Reading("time", 0.6 if name in self.slow else 0.1, name) for name in lasting)

    def late(self, request: Request) -> tuple[Reading, ...]:
        self.take(request)
        raise TimeUpError

    def rounds(self, count: int) -> list[list[str]]:
        run(
            self.scheduler,
            (turn for group in self.scheduler.groups(self.benchmarks) for turn in self.scheduler.warm_ups(group)),
        )
        return [
            [item.benchmark.name for item in run(self.scheduler, self.scheduler.round(self.benchmarks, number))]
            for number in range(count)
        ]


def test_one_process_of_each_side_measures_all_benchmarks_in_one_order(clock: Clock) -> None:
    suite = Suite(clock)
    rounds = suite.rounds(20)
    assert [sorted(names) for names in rounds] == [list("abcd")] * 20
    assert suite.requests[:2] == [("abcd", BASELINE, 0, True), ("abcd", CANDIDATE, 0, True)]
    pairs = list(zip(suite.requests[2::2], suite.requests[3::2], strict=True))
    assert all(first[0] == second[0] and {first[1], second[1]} == {BASELINE, CANDIDATE} for first, second in pairs)
    assert len({first[0] for first, _ in pairs}) > 10
    assert all((first[1] is CANDIDATE) == coin(7, "", number) for number, (first, _) in enumerate(pairs))


def test_each_benchmark_of_a_round_has_its_share_of_the_time(clock: Clock) -> None:
    suite = Suite(clock)
    suite.rounds(0)
    (turn,) = suite.scheduler.round(suite.benchmarks, 0)
    assert [(item.seconds, item.together) for item in suite.scheduler.take(turn)] == [(0.5, 4)] * 4
    assert suite.scheduler.seconds == 0.25


@pytest.mark.parametrize("how", ["broken", "kills"])
def test_a_benchmark_that_fails_does_not_lose_the_others(clock: Clock, how: str) -> None:
    suite = Suite(clock, **{how: "b"})
    assert [sorted(names) for names in suite.rounds(3)] == [list("acd")] * 3
    assert suite.scheduler.lost == {"b"}
    assert {len(names) for names, _, _, warming in suite.requests if not warming} == {3}
    assert suite.said == []


def test_a_benchmark_that_fails_only_among_others_runs_in_its_own_process(clock: Clock) -> None:
    suite = Suite(clock, shy="c")
    assert [sorted(names) for names in suite.rounds(3)] == [list("abcd")] * 3
    assert suite.scheduler.lost == set()
    assert {"".join(sorted(names)) for names, _, _, warming in suite.requests if not warming} == {"abd", "c"}
    assert set(suite.said) == {f"c {DISTURBED}"}


def test_benchmarks_of_a_suite_that_only_one_process_each_can_run_are_separate(clock: Clock) -> None:
    suite = Suite(clock, shy="abcd")
    assert [sorted(names) for names in suite.rounds(2)] == [list("abcd")] * 2
    assert {names for names, _, _, warming in suite.requests if not warming} == set("abcd")


def test_a_process_that_the_end_of_the_time_ends_is_not_tried_again(clock: Clock) -> None:
    suite = Suite(clock)
    suite.rounds(1)
    before = len(suite.requests)
    ended = [replace(item, take=suite.late) for item in suite.benchmarks]
    assert run(suite.scheduler, suite.scheduler.round(ended, 1)) == []
    assert (len(suite.requests), suite.scheduler.lost) == (before + 1, set("abcd"))


def test_a_benchmark_of_long_iterations_runs_in_its_own_process(clock: Clock) -> None:
    suite = Suite(clock, slow="a")
    suite.rounds(1)
    assert {"".join(sorted(names)) for names, _, _, warming in suite.requests if not warming} == {"a", "bcd"}


def test_benchmarks_that_were_recalled_are_not_measured_again(clock: Clock) -> None:
    suite = Suite(clock)
    known = dict.fromkeys((BASELINE, CANDIDATE), (Reading("time", 9.0, "b"),))
    suite.scheduler.taken = {("b", 0): known}
    found = run(suite.scheduler, suite.scheduler.round(suite.benchmarks, 0))
    assert {item.benchmark.name: item.recalled for item in found} == {"a": False, "b": True, "c": False, "d": False}
    assert not any("b" in names for names, *_ in suite.requests)


def side_by_side(can: Iterable[str] = "abc", cores: tuple[int, ...] = (2, 5)) -> SideBySide:
    """Run what is to run at the same time one after the other."""
    names = set(can)
    return SideBySide(cores, lambda item: item.name in names, lambda first, second: (first(), second()))


@dataclass(eq=False)
class Requests:
    """Takes a figure of each benchmark of a request, or fails with ``fails`` when two sides run at once."""

    fails: type[LostError] | None = None
    without: str = ""
    """A benchmark that has no figure when both sides run at the same time."""
    seen: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> tuple[Reading, ...]:
        self.seen.append(request)
        if self.fails and request.core is not None:
            raise self.fails
        left = [item.name for item in request.benchmarks if request.core is None or item.name != self.without]
        return tuple(Reading("time", 1.0, name) for name in left)


def suite(take: Requests, names: str = "abc") -> list[BenchmarkToSample]:
    return [BenchmarkToSample(name, (BASELINE, CANDIDATE), take, own_id=name, together=1.0) for name in names]


def test_benchmarks_that_compute_run_side_by_side_on_a_random_core_and_the_others_in_turn() -> None:
    take = Requests()
    scheduler = PairScheduler(7, warmup=0, side_by_side=side_by_side("ab"))
    found = [item for number in range(20) for item in run(scheduler, scheduler.round(suite(take), number))]
    assert {item.benchmark.name: item.side_by_side for item in found} == {"a": True, "b": True, "c": False}
    assert len(found) == 60
    cores = set()
    for number in range(20):
        both = [one for one in take.seen if one.number == number and len(one.benchmarks) == 2]
        # Both processes of a pair have the same core, and the coin decides which one starts first.
        assert {one.side for one in both} == {BASELINE, CANDIDATE}
        assert len({one.core for one in both}) == 1
        assert (both[0].side is CANDIDATE) == coin(7, "", number)
        cores.add(both[0].core)
        assert [one.core for one in take.seen if one.number == number and len(one.benchmarks) == 1] == [None, None]
    assert cores == {2, 5}


def test_warm_ups_and_single_runs_have_the_machine_alone() -> None:
    take = Requests()
    scheduler = PairScheduler(7, side_by_side=side_by_side())
    (group,) = scheduler.groups(suite(take))
    run(scheduler, scheduler.warm_ups(group))
    run(scheduler, scheduler.random_block(group[0]))
    assert {request.core for request in take.seen} == {None}


def test_what_fails_or_has_no_figure_side_by_side_runs_in_turn_from_then_on() -> None:
    for take, alone in ((Requests(LostError), "abc"), (Requests(without="b"), "b")):
        scheduler = PairScheduler(7, warmup=0, side_by_side=side_by_side())
        first, second = (run(scheduler, scheduler.round(suite(take), number)) for number in range(2))
        for found in (first, second):
            assert {item.benchmark.name for item in found if not item.side_by_side} == set(alone)
            assert sorted(item.benchmark.name for item in found) == ["a", "b", "c"]
        assert not scheduler.lost
        assert sum(request.core is not None for request in take.seen) == (1 if take.fails else 4)


def test_time_that_ends_side_by_side_ends_the_benchmarks() -> None:
    take = Requests(TimeUpError)
    scheduler = PairScheduler(7, warmup=0, side_by_side=side_by_side())
    assert run(scheduler, scheduler.round(suite(take), 0)) == []
    assert scheduler.lost == {"a", "b", "c"}


def test_without_a_usable_core_nothing_runs_side_by_side() -> None:
    take = Requests()
    scheduler = PairScheduler(7, warmup=0, side_by_side=side_by_side(cores=()))
    assert not any(item.side_by_side for item in run(scheduler, scheduler.round(suite(take), 0)))
