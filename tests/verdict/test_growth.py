"""Growth targets and the growth of two sides, judged from hand-made records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from perfflow.model.result import Result
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, judged, planned, reading

SIZES = (100.0, 1000.0, 10_000.0)
Curve = Callable[[float], float]


def linear(n: float) -> float:
    return 1e-6 * n


def quadratic(n: float) -> float:
    return 1e-8 * n * n


def constant(_: float) -> float:
    return 1e-3


def cell(size: float) -> dict[str, Any]:
    name = f"decode[n={size:g}]"
    about = {"key": "n", "size": size, "cell": name, "of": "decode"}
    return planned(name, scaling=about)


def taken(size: float, *curves: Curve, metric: str = "time", count: int = 14, **keys: Any) -> list[dict[str, Any]]:
    """Return samples of one size that differ by up to 0.5%."""
    found = []
    for number in range(count):
        spread = 1 + 0.001 * (number % 11 - 5)
        event: dict[str, Any] = {"event": "sample", "step": f"decode[n={size:g}]", "pair": number, "first": "baseline"}
        for side, curve in zip(("baseline", "candidate"), curves, strict=False):
            event[side] = [reading(metric, curve(size) * spread, **keys)]
        found.append(event)
    return found


def run(
    *curves: Curve,
    targets: Mapping[str, Any] | None = None,
    sizes: Sequence[float] = SIZES,
    measured: Sequence[float] | None = None,
    count: int = 14,
) -> Result:
    events: list[dict[str, Any]] = []
    for size in sizes if measured is None else measured:
        events += [*taken(size, *curves, count=count), ended(f"decode[n={size:g}]")]
    wanted = criteria({"decode": targets} if targets else None)
    return judged(*events, steps=[cell(size) for size in sizes], wanted=wanted)


@pytest.mark.parametrize(
    ("curve", "requirement", "status"),
    [
        (linear, "≤linear", "met"),
        (linear, "<quadratic", "met"),
        (linear, "linear", "met"),
        (linear, "≤log", "not met"),
        (linear, "≥quadratic", "not met"),
        (quadratic, "≤linear", "not met"),
        (quadratic, "≤ n log n", "not met"),
        (quadratic, "≤quadratic", "met"),
        (constant, "≤constant", "met"),
        (constant, "≤linear", "met"),
        (quadratic, "constant", "not met"),
    ],
)
def test_a_class_is_held_against_the_whole_interval(curve: Curve, requirement: str, status: str) -> None:
    result = run(curve, targets={"time growth": requirement})
    (target,) = result.targets
    assert (target.benchmark, target.statistic, target.status) == ("decode", "growth", status)
    assert result.verdict == ("pass" if status == "met" else "fail")
    assert target.low is not None
    assert target.measured is not None
    assert target.low <= target.measured


def test_the_exponent_is_what_was_measured_and_the_sizes_stay_rows() -> None:
    result = run(quadratic, targets={"time": "≤quadratic"})
    (target,) = result.targets
    assert target.measured == pytest.approx(2.0, abs=0.02)
    assert "quadratic fits best over n=100..10000" in target.detail
    assert [row.name for row in result.benchmarks] == ["decode[n=100]", "decode[n=1000]", "decode[n=10000]"]


def test_too_few_sizes_are_unproven_and_say_how_many_are_needed() -> None:
    result = run(linear, targets={"time": "≤linear"}, measured=SIZES[:2])
    (target,) = result.targets
    assert (target.status, target.detail) == ("unproven", "2 of 3 sizes measured; fitting a growth needs 3")


def test_too_few_samples_are_unproven_and_say_how_many_are_needed() -> None:
    result = run(linear, targets={"time": "≤linear"}, count=3)
    (target,) = result.targets
    assert (target.status, target.detail) == ("unproven", "fitting a growth needs 6 samples of each size")


def test_what_was_never_measured_is_not_measured() -> None:
    result = run(linear, targets={"time": "≤linear"}, measured=())
    assert [target.status for target in result.targets] == ["not measured"]
    assert result.verdict == "error"


def test_the_candidate_is_judged_where_there_is_one() -> None:
    assert run(quadratic, linear, targets={"time": "≤linear"}).targets[0].status == "met"
    assert run(linear, quadratic, targets={"time": "≤linear"}).targets[0].status == "not met"


@pytest.mark.parametrize(
    ("before", "after", "decision"),
    [
        (linear, quadratic, "worse"),
        (quadratic, linear, "better"),
        (linear, linear, "same"),
        (constant, linear, "worse"),
        (constant, constant, "same"),
    ],
)
def test_two_sides_are_compared_by_their_growth(before: Curve, after: Curve, decision: str) -> None:
    result = run(before, after)
    (growth,) = result.growth
    assert (growth.benchmark, growth.metric, growth.key, growth.decision) == ("decode", "time", "n", decision)
    said = [text for text in result.reason_texts if "grows faster" in text]
    assert bool(said) == (decision == "worse")
    assert all(text.startswith("concern: decode time grows faster with n: ") for text in said)


def test_time_is_taken_without_the_waiting_for_a_core() -> None:
    # The larger the size, the longer the process queues: wall time reads as quadratic.
    events = []
    for size in SIZES:
        for time, alone in zip(taken(size, quadratic), taken(size, linear, metric="uncontended"), strict=True):
            events.append({**time, "baseline": [*time["baseline"], *alone["baseline"]]})
        events.append(ended(f"decode[n={size:g}]"))
    wanted = criteria({"decode": {"time": "≤linear"}})
    (target,) = judged(*events, steps=[cell(size) for size in SIZES], wanted=wanted).targets
    assert target.status == "met"
    assert target.detail.endswith("by time without core waits")


def test_exact_counts_need_one_run_of_each_size() -> None:
    events = []
    for size in SIZES:
        events += [*taken(size, lambda n: 50 * n, metric="instructions", count=1, exact=True)]
        events.append(ended(f"decode[n={size:g}]"))
    wanted = criteria({"decode": {"instructions growth": "≤linear"}})
    (target,) = judged(*events, steps=[cell(size) for size in SIZES], wanted=wanted).targets
    assert target.status == "met"


def test_a_result_judged_again_is_the_same() -> None:
    wanted = criteria({"decode": {"time": "≤linear"}})
    first = run(linear, quadratic, targets={"time": "≤linear"})
    assert judge(record_of_result(first), wanted) == first


def test_a_suites_own_ids_have_a_growth_each() -> None:
    steps = []
    events = []
    for size in SIZES:
        about = {"key": "n", "size": size, "cell": f"*[n={size:g}]", "of": "*"}
        steps.append(planned(f"suite[n={size:g}]", scaling=about))
        for name, curve in (("a/b", linear), ("c", quadratic)):
            named: dict[str, Any] = {"benchmark": f"{name}[n={size:g}]"}
            events += [event | {"step": f"suite[n={size:g}]"} for event in taken(size, curve, **named)]
        events.append(ended(f"suite[n={size:g}]"))
    wanted = criteria({"**": {"time": "≤linear"}})
    found = {target.benchmark: target.status for target in judged(*events, steps=steps, wanted=wanted).targets}
    assert found == {"a/b": "met", "c": "not met"}
