"""Rules of a verdict exactly at their bounds, on hand-made comparisons: clocks, targets, trade-offs and memory."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Accepted, Criteria, Thresholds
from perfflow.model.metrics import METRICS
from perfflow.model.result import Benchmark, Bounds, GatesBy, Sample
from perfflow.model.targets import parse_target
from perfflow.stats.paired_test import Interval
from perfflow.verdict import acceptance, gating, targets
from perfflow.verdict.clocks import OtherClocks, contradiction, timing_metric, witnesses, worse_by
from perfflow.verdict.comparison import ComparedMetric, SideSummary, speedup, without_inverse_rates
from tests.verdict.records import record

THRESHOLDS = Thresholds()


def side(*samples: float) -> SideSummary:
    return SideSummary(sorted(samples)[len(samples) // 2], None, None, len(samples), samples)


def clock(metric: str, estimate: float, low: float, high: float, **keys: Any) -> ComparedMetric:
    one = side(1.0)
    change = Interval(estimate, low, high)
    return replace(ComparedMetric("b", METRICS[metric], "p50", "s", "t", one, one, change, 20, 0.99), **keys)


def sides(metric: str, *samples: float, after: tuple[float, ...] | None = None) -> ComparedMetric:
    return clock(metric, 0.0, -0.1, 0.1, baseline=side(*samples), candidate=side(*(after or samples)))


COMPUTES = "the program only computes, and CPU time is not disturbed by other processes"
FORKS = "the program forks or has threads, so only wall time covers all of its work"
WAITS = "the program waits, forks or has threads, so only wall time covers all of its work"


@pytest.mark.parametrize(
    ("cpu", "uncontended", "main_share", "chosen", "why"),
    [
        (0.90, 1.0, None, "cpu", COMPUTES),
        (0.89, 1.0, None, "uncontended", "the program waits, so wall time without waiting for a core decides"),
        (1.0, 1.0, 0.95, "cpu", COMPUTES),
        (1.0, 1.0, 0.94, "time", FORKS),
        (0.90, None, None, "cpu", "the program only computes in one thread"),
        (0.89, None, None, "time", WAITS),
        (1.05, None, None, "cpu", "the program only computes in one thread"),
        (1.06, None, None, "time", WAITS),
    ],
)
def test_the_clock_that_decides(
    cpu: float, uncontended: float | None, main_share: float | None, chosen: str, why: str
) -> None:
    found = {"time": sides("time", 1.0, 1.0, 1.0), "cpu": sides("cpu", cpu, cpu, cpu)}
    found |= {"uncontended": sides("uncontended", *[uncontended] * 3)} if uncontended else {}
    found |= {"main_share": sides("main_share", 1.0, after=(main_share,))} if main_share else {}
    name, said = timing_metric(found)
    assert (name, said.startswith(why)) == (chosen, True)


TURNS = "its processes or threads take turns and only compute"


@pytest.mark.parametrize(
    ("before", "after", "chosen", "why"),
    [((1.0,), (0.9,), "cpu", TURNS), ((1.0,), (0.89,), "time", FORKS), ((0.5,), (1.0,), "time", FORKS)],
)
def test_cpu_time_decides_about_processes_that_take_turns(
    before: tuple[float, ...], after: tuple[float, ...], chosen: str, why: str
) -> None:
    found = {name: sides(name, 0.3, 0.3, 0.3) for name in ("cpu", "main_share")} | {
        "time": sides("time", 1.0, 1.0, 1.0)
    }
    name, said = timing_metric({**found, "turns": sides("turns", *before, after=after)})
    assert (name, said.startswith(why)) == (chosen, True)
    # Of a side with one thread it is not known, and not needed.
    alone = {**found, "main_share": sides("main_share", 1.0, after=(0.3,))}
    one = clock("turns", 0.0, -0.1, 0.1, baseline=None, candidate=side(1.0))
    assert timing_metric({**alone, "turns": one})[0] == "cpu"


def test_the_least_disturbed_process_tells_whether_a_program_waits() -> None:
    cpu, wall = sides("cpu", 0.5, 0.95, 0.5), sides("time", 1.0, 1.0, 1.0)
    assert timing_metric({"time": wall, "cpu": cpu})[0] == "cpu"
    both_at_once = sides("cpu", 0.95, 1.06, 1.06)
    assert timing_metric({"time": wall, "cpu": both_at_once})[0] == "time"
    one_side = sides("cpu", 0.95, 0.95, 0.95, after=(0.5, 0.5, 0.5))
    assert timing_metric({"time": wall, "cpu": one_side})[0] == "time"
    nothing = sides("time", 0.0, 0.0, 0.0)
    assert timing_metric({"time": nothing, "cpu": cpu})[0] == "time"


def test_one_clock_is_the_one_and_a_side_that_lacks_one_does_not_count() -> None:
    assert timing_metric({"cpu": sides("cpu", 1.0)}) == ("cpu", "")
    assert timing_metric({"time": sides("time", 1.0), "uncontended": sides("uncontended", 1.0)}) == ("time", "")
    gone = replace(sides("cpu", 1.0), candidate=None)
    assert timing_metric({"time": sides("time", 1.0), "cpu": gone}) == ("time", "")


@pytest.mark.parametrize(
    ("cpu", "time", "chosen"),
    [
        ((0.1, 0.2), (-0.2, -0.1), "time"),
        ((-0.2, -0.1), (0.1, 0.2), "time"),
        ((0.0, 0.2), (-0.2, -0.1), "cpu"),
        ((0.1, 0.2), (-0.2, 0.0), "cpu"),
        ((-0.2, 0.0), (0.1, 0.2), "cpu"),
        ((-0.2, -0.1), (0.0, 0.2), "cpu"),
        ((0.1, 0.2), (0.1, 0.2), "cpu"),
    ],
)
def test_clocks_that_prove_opposite_changes(cpu: tuple[float, float], time: tuple[float, float], chosen: str) -> None:
    found = {"cpu": sides("cpu", 1.0), "time": sides("time", 1.0), "uncontended": sides("uncontended", 1.0)}
    for name, (low, high) in (("cpu", cpu), ("time", time)):
        found[name] = replace(found[name], change=Interval((low + high) / 2, low, high))
    assert timing_metric(found)[0] == chosen


def test_witnesses_saw_more_of_the_same_pairs() -> None:
    cpu, wall = clock("cpu", 0, -0.1, 0.1), clock("time", 0, -0.1, 0.1)
    waiting = clock("uncontended", 0, -0.1, 0.1)
    every = {"cpu": cpu, "time": wall, "uncontended": waiting}
    assert witnesses(every, "cpu") == [waiting, wall]
    assert witnesses(every, "uncontended") == [wall]
    assert witnesses(every, "time") == []
    for lacking in (replace(waiting, pairs=19), replace(waiting, change=None)):
        assert witnesses(every | {"uncontended": lacking}, "cpu") == [wall]
    none = {name: replace(item, pairs=0) for name, item in every.items()}
    assert witnesses(none, "cpu") == []


@pytest.mark.parametrize(
    ("chosen", "other", "worse"),
    [
        # (estimate, low, high); concern 5%, action 10%.
        ((0.0, -0.01, 0.01), (0.07, 0.051, 0.09), True),
        ((0.0, -0.01, 0.01), (0.07, 0.050, 0.09), False),
        ((0.07, 0.051, 0.09), (0.08, 0.06, 0.09), False),
        ((0.07, 0.051, 0.09), (0.11, 0.06, 0.19), True),
        ((0.07, 0.051, 0.09), (0.10, 0.06, 0.19), False),
        ((0.12, 0.11, 0.13), (0.3, 0.2, 0.4), False),
        # A proven regression below the concern threshold.
        ((0.04, 0.03, 0.05), (0.07, 0.051, 0.09), True),
    ],
)
def test_a_clock_that_proves_a_worse_level(
    chosen: tuple[float, float, float], other: tuple[float, float, float], *, worse: bool
) -> None:
    witness = clock("time", *other)
    found = worse_by(clock("cpu", *chosen), [clock("uncontended", 0, 0, 0), witness], THRESHOLDS)
    assert found == (witness if worse else None)


@pytest.mark.parametrize(
    ("high", "other", "holds"),
    [
        (-0.06, (-0.02, -0.05, 0.01), False),
        (-0.02, (-0.02, -0.05, 0.01), True),  # it claims no gain of 2%
        (-0.06, (-0.02, -0.08, 0.01), True),  # which includes the claim
        (-0.06, (-0.04, -0.05, -0.021), True),  # which is a gain of 2% itself
        (-0.06, (-0.04, -0.05, -0.02), False),
    ],
)
def test_a_gain_that_another_clock_excludes(high: float, other: tuple[float, float, float], *, holds: bool) -> None:
    said = contradiction(clock("cpu", -0.08, -0.1, high), [clock("time", *other)], 0.02)
    assert (said == "") is holds
    if not holds:
        assert said.startswith("cpu shows -8.0%, which time contradicts: time changed by -")


@pytest.mark.parametrize(
    ("chosen", "other", "undecided"),
    [
        # Its interval includes the concern threshold, and its half-width is over 0.5%.
        ((0.0, -0.01, 0.01), (0.045, 0.010, 0.08), True),
        ((0.0, -0.01, 0.01), (0.045, 0.000, 0.08), False),
        ((0.0, -0.01, 0.01), (0.045, 0.010, 0.05), False),
        ((0.0, -0.01, 0.01), (0.0495, 0.0450, 0.0540), False),
        ((0.0, -0.01, 0.01), (0.0495, 0.0445, 0.0555), True),
        # Its estimate is of a worse level.
        ((0.0, -0.01, 0.01), (0.06, -0.1, 0.2), True),
        ((0.0, -0.01, 0.01), (0.05, -0.1, 0.2), False),
        ((0.07, 0.06, 0.08), (0.11, 0.01, 0.2), True),
        ((0.07, 0.06, 0.08), (0.09, 0.01, 0.2), False),
        ((0.07, 0.06, 0.08), (0.11, -0.05, 0.25), True),
    ],
)
def test_a_clock_that_may_yet_prove_a_regression(
    chosen: tuple[float, float, float], other: tuple[float, float, float], *, undecided: bool
) -> None:
    clocks = OtherClocks()
    clocks.check({"cpu": clock("cpu", *chosen), "time": clock("time", *other)}, "cpu", THRESHOLDS)
    assert clocks.gating == {}
    assert list(clocks.undecided) == ([("b", "cpu")] if undecided else [])


def test_clocks_without_a_chosen_one_say_nothing() -> None:
    clocks = OtherClocks()
    clocks.check({"time": clock("time", 0.2, 0.1, 0.3)}, "", THRESHOLDS)
    clocks.check({"time": clock("time", 0.2, 0.1, 0.3)}, "time", THRESHOLDS)
    assert clocks == OtherClocks()
    clocks.check({"cpu": clock("cpu", 0, -0.01, 0.01), "time": clock("time", 0.2, 0.1, 0.3)}, "cpu", THRESHOLDS)
    assert clocks.gating == {("b", "time"): "it proves a regression that `cpu` does not show"}
    clocks.check({"cpu": clock("cpu", -0.08, -0.1, -0.06), "time": clock("time", 0, -0.01, 0.01)}, "cpu", THRESHOLDS)
    assert list(clocks.refuted) == [("b", "cpu")]


ONE_TO_TWO = {"min": "1 s", "max": "2 s"}


@pytest.mark.parametrize(
    ("requirement", "low", "high", "status"),
    [
        ("<10 s", 8.0, 9.9, "met"),
        ("<10 s", 8.0, 10.0, "unproven"),
        ("<10 s", 10.0, 11.0, "not met"),
        ("<=10 s", 8.0, 10.0, "met"),
        (">10 s", 10.0, 11.0, "unproven"),
        (ONE_TO_TWO, 1.0, 2.0, "met"),
        (ONE_TO_TWO, 0.9, 2.0, "unproven"),
        (ONE_TO_TWO, 1.0, 2.1, "unproven"),
        (ONE_TO_TWO, 2.1, 2.2, "not met"),
        (ONE_TO_TWO, 2.0, 2.2, "unproven"),
        (ONE_TO_TWO, 0.8, 0.9, "not met"),
        (ONE_TO_TWO, 0.8, 1.0, "unproven"),
    ],
)
def test_a_target_is_met_where_the_whole_interval_is_on_its_side(
    requirement: str | dict[str, str], low: float, high: float, status: str
) -> None:
    found = parse_target("b", "time", requirement, METRICS).requirement
    assert targets._status(found, low, high) == status


def test_a_figure_that_ought_to_repeat_is_widened_by_its_range() -> None:
    found = targets.widened(replace(side(1.0, 4.0, 2.0), needs=6))
    assert (found.low, found.high, found.needs) == (-2.0, 7.0, 0)
    two = targets.widened(replace(side(1.0, 2.0), needs=6))
    assert (two.low, two.high, two.needs) == (0.0, 3.0, 0)
    one = replace(side(1.0), needs=6)
    assert targets.widened(one) is one


def test_a_percentile_is_told_where_a_sample_lies_beyond_it() -> None:
    few = side(*[1.0] * 19)
    told = {n: targets._is_shown(replace(few, n=n), "p95", "unproven") for n in (19, 20)}
    assert told == {19: False, 20: True}
    assert targets._is_shown(few, "p95", "met")
    assert targets._is_shown(few, "p50", "unproven")
    assert targets._is_shown(replace(few, high=1.0), "p99", "unproven")
    assert targets._is_shown(few, "max", "unproven")


def test_samples_that_depend_on_those_before_them_are_named() -> None:
    summary = SideSummary(1.0, 0.9, 1.1, 9, (1.0,), factor=1.52)
    assert targets._dependence(summary).endswith("so the interval is 1.5 times as wide")
    for silent in (replace(summary, factor=1.0), replace(summary, low=None), replace(summary, high=None)):
        assert targets._dependence(silent) == ""


def test_a_speedup_is_how_many_times_better() -> None:
    lower, higher = METRICS["time"].better, METRICS["rate"].better
    assert speedup(Interval(-0.5, -0.75, 0.0), lower) == Interval(2.0, 1.0, 4.0)
    assert speedup(Interval(1.0, 0.5, 3.0), higher) == Interval(2.0, 1.5, 4.0)
    assert speedup(Interval(-1.0, -1.0, -0.5), lower) == Interval(math.inf, 2.0, math.inf)
    assert speedup(Interval(0.0, -math.inf, math.inf), lower) == Interval(1.0, -math.inf, math.inf)


def row(decision: str, level: str | None, value: float, low: float, high: float, **keys: Any) -> Benchmark:
    known: dict[str, Any] = {"name": "b", "step": "s", "tool": "t", "metric": "time", "statistic": "p50", "unit": "s"}
    known |= {"better": "lower", "confidence": 0.99, "baseline": None, "candidate": None, "speedup": None}
    known |= {"change": Bounds(value=value, low=low, high=high), "decision": decision, "level": level, "gating": True}
    return Benchmark.model_validate(
        known | {"pairs": 20, "more": None, "warnings": [], "gates_by": GatesBy.REQUESTED} | keys
    )


@pytest.mark.parametrize(
    ("decision", "level", "worst"),
    [
        *[("regressed", "concern", 0.2), ("regressed", "ok", 0.2), ("unproven", "ok", 0.3)],
        *[("regressed", "action", None), ("unproven", None, None), ("same", "ok", None), ("improved", "ok", None)],
    ],
)
def test_how_much_worse_a_row_is_that_passes(decision: str, level: str | None, worst: float | None) -> None:
    assert acceptance.worst(row(decision, level, 0.2, 0.1, 0.3)) == worst
    assert acceptance.worst(row(decision, level, -0.2, -0.3, -0.1, better="higher")) == worst


TODAY = "2026-01-02"
"""Start time of the hand-made records."""


def known(*accepted: Accepted) -> Criteria:
    return Criteria(accepted=accepted)


@pytest.mark.parametrize(("value", "passes"), [(0.101, True), (0.1, False)])
def test_a_row_needs_a_trade_off_beyond_the_action_threshold(value: float, *, passes: bool) -> None:
    small, large = (Accepted("b", change, "why", TODAY) for change in (0.2, 0.3))
    found = row("regressed", "concern", value, 0.05, 0.2)
    assert acceptance.trade_off(record(), found, known(small, large)) == (large if passes else None)
    assert acceptance.trade_off(record(), found.model_copy(update={"gating": False}), known(large)) is None
    over = Accepted("b", 0.3, "why", "2026-01-01")
    assert acceptance.trade_off(record(), found, known(over)) is None
    marked = acceptance.marked_tradeoffs(record(), found, known(small, large))
    assert marked.accepted == ("until 2026-01-02: why" if passes else "")
    if passes:
        assert acceptance.taken(marked, known(small, large)) == large
        assert acceptance.taken(marked, known(replace(large, why="another"))) is None


def test_a_trade_off_that_lapsed_is_named_where_it_would_have_been_enough() -> None:
    failing = row("regressed", "action", 0.2, 0.15, 0.3)

    def said(item: Accepted, found: Benchmark = failing) -> list[str]:
        return [lapsed.text for lapsed in acceptance.lapsed_tradeoffs(record(), found, known(item))]

    over = Accepted("b", 0.2, "slower", "2026-01-01")
    text = "b time was accepted until 2026-01-01, which has passed: slower"
    assert said(over) == [text]
    assert said(replace(over, until=TODAY)) == []
    assert said(replace(over, change=0.19)) == []
    assert said(replace(over, benchmark="c")) == []
    assert said(over, row("regressed", "action", -0.2, -0.3, -0.1, better="higher")) == [text]
    assert said(over, failing.model_copy(update={"change": None})) == []
    spent = replace(over, until=TODAY, spent=True)
    assert said(spent) == ["b time: the base already contains the regression accepted until 2026-01-02: slower"]


@pytest.mark.parametrize(("grown", "matters"), [(2**20, False), (2**20 + 1, True)])
def test_memory_matters_beyond_a_mebibyte(grown: int, *, matters: bool) -> None:
    before, after = side(1e6), side(1e6 + grown)
    item = clock("rss", 0.5, 0.4, 0.6, baseline=before, candidate=after)
    assert gating.memory_has_grown(item, THRESHOLDS) is matters
    assert gating.memory_has_grown(replace(item, metric=replace(item.metric, exact=True)), THRESHOLDS)
    assert not gating.memory_has_grown(replace(item, change=Interval(0.5, -0.1, 0.6)), THRESHOLDS)
    assert not gating.memory_has_grown(replace(item, baseline=None), THRESHOLDS)
    values = [Sample(value=each.value, low=None, high=None, n=1, samples=[]) for each in (before, after)]
    shown = row("regressed", "concern", 0.5, 0.4, 0.6, metric="rss", unit="B", baseline=values[0], candidate=values[1])
    silent = shown.model_copy(update={"gating": False})
    assert list(gating.memory_concerns([shown, silent], Criteria())) == ([silent] if matters else [])
    for other in ({"decision": "unproven"}, {"level": "ok"}, {"metric": "time"}):
        assert not list(gating.memory_concerns([silent.model_copy(update=other)], Criteria()))
    counted = silent.model_copy(update={"unit": "1"})
    assert list(gating.memory_concerns([counted], Criteria())) == [counted]


def test_a_rate_is_left_out_where_its_time_says_the_same() -> None:
    time = row("regressed", "concern", 0.2, 0.1, 0.3)
    rate = row("regressed", "concern", -0.2, -0.3, -0.1, metric="throughput", better="higher", same_as="time")
    assert without_inverse_rates([time, rate]) == [time]
    for other in (time.model_copy(update={"gating": False}), time.model_copy(update={"decision": "same"})):
        assert without_inverse_rates([other, rate]) == [other, rate]
    alone = rate.model_copy(update={"same_as": ""})
    assert without_inverse_rates([time, alone]) == [time, alone]
    worse = rate.model_copy(update={"level": None})
    assert without_inverse_rates([time, worse]) == [time, worse]
    unknown = time.model_copy(update={"level": None})
    assert without_inverse_rates([unknown, worse]) == [unknown]
