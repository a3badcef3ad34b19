"""Models of tools' JSON: rejected values, messages, and speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, reading_of_many
from perfflow.tools.parsed_output import (
    Counted,
    Figure,
    Json,
    Name,
    Positive,
    Whole,
    checked_json,
    one_of_keys,
    read_json,
)


class Benchmark(Json):
    name: Name
    times: list[Figure] = Field(default=[])
    loops: Whole = 1
    unit: Annotated[float, one_of_keys({"ms": 1e-3})] = 1.0
    rate: Positive = 1.0
    rounds: Counted = 1
    note: str | None = None
    ended: bool = True


class Suite(Json):
    benchmarks: list[Benchmark]
    groups: dict[str, Benchmark] = Field(default={})


def _why(**changes: object) -> str:
    with pytest.raises(ToolOutputError) as caught:
        checked_json(Suite, {"benchmarks": [{"name": "a"}, {"name": "b c", **changes}]}, "out.json")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"times": 3}, "times of b c is not a list"),
        ({"times": [1, "2"]}, "times[1] of b c is '2', not a number"),
        ({"times": [True]}, "times[0] of b c is True, not a number"),
        ({"times": [None]}, "times[0] of b c is null, not a number"),
        ({"times": [-1.5]}, "times[0] of b c is -1.5, which is not valid"),
        ({"times": [float("nan")]}, "times[0] of b c is nan, which is not valid"),
        ({"times": [float("inf")]}, "times[0] of b c is inf, which is not valid"),
        ({"times": [1e24]}, "times[0] of b c is 1e+24, which is not valid"),
        ({"times": [10**400]}, "times[0] of b c is too large, not a number"),
        ({"loops": 1.5}, "loops of b c is 1.5, not a whole number"),
        ({"loops": 2**63}, "loops of b c is too large, which is not valid"),
        ({"rounds": 0}, "rounds of b c is 0, which is not valid"),
        ({"rate": 0}, "rate of b c is 0, which is not valid"),
        ({"unit": "h"}, "unit of b c is 'h', which perfflow does not know"),
        ({"unit": ["ms"]}, "unit of b c is ['ms'], which perfflow does not know"),
        ({"note": 3}, "note of b c is not text"),
        ({"ended": 1}, "ended of b c is neither true nor false"),
        ({"name": 3}, "benchmarks[1].name is not text"),
    ],
)
def test_a_wrong_value_is_told_with_its_key_and_its_benchmark(change: dict[str, object], reason: str) -> None:
    assert _why(**change) == f"out.json: {reason}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], "out.json is not an object"),
        ({}, "out.json: benchmarks is missing"),
        ({"benchmarks": [{}]}, "out.json: benchmarks[0].name is missing"),
        ({"benchmarks": [3]}, "out.json: benchmarks[0] is not an object"),
        ({"benchmarks": [], "groups": []}, "out.json: groups is not an object"),
        (
            {"benchmarks": [], "groups": {"x\n": {"name": "n", "loops": "1"}}},
            "out.json: loops of n is '1'",
        ),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(content: object, reason: str) -> None:
    with pytest.raises(ToolOutputError) as caught:
        checked_json(Suite, content, "out.json")
    assert str(caught.value).startswith(reason)
    assert "pydantic" not in str(caught.value)


class Sized(Json):
    by_size: dict[Whole, list[Whole]]


def test_a_wrong_key_above_a_list_is_told() -> None:
    with pytest.raises(ToolOutputError) as raised:
        checked_json(Sized, {"by_size": {"many": [1]}})
    assert str(raised.value) == "by_size.many.[key] is 'many', not a whole number"


def test_other_keys_are_left_aside() -> None:
    found = checked_json(Suite, {"benchmarks": [{"name": "a\x00", "of the next version": [float("nan")]}], "more": {}})
    assert found.benchmarks[0].name == "a?"


def test_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    with pytest.raises(ToolOutputError, match=r"stats\.json was not written: run it again"):
        read_json(Suite, path, "run it again")
    path.write_text(json.dumps({"benchmarks": 1}))
    with pytest.raises(ToolOutputError, match=r"stats\.json: benchmarks is not a list"):
        read_json(Suite, path)


@pytest.mark.parametrize("value", [1e24, float("nan"), float("inf"), -1e24])
def test_a_figure_that_scaling_made_absurd_is_refused_of_every_tool(value: float) -> None:
    with pytest.raises(ToolOutputError, match=r"rss of a is \S+ in base units, which is not valid"):
        Parsed((Reading("rss", value, "a"),))
    with pytest.raises(ToolOutputError, match=r"^rss is"):
        Parsed((reading_of_many("rss", [1.0, 2.0, value]),))
