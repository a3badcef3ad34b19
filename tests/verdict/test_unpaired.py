"""Two stored sets without pairs: the same verdict table applies, and only removed rows gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.readings import Design
from perfflow.model.result import Result
from tests.verdict.records import criteria, ended, judged, planned, reading, row

STEADY = [1.0, 1.001, 0.999, 1.0, 1.002, 0.998]
SIDE = st.lists(st.floats(min_value=0.5, max_value=2.0), min_size=2, max_size=12)


def compared(old: Mapping[str, Sequence[float]], new: Mapping[str, Sequence[float]], **keys: Any) -> Result:
    """Judge values by metric of one benchmark, ``b``."""
    marks = {name: keys.pop(name) for name in ("exact", "at_most") if name in keys}
    events = [
        {
            "event": "sample",
            "step": "c",
            "design": Design.UNPAIRED,
            side: [reading(metric, value, benchmark="b", **marks)],
        }
        for side, values in (("baseline", old), ("candidate", new))
        for metric, found in values.items()
        for value in found
    ]
    return judged(*events, ended("c"), steps=[planned("c", benchmark="")], **keys)


def scaled(factor: float) -> list[float]:
    return [value * factor for value in STEADY]


def test_a_proven_regression_is_of_level_action_and_passes() -> None:
    result = compared({"time": STEADY}, {"time": scaled(2)})
    found = row(result)
    assert (found.decision, found.level, found.gating, found.leading) == ("regressed", "action", False, True)
    assert (found.paired, found.pairs, found.confidence, found.more) == (False, 0, 0.99, None)
    assert (result.verdict, result.evidence, result.reason_texts) == ("pass", [], [])


@pytest.mark.parametrize("metric", ["throughput", "rate"])
def test_more_of_a_rate_is_better(metric: str) -> None:
    found = row(compared({metric: STEADY}, {metric: scaled(2)}), metric)
    assert found.decision == "improved"
    assert found.speedup is not None
    assert found.speedup.value == pytest.approx(2)


def test_exact_figures_and_figures_with_targets_do_not_gate_either() -> None:
    result = compared({"rss": [1.0]}, {"rss": [2.0]}, exact=True)
    assert (row(result, "rss").decision, row(result, "rss").gating, result.verdict) == ("regressed", False, "pass")
    assert not row(compared({"time": STEADY}, {"time": STEADY}, wanted=criteria({"b": {"time": "<9s"}}))).gating


def test_an_upper_bound_bounds_one_side() -> None:
    found = row(compared({"rss": STEADY}, {"rss": scaled(2)}, at_most=True), "rss")
    assert (found.change, found.decision) == (None, None)


def test_what_is_gone_gates_and_what_is_new_does_not() -> None:
    gone = compared({"time": STEADY}, {})
    assert (row(gone).decision, row(gone).gating, gone.verdict) == ("removed", True, "error")
    new = compared({}, {"time": STEADY})
    assert (row(new).decision, row(new).gating, new.verdict) == ("new", False, "pass")


def test_a_mean_of_many_runs_leads_no_benchmark_whose_times_are_known() -> None:
    result = compared({"time": STEADY, "cpu": [0.99]}, {"time": STEADY, "cpu": [0.99]})
    assert [item.metric for item in result.benchmarks if item.leading] == ["time"]
    assert "raise the number of runs" in row(result, "cpu").warnings[0]


def test_what_tells_of_threads_still_counts() -> None:
    """By its times alone, CPU time would decide about the program."""
    both = {"time": STEADY, "cpu": STEADY, "uncontended": STEADY}
    assert [item.metric for item in compared(both, both).benchmarks if item.leading] == ["cpu"]
    threaded = both | {"main_share": [0.5] * 6}
    assert [item.metric for item in compared(threaded, threaded).benchmarks if item.leading] == ["time"]


def test_zeros_have_no_relative_change() -> None:
    found = row(compared({"time": [0.0, 1.0]}, {"time": [1.0, 1.0]}))
    assert (found.decision, found.change) == ("unproven", None)


@given(SIDE, SIDE)
def test_swapping_the_sides_mirrors_the_interval(a: list[float], b: list[float]) -> None:
    there, back = (row(compared({"time": x}, {"time": y})) for x, y in ((a, b), (b, a)))
    if there.speedup is None or back.speedup is None:
        assert there.speedup == back.speedup
        return
    for mine, theirs in ((there.speedup.value, back.speedup.value), (there.speedup.low, back.speedup.high)):
        # A change of -99.999% has too few digits left for its reciprocal.
        if mine and theirs and 1e-4 < mine < 1e4:
            assert mine * theirs == pytest.approx(1, rel=1e-6)
