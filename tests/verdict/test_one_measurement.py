"""A rate that is the inverse of a time in all samples is judged and reported once."""

from __future__ import annotations

import pytest

from perfflow.model.criteria import Criteria
from perfflow.model.result import Result
from perfflow.report.page import page_of
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, pairs, reading, record, row
from tests.verdict.test_routing import REVISIONS

BASE = [1 + 0.001 * (number % 3) for number in range(20)]


def gated(factor: float, wanted: Criteria | None = None, *, work: float = 1.0, guard: bool = False) -> Result:
    """Return a benchmark with a time and a throughput (work / time); the head may do a different amount of work."""
    known = wanted or Criteria()
    events = pairs("b", BASE, [factor * value for value in BASE])
    for event in events:
        event["baseline"].append(reading("throughput", 1e6 / event["baseline"][0]["value"]))
        event["candidate"].append(reading("throughput", work * 1e6 / event["candidate"][0]["value"]))
    made = record(*events, ended("b"), criteria=known)
    made.run = made.run.model_copy(update={"guard": ["**"] if guard else []})
    made.trees = dict(REVISIONS)
    return judge(made, known)


@pytest.mark.parametrize("guard", [False, True])
def test_the_rate_does_not_gate(guard: bool) -> None:
    result = gated(1.25, guard=guard)
    rate = row(result, "throughput")
    assert (rate.gating, rate.same_as, rate.why) == (False, "time", "the same measurement as time")
    assert [text.partition(",")[0] for text in result.reason_texts] == ["regressed: b time +25.0%"]


def test_one_that_a_target_names_gates_and_is_told_once() -> None:
    result = gated(1.25, criteria({"b": {"throughput": "≥1MB/s"}}))
    assert row(result, "throughput").gating
    assert sum(text.startswith("regressed") for text in result.reason_texts) == 1
    page = page_of(result)
    assert [item.metric for item in page.comparisons] == ["time"]
    assert page.findings.summary is not None
    assert [item.metric for item in page.findings.summary.regressed.shown] == ["time"]
    assert [text.split()[1] for text in result.routes[0].brief.regressed] == ["time:"]
    assert judge(record_of_result(result), criteria({"b": {"throughput": "≥1MB/s"}})) == result


def test_of_other_work_the_rate_is_another_measurement() -> None:
    assert row(gated(1.25, work=1.3), "throughput").same_as == ""
    guarded = gated(1.25, work=0.8, guard=True)
    assert row(guarded, "throughput").gating
