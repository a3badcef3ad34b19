"""Which clock decides, how other clocks may contradict it, and how a benchmark's rows share its false alarms."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from perfflow.model.criteria import Criteria, OwnThresholds, Thresholds
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.result import Result
from perfflow.report import terminal
from perfflow.stats.paired_test import Interval
from perfflow.verdict.acceptance import accept, goal_of
from perfflow.verdict.clocks import OtherClocks, contradiction, timing_metric, witnesses, worse_by
from perfflow.verdict.comparison import ComparedMetric
from perfflow.verdict.gating import choose_rows, compared
from perfflow.verdict.judge import judge
from tests.verdict.comparisons import moved, side
from tests.verdict.records import END, ended, planned, record, row

FIRST_LOOK = SCHEDULES[Design.LOOKS][0][1]
CLOCKS = ("time", "cpu", "uncontended")
THRESHOLDS = Thresholds()
"""Floor 2%, concern 5%, action 10%."""

# -- the clock that decides

Samples = list[float] | tuple[list[float], list[float]]
"""Values of both sides, or of each."""


def clocks(figures: Mapping[str, Samples]) -> dict[str, ComparedMetric]:
    found = {}
    for name, samples in figures.items():
        before, after = samples if isinstance(samples, tuple) else (samples, samples)
        sides = {key: side(*values) if values else None for key, values in (("baseline", before), ("candidate", after))}
        found[name] = moved(name, 0.0, -0.1, 0.1, **sides)
    return found


COMPUTES = "the program only computes, and CPU time is not disturbed by other processes"
ONE_THREAD = "the program only computes in one thread"
WAITS = "the program waits, so wall time without waiting for a core decides"
FORKS = "the program forks or has threads, so only wall time covers all of its work"
FORKS_OR_WAITS = "the program waits, forks or has threads, so only wall time covers all of its work"
SOME_FORK = "some runs have threads or children, so only wall time covers all of its work"
TURNS = "its processes or threads take turns and only compute"
ONE, HALF, FOUR, NOTHING = [1.0] * 3, [0.5] * 3, [1.0] * 4, [0.0] * 3
THREE_CLOCKS = {"time": ONE, "uncontended": ONE, "cpu": ONE}
THREADS: dict[str, Samples] = {"time": ONE, "cpu": [0.3] * 3, "main_share": [0.3] * 3}


@pytest.mark.parametrize(
    ("figures", "chosen", "why"),
    [
        ({}, "", ""),
        ({"cpu": ONE}, "cpu", ""),
        ({"time": ONE, "service_cpu": HALF}, "service_cpu", "latency also contains the load generator"),
        (THREE_CLOCKS | {"service_cpu": HALF}, "service_cpu", "latency also contains the load generator"),
        ({"time": ONE, "service_cpu": (HALF, [])}, "time", ""),
        ({"time": ONE, "uncontended": ONE}, "time", ""),
        ({"cpu": ONE, "uncontended": ONE}, "cpu", ""),
        ({"time": ONE, "cpu": (ONE, [])}, "time", ""),
        (THREE_CLOCKS | {"cpu": [0.90] * 3}, "cpu", COMPUTES),
        (THREE_CLOCKS | {"cpu": [0.89] * 3}, "uncontended", WAITS),
        # The side that waits more tells whether a program waits; nothing waits in no time.
        (THREE_CLOCKS | {"cpu": (ONE, HALF)}, "uncontended", WAITS),
        ({"time": NOTHING, "cpu": NOTHING, "uncontended": NOTHING}, "cpu", COMPUTES),
        (THREE_CLOCKS | {"main_share": (ONE, [0.95])}, "cpu", COMPUTES),
        (THREE_CLOCKS | {"main_share": (ONE, [0.94])}, "time", FORKS),
        (THREADS | {"turns": ([1.0], [0.9])}, "cpu", TURNS),
        (THREADS | {"turns": ([1.0], [0.89])}, "time", FORKS),
        (THREADS | {"turns": ([0.5], [1.0])}, "time", FORKS),
        # Of a side with one thread it is not known, and not needed.
        (THREADS | {"main_share": ([1.0], [0.3]), "turns": ([], [1.0])}, "cpu", TURNS),
        # The side that lacks more uncontended times tells whether some are missing.
        ({"time": FOUR, "cpu": FOUR, "uncontended": FOUR}, "cpu", COMPUTES),
        ({"time": FOUR, "cpu": FOUR, "uncontended": (FOUR, ONE)}, "time", SOME_FORK),
        ({"time": FOUR, "cpu": FOUR, "uncontended": ONE}, "time", SOME_FORK),
        ({"time": ONE, "cpu": ONE, "uncontended": (ONE, [])}, "time", "one side has threads or children"),
        ({"time": ONE, "cpu": [0.90] * 3}, "cpu", ONE_THREAD),
        ({"time": ONE, "cpu": [0.89] * 3}, "time", FORKS_OR_WAITS),
        ({"time": ONE, "cpu": [1.05] * 3}, "cpu", ONE_THREAD),
        ({"time": ONE, "cpu": [1.06] * 3}, "time", FORKS_OR_WAITS),
        # Half of the processes tell whether there are threads.
        ({"time": ONE, "cpu": [1.0, 1.0, 1.2]}, "cpu", ONE_THREAD),
        ({"time": ONE, "cpu": [1.0, 1.2, 1.2]}, "time", FORKS_OR_WAITS),
        # The least disturbed process tells whether a program waits: contention lowers the share of most processes.
        ({"time": ONE, "cpu": [0.5, 0.95, 0.5]}, "cpu", ONE_THREAD),
        ({"time": ONE, "cpu": [0.95, 1.06, 1.06]}, "time", FORKS_OR_WAITS),
        ({"time": ONE, "cpu": ([0.95] * 3, HALF)}, "time", FORKS_OR_WAITS),
        ({"time": NOTHING, "cpu": [0.5, 0.95, 0.5]}, "time", FORKS_OR_WAITS),
        # A program that comes to use two cores would be slower by its CPU time, although it takes half the time.
        ({"time": (ONE, HALF), "cpu": (ONE, [1.01] * 3)}, "time", FORKS_OR_WAITS),
    ],
)
def test_the_clock_that_decides(figures: Mapping[str, Samples], chosen: str, why: str) -> None:
    name, said = timing_metric(clocks(figures))
    assert (name, bool(said), said.startswith(why)) == (chosen, bool(why), True)


Bounds = tuple[float, float]
UP, DOWN = (0.1, 0.2), (-0.2, -0.1)


@pytest.mark.parametrize(
    ("chosen", "changes"),
    [
        ("time", [(UP, DOWN), (DOWN, UP)]),
        ("cpu", [((0.0, 0.2), DOWN), (UP, (-0.2, 0.0)), ((-0.2, 0.0), UP), (DOWN, (0.0, 0.2))]),
        ("cpu", [(UP, UP), (UP, None), (None, DOWN)]),
    ],
)
@pytest.mark.parametrize(
    ("figures", "waiting"),
    [
        ({"time": ONE, "cpu": ONE}, "time"),
        (THREE_CLOCKS, "uncontended"),
    ],
)
def test_clocks_that_prove_opposite_changes(
    figures: Mapping[str, Samples], waiting: str, chosen: str, changes: list[tuple[Bounds | None, Bounds | None]]
) -> None:
    for both in changes:
        found = clocks(figures)
        for name, bounds in zip(("cpu", waiting), both, strict=True):
            found[name] = replace(found[name], change=Interval(sum(bounds) / 2, *bounds) if bounds else None)
        assert timing_metric(found)[0] == chosen, both


def test_waiting_for_a_core_proves_nothing() -> None:
    # Other programs had the cores while the old program waited for one.
    found = clocks(THREE_CLOCKS)
    for name, bounds in (("cpu", UP), ("uncontended", UP), ("time", DOWN)):
        found[name] = replace(found[name], change=Interval(sum(bounds) / 2, *bounds))
    assert timing_metric(found) == ("cpu", COMPUTES)
    # Upper bounds of the time without waiting leave open what wall time shows.
    found["uncontended"] = replace(found["uncontended"], bounded=True)
    assert timing_metric(found)[0] == "time"


# -- other clocks


def test_witnesses_saw_more_of_the_same_pairs() -> None:
    every = {name: moved(name, 0.0, -0.1, 0.1) for name in CLOCKS}
    assert witnesses(every, "cpu") == [every["uncontended"], every["time"]]
    assert witnesses(every, "uncontended") == [every["time"]]
    assert witnesses(every, "time") == []
    served = moved("service_cpu", 0.0, -0.1, 0.1)
    assert witnesses(every | {"service_cpu": served}, "service_cpu") == [every["time"]]
    for lacking in ({"pairs": 19}, {"change": None}):
        fewer = every | {"uncontended": replace(every["uncontended"], **lacking)}
        assert witnesses(fewer, "cpu") == [every["time"]]
    for pairs, count in ((0, 0), (1, 2)):
        assert len(witnesses({name: replace(item, pairs=pairs) for name, item in every.items()}, "cpu")) == count


Change = tuple[float, float, float]
SAME, BEYOND = (0.0, -0.01, 0.01), (0.07, 0.051, 0.09)
CONCERN = (0.07, 0.06, 0.08)


@pytest.mark.parametrize(
    ("worse", "changes"),
    [
        # Chosen clock and witness, each as (estimate, low, high); concern 5%, action 10%. A proven regression below the
        # concern threshold is of a better level, and 0.6% is not proven of two builds: it may be code layout.
        (True, [(SAME, BEYOND), (BEYOND, (0.11, 0.06, 0.19)), ((0.04, 0.03, 0.05), BEYOND)]),
        (True, [((0.06, 0.006, 0.2), BEYOND)]),
        (False, [(SAME, (0.07, 0.050, 0.09)), (BEYOND, (0.08, 0.06, 0.09)), (BEYOND, (0.10, 0.06, 0.19))]),
        (False, [((0.12, 0.11, 0.13), (0.3, 0.2, 0.4))]),
    ],
)
def test_a_clock_that_proves_a_worse_level(worse: bool, changes: list[tuple[Change, Change]]) -> None:
    for chosen, other in changes:
        witness = moved("time", *other)
        found = worse_by(moved("cpu", *chosen), [moved("uncontended", 0, 0, 0), witness], THRESHOLDS)
        assert found == (witness if worse else None), (chosen, other)


@pytest.mark.parametrize(
    ("high", "other", "told"),
    [
        (-0.06, (-0.02, -0.05, 0.01), "-2.0% [-5.0%, +1.0%]"),
        (-0.06, (-0.02, -0.05, math.inf), "-2.0% [-5.0%, unbounded]"),
        (-0.02, (-0.02, -0.05, 0.01), ""),  # it claims no gain of 2%
        (-0.06, (-0.02, -0.08, 0.01), ""),  # which includes the claim
        (-0.06, (-0.04, -0.05, -0.021), ""),  # which is a gain of 2% itself
        (-0.06, (-0.04, -0.05, -0.02), "-4.0% [-5.0%, -2.0%]"),
    ],
)
def test_a_gain_that_another_clock_excludes(high: float, other: tuple[float, ...], told: str) -> None:
    said = contradiction(moved("cpu", -0.08, -0.1, high), [moved("time", *other)], 0.02)
    assert said == (f"cpu shows -8.0%, which time contradicts: time changed by {told}" if told else "")


CALM, WILD = (0.0, -0.1, 0.05), (0.06, -0.1, 0.2)


@pytest.mark.parametrize(
    ("undecided", "chosen", "times", "finer"),
    [
        # Its interval includes the concern threshold, and its half-width is over 0.5%.
        (True, SAME, [(0.045, 0.010, 0.08), (0.0495, 0.0445, 0.0555)], None),
        (False, SAME, [(0.045, 0.000, 0.08), (0.045, 0.010, 0.05), (0.0495, 0.0450, 0.0540)], None),
        # Its estimate is of a worse level.
        (True, SAME, [(0.06, -0.1, 0.2)], None),
        (False, SAME, [(0.05, -0.1, 0.2)], None),
        (True, CONCERN, [(0.11, 0.01, 0.2), (0.11, -0.05, 0.25)], None),
        (False, CONCERN, [(0.09, 0.01, 0.2)], None),
        # The finest other clock is heard, and no other.
        (True, CONCERN, [CALM], (0.11, 0.05, 0.20)),
        (False, CONCERN, [CALM], (0.10, -0.05, 0.25)),
        (False, SAME, [WILD], CALM),
        # Its lower end on the concern threshold, its estimate not beyond it.
        (True, SAME, [CALM], (0.05, 0.05, 0.08)),
        (False, SAME, [CALM], (0.05, 0.05, 0.05)),
        # By the floor of two builds.
        (True, (0.06, 0.006, 0.2), [(0.06, 0.01, 0.2)], None),
    ],
)
def test_a_clock_that_is_undecided(undecided: bool, chosen: Change, times: list[Change], finer: Any) -> None:
    for time in times:
        found = OtherClocks()
        more = {"uncontended": moved("uncontended", *finer)} if finer else {}
        found.check({"cpu": moved("cpu", *chosen), "time": moved("time", *time), **more}, "cpu", THRESHOLDS)
        assert (found.gating, list(found.undecided)) == ({}, [("b", "cpu")] if undecided else []), time


def test_what_other_clocks_say_of_the_chosen_one() -> None:
    found, slower = OtherClocks(), moved("time", 0.2, 0.1, 0.3)
    for chosen in ("", "time"):
        found.check({"time": slower}, chosen, THRESHOLDS)
    assert found == OtherClocks()
    found.check({"cpu": moved("cpu", *SAME), "time": slower}, "cpu", THRESHOLDS)
    assert found.gating == {("b", "time"): "it proves a regression that `cpu` does not show"}
    found.check({"cpu": moved("cpu", -0.08, -0.1, -0.06), "time": moved("time", *SAME)}, "cpu", THRESHOLDS)
    assert list(found.refuted) == [("b", "cpu")]
    unbounded = moved("time", 0.07, -math.inf, math.inf)
    found.check({"cpu": moved("cpu", *SAME), "time": unbounded}, "cpu", THRESHOLDS)
    assert found.undecided == {
        ("b", "cpu"): "time changed by +7.0% (no interval yet), which is not proven to exceed the concern threshold"
    }


def test_a_latency_that_is_proven_to_be_longer_gates_beside_the_cost_of_a_request() -> None:
    longer = {"service_cpu": (100.0, 100.0), "time": (1000.0, 1200.0)}
    rows = {row.metric: row for row in judged(events(20, longer, {})).benchmarks}
    assert [(name, rows[name].gating, rows[name].decision) for name in longer] == [
        ("service_cpu", True, "same"),
        ("time", True, "regressed"),
    ]


# -- simulated programs


def events(pairs: int, sides: Mapping[str, tuple[float, float]], noise: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return pairs of one program, given the value on both sides and the noise of each clock."""
    dice = random.Random(7)
    found = []
    for number in range(pairs):
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline"}
        for place, name in enumerate(("baseline", "candidate")):
            event[name] = [
                {"metric": metric, "value": values[place] * dice.lognormvariate(0, noise.get(metric, 0.003))}
                for metric, values in sides.items()
            ]
        found.append(event)
    return found


