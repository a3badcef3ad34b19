"""Sample the benchmarks of one step: choose their designs, stop each when it has enough, and record rounds as events.

This module starts no processes. The subject brings the function that runs one side of a benchmark, so recorded runs can
be replayed with the same rules.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from perfflow.model.design import Design
from perfflow.model.readings import Reading, Side
from perfflow.model.units import Dimension, format_quantity
from perfflow.sampling.pairs import EXPENSIVE, FIRST_LOOK, LostError, Round, Sampled, Sampler, Subject, Turn
from perfflow.sampling.stop_rule import Stop, StopRule
from perfflow.stats.designs import CONFIRMING, FEW, FEW_MORE, SCREENING
from perfflow.store.record import reading_from_json, reading_to_json

FOR_SCREENING = 2 / 3
"""Share of the time of a step that screening may use if the budget of the run is short."""


class Sampling:
    """Takes samples of the benchmarks of a step; ``store`` receives each event, ``warnings`` collects warnings."""

    def __init__(
        self,
        step: str,
        sampler: Sampler,
        stop_rule: StopRule,
        store: Callable[[Mapping[str, Any]], None],
        warnings: dict[str, None],
        between: Callable[[Sampled], None] = lambda _: None,
    ) -> None:
        """``between`` is called with the progress after each round, while no process runs."""
        self._step, self._sampler, self._store, self._warnings = step, sampler, store, warnings
        self.stop_rule, self._between = stop_rule, between
        self._stopped = stop_rule.stopped
        self._confirmation, self._few_confirmation = 1, 0
        self._numbered: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        """Duration of the longest round of each benchmark (s)."""
        self._took: dict[str, float] = {}
        """Duration of the longest warm-up process of each benchmark (s)."""
        self._out_of_time = Stop.TOTAL_BUDGET
        self._turn = 1, 1
        """Position of the current benchmark among the expensive ones, and their number."""
        self._few_before: set[tuple[str, int]] = set()
        """Single runs from before an interruption, except those that confirm."""

    def recall(self, events: Iterable[Mapping[str, Any]], subjects: Sequence[Subject]) -> None:
        """Load the samples from before an interruption, so that none of them is taken again."""
        taken: dict[tuple[str, int], Mapping[Side, tuple[Reading, ...]]] = {}
        few: dict[tuple[str, int], Mapping[Side, tuple[Reading, ...]]] = {}
        for event in events:
            sides = {side: tuple(map(reading_from_json, event[side.value])) for side in Side if side.value in event}
            # One process of a single subject may report benchmarks of any name.
            name = subjects[0].name if len(subjects) == 1 else next(iter(sides.values()))[0].benchmark
            single = event["design"] in (Design.FEW.value, Design.FEW_LAYOUTS.value)
            if single and not event.get("confirmation"):
                self._few_before.add((name, event["pair"]))
            (few if single else taken)[name, event["pair"]] = sides
        self._sampler.taken, self._sampler.taken_few = taken, few

    def _is_begun(self, subject: Subject) -> bool:
        first = (subject.name, 0)
        return first in self._sampler.taken or first in self._sampler.taken_few

    def take_rounds(
        self, subjects: Sequence[Subject], design: Design, rounds: int, ends: float, start: int = 0
    ) -> None:
        """Take ``rounds`` rounds of each subject, or fewer if the time ``ends`` is reached, but at least one."""
        if start == 0:
            self._take(self._warm_ups(subjects), design)
        left, taken = self.able(subjects), 0
        while left and taken < rounds:
            self._take(self._sampler.round(left, start + taken), design)
            left, taken = self.able(left), taken + 1
            if taken < rounds:
                if time.monotonic() >= ends:
                    self._stopped.update(dict.fromkeys((subject.name for subject in left), self._out_of_time))
                left = [subject for subject in left if subject.name not in self._stopped]
        for subject in left:
            self._stopped.pop(subject.name, None)

    def take_until_decided(self, subjects: Sequence[Subject], ends: float, patience: float) -> None:
        """Take pairs until the interim analyses decide; expensive benchmarks get a few runs in random order instead.

        ``patience``: budget of one benchmark in s. A few expensive runs may exceed it, with a warning.
        """
        self._take(self._warm_ups(subjects), Design.LOOKS)
        quick, slow = self._split(subjects, patience / FIRST_LOOK)
        self._take_expensive(slow, ends, patience, others=len(quick))
        self.stop_rule.start(quick, ends, others=len(slow))
        taken = 0
        while quick := [subject for subject in self.able(quick) if not self.stop_rule.decided(subject, taken)]:
            self._take(self._sampler.round(quick, taken), Design.LOOKS)
            taken += 1

    def _split(self, subjects: Sequence[Subject], bound: float) -> tuple[list[Subject], list[Subject]]:
        """Split subjects into quick and expensive ones: a process takes longer than ``bound`` or EXPENSIVE."""
        quick: list[Subject] = []
        slow: list[Subject] = []
        for subject in self.able(subjects):
            recalled = (subject.name, 0) in self._sampler.taken_few
            expensive = self._took.get(subject.name, 0.0) > min(EXPENSIVE, bound) and len(subject.sides) == 2
            (slow if recalled or expensive else quick).append(subject)
        return quick, slow

    def _take_expensive(
        self, slow: Sequence[Subject], ends: float, patience: float, others: int, confirmations: int = 0
    ) -> None:
        """Take a few runs of each in random order, and more of undecided ones while there is time.

        ``confirmations``: number of times a proven change must be confirmed by a few fresh runs, which alone decide.
        Among many benchmarks, some seem changed by chance.
        """
        self.stop_rule.start(slow, ends, others)
        fitting = []
        for number, subject in enumerate(slow, 1):
            self._turn = number, len(slow)
            if self._take_few(subject, ends, patience):
                fitting.append(subject)
        self._take_more(fitting)
        for self._few_confirmation in range(1, confirmations + 1):
            fitting = [subject for subject in self.able(fitting) if self.stop_rule.changed(subject)]
            for number, subject in enumerate(fitting, 1):
                self._turn = number, len(fitting)
                self._take_few(subject, ends, patience, self._numbered[subject.name] // len(subject.sides))
        self._few_confirmation = 0

    def _take_few(self, subject: Subject, ends: float, patience: float, done: int = 0) -> bool:
        """Take a few runs in random order, or one of each side with a warning if the budget is too short.

        ``done``: number of earlier runs of each side. Returns whether the budget was long enough.
        """
        began, needed = time.monotonic(), FEW * len(subject.sides) * self._took.get(subject.name, 0.0)
        fits = began + needed <= ends
        self._take(self._sampler.few(subject, FEW if fits else 1, done), Design.FEW)
        if not fits:
            self._stopped[subject.name] = Stop.TOTAL_BUDGET
            about = format_quantity(needed, Dimension.TIME)
            said = f"{FEW} runs of each side would take about {about}, but the budget is too short: took one of each"
            self._warnings[said] = None
        elif time.monotonic() - began > patience:
            budget = format_quantity(patience, Dimension.TIME)
            said = f"{FEW} runs of each side, the fewest that can prove a change, exceeded the budget of {budget}"
            self._warnings[said] = None
        return fits

    def _take_more(self, subjects: Sequence[Subject]) -> None:
        """Take further blocks of undecided benchmarks in turn, while there is time for a whole block."""
        left, runs = list(subjects), FEW
        while left := [subject for subject in self.able(left) if not self._is_known(subject, runs)]:
            for number, subject in enumerate(left, 1):
                self._turn = number, len(left)
                self._take(self._sampler.few(subject, FEW_MORE, runs), Design.FEW)
            runs += FEW_MORE

    def _is_known(self, subject: Subject, runs: int) -> bool:
        if (subject.name, runs * len(subject.sides)) in self._few_before:
            return False  # more runs were taken before the interruption
        ahead = FEW_MORE * len(subject.sides) * self._seconds.get(subject.name, 0.0)
        return self.stop_rule.decided(subject, runs, Design.FEW, ahead)

    def screen(
        self,
        subjects: Sequence[Subject],
        ends: float = math.inf,
        patience: float = math.inf,
        confirmations: int = 1,
    ) -> None:
        """Screen each benchmark with a few pairs, in stages, and confirm noticeable changes by fresh pairs.

        Only the fresh pairs decide. ``patience``: budget of one benchmark in s. If it is too short for the fewest pairs
        of screening and confirmation, a few runs in random order replace the screening, and as many fresh runs confirm
        a proven change.
        """
        began = time.monotonic()
        self._take(self._warm_ups(subjects), Design.SCREEN)
        quick, slow = self._split(subjects, patience / (2 * (min(SCREENING) + min(CONFIRMING))))
        if slow:
            # Do not charge the warm-up of expensive benchmarks to the quick ones.
            began = time.monotonic()
        if quick:
            self.stop_rule.start(quick, others=len(slow))
            if began + patience * len(quick) < ends:
                self._out_of_time = Stop.BUDGET
            self._screen(quick, began, min(ends, began + patience * len(quick)), confirmations)
        if slow:
            self._take_expensive(slow, ends, patience, len(quick), confirmations)

    def _screen(self, subjects: Sequence[Subject], began: float, ends: float, confirmations: int) -> None:
        screened = began + (ends - began) * FOR_SCREENING
        taken, left = 0, list(subjects)
        for pairs in SCREENING:
            self.take_rounds(left, Design.SCREEN, pairs - taken, screened, start=taken)
            taken = pairs
            left = [subject for subject in self.able(left) if self.stop_rule.stands_out(subject, pairs)]
        for subject in left:
            self._stopped.pop(subject.name, None)
        self._confirm(left, ends, 1)
        self.confirm(left, ends, confirmations, first=2)

    def confirm(self, subjects: Sequence[Subject], ends: float, confirmations: int, first: int = 1) -> None:
        """Take fresh pairs of benchmarks that regressed beyond the concern threshold, as long as the regression shows.

        Only the last pairs decide, so a regression must show in every confirmation, and confirmations add no false
        alarms. A confirmation starts only if there is time left: otherwise it would replace a result by none.
        """
        for number in range(first, confirmations + 1):
            subjects = [subject for subject in self.able(subjects) if self.stop_rule.regressed(subject)]
            if not subjects or time.monotonic() >= ends:
                return
            self._confirm(subjects, ends, number)

    def _confirm(self, left: Sequence[Subject], ends: float, number: int) -> None:
        self._confirmation, before = number, 0
        start = max((self._numbered[subject.name] for subject in left), default=0)
        for pairs in CONFIRMING:
            self.take_rounds(left, Design.CONFIRM, pairs - before, ends, start=start + before)
            before = pairs
            left = [
                subject
                for subject in self.able(left)
                if subject.name not in self._stopped
                and not self.stop_rule.confirmed(subject)
                and not self.stop_rule.shows_nothing(subject, pairs)
            ]

    def _warm_ups(self, subjects: Iterable[Subject]) -> Iterator[Turn]:
        """Yield warm-up runs of subjects without samples, and report the progress after each subject."""
        fresh = [item for item in subjects if not self._is_begun(item) and item.name not in self._took]
        for number, subject in enumerate(fresh, 1):
            yield from self._sampler.warm_ups(subject)
            if len(fresh) > 1:
                unit = "pair" if len(subject.sides) == 2 else "run"
                self._between(Sampled(subject.name, 0, unit, (number, len(fresh))))

    # -- rounds with fresh code layouts

    def able(self, subjects: Iterable[Subject]) -> list[Subject]:
        """Return the subjects that can still be sampled."""
        return [subject for subject in subjects if subject.name not in self._sampler.lost]

    @property
    def seconds(self) -> float:
        """Duration of the last process (s)."""
        return self._sampler.seconds

    def next_number(self, subjects: Iterable[Subject]) -> int:
        """Return the number of the next round of all these subjects."""
        return max((self._numbered.get(subject.name, 0) for subject in subjects), default=0)

    def with_layouts_from(self, number: int | None) -> None:
        """Use a fresh code layout of each side in every round from ``number`` on; None: use the ordinary build."""
        self._sampler.first_with_layouts = number

    def take_layouts_in_turn(self, subject: Subject, layouts: int, start: int) -> None:
        """Take one run of each layout of each side; ``start`` is the number of the first run."""
        self._take(self._sampler.layouts_in_turn(subject, layouts, start), Design.FEW_LAYOUTS)

    def is_recalled(self, subject: Subject, number: int, *, single: bool | None = None) -> bool:
        """Return whether a round was taken before an interruption; ``single``: only as a single run, or as a pair."""
        key = (subject.name, number)
        pair, run = key in self._sampler.taken, key in self._sampler.taken_few
        return pair or run if single is None else (run if single else pair)

    def was_stopped(self, subject: Subject) -> bool:
        """Return whether a benchmark was stopped before it had all requested rounds."""
        return subject.name in self._stopped

    def stop(self, subject: Subject, why: Stop | None) -> None:
        """Set the reason for which a benchmark was stopped; None: it continues."""
        if why is None:
            self._stopped.pop(subject.name, None)
        else:
            self._stopped[subject.name] = why

    def tell_why_stopped(self, subjects: Sequence[Subject]) -> None:
        """Store an event with the reason for each stopped benchmark.

        The event of a single subject names no benchmark, since its process may have reported several; without a round
        it has none, and the event names it.
        """
        for subject in subjects:
            if subject.name in self._stopped:
                name = subject.name if len(subjects) > 1 or not self.next_number([subject]) else ""
                why = self._stopped[subject.name].value
                event = {"event": "stopped", "step": self._step, "benchmark": name, "reason": why}
                self._store(event)

    def _take(self, turns: Iterable[Turn], design: Design) -> None:
        """Take rounds, store each, and report progress. Warm-up runs are not stored; lost benchmarks are skipped."""
        for turn in turns:
            name = turn.subject.name
            if name in self._sampler.lost:
                continue
            try:
                item = self._sampler.take(turn)
            except LostError:
                continue
            if turn.warming:
                self._took[name] = max(self._sampler.seconds, self._took.get(name, 0.0))
                continue
            self._numbered[name] = item.number + 1
            self._seconds[name] = max(item.seconds, self._seconds.get(name, 0.0))
            event = self._event(item, design)
            if not item.recalled:
                self._store(event)
            self.stop_rule.happened(event)
            unit = "pair" if len(item.readings) == 2 else "run"
            place = self._turn if design is Design.FEW else item.turn
            self._between(Sampled(name, item.number + 1, unit, place))

    def _event(self, item: Round, design: Design) -> dict[str, Any]:
        """Return the event of a round."""
        event: dict[str, Any] = {"event": "sample", "step": self._step, "design": design.value}
        event |= {"pair": item.number, "first": item.first.value}
        if item.subject.alone:
            event["alone"] = True
        if design is Design.CONFIRM and self._confirmation > 1:
            event["confirmation"] = self._confirmation
        if design is Design.FEW and self._few_confirmation:
            event["confirmation"] = self._few_confirmation
        if item.seconds:
            event["seconds"] = round(item.seconds, 6)
        if item.layout:
            event["layout"] = item.layout
        for side, readings in item.readings.items():
            event[side.value] = [reading_to_json(reading) for reading in readings]
        return event
