"""Which clock decides, how other clocks may contradict it, and how a benchmark's rows share its false alarms."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from perfflow.model.criteria import Criteria, OwnThresholds, Thresholds
from perfflow.model.readings import SCHEDULES, Design
from perfflow.model.result import Benchmark, Result
from perfflow.report import terminal
from perfflow.verdict.acceptance import accept, goal_of
from perfflow.verdict.gating import choose_rows, compared
from perfflow.verdict.judge import judge
from tests.verdict.records import END, ended, planned, record

FIRST_LOOK = SCHEDULES[Design.LOOKS][0][1]
CLOCKS = ("time", "cpu", "uncontended")


def events(pairs: int, sides: Mapping[str, tuple[float, float]], noise: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return pairs of one program, given the value on both sides and the noise of each clock."""
    dice = random.Random(7)
    found = []
    for number in range(pairs):
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline"}
        for side, name in enumerate(("baseline", "candidate")):
            event[name] = [
                {"metric": metric, "value": values[side] * dice.lognormvariate(0, noise.get(metric, 0.003))}
                for metric, values in sides.items()
            ]
        found.append(event)
    return found


def judged(
    cpu: float, wait: float, pairs: int = 20, criteria: Criteria | None = None, noise: float = 0.005, **step: Any
) -> Result:
    """Return pairs of a program that computes for 100 ms; the candidate computes and waits longer by these shares."""
    after = (100 * (1 + cpu + wait), 100 * (1 + cpu), 100 * (1 + cpu + wait))
    sides = dict(zip(CLOCKS, zip((100.0,) * 3, after, strict=True), strict=True))
    taken = events(pairs, sides, {"time": noise, "uncontended": noise})
    own = criteria or Criteria()
    return judge(record(*taken, ended("b"), END, steps=(planned("b", **step),), criteria=own), own)


def row(result: Result, metric: str) -> Benchmark:
    return next(item for item in result.benchmarks if item.metric == metric)


def test_waiting_that_cpu_time_does_not_see_fails_the_gate() -> None:
    result = judged(cpu=0.0, wait=0.105)
    assert row(result, "cpu").gating
    assert row(result, "cpu").decision == "same"
    slower = row(result, "uncontended")
    assert (slower.decision, slower.level, slower.gating) == ("regressed", "action", True)
    assert "`cpu` does not show" in slower.why
    assert result.verdict == "fail"
    assert "slower" in terminal.render_summary(result).splitlines()[0]


def test_one_clock_tells_one_cause() -> None:
    result = judged(cpu=0.0, wait=0.105)
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu", "uncontended"]


def test_a_regression_by_waiting_that_may_matter_is_said() -> None:
    result = judged(cpu=0.0, wait=0.06, noise=0.02)
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu"]
    (said,) = row(result, "cpu").warnings
    assert "changed by +5" in said
    assert said.endswith("which is not proven to exceed the concern threshold")


@pytest.mark.parametrize(("wait", "goes_on"), [(0.0, False), (0.12, True)])
def test_measuring_goes_on_while_waiting_seems_to_hide_a_worse_regression(wait: float, goes_on: bool) -> None:
    slower = (100.0, 106.0 + 100 * wait)
    sides = {"time": slower, "cpu": (100.0, 106.0), "uncontended": slower}
    taken = record(*events(11, sides, {"time": 0.12, "uncontended": 0.12}))
    rows = compared(taken, Criteria())
    choice = choose_rows(taken, rows, Criteria())
    assert list(choice.gating) == [("b", "cpu")]
    assert rows["b", "uncontended"].change is not None
    assert rows["b", "uncontended"].change.low < 0
    assert (("b", "cpu") in choice.undecided) is goes_on


def test_measuring_does_not_go_on_for_a_clock_that_shows_the_same_regression_less_finely() -> None:
    sides = dict.fromkeys(CLOCKS, (100.0, 106.0))
    taken = record(*events(40, sides, {"time": 0.03, "uncontended": 0.03, "cpu": 0.003}), steps=(planned("b"),))
    rows = compared(taken, Criteria(), taken.series)
    wide = rows["b", "time"].change
    assert wide
    assert 0 < wide.low < 0.05 < wide.high
    assert not choose_rows(taken, rows, Criteria()).undecided


def test_a_concern_by_waiting_passes_with_a_warning() -> None:
    result = judged(cpu=0.0, wait=0.08)
    assert (row(result, "uncontended").level, result.verdict) == ("concern", "pass")


def test_what_both_clocks_show_is_said_by_the_finer_one() -> None:
    result = judged(cpu=0.15, wait=0.0)
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu"]


def test_a_clock_that_merely_is_noisier_contradicts_nothing() -> None:
    result = judged(cpu=-0.08, wait=0.0, noise=0.1)
    assert (row(result, "cpu").decision, row(result, "cpu").gating) == ("improved", True)
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu"]


def test_a_gain_that_waiting_eats_up_is_unproven() -> None:
    result = judged(cpu=-0.08, wait=0.075)
    found = row(result, "cpu")
    assert (found.decision, found.level, result.verdict) == ("unproven", "ok", "pass")
    assert any("contradicts" in text for text in found.warnings)