def judged(taken: list[dict[str, Any]], criteria: Criteria | None = None, **step: Any) -> Result:
    own = criteria or Criteria()
    return judge(record(*taken, ended("b"), END, steps=(planned("b", **step),), criteria=own), own)


def waiting(
    cpu: float, wait: float, pairs: int = 20, criteria: Criteria | None = None, noise: float = 0.005, **step: Any
) -> Result:
    """Return pairs of a program that computes for 100 ms; the candidate computes and waits longer by these shares."""
    computes, both = (100.0, 100 * (1 + cpu)), (100.0, 100 * (1 + cpu + wait))
    sides = {"time": both, "cpu": computes, "uncontended": both}
    return judged(events(pairs, sides, {"time": noise, "uncontended": noise}), criteria, **step)


OWN = Criteria(per_glob={"b": OwnThresholds({"concern": 0.15, "action": 0.2})})


@pytest.mark.parametrize(
    ("cpu", "wait", "keys", "rows", "verdict"),
    [
        # Waiting that CPU time does not see fails the gate, by one row for one cause.
        (0.0, 0.105, {}, {"cpu": ("same", "ok"), "uncontended": ("regressed", "action")}, "fail"),
        (0.0, 0.08, {}, {"cpu": ("same", "ok"), "uncontended": ("regressed", "concern")}, "pass"),
        # By the benchmark's own thresholds, or by CPU time alone as its author says.
        (0.0, 0.105, {"criteria": OWN}, {"cpu": ("same", "ok")}, "pass"),
        (0.0, 0.105, {"metric": "cpu"}, {"cpu": ("same", "ok")}, "pass"),
        # What both clocks show is said by the finer one; one that merely is noisier contradicts nothing.
        (0.15, 0.0, {}, {"cpu": ("regressed", "action")}, "fail"),
        (-0.08, 0.0, {"noise": 0.1}, {"cpu": ("improved", "ok")}, "pass"),
        # A gain that waiting eats up is unproven; one that is smaller with waiting is still a gain.
        (-0.08, 0.075, {}, {"cpu": ("unproven", "ok")}, "pass"),
        (-0.095, 0.05, {}, {"cpu": ("improved", "ok")}, "pass"),
    ],
)
def test_rows_that_gate(cpu: float, wait: float, keys: Any, rows: dict[str, tuple[str, str]], verdict: str) -> None:
    result = waiting(cpu, wait, **keys)
    gating = {item.metric: (item.decision, item.level) for item in result.benchmarks if item.gating}
    assert (gating, result.verdict) == (rows, verdict)


