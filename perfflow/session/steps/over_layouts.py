"""Measure benchmarks whose verdict rests on one code layout again over new layouts of both sides, which then decide."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.execute.prepare import ReadyProcess, first_count, ready
from perfflow.model.readings import SCHEDULES, Design, Side
from perfflow.model.units import Dimension, format_quantity
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.sampling.stop_rule import Stop
from perfflow.session.bench import Bench
from perfflow.session.code_layouts.sources import DrawnLayouts, SideBuild
from perfflow.verdict.decide import SPARE
from perfflow.workflow.roles import AUTO

FEW = 8
"""Layouts of each side if one is expensive to make: all C(16, 8) assignments to the sides can be enumerated."""
RUNS_OF_FEW = 3
"""Runs of each of them, if time allows."""
DEAR = 2.0
"""Seconds to make one layout above which only few are drawn."""
DEAR_IN_RUNS = 50
"""The same limit in runs of the program; applies if making ``MANY`` layouts would take longer than the budget."""
MANY = 56
_LEAST = SCHEDULES[Design.LAYOUTS][0][0]
"""Fewest layouts of each side that can decide in pairs."""
_SPENT = "the time for measuring was spent"


def decide_over_layouts(bench: Bench, benchmarks: Sequence[BenchmarkToSample], ends: float) -> None:
    """Measure the benchmarks whose verdict rests on one layout over others, until the time ``ends``.

    The samples of the programs as built are kept, and decide if no layouts can be drawn.
    """
    able, asked = bench.sampling.able(benchmarks), bench.layouts
    always = asked != AUTO or bench.session.over_layouts
    wanted = [item for item in able if always or bench.sampling.stop_rule.rests_on_layout(item)]
    if wanted:
        _Deciding(bench, wanted, asked if isinstance(asked, int) else None, ends, several=len(benchmarks) > 1).run()


@dataclass
class _Deciding:
    """The layouts of one step, and the benchmarks that wait for them."""

    bench: Bench
    benchmarks: Sequence[BenchmarkToSample]
    asked: int | None
    """The number of layouts that the workflow asks for."""
    ends: float
    several: bool
    """Whether the step measures several benchmarks."""
    done: int = 0
    """Layouts of each side that were measured."""
    first: int = field(init=False)
    """The number of the first round with layouts."""
    own_end: float = field(init=False)
    """Time when the benchmarks' own budget is spent, not counting the time to make layouts."""

    def run(self) -> None:
        """Draw layouts and measure.

        If none can be drawn, the reason is stored as an event, and fresh pairs of the programs as built confirm.
        """
        bench = self.bench
        self.first = bench.sampling.next_number(self.benchmarks)
        self.own_end = time.monotonic() + bench.budget * len(self.benchmarks)
        if time.monotonic() >= self.ends and not self._recalled(self.first):
            self._tell(_SPENT)
            return
        try:
            bench.drawn = DrawnLayouts(self._builds(), self._calls, f"{bench.session.context.seed}\0{bench.planned.id}")
            try:
                self._measure(bench.drawn)
                return
            finally:
                bench.drawn.clear()
        except LayoutsRefusedError as error:
            self._tell(str(error))
        except OSError as error:
            self._tell(f"{error.filename}: {error.strerror}")
        finally:
            bench.drawn = None
            bench.sampling.with_layouts_from(None)
        bench.sampling.confirm_waiting(self.ends)

    def _measure(self, drawn: DrawnLayouts) -> None:
        # Samples of an interrupted run need no layouts, and show which design it used.
        few = self.bench.sampling.is_recalled(self.benchmarks[0], self.first, single=True)
        if not few and not self._recalled(self.first):
            seconds = drawn.begin() / len(self.bench.able)
            few = self._is_dear(seconds) if self.asked is None else self.asked <= FEW
            if self.asked is None and not few:
                # The benchmarks may exceed their own budget for it.
                self.own_end = max(self.own_end, time.monotonic() + SPARE * _LEAST * self._pair())
                # What has no time for the first analysis of pairs may have it for a few layouts.
                few = time.monotonic() + self._needed(drawn, _LEAST) > self.ends
        if few:
            self._take_few(drawn, min(self.asked or FEW, FEW))
        else:
            self._take_pairs(drawn)

    def _needed(self, drawn: DrawnLayouts, layouts: int) -> float:
        """Return the seconds to make so many layouts of each side, and to measure one benchmark over them."""
        return layouts * (drawn.begin() + self._pair())

    def _pair(self) -> float:
        """Return the seconds of a pair of the slowest benchmark."""
        return max(map(self.bench.sampling.seconds_of, self.benchmarks))

    def _is_dear(self, seconds: float) -> bool:
        in_runs = seconds > DEAR_IN_RUNS * self.bench.sampling.seconds
        return seconds > DEAR or (in_runs and seconds * MANY > self._each())

    def _each(self) -> float:
        """Return how long (s) one benchmark may be measured."""
        return min(self.bench.budget, (self.ends - time.monotonic()) / len(self.benchmarks))

    def _take_pairs(self, drawn: DrawnLayouts) -> None:
        """Take pairs with a new layout of each side per pair; make the layouts before each interim analysis."""
        looks = [self.asked] if self.asked is not None else [pairs for pairs, _ in SCHEDULES[Design.LAYOUTS]]
        sampling, left = self.bench.sampling, self._affordable(looks[0])
        design = Design.LAYOUTS if self.asked is None else Design.FIXED_LAYOUTS
        sampling.with_layouts_from(self.first)
        for look in looks:
            until = self._make(drawn, look)
            sampling.stop_rule.stop(left, None)
            sampling.take_rounds(left, design, until - self.done, self._end(), start=self.first + self.done)
            drawn.drop(range(self.done + 1, until + 1))
            self.done = until
            if self.asked is None and look == _LEAST:
                # Fewer layouts decide nothing, so the programs as built do.
                self._tell(_SPENT, [item for item in left if sampling.next_number([item]) - self.first < _LEAST])
            left = [item for item in sampling.able(left) if not self._is_enough(item, until, look, looks[-1])]
            if not left:
                return

    def _affordable(self, pairs: int) -> list[BenchmarkToSample]:
        """Return the benchmarks for which there is time to take so many pairs of each, the worst first; at least one.

        Fewer pairs of each would decide none. The others are told to be decided as built.
        """
        sampling, left = self.bench.sampling, self._end() - time.monotonic()
        worst = sorted(self.benchmarks, key=sampling.stop_rule.fails, reverse=True)
        affordable: list[BenchmarkToSample] = []
        for benchmark in worst:
            left -= pairs * sampling.seconds_of(benchmark)
            if left > 0 or not affordable or sampling.is_recalled(benchmark, self.first):
                affordable.append(benchmark)
        self._tell(_SPENT, [benchmark for benchmark in worst if benchmark not in affordable])
        return affordable

    def _make(self, drawn: DrawnLayouts, look: int) -> int:
        """Make the layouts up to an interim analysis, as time allows; return the last number."""
        missing = [n for n in range(self.done + 1, look + 1) if not self._recalled(self.first + n - 1)]
        if not missing:
            return look
        began = time.monotonic()
        last = drawn.make(missing, self.ends)
        self.own_end += time.monotonic() - began
        return last

    def _is_enough(self, benchmark: BenchmarkToSample, until: int, look: int, last: int) -> bool:
        sampling = self.bench.sampling
        if until < look or sampling.was_stopped(benchmark):
            sampling.stop_rule.stop([benchmark], Stop.TOTAL_BUDGET if self.ends < self.own_end else Stop.BUDGET)
        elif self.asked is None and sampling.stop_rule.confirmed(benchmark):
            sampling.stop_rule.stop([benchmark], Stop.SETTLED)
        elif look == last:
            if self.asked is None:
                sampling.stop_rule.stop([benchmark], Stop.LAST_LOOK)
        else:
            return False
        return True

    def _take_few(self, drawn: DrawnLayouts, layouts: int) -> None:
        """Measure a few layouts of each side, each several times in rounds of random order.

        The number of rounds depends only on the time, and the data are analysed once.
        """
        sampling, in_round = self.bench.sampling, layouts * len(self.bench.able)
        made = False
        for start in range(self.first, self.first + RUNS_OF_FEW * in_round, in_round):
            recalled = all(self._recalled(number) for number in range(start, start + in_round))
            if not recalled and start > self.first and time.monotonic() >= self._end():
                break
            if not recalled and not made:
                self._make_few(drawn, layouts)
                made = True
            for benchmark in sampling.able(self.benchmarks):
                sampling.take_layouts_in_turn(benchmark, layouts, start)
        sampling.stop_rule.stop(sampling.able(self.benchmarks), Stop.LAST_LOOK)

    def _make_few(self, drawn: DrawnLayouts, layouts: int) -> None:
        seconds, began = self._needed(drawn, layouts), time.monotonic()
        if began + seconds > self.ends:
            about = format_quantity(seconds, Dimension.TIME)
            text = f"{layouts} layouts of each side would take about {about}, longer than the remaining budget"
            raise LayoutsRefusedError(text)
        drawn.make(range(1, layouts + 1), math.inf)
        self.own_end += time.monotonic() - began

    def _end(self) -> float:
        return min(self.own_end, self.ends)

    def _recalled(self, number: int) -> bool:
        return all(self.bench.sampling.is_recalled(item, number) for item in self.benchmarks)

    def _builds(self) -> dict[Side, SideBuild]:
        session, planned = self.bench.session, self.bench.planned
        scratch = session.folder.step(planned.id)
        return {side: SideBuild(session, planned, side, scratch) for side in self.bench.able}

    def _calls(self, side: Side) -> list[ReadyProcess]:
        session, planned = self.bench.session, self.bench.planned
        folder = session.folder.step(planned.id) / side.value
        ops = first_count(session.context, planned)
        return [ready(session.tree_context_of(side), planned, side, folder, ops)]

    def _tell(self, reason: str, benchmarks: Sequence[BenchmarkToSample] | None = None) -> None:
        """Store why the samples of the programs as built decide; ``benchmarks``: None for all."""
        for benchmark in self.benchmarks if benchmarks is None else benchmarks:
            name = benchmark.name if self.several else ""
            event = {"event": "layouts", "step": self.bench.planned.id, "benchmark": name, "reason": reason}
            self.bench.session.folder.append(event)
