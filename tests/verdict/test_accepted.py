"""Accepted regressions: for one metric, until a date, and not after the base contains them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfflow.model.criteria import Accepted
from perfflow.model.result import Result
from perfflow.verdict.judge import judge
from tests.verdict.records import criteria, ended, pairs, reading, record, row
from tests.verdict.test_routing import REVISIONS

BASE = [1 + 0.001 * (number % 3) for number in range(20)]
SLOWER = Accepted("b", 0.3, "a correct parser is slower", "2026-12-31")


def gated(*accepted: Accepted, time: float = 1.0, rss: float = 1.0) -> Result:
    known = criteria({"b": {"rss change": "<500%"}}, accepted=accepted)
    events = pairs("b", BASE, [time * value for value in BASE])
    for event in events:
        event["baseline"].append(reading("rss", 1e8))
        event["candidate"].append(reading("rss", rss * 1e8))
    made = record(*events, ended("b"), criteria=known)
    made.trees = dict(REVISIONS)
    return judge(made, known)


@pytest.mark.parametrize(
    ("metric", "time", "rss", "verdict"),
    [
        ("", 1.2, 1.0, "pass"),
        ("", 1.0, 1.2, "fail"),  # meant for time
        ("time", 1.2, 1.0, "pass"),
        ("cpu", 1.2, 1.0, "pass"),  # one timing metric stands for all
        ("time", 1.0, 1.2, "fail"),
        ("rss", 1.0, 1.2, "pass"),
        ("rss", 1.2, 1.0, "fail"),
        ("rss", 1.0, 1.4, "fail"),
    ],
)
def test_an_entry_is_about_one_metric(metric: str, time: float, rss: float, verdict: str) -> None:
    result = gated(replace(SLOWER, metric=metric), time=time, rss=rss)
    assert result.verdict == verdict
    used = [item.metric for item in result.benchmarks if item.accepted]
    assert used == ([] if verdict == "fail" else ["rss" if rss > 1 else "time"])


def test_one_that_the_base_has_is_spent() -> None:
    result = gated(replace(SLOWER, spent=True), time=1.2)
    assert result.verdict == "fail"
    assert (
        result.reason_texts[1]
        == "b time: the base already contains the regression accepted until 2026-12-31: a correct parser is slower"
    )
    assert any("no longer accepted" in text for text in row(result).warnings)
