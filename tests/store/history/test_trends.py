"""The order of points, and the properties that separate trends."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.history.collect import opened
from perfflow.jobs.history.overview import index, shift_of
from perfflow.jobs.history.suspicion_report import changes_of
from perfflow.jobs.history.trends import HistoryFilter, SeriesTrend, in_order, moment, parameters_of, since, trends
from perfflow.model.errors import UserError
from perfflow.report.table import Tone
from perfflow.store.history.database import History, StoredSeries, StoredValue
from perfflow.store.history.summary import MeasuredState
from tests.store.history.summaries import summary

NOW = moment("2026-04-01")


def series(**changed: Any) -> StoredSeries:
    known: dict[str, Any] = {"id": 1, "benchmark": "b", "metric": "time", "statistic": "p50", "workflow": "w"}
    known |= {"params": "", "unit": "s", "better": "lower", "machine": "m", "points": 3}
    return StoredSeries(**known | changed)


def measured(value: float, started: str = "2026-01-01", revision: str = "", **changed: Any) -> StoredValue:
    known: dict[str, Any] = {"value": value, "started": started, "revision": revision, "run": started, "n": 5}
    known |= {"low": None, "high": None, "decision": "", "branch": "main", "dirty": False, "committed": "", "noise": ""}
    return StoredValue(**known | changed)


def trend(values: Sequence[float], **changed: Any) -> SeriesTrend:
    points = [measured(value, f"2026-01-01T{n // 60:02}:{n % 60:02}:00Z", f"r{n}") for n, value in enumerate(values)]
    return SeriesTrend(series(**changed), tuple(points))


def test_points_stand_in_the_order_of_commits_and_else_of_dates() -> None:
    late, early = measured(1, "2026-03-01", "first"), measured(2, "2026-01-01", "second")
    between, dirty = measured(3, "2026-02-01", "unknown"), measured(4, "2026-03-02", "first", dirty=True)
    found = in_order([early, between, late, dirty], {"first": 0, "second": 1})
    assert [point.value for point in found] == [1, 3, 4, 2]
    assert [point.value for point in in_order([late, between, early], {})] == [2, 3, 1]


def test_a_step_and_its_direction() -> None:
    luck = random.Random(5)
    values = [math.exp(luck.gauss(0, 0.01)) * (1.0 if n < 40 else 1.2) for n in range(80)]
    slower = trend(values)
    (change,) = changes_of(slower)
    assert abs(change.at - 40) <= 1
    assert change.low < 0.2 < change.high
    assert shift_of(change, slower).tone is Tone.BAD
    rate = trend(values, better="higher")
    assert shift_of(changes_of(rate)[0], rate).tone is Tone.GOOD
    assert changes_of(trend(values[:40])) == []
    assert changes_of(trend([0.0, *values])) == []


def test_what_differs_from_run_to_run_is_flaky() -> None:
    luck = random.Random(2)
    assert trend([math.exp(luck.gauss(0, 0.15)) for _ in range(40)]).is_flaky
    assert not trend([math.exp(luck.gauss(0, 0.01)) * (2.0 if n > 20 else 1.0) for n in range(40)]).is_flaky
    assert not trend([1.0, 2.0, 1.0]).is_flaky


def test_namesakes_are_told_apart_by_what_differs() -> None:
    first, second = trend([1.0], params='{"level": 1, "same": 0}'), trend([1.0], params='{"level": 9, "same": 0}')
    other = trend([1.0], workflow="v")
    assert parameters_of(first, [first, second]) == "level=1"
    assert parameters_of(other, [other, trend([1.0])]) == "v"
    assert parameters_of(first, [first]) == ""


def test_only_what_is_asked_for_is_shown(tmp_path: Path) -> None:
    with opened(tmp_path, pytest.fail) as history:
        assert isinstance(history, History)
        first, second = MeasuredState("baseline", "1", "main"), MeasuredState("baseline", "3", "topic")
        point = summary(1).points[0]
        history.add([summary(1, states=(first,), points=(point,)), summary(2, states=(second,))])
        for asked, found in (
            (HistoryFilter(), {"b0": ["1", "3"], "b1": ["3"]}),
            (HistoryFilter(benchmark="b0"), {"b0": ["1", "3"]}),
            (HistoryFilter(benchmark="b0", branch="topic"), {"b0": ["3"]}),
            (HistoryFilter(benchmark="b0", since=moment("2026-01-03")), {"b0": ["3"]}),
            (HistoryFilter(metric="cpu"), {}),
            (HistoryFilter(machine="other"), {}),
        ):
            shown = trends(history, asked, {})
            assert {each.series.benchmark: [point.revision for point in each.points] for each in shown} == found
    assert [row.series.benchmark for row in index(tmp_path, HistoryFilter(benchmark="b1"), lambda _: None)] == ["b1"]


def test_since_a_date_or_a_time_before_now() -> None:
    assert moment("2026-01-02") == datetime.fromisoformat("2026-01-02T00:00:00+00:00")
    starts = {"2026-01-02": "2026-01-02", "90d": "2026-01-01", "3w": "2026-03-11", "12h": "2026-03-31T12:00:00"}
    assert {text: since(text, NOW) for text in starts} == {text: moment(start) for text, start in starts.items()}
    with pytest.raises(UserError, match="neither a time nor a date"):
        since("yesterday", NOW)