def test_what_waiting_did_is_said() -> None:
    result = waiting(0.0, 0.105)
    assert "`cpu` does not show" in row(result, "uncontended").why
    assert "slower" in terminal.render_summary(result).splitlines()[0]
    assert any("contradicts" in text for text in row(waiting(-0.08, 0.075), "cpu").warnings)
    (said,) = row(waiting(0.0, 0.06, noise=0.02), "cpu").warnings
    assert "changed by +5" in said
    assert said.endswith("which is not proven to exceed the concern threshold")


@pytest.mark.parametrize(
    ("pairs", "wait", "noise", "bounds", "goes_on"),
    [
        # Waiting does not seem, or seems to hide a worse regression.
        (11, 0.0, 0.12, (-math.inf, 0.0), False),
        (11, 0.12, 0.12, (-math.inf, 0.0), True),
        # The same regression, shown less finely.
        (40, 0.0, 0.03, (0.0, 0.05), False),
    ],
)
def test_waiting_that_may_hide_more(pairs: int, wait: float, noise: float, bounds: Any, goes_on: bool) -> None:
    slower = (100.0, 106.0 + 100 * wait)
    sides = {"time": slower, "cpu": (100.0, 106.0), "uncontended": slower}
    taken = record(*events(pairs, sides, {"time": noise, "uncontended": noise}))
    rows = compared(taken, Criteria())
    change = rows["b", "uncontended"].change
    assert change
    assert bounds[0] < change.low < bounds[1] < change.high
    choice = choose_rows(taken, rows, Criteria())
    assert (list(choice.gating), bool(choice.undecided)) == ([("b", "cpu")], goes_on)


