"""Two stored sets without pairs: the same verdict table applies, and only removed rows gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.readings import Design
from perfflow.model.result import Result
from tests.verdict.comparisons import known
from tests.verdict.records import criteria, ended, judged, pairs, planned, row

STEADY = [1.0, 1.001, 0.999, 1.0, 1.002, 0.998]
TWICE = [2 * value for value in STEADY]
SIDE = st.lists(st.floats(min_value=0.5, max_value=2.0), min_size=2, max_size=12)
Values = Mapping[str, Sequence[float]]


def compared(old: Values, new: Values, wanted: Mapping[str, Any] | None = None, **marks: bool) -> Result:
    """Judge values by metric of one benchmark, ``b``."""
    events = []
    for side, values in (("baseline", old), ("candidate", new)):
        for metric, found in values.items():
            for event in pairs("c", found, None, metric, benchmark="b", **marks):
                events.append({"event": "sample", "step": "c", "design": Design.UNPAIRED, side: event["baseline"]})
    return judged(*events, ended("c"), steps=[planned("c", benchmark="")], wanted=criteria(wanted))


def test_a_proven_regression_is_of_level_action_and_passes() -> None:
    result = compared({"time": STEADY}, {"time": TWICE})
    found = row(result)
    assert (found.decision, found.level, found.gating, found.leading) == ("regressed", "action", False, True)
    assert (found.paired, found.pairs, found.confidence, found.more) == (False, 0, 0.99, None)
    assert (result.verdict, result.evidence, result.reason_texts) == ("pass", [], [])


@pytest.mark.parametrize("metric", ["throughput", "rate"])
def test_more_of_a_rate_is_better(metric: str) -> None:
    found = row(compared({metric: STEADY}, {metric: TWICE}), metric)
    assert found.decision == "improved"
    assert known(found.speedup).value == pytest.approx(2)


@pytest.mark.parametrize(
    ("metric", "old", "new", "keys", "decision", "gating", "verdict"),
    [
        # Exact figures and figures with targets do not gate either; what is gone does.
        ("rss", [1.0], [2.0], {"exact": True}, "regressed", False, "pass"),
        ("time", STEADY, STEADY, {"wanted": {"b": {"time": "<9s"}}}, "same", False, "pass"),
        ("time", STEADY, [], {}, "removed", True, "error"),
        ("time", [], STEADY, {}, "new", False, "pass"),
        # Upper bounds are not compared, and zeros have no relative change.
        ("rss", STEADY, TWICE, {"at_most": True}, None, False, "pass"),
        ("time", [0.0, 1.0], [1.0, 1.0], {}, "unproven", False, "pass"),
    ],
)
def test_what_gates(metric: str, old: Any, new: Any, keys: Any, decision: str, gating: bool, verdict: str) -> None:
    result = compared({metric: old}, {metric: new}, **keys)
    found = row(result, metric)
    assert (found.decision, found.gating, result.verdict) == (decision, gating, verdict)
    assert (found.change is None) is (decision not in ("regressed", "same"))


THREE = {"time": STEADY, "cpu": STEADY, "uncontended": STEADY}


@pytest.mark.parametrize(
    ("values", "leading"),
    [
        # A mean of many runs leads no benchmark whose times are known; what tells of threads still counts.
        ({"time": STEADY, "cpu": [0.99]}, "time"),
        (THREE, "cpu"),
        (THREE | {"main_share": [0.5] * 6}, "time"),
    ],
)
def test_the_row_that_leads(values: Values, leading: str) -> None:
    result = compared(values, values)
    assert [item.metric for item in result.benchmarks if item.leading] == [leading]
    if len(values["cpu"]) == 1:
        assert "raise the number of runs" in row(result, "cpu").warnings[0]


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
