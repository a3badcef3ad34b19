"""Sample the benchmarks of one step: choose their designs, confirm changes, and record rounds as events.

This module starts no processes. A benchmark brings the function that runs it, so recorded runs can be replayed with the
same rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from perfflow.model.readings import SCHEDULES, Design, Reading, Side
from perfflow.model.units import Dimension, format_interval, format_quantity
from perfflow.sampling.pairs import BenchmarkToSample, PairScheduler, Round, SamplingProgress, Turn
from perfflow.sampling.stop_rule import Stop, StopRule
from perfflow.stats.paired_test import CONFIRMING, FEW, FEW_MORE, MANY
from perfflow.store.record import reading_from_json, reading_to_json

EXPENSIVE = 2.0
"""Duration in s from which a command is compared by a few runs in completely random order."""
FIRST_ANALYSIS = 24
"""A command is also expensive if its budget allows fewer runs than this: 11 pairs and a reserve."""
ANALYSES = frozenset(pairs for pairs, _ in SCHEDULES[Design.LOOKS])
MOST_ALONE = 8
"""Benchmarks that would fail a gate and are confirmed alone, the worst first; the others are confirmed together."""


class StepSampling:
    """Takes samples of the benchmarks of a step; ``store`` receives each event, ``warnings`` collects warnings."""

    def __init__(
        self,
        step: str,
        scheduler: PairScheduler,
        stop_rule: StopRule,
        store: Callable[[Mapping[str, Any]], None],
        warnings: dict[str, None],
        between: Callable[[SamplingProgress], None] = lambda _: None,
    ) -> None:
        """``between`` is called with the progress after each turn, while no process runs."""
        self._step, self._scheduler, self._store, self._warnings = step, scheduler, store, warnings
        self.stop_rule, self._between, self._clock = stop_rule, between, stop_rule.clock
        self._many, self._confirmation = False, 0
        self._numbered: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        """Duration of the longest round of each benchmark (s)."""
        self._took: dict[str, float] = {}
        """Duration of the longest warm-up process of each benchmark (s), divided by the number of its benchmarks."""
        self._pair_seconds = 0.0
        """Duration of the last pair of processes (s)."""
        self._place = 1, 1
        """Position of the current benchmark among the expensive ones, and their number."""
        self._expensive: set[str] = set()
        self._few_before: set[tuple[str, int]] = set()
        """Single runs from before an interruption, except those that confirm."""
        self._layouts_follow = False
        self._waiting: list[BenchmarkToSample] = []
        """Changed benchmarks without fresh pairs, since pairs with fresh code layouts confirm them."""

    def recall(self, events: Iterable[Mapping[str, Any]], benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Load the samples from before an interruption, so that none of them is taken again."""
        taken: dict[tuple[str, int], Mapping[Side, tuple[Reading, ...]]] = {}
        few: dict[tuple[str, int], Mapping[Side, tuple[Reading, ...]]] = {}
        for event in events:
            sides = {side: tuple(map(reading_from_json, event[side.value])) for side in Side if side.value in event}
            # One process of a single benchmark may report benchmarks of any name.
            name = benchmarks[0].name if len(benchmarks) == 1 else next(iter(sides.values()))[0].benchmark
            single = event["design"] in (Design.FEW.value, Design.FEW_LAYOUTS.value)
            if single and not event.get("confirmation"):
                self._few_before.add((name, event["pair"]))
            (few if single else taken)[name, event["pair"]] = sides
        self._scheduler.taken, self._scheduler.taken_few = taken, few

    def _is_begun(self, benchmark: BenchmarkToSample) -> bool:
        first = (benchmark.name, 0)
        return first in self._scheduler.taken or first in self._scheduler.taken_few

    def take_rounds(
        self, benchmarks: Sequence[BenchmarkToSample], design: Design, rounds: int, ends: float, start: int = 0
    ) -> None:
        """Take ``rounds`` rounds of each benchmark, or fewer if the time ``ends`` is reached, but at least one."""
        if start == 0:
            self._warm_up(benchmarks, design)
        left, taken = self.able(benchmarks), 0
        while left and taken < rounds:
            self._take(self._scheduler.round(left, start + taken), design)
            left, taken = self.able(left), taken + 1
            if taken < rounds and self._clock() >= ends:
                self.stop_rule.stop_for_time(left, ends)
                return
        self.stop_rule.stop(left, None)

    def take_until_decided(
        self,
        benchmarks: Sequence[BenchmarkToSample],
        ends: float,
        benchmark_budget: float,
        *,
        others: int = 0,
        coarsely: bool = False,
        kept: float = 0.0,
    ) -> None:
        """Take pairs until the interim analyses decide; expensive benchmarks get a few runs in random order instead.

        If there are many benchmarks, or one process measures several, changes are confirmed by fresh samples.
        ``benchmark_budget``: of one benchmark in s. A few expensive runs may exceed it, with a warning. ``others``:
        number of benchmarks that other steps and machines compare. ``coarsely``: a benchmark among many that is the
        same within the concern threshold is not measured to a narrower interval. ``kept``: share of the time that is
        left for pairs with fresh code layouts while a benchmark seems changed. If it is above 0, those confirm changes
        beyond the concern threshold, except of benchmarks that are confirmed alone.
        """
        compared = [item for item in benchmarks if len(item.sides) == 2]
        together = any(len(group) > 1 for group in self._scheduler.groups(compared))
        self._many = bool(compared) and (together or len(benchmarks) + others > MANY)
        self._layouts_follow = kept > 0
        self._warm_up(benchmarks, Design.LOOKS)
        quick, slow = self._split(benchmarks, benchmark_budget / FIRST_ANALYSIS)
        self._take_expensive(slow, ends, benchmark_budget, others=len(quick))
        self.stop_rule.start(quick, ends, len(slow), coarsely=coarsely and self._many)
        kept *= ends - self._clock() if math.isfinite(ends) else 0.0
        taken, left, reserve = 0, list(quick), 0.0
        while left:
            done = [item for item in self.able(left) if self.stop_rule.decided(item, taken, ahead=reserve)]
            if self._many:
                self._confirm([item for item in done if self.stop_rule.changed(item)], self.stop_rule.ends, 1)
            left = [item for item in self.able(left) if item not in done]
            self._take(self._scheduler.round(left, taken), Design.LOOKS)
            taken += 1
            if (self._many or kept) and taken in ANALYSES:
                # Time to confirm what seems changed so far. What is decided waits for its layouts until the others are.
                confirming = CONFIRMING[0] * self._seconds_to_confirm(left) if self._many else 0.0
                follow = kept if kept and any(map(self.stop_rule.changed, self.able(quick))) else 0.0
                reserve = max(confirming, follow)

    def _seconds_to_confirm(self, left: Sequence[BenchmarkToSample]) -> float:
        """Return the seconds that a fresh pair of each changed one takes, alone in its processes."""
        suspects = min(sum(map(self.stop_rule.changed, left)), MOST_ALONE)
        # The start of a process may take most of its time, and then a benchmark alone takes as long as a few together.
        # Compared with many together, it is assumed to take half as long.
        return suspects * self._pair_seconds * (1 + min(1.0, MOST_ALONE / max(1, len(left)))) / 2

    def _split(
        self, benchmarks: Sequence[BenchmarkToSample], bound: float
    ) -> tuple[list[BenchmarkToSample], list[BenchmarkToSample]]:
        """Split benchmarks into quick and expensive ones: a process takes longer than ``bound`` or EXPENSIVE."""
        quick: list[BenchmarkToSample] = []
        slow: list[BenchmarkToSample] = []
        for item in self.able(benchmarks):
            recalled = (item.name, 0) in self._scheduler.taken_few
            expensive = self._took.get(item.name, 0.0) > min(EXPENSIVE, bound) and len(item.sides) == 2
            (slow if recalled or expensive else quick).append(item)
        return quick, slow

    def _take_expensive(
        self, slow: Sequence[BenchmarkToSample], ends: float, benchmark_budget: float, others: int
    ) -> None:
        """Take a few runs of each in random order, and more of undecided ones while there is time.

        Among many benchmarks, some seem changed by chance, so fresh runs must confirm a change.
        """
        began = self._clock()
        # The quick ones get the time that is left: their part of it is kept.
        part = len(slow) / max(1, len(slow) + others)
        self.stop_rule.start(slow, began + (ends - began) * part if slow else ends, others)
        self._expensive.update(benchmark.name for benchmark in slow)
        fitting = []
        for number, benchmark in enumerate(slow, 1):
            self._place = number, len(slow)
            if self._take_few(benchmark, ends, benchmark_budget):
                fitting.append(benchmark)
        self._take_more(fitting)
        if self._many:
            self._confirm_few(
                [benchmark for benchmark in self.able(fitting) if self.stop_rule.changed(benchmark)], ends, 1
            )

    def _take_few(self, benchmark: BenchmarkToSample, ends: float, benchmark_budget: float) -> bool:
        """Take a few runs in random order, or one of each side with a warning if the budget is too short.

        Returns whether the budget was long enough.
        """
        began, needed = self._clock(), FEW * len(benchmark.sides) * self._took.get(benchmark.name, 0.0)
        fits = began + needed <= ends
        self._take(self._scheduler.random_block(benchmark, FEW if fits else 1), Design.FEW)
        if not fits:
            self.stop_rule.stop([benchmark], Stop.TOTAL_BUDGET)
            about = format_quantity(needed, Dimension.TIME)
            warning = f"{FEW} runs of each side would take about {about}, but the budget is too short: took one of each"
            self._warnings[warning] = None
        elif self._clock() - began > benchmark_budget:
            budget = format_quantity(benchmark_budget, Dimension.TIME)
            warning = f"{FEW} runs of each side, the fewest that can prove a change, exceeded the budget of {budget}"
            self._warnings[warning] = None
        return fits

    def _take_more(self, benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Take further blocks of undecided benchmarks in turn, while there is time for a whole block.

        Among many benchmarks, what changed so far keeps the time to be confirmed.
        """
        left, runs, reserve = list(benchmarks), FEW, self._to_confirm_few(benchmarks)
        while left := [item for item in self.able(left) if not self._is_known(item, runs, reserve)]:
            for number, item in enumerate(left, 1):
                self._place = number, len(left)
                self._take(self._scheduler.random_block(item, FEW_MORE, runs), Design.FEW)
            runs += FEW_MORE
            reserve = self._to_confirm_few(benchmarks)

    def _to_confirm_few(self, benchmarks: Sequence[BenchmarkToSample]) -> float:
        """Return the seconds that it takes to confirm the changes of expensive benchmarks, of a few if many changed."""
        changed = filter(self.stop_rule.changed, self.able(benchmarks)) if self._many else ()
        return sum(sorted(map(self._seconds_of_confirmation, changed))[:MOST_ALONE])

    def _seconds_of_confirmation(self, benchmark: BenchmarkToSample) -> float:
        return 2 * FEW_MORE * len(benchmark.sides) * self._seconds.get(benchmark.name, 0.0)

    def _is_known(self, benchmark: BenchmarkToSample, runs: int, reserve: float) -> bool:
        if (benchmark.name, runs * len(benchmark.sides)) in self._few_before:
            return False  # more runs were taken before the interruption
        ahead = FEW_MORE * len(benchmark.sides) * self._seconds.get(benchmark.name, 0.0)
        return self.stop_rule.decided(benchmark, runs, Design.FEW, ahead + reserve)

    # -- confirmations

    def confirm(self, benchmarks: Sequence[BenchmarkToSample], ends: float, confirmations: int) -> None:
        """Take fresh samples of benchmarks that regressed beyond the concern threshold, as long as they confirm it.

        A confirmation starts only if there is time left.
        """
        if confirmations:
            self.confirm_waiting(ends)
        for number in range(2 if self._many else 1, confirmations + 1):
            regressed = [item for item in self.able(benchmarks) if self.stop_rule.regressed(item)]
            few = [item for item in regressed if item.name in self._expensive]
            self._confirm_few(few, ends, number)
            self._confirm([item for item in regressed if item not in few], ends, number)

    def _confirm(self, changed: Sequence[BenchmarkToSample], ends: float, number: int) -> None:
        """Take fresh pairs of each benchmark until they confirm its change or will hardly do so.

        Benchmarks that would fail a gate are measured alone, the worst first. If one of them changed only among others,
        the benchmarks of the suite disturb each other, and all are measured alone from then on.
        """
        worst = sorted(changed, key=self.stop_rule.fails, reverse=True)
        failing = [item for item in worst if item.together and self.stop_rule.fails(item) > 0][:MOST_ALONE]
        self._scheduler.separate(failing)
        for item in failing:
            self._take_confirmation([item], ends, number)
            if contradiction := self.stop_rule.contradicted(item):
                among, alone = (
                    format_interval(it.estimate, it.low, it.high) for it in (contradiction.before, contradiction.change)
                )
                warning = (
                    f"{item.name} changed by {among} among the other benchmarks of its suite, but by {alone} alone"
                )
                self._warnings[f"{warning}: they disturb each other; set `rounds: benchmark`"] = None
                self._scheduler.separate(changed)
        others = [item for item in changed if item not in failing]
        waiting = [item for item in others if self._layouts_follow and self.stop_rule.rests_on_layout(item)]
        self._waiting += waiting
        self._take_confirmation([item for item in others if item not in waiting], ends, number)

    def confirm_waiting(self, ends: float) -> None:
        """Take fresh pairs of the changed benchmarks that were to be confirmed over code layouts."""
        waiting, self._waiting, self._layouts_follow = self._waiting, [], False
        self._confirm(waiting, ends, 1)

    def _take_confirmation(self, benchmarks: Sequence[BenchmarkToSample], ends: float, number: int) -> None:
        left, before = self.able(benchmarks), 0
        if not left or (self._clock() >= ends and not self._was_confirmed(left)):
            return
        self._confirmation, start = number, self.next_number(left)
        for pairs in CONFIRMING:
            self.stop_rule.stop(left, None)
            self.take_rounds(left, Design.CONFIRM, pairs - before, ends, start=start + before)
            before = pairs
            left = [item for item in self.able(left) if not self.was_stopped(item)]
            done = [item for item in left if self.stop_rule.has_confirmation(item, pairs)]
            self.stop_rule.stop(done, Stop.SETTLED)
            left = [item for item in left if item not in done]
            if not left:
                break
        self.stop_rule.stop(left, Stop.LAST_LOOK)
        self._confirmation = 0

    def _was_confirmed(self, benchmarks: Sequence[BenchmarkToSample]) -> bool:
        """Return whether the confirmation was begun before an interruption."""
        return any(self.is_recalled(item, self.next_number([item]), single=False) for item in benchmarks)

    def _confirm_few(self, benchmarks: Sequence[BenchmarkToSample], ends: float, number: int) -> None:
        """Take two more blocks of each expensive benchmark, if there is time for both, and then one at a time.

        They go on until the fresh runs confirm its change or will hardly do so.
        """
        self._confirmation, left, fresh, blocks = number, list(benchmarks), 0, 2
        while left:
            taken = []
            for place, benchmark in enumerate(left, 1):
                self._place = place, len(left)
                begun = self._numbered[benchmark.name]
                seconds = self._seconds_of_confirmation(benchmark) * blocks / 2
                if self.is_recalled(benchmark, begun, single=True) or self._clock() + seconds <= ends:
                    done = begun // len(benchmark.sides)
                    for block in range(blocks):
                        turns = self._scheduler.random_block(benchmark, FEW_MORE, done + block * FEW_MORE)
                        self._take(turns, Design.FEW)
                    taken.append(benchmark)
            fresh, blocks = fresh + blocks * FEW_MORE, 1
            left = [item for item in self.able(taken) if not self.stop_rule.has_confirmation(item, fresh)]
        self._confirmation = 0

    def _warm_up(self, benchmarks: Iterable[BenchmarkToSample], design: Design) -> None:
        """Warm up the benchmarks without samples, and report the progress after each process."""
        fresh = [item for item in benchmarks if not self._is_begun(item) and item.name not in self._took]
        groups = self._scheduler.groups(fresh)
        for number, group in enumerate(groups, 1):
            self._take(self._scheduler.warm_ups(group), design)
            if len(fresh) > 1:
                unit = "pair" if len(group[0].sides) == 2 else "run"
                self._between(SamplingProgress(group[-1].name, 0, unit, (number, len(groups))))

    # -- rounds with fresh code layouts

    def groups(self, benchmarks: Sequence[BenchmarkToSample]) -> list[tuple[BenchmarkToSample, ...]]:
        """Return the benchmarks by process: those that are measured together, and each of the others."""
        return self._scheduler.groups(benchmarks)

    def able(self, benchmarks: Iterable[BenchmarkToSample]) -> list[BenchmarkToSample]:
        """Return the benchmarks that can still be sampled."""
        return [item for item in benchmarks if item.name not in self._scheduler.lost]

    @property
    def seconds(self) -> float:
        """Duration of the last process (s), divided by the number of its benchmarks."""
        return self._scheduler.seconds

    def seconds_of(self, benchmark: BenchmarkToSample) -> float:
        """Return the duration of the longest round of a benchmark (s), 0 if it had none."""
        return self._seconds.get(benchmark.name, 0.0)

    def next_number(self, benchmarks: Iterable[BenchmarkToSample]) -> int:
        """Return the number of the next round of all these benchmarks."""
        return max((self._numbered.get(item.name, 0) for item in benchmarks), default=0)

    def with_layouts_from(self, number: int | None) -> None:
        """Use a fresh code layout of each side in every round from ``number`` on; None: use the ordinary build."""
        self._scheduler.first_with_layouts = number

    def take_layouts_in_turn(self, benchmark: BenchmarkToSample, layouts: int, start: int) -> None:
        """Take one run of each layout of each side; ``start`` is the number of the first run."""
        self._take(self._scheduler.layouts_in_turn(benchmark, layouts, start), Design.FEW_LAYOUTS)

    def is_recalled(self, benchmark: BenchmarkToSample, number: int, *, single: bool | None = None) -> bool:
        """Return whether a round was taken before an interruption; ``single``: only as a single run, or as a pair."""
        key = (benchmark.name, number)
        pair, run = key in self._scheduler.taken, key in self._scheduler.taken_few
        return pair or run if single is None else (run if single else pair)

    def was_stopped(self, benchmark: BenchmarkToSample) -> bool:
        """Return whether a benchmark was stopped before it had all requested rounds."""
        return benchmark.name in self.stop_rule.stopped

    def tell_why_stopped(self, benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Store an event with the reason for each stopped benchmark.

        The event of a single benchmark names none, since its process may have reported several; without a round it has
        none, and the event names it.
        """
        for item in benchmarks:
            if item.name in self.stop_rule.stopped:
                name = item.name if len(benchmarks) > 1 or not self.next_number([item]) else ""
                why = self.stop_rule.stopped[item.name].value
                self._store({"event": "stopped", "step": self._step, "benchmark": name, "reason": why})

    def _take(self, turns: Iterable[Turn], design: Design) -> None:
        """Take rounds, store each, and report progress. Warm-up runs are not stored."""
        for turn in turns:
            last = None
            for sampled in self._scheduler.take(turn):
                name = sampled.benchmark.name
                if turn.warming:
                    self._took[name] = max(self._scheduler.seconds, self._took.get(name, 0.0))
                    continue
                self._numbered[name] = sampled.number + 1
                self._seconds[name] = max(sampled.seconds, self._seconds.get(name, 0.0))
                self._pair_seconds = sampled.seconds * sampled.together
                event = self._event(sampled, design)
                if not sampled.recalled:
                    self._store(event)
                self.stop_rule.happened(event)
                last = sampled
            if last:
                unit = "pair" if len(last.readings) == 2 else "run"
                place = self._place if design is Design.FEW else turn.place
                self._between(SamplingProgress(last.benchmark.name, last.number + 1, unit, place))

    def _event(self, sampled: Round, design: Design) -> dict[str, Any]:
        """Return the event of a round of one benchmark."""
        event: dict[str, Any] = {"event": "sample", "step": self._step, "design": design.value}
        event |= {"pair": sampled.number, "first": sampled.first.value}
        if sampled.benchmark.one_sided:
            event["alone"] = True
        if self._many:
            event["many"] = True
        if sampled.together > 1:
            event["together"] = sampled.together
        if sampled.side_by_side:
            event["side_by_side"] = True
        if self._confirmation:
            event["confirmation"] = self._confirmation
        if sampled.seconds:
            event["seconds"] = round(sampled.seconds, 6)
        if sampled.layout:
            event["layout"] = sampled.layout
        for side, readings in sampled.readings.items():
            event[side.value] = [reading_to_json(reading) for reading in readings]
        return event
