"""Values of parameters: defaults, and settings with the type of the parameter."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.plan.plan import parameter_values
from perfflow.workflow.model import Param


def params(**written: Any) -> dict[str, Param]:
    return {name: Param.model_validate(value) for name, value in written.items()}


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        ("text", "10", "10"),
        ("text", "", ""),
        ("text", "a=b", "a=b"),
        (1, "10", 10),
        (1, "-3", -3),
        (1.5, "10", 10.0),
        (1.5, "1e-3", 0.001),
        (True, "no", False),
        (False, "TRUE", True),
        (False, "1", True),
        (["x"], "a, b,", ["a", "b"]),
        ([1], "1,2", [1, 2]),
        ([1.5], "2", [2.0]),
        ([], "a", ["a"]),
        ({"default": "1", "type": "integer"}, "2", 2),
        ({"type": "number"}, "2", 2.0),
        ({"default": "a", "enum": ["a", "b"]}, "b", "b"),
        ({"default": 1, "enum": [1, 2]}, "2", 2),
    ],
)
def test_a_setting_has_the_type_of_its_parameter(param: object, text: str, value: object) -> None:
    found, problems = parameter_values(params(p=param), [f"p={text}"])
    assert problems == []
    assert found == {"p": value}
    assert isinstance(found["p"], type(value))


@pytest.mark.parametrize(
    ("param", "text", "message"),
    [
        (1, "1.5", "--set p=1.5: not a whole number"),
        (1, "1_0", "--set p=1_0: not a whole number"),
        (1, "٣", "--set p=٣: not a whole number"),
        (1, "9" * 5000, "not a whole number"),
        (1.5, "nan", "--set p=nan: not a number"),
        (1.5, "", "--set p=: not a number"),
        (True, "maybe", "--set p=maybe: not true or false"),
        ([1], "1,x", "--set p=1,x: not a whole number"),
        ({"default": "a", "enum": ["a", "b"]}, "c", "--set p=c: not one of a, b"),
    ],
)
def test_a_setting_of_another_type_is_refused(param: object, text: str, message: str) -> None:
    _, problems = parameter_values(params(p=param), [f"p={text}"])
    assert [problem.message.endswith(message) for problem in problems] == [True]


def test_defaults_hold_where_nothing_is_set_and_the_last_setting_wins() -> None:
    assert parameter_values(params(a=1, b="x"), ["a=2", "a=3"]) == ({"a": 3, "b": "x"}, [])


def test_unknown_and_incomplete_settings_are_named_with_a_remedy() -> None:
    _, problems = parameter_values(params(size=1), ["sise=2", "size", "=3", "zebra=1"])
    assert [(problem.message, problem.hint) for problem in problems] == [
        ("--set sise=2: the workflow has no parameter 'sise'", "did you mean `size`?"),
        ("--set size is not of the form NAME=VALUE", "write --set NAME=VALUE"),
        ("--set =3: the workflow has no parameter ''", "parameters: size"),
        ("--set zebra=1: the workflow has no parameter 'zebra'", "parameters: size"),
    ]
    _, problems = parameter_values({}, ["a=1"])
    assert problems[0].hint == "parameters: none"


def test_a_parameter_without_a_default_must_be_set() -> None:
    found, problems = parameter_values(params(p={"help": "x"}), [])
    assert [problem.message for problem in problems] == ["parameter 'p' has no value"]
    assert found == {"p": "<params.p>"}
    assert parameter_values(params(p={"help": "x"}), ["p=a"]) == ({"p": "a"}, [])