@pytest.mark.parametrize(("wait", "accepted"), [(0.0, True), (0.07, False)])
def test_a_candidate_is_kept_only_if_waiting_does_not_eat_the_gain(wait: float, *, accepted: bool) -> None:
    slower = (100.0, 87.0 + 100 * wait)
    criteria = Criteria()
    sides = {"time": slower, "cpu": (100.0, 87.0), "uncontended": slower}
    taken = record(*events(20, sides, {}), ended("b"), END, criteria=criteria)
    found = accept(taken, compared(taken, criteria), criteria, goal_of(criteria, None, None, 0.10), lambda _: False)
    assert found.accepted is accepted
    assert accepted or found.reason.startswith("unproven: cpu shows -13.0%")


@pytest.mark.parametrize(
    ("step", "shares"), [({}, {"cpu": 0.8, "time": 0.2, "uncontended": 0.2}), ({"metric": "cpu"}, {"cpu": 1.0})]
)
def test_rows_that_gate_share_the_false_alarms(step: dict[str, Any], shares: dict[str, float]) -> None:
    result = waiting(0.0, 0.0, pairs=11, **step)
    found = {metric: 1 - (row(result, metric).confidence or 1) for metric in shares}
    assert found == pytest.approx({metric: share * FIRST_LOOK for metric, share in shares.items()})


