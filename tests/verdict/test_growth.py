"""Growth targets and the growth of two sides, judged from hand-made records."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perfflow.model.result import Result, TargetResult
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.comparisons import known
from tests.verdict.records import criteria, ended, judged, planned, reading

SIZES = (100.0, 1000.0, 10_000.0)
CURVES: dict[str, Callable[[float], float]] = {
    "constant": lambda _: 1e-3,
    "linear": lambda n: 1e-6 * n,
    "quadratic": lambda n: 1e-8 * n * n,
}


def cell(size: float, name: str = "decode", of: str = "decode", key: str = "n") -> dict[str, Any]:
    """Return the step of one size; ``of``: its benchmarks, without the size."""
    where = f"[{key}={size:g}]"
    return planned(f"{name}{where}", scaling={"key": key, "size": size, "cell": f"{of}{where}", "of": of})


def taken(step: str, size: float, *curves: str, metric: str = "time", count: int = 14, **keys: Any) -> list[Any]:
    """Return samples of one size that differ by up to 0.5%."""
    found = []
    for number in range(count):
        spread = 1 + 0.001 * (number % 11 - 5)
        event: dict[str, Any] = {"event": "sample", "step": step, "pair": number, "first": "baseline"}
        for side, curve in zip(("baseline", "candidate"), curves, strict=False):
            event[side] = [reading(metric, CURVES[curve](size) * spread, **keys)]
        found.append(event)
    return found


def run(*curves: str, target: str = "", metric: str = "time", measured: Sequence[float] = SIZES, **keys: Any) -> Result:
    steps = [cell(size) for size in SIZES]
    events: list[dict[str, Any]] = []
    for step in (item for item in steps if item["scaling"]["size"] in measured):
        events += [*taken(step["id"], step["scaling"]["size"], *curves, metric=metric, **keys), ended(step["id"])]
    return judged(*events, steps=steps, wanted=criteria({"decode": {f"{metric} growth": target}} if target else None))


def target_of(*curves: str, **keys: Any) -> TargetResult:
    (target,) = run(*curves, **keys).targets
    return target


@pytest.mark.parametrize(
    ("curve", "requirement", "status"),
    [
        *[("linear", "≤linear", "met"), ("linear", "<quadratic", "met"), ("linear", "linear", "met")],
        *[("linear", "≤log", "not met"), ("linear", "≥quadratic", "not met"), ("quadratic", "≤linear", "not met")],
        *[("quadratic", "≤ n log n", "not met"), ("quadratic", "≤quadratic", "met")],
        *[("constant", "≤constant", "met"), ("constant", "≤linear", "met"), ("quadratic", "constant", "not met")],
    ],
)
def test_a_class_is_held_against_the_whole_interval(curve: str, requirement: str, status: str) -> None:
    result = run(curve, target=requirement)
    (target,) = result.targets
    assert (target.benchmark, target.statistic, target.status) == ("decode", "growth", status)
    assert result.verdict == ("pass" if status == "met" else "fail")
    assert known(target.low) <= known(target.measured)


def test_the_exponent_is_what_was_measured_and_the_sizes_stay_rows() -> None:
    result = run("quadratic", target="≤quadratic")
    (target,) = result.targets
    assert target.measured == pytest.approx(2.0, abs=0.02)
    assert "quadratic fits best over n=100..10000" in target.detail
    assert [row.name for row in result.benchmarks] == ["decode[n=100]", "decode[n=1000]", "decode[n=10000]"]


@pytest.mark.parametrize(
    ("curves", "keys", "status", "detail"),
    [
        # Too few sizes or samples say how many are needed.
        (["linear"], {"measured": SIZES[:2]}, "unproven", "2 of 3 sizes measured; fitting a growth needs 3"),
        (["linear"], {"count": 3}, "unproven", "fitting a growth needs 6 samples of each size"),
        (["linear"], {"measured": ()}, "not measured", None),
        # The candidate is judged where there is one.
        (["quadratic", "linear"], {}, "met", None),
        (["linear", "quadratic"], {}, "not met", None),
        # Exact counts need one run of each size.
        (["linear"], {"metric": "instructions", "count": 1, "exact": True}, "met", None),
    ],
)
def test_what_is_told_of_a_growth(curves: list[str], keys: dict[str, Any], status: str, detail: str | None) -> None:
    target = target_of(*curves, target="≤linear", **keys)
    assert target.status == status
    assert detail in (None, target.detail)


def test_what_was_never_measured_is_an_error() -> None:
    assert run("linear", target="≤linear", measured=()).verdict == "error"


@pytest.mark.parametrize(
    ("before", "after", "decision"),
    [
        *[("linear", "quadratic", "worse"), ("quadratic", "linear", "better"), ("linear", "linear", "same")],
        *[("constant", "linear", "worse"), ("constant", "constant", "same")],
    ],
)
def test_two_sides_are_compared_by_their_growth(before: str, after: str, decision: str) -> None:
    result = run(before, after)
    (growth,) = result.growth
    assert (growth.benchmark, growth.metric, growth.key, growth.decision) == ("decode", "time", "n", decision)
    said = [text for text in result.reason_texts if "grows faster" in text]
    assert bool(said) == (decision == "worse")
    assert all(text.startswith("concern: decode time grows faster with n: ") for text in said)


def test_time_is_taken_without_the_waiting_for_a_core() -> None:
    # The larger the size, the longer the process queues: wall time reads as quadratic.
    events, steps = [], [cell(size) for size in SIZES]
    for step, size in zip(steps, SIZES, strict=True):
        alone = taken(step["id"], size, "linear", metric="uncontended")
        for time, other in zip(taken(step["id"], size, "quadratic"), alone, strict=True):
            events.append({**time, "baseline": [*time["baseline"], *other["baseline"]]})
        events.append(ended(step["id"]))
    (target,) = judged(*events, steps=steps, wanted=criteria({"decode": {"time": "≤linear"}})).targets
    assert target.status == "met"
    assert target.detail.endswith("by time without core waits")


def test_a_result_judged_again_is_the_same() -> None:
    first = run("linear", "quadratic", target="≤linear")
    assert judge(record_of_result(first), criteria({"decode": {"time": "≤linear"}})) == first


def test_a_suites_own_ids_have_a_growth_each() -> None:
    steps, events = [cell(size, "suite", "*") for size in SIZES], []
    for step, size in zip(steps, SIZES, strict=True):
        for name, curve in (("a/b", "linear"), ("c", "quadratic")):
            events += taken(step["id"], size, curve, benchmark=f"{name}[n={size:g}]")
        events.append(ended(step["id"]))
    wanted = criteria({"**": {"time": "≤linear"}})
    found = {target.benchmark: target.status for target in judged(*events, steps=steps, wanted=wanted).targets}
    assert found == {"a/b": "met", "c": "not met"}


# -- numbers of threads

THREADS = (1, 2, 4)


def of_threads(values: Sequence[Sequence[float]], metric: str = "time", target: str = "") -> Result:
    """Judge the samples of each number of threads, in base units."""
    steps = [cell(number, name="sum", of="sum", key="threads") for number in THREADS]
    events: list[dict[str, Any]] = []
    for step, samples in zip(steps, values, strict=True):
        events += [
            {
                "event": "sample",
                "step": step["id"],
                "pair": pair,
                "first": "baseline",
                "baseline": [reading(metric, each)],
            }
            for pair, each in enumerate(samples)
        ]
        events.append(ended(step["id"]))
    return judged(*events, steps=steps, wanted=criteria({"sum": {f"{metric} efficiency": target}} if target else None))


@pytest.mark.parametrize(("metric", "values"), [("time", (0.4, 0.21, 0.125)), ("rate", (10.0, 400 / 21, 32.0))])
def test_efficiency_is_the_speedup_by_the_number_of_threads(metric: str, values: Sequence[float]) -> None:
    (row,) = of_threads([[value] * 8 for value in values], metric).growth
    assert row.baseline
    assert [point.size for point in row.baseline.efficiency] == [2.0, 4.0]
    assert [point.value for point in row.baseline.efficiency] == pytest.approx([400 / 420, 0.8])
    assert (row.key, row.decision, row.baseline.exponent) == ("threads", None, None)


@pytest.mark.parametrize(
    ("target", "status"), [("≥75%", "met"), ("≥85%", "not met"), ("≥80%", "unproven"), ("<90%", "met")]
)
def test_a_target_limits_the_efficiency_of_the_most_threads(target: str, status: str) -> None:
    (found,) = of_threads([[value] * 8 for value in (0.4, 0.21, 0.125)], target=target).targets
    assert (found.status, found.unit) == (status, "1")
    assert found.measured == pytest.approx(0.8)


def test_the_interval_of_an_efficiency_contains_the_true_one() -> None:
    dice = random.Random(5)
    inside = 0
    for _ in range(200):
        values = [[dice.lognormvariate(math.log(1 / number), 0.1) for _ in range(12)] for number in THREADS]
        (row,) = of_threads(values).growth
        assert row.baseline
        last = row.baseline.efficiency[-1]
        assert last.low is not None
        assert last.high is not None
        inside += last.low <= 1 <= last.high
    assert inside >= 188  # 95% of 200, less what chance takes away in 3% of such tests
