"""Criteria of a run: thresholds of a benchmark, shares, and the round trip through result.json."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model import criteria as known
from perfflow.model.criteria import Accepted, Criteria, MemoryThresholds, OwnThresholds, Thresholds, criteria_from_json
from perfflow.model.metrics import METRICS, STATISTICS, Better, Metric
from perfflow.model.targets import Target, parse_target
from perfflow.model.units import Dimension, UnitError

properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
shares = st.floats(0, 10)
OWN = {"latency": Metric("latency", Dimension.TIME, Better.LOWER, exact=True)}
_BOUNDS: list[object] = [
    *("<10μs", ">= 1.5 ms", {"min": "1ns", "max": "2s"}, {"max": "3us/op"}, "≤5s/op", 0, "≥70% of peak", "≥1.5x"),
    *("<2KB/op", {"min": "1 KiB"}, "=4MiB", "0/op", "<1e6", {"min": 1, "max": 2.5}, "3K", "<5%", {"min": "10%"}, 0.5),
    *("≥45 GiB/s", ">10K/s", "≥ 9.5 GFLOP/s", "≤linear", "<quadratic"),
]


def target_from(benchmark: str, metric: str, statistic: str, bound: object) -> Target | None:
    try:
        return parse_target(benchmark, f"{metric} {statistic}", bound, OWN)
    except UnitError:
        return None


targets = st.builds(
    target_from,
    names,
    st.sampled_from([*METRICS, *OWN]),
    st.sampled_from(STATISTICS),
    st.sampled_from(_BOUNDS),
).filter(lambda target: target is not None)
criteria = st.builds(
    Criteria,
    targets=st.lists(targets, max_size=4).map(tuple),
    thresholds=st.builds(Thresholds, shares, shares, shares),
    per_glob=st.dictionaries(
        names,
        st.builds(
            OwnThresholds,
            st.dictionaries(st.sampled_from(known.THRESHOLD_KEYS), shares),
            st.none() | st.dictionaries(st.sampled_from(known.MEMORY_KEYS), shares),
        ),
        max_size=3,
    ),
    memory=st.none() | st.builds(MemoryThresholds, shares, shares),
    ignore=st.lists(names, max_size=2).map(tuple),
    accepted=st.lists(st.builds(Accepted, names, shares, names, st.just("2031-01-31")), max_size=2).map(tuple),
    metrics=st.just(OWN),
    peaks=st.dictionaries(st.sampled_from(list(METRICS)), st.floats(0, 1e12), max_size=2),
)


@properties
@given(criteria)
def test_criteria_survive_result_json(given_criteria: Criteria) -> None:
    data: dict[str, Any] = json.loads(json.dumps(given_criteria.to_json()))
    assert criteria_from_json(data) == given_criteria


@pytest.mark.parametrize(
    "damage",
    [
        {"targets": [{"benchmark": "x"}]},
        {"targets": [{"benchmark": "x", "metric": "gone", "statistic": "p50", "bounds": "<1s"}]},
        {"metrics": {"m": {"dimension": "LENGTH", "better": "lower", "exact": False}}},
    ],
)
def test_damaged_criteria_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises((UnitError, LookupError)):
        criteria_from_json({**Criteria().to_json(), **damage})


def test_the_most_literal_glob_wins_key_by_key() -> None:
    found = Criteria(
        thresholds=Thresholds(0.05, 0.10, 0.02),
        per_glob={
            "core/decode": OwnThresholds({"action": 0.3}),
            "**": OwnThresholds({"action": 0.2, "floor": 0.01}),
            "core/*": OwnThresholds({"action": 0.25, "concern": 0.04}),
            "other/*": OwnThresholds({"action": 0.9}),
        },
    )
    for name, thresholds in (
        *(("core/decode", (0.04, 0.3, 0.01)), ("core/decode[k=1]", (0.04, 0.3, 0.01))),
        *(("core/x", (0.04, 0.25, 0.01)), ("x", (0.05, 0.2, 0.01))),
    ):
        assert found.thresholds_of(name) == Thresholds(*thresholds)
    assert Criteria().thresholds_of("x") == Thresholds()


def test_the_order_of_globs_in_the_file_does_not_matter() -> None:
    globs = {glob: OwnThresholds({"action": share}) for glob, share in (("a*", 0.1), ("*b", 0.2), ("ab", 0.3))}
    turned = dict(reversed(globs.items()))
    for name in ("ab", "axb", "ac", "cb"):
        assert Criteria(per_glob=globs).thresholds_of(name) == Criteria(per_glob=turned).thresholds_of(name)


def test_memory_of_some_benchmarks_has_its_own_thresholds_or_none() -> None:
    own = {
        "core/*": OwnThresholds(memory={"action": 0.5}),
        "core/free": OwnThresholds({"action": 0.3}, memory=None),
    }
    found = Criteria(per_glob=own)
    assert found.memory_of("core/x") == MemoryThresholds(0.05, 0.5)
    assert found.thresholds_of("core/x", "rss") == Thresholds(0.05, 0.5)
    assert (found.memory_of("core/free"), found.thresholds_of("core/free", "rss")) == (None, Thresholds(0.05, 0.3))
    off = Criteria(per_glob=own, memory=None)
    assert (off.memory_of("x"), off.memory_of("core/x")) == (None, MemoryThresholds(0.05, 0.5))


def test_a_name_with_wildcards_stands_for_itself_only() -> None:
    names = ["mul(a*b)", "mul(a+b)", "test[?]", "test[1]"]
    found = Criteria(
        ignore=("mul(a*b)",),
        per_glob={"test[?]": OwnThresholds({"action": 0.3}), "*": OwnThresholds({"action": 0.2})},
    ).knowing(names)
    assert [name for name in names if found.ignores(name)] == ["mul(a*b)"]
    assert [found.thresholds_of(name).action for name in names] == [0.2, 0.2, 0.3, 0.2]
    assert Criteria(ignore=("mul(a*b)",)).knowing(["mul(a+b)"]).ignores("mul(a+b)")


def test_a_metric_is_the_workflows_else_built_in_else_a_plain_number() -> None:
    found = Criteria(metrics=OWN)
    assert found.metric("latency") is OWN["latency"]
    assert found.metric("time") is METRICS["time"]
    assert found.metric("odd") == Metric("odd", Dimension.COUNT, Better.NONE)


def test_a_share_is_read() -> None:
    shares = {"5%": 0.05, "0.05": 0.05, "0": 0, "100%": 1, "1000%": 10, " 2.5 % ": 0.025}
    assert {text: known.read_share(text) for text in shares} == pytest.approx(shares)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        *(("5", "write 5%"), ("5ms", "write 5% or 1.5x"), ("much", "write a number and a unit, such as 10us or 2KB")),
        *(("-5%", "write a share such as 5%"), ("2000%", "write a share such as 5%")),
    ],
)
def test_what_is_no_share_is_refused_with_a_remedy(text: str, hint: str) -> None:
    with pytest.raises(UnitError) as raised:
        known.read_share(text)
    assert raised.value.hint == hint