def of_a_suite(tight: float, waits: float, queueing: float, every: int = 1) -> Result:
    """Return pairs of a benchmark whose waiting is known by upper bounds, in one of ``every`` processes.

    ``tight``: the share of its processes in which the bound is low. ``waits``: the share of its CPU time for which it
    waits itself. ``queueing``: the deviation of wall time.
    """
    dice = random.Random(11)
    taken = []
    for number in range(40):
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline"}
        for each in ("baseline", "candidate"):
            cpu = dice.lognormvariate(0, 0.003)
            others = 0.01 if dice.random() < tight else dice.uniform(0.3, 2)
            wall = cpu * (1 + waits) * (1 + abs(dice.gauss(0, queueing)))
            bound = {"metric": "uncontended", "value": cpu * (1 + waits + others), "at_most": True}
            event[each] = [{"metric": "time", "value": wall}, {"metric": "cpu", "value": cpu}]
            event[each] += [] if number % every else [bound]
        taken.append(event)
    return judged(taken)


@pytest.mark.parametrize(
    ("tight", "waits", "every", "decides"),
    [
        (1.0, 0.0, 1, "cpu"),
        (0.35, 0.0, 1, "cpu"),
        (0.0, 0.0, 1, "time"),
        (1.0, 0.15, 1, "time"),
        (1.0, 0.0, 2, "time"),  # it has threads in the other half of its processes
    ],
)
def test_waiting_that_is_bounded_in_some_processes(tight: float, waits: float, every: int, decides: str) -> None:
    result = of_a_suite(tight, waits, 0.1, every)
    assert [item.metric for item in result.benchmarks if item.gating] == [decides]
    assert row(result, "uncontended").decision is None


def test_queueing_of_a_benchmark_that_only_computes_leaves_it_decided() -> None:
    found = row(of_a_suite(0.5, 0.0, 0.6), "cpu")
    assert (found.decision, found.stopped) == ("same", "")
    assert not [text for text in found.warnings if "not proven to exceed" in text]


def test_a_regression_that_waits_for_its_confirmation_is_one_row() -> None:
    taken = events(11, dict.fromkeys(CLOCKS, (100.0, 115.0)), {"time": 0.005})
    result = judged([event | {"many": True} for event in taken])
    assert [(item.metric, item.decision, item.unconfirmed) for item in result.benchmarks if item.gating] == [
        ("cpu", "unproven", True)
    ]
