from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, Side, Usage, reading_of_distribution, reading_of_many

# No deadline, because times of calls mean nothing on a shared machine.
properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_many_values_of_one_process_are_one_reading_with_its_distribution() -> None:
    reading = reading_of_many("time", [float(k) for k in range(101)], "core/decode")
    assert (reading.metric, reading.value, reading.benchmark, reading.at_most) == ("time", 50.0, "core/decode", False)
    quantiles = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
    assert reading.inner == {**quantiles, "min": 0.0, "max": 100.0, "mean": 50.0, "n": 101.0}


def test_one_value_is_all_of_its_statistics() -> None:
    reading = reading_of_many("alloc", [7.0])
    assert reading.value == 7.0
    assert {name for name, value in reading.inner.items() if value != 7.0} == {"n"}


def test_no_values_are_no_reading() -> None:
    with pytest.raises((ValueError, IndexError)):
        reading_of_many("time", [])


@properties
@given(values=st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=50), by=st.integers(0, 50))
def test_the_distribution_is_ordered_and_numpys(values: list[float], by: int) -> None:
    inner = reading_of_many("time", values).inner
    assert inner["min"] <= inner["p50"] <= inner["p90"] <= inner["p95"] <= inner["p99"] <= inner["max"]
    assert inner["mean"] == pytest.approx(float(np.mean(values)))
    assert inner["p90"] == pytest.approx(float(np.quantile(values, 0.9)))
    rotated = values[by:] + values[:by]
    assert reading_of_many("time", rotated).value == inner["p50"]


def test_defaults_say_that_nothing_is_known_and_nothing_can_be_changed() -> None:
    reading = Reading("time", 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(reading, "value", 2.0)  # noqa: B010
    assert reading.inner == {}
    assert Reading("time", 1.0).inner is not reading.inner
    assert Parsed() == Parsed((), (), (), (), ())
    assert (Usage(wall=0.5).queued, Usage(wall=0.5).main_cpu) == (None, None)
    assert [side.value for side in Side] == ["baseline", "candidate"]


def test_a_call_only_computes_if_each_of_its_processes_does() -> None:
    computes = Usage(10.0, 4.0, 0.0, queued=5.9, main_cpu=4.0)
    assert computes.only_computes
    assert dataclasses.replace(computes, rest=(computes,)).only_computes
    for other in (dataclasses.replace(computes, main_cpu=1.0), dataclasses.replace(computes, wall=12.0), Usage(1.0)):
        assert not dataclasses.replace(computes, rest=(computes, other)).only_computes


@example([357913941.57684267] * 3)  # their mean is less than each of them
@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=50))
def test_a_distribution_is_read_as_its_values_would_be(values: list[float]) -> None:
    of_values = reading_of_many("time", values, "core")
    assert reading_of_distribution("time", of_values.inner, "core") == of_values


@pytest.mark.parametrize(
    "found",
    [
        *({"p50": 2.0, "p99": 1.0}, {"min": 3.0, "p50": 2.0}, {"p50": 2.0, "max": 1.0}, {"p99": 1.0}, {}),
        *({"p50": 2.0, "min": 1.0, "mean": 0.5}, {"p50": float("nan")}, {"p50": 1.0, "n": 0}, {"p50": 1.0, "p98": 2.0}),
    ],
)
def test_a_distribution_that_contradicts_itself_is_an_error(found: dict[str, float]) -> None:
    with pytest.raises(ToolOutputError, match="distribution"):
        reading_of_distribution("time", found)


def test_a_distribution_may_be_represented_by_another_statistic() -> None:
    reading = reading_of_distribution("time", {"p90": 3.0, "p99": 4.0, "mean": 2.0, "n": 7}, statistic="mean")
    assert (reading.value, reading.statistic, reading.inner["p99"]) == (2.0, "mean", 4.0)