def test_a_gain_that_is_smaller_with_waiting_is_still_a_gain() -> None:
    assert row(judged(cpu=-0.095, wait=0.05), "cpu").decision == "improved"


@pytest.mark.parametrize(("wait", "accepted"), [(0.0, True), (0.07, False)])
def test_a_candidate_is_kept_only_if_waiting_does_not_eat_the_gain(wait: float, accepted: bool) -> None:
    after = {"time": (100.0, 87.0 + 100 * wait), "cpu": (100.0, 87.0), "uncontended": (100.0, 87.0 + 100 * wait)}
    criteria = Criteria()
    taken = record(*events(20, after, {}), ended("b"), END, criteria=criteria)
    goal = goal_of(criteria, None, None, 0.10)
    found = accept(taken, compared(taken, criteria), criteria, goal, lambda _: False)
    assert found.accepted is accepted
    assert accepted or found.reason.startswith("unproven: cpu shows -13.0%")


def test_the_author_may_decide_by_cpu_time_alone() -> None:
    result = judged(cpu=0.0, wait=0.105, metric="cpu")
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu"]
    assert result.verdict == "pass"


def test_all_rows_of_a_benchmark_that_gate_share_its_false_alarms() -> None:
    result = judged(cpu=0.0, wait=0.0, pairs=11)
    alphas = {item.metric: 1 - (item.confidence or 1) for item in result.benchmarks}
    assert alphas["cpu"] == pytest.approx(0.8 * FIRST_LOOK)
    assert alphas["time"] == alphas["uncontended"] == pytest.approx(0.2 * FIRST_LOOK)
    asked = judged(cpu=0.0, wait=0.0, pairs=11, metric="cpu")
    assert 1 - (row(asked, "cpu").confidence or 1) == pytest.approx(FIRST_LOOK)


def test_a_regression_by_waiting_is_held_against_the_benchmarks_own_threshold() -> None:
    criteria = Criteria(per_glob={"b": OwnThresholds({"concern": 0.15, "action": 0.2})}, thresholds=Thresholds())
    result = judged(cpu=0.0, wait=0.105, criteria=criteria)
    assert [item.metric for item in result.benchmarks if item.gating] == ["cpu"]


def of_a_suite(tight: float, waits: float, queueing: float) -> Result:
    """Return pairs of a benchmark whose waiting is known by upper bounds.

    ``tight``: the share of its processes in which the bound is low. ``waits``: the share of its CPU time for which it
    waits itself. ``queueing``: the deviation of wall time.
    """
    dice = random.Random(11)
    taken = []
    for number in range(40):
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline"}
        for side in ("baseline", "candidate"):
            cpu = dice.lognormvariate(0, 0.003)
            others = 0.01 if dice.random() < tight else dice.uniform(0.3, 2)
            event[side] = [
                {"metric": "time", "value": cpu * (1 + waits) * (1 + abs(dice.gauss(0, queueing)))},
                {"metric": "cpu", "value": cpu},
                {"metric": "uncontended", "value": cpu * (1 + waits + others), "at_most": True},
            ]
        taken.append(event)
    return judge(record(*taken, ended("b"), END, steps=(planned("b"),)), Criteria())


@pytest.mark.parametrize(
    ("tight", "waits", "decides"), [(1.0, 0.0, "cpu"), (0.35, 0.0, "cpu"), (0.0, 0.0, "time"), (1.0, 0.15, "time")]
)
def test_a_benchmark_computes_if_its_waiting_is_bounded_in_some_of_its_processes(
    tight: float, waits: float, decides: str
) -> None:
    result = of_a_suite(tight, waits, 0.1)
    assert [item.metric for item in result.benchmarks if item.gating] == [decides]
    assert row(result, "uncontended").decision is None


def test_queueing_of_a_benchmark_that_only_computes_leaves_it_decided() -> None:
    found = row(of_a_suite(0.5, 0.0, 0.6), "cpu")
    assert (found.decision, found.stopped) == ("same", "")
    assert not [text for text in found.warnings if "not proven to exceed" in text]


def test_a_benchmark_with_threads_in_some_of_its_processes_is_not_judged_by_bounds_of_the_others() -> None:
    taken = []
    for number in range(40):
        event: dict[str, Any] = {"event": "sample", "step": "b", "design": "looks", "pair": number, "first": "baseline"}
        for side in ("baseline", "candidate"):
            bound = {"metric": "uncontended", "value": 1.01, "at_most": True}
            event[side] = [{"metric": "time", "value": 1.0}, {"metric": "cpu", "value": 1.0}, *([bound] * (number % 2))]
        taken.append(event)
    result = judge(record(*taken, ended("b"), END, steps=(planned("b"),)), Criteria())
    assert "cpu" not in [item.metric for item in result.benchmarks if item.gating]


def test_a_regression_that_waits_for_its_confirmation_is_one_row() -> None:
    sides = dict.fromkeys(CLOCKS, (100.0, 115.0))
    taken = [event | {"many": True} for event in events(11, sides, {"time": 0.005})]
    result = judge(record(*taken, ended("b"), END, steps=(planned("b"),)), Criteria())
    assert [(item.metric, item.decision, item.unconfirmed) for item in result.benchmarks if item.gating] == [
        ("cpu", "unproven", True)
    ]
