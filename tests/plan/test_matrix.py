"""Cells of a matrix agree with GitHub Actions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.plan.plan import cells, rendered_cell, shared_cells, suffix
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.model import MAX_CELLS, Matrix


def made(**keys: Any) -> list[dict[str, Any]]:
    return [dict(cell) for cell in cells(Matrix.model_validate(keys))]


def test_the_example_of_github_actions() -> None:
    """From "Expanding or adding matrix configurations" in GitHub's documentation."""
    found = made(
        fruit=["apple", "pear"],
        animal=["cat", "dog"],
        include=[
            {"color": "green"},
            {"color": "pink", "animal": "cat"},
            {"fruit": "apple", "shape": "circle"},
            {"fruit": "banana"},
            {"fruit": "banana", "animal": "cat"},
        ],
    )
    assert found == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"b": [1, 2], "a": "xy"}, [{"b": b, "a": a} for b in (1, 2) for a in "xy"]),
        ({"a": [1, 2], "b": [1, 2], "exclude": [{"a": 1}, {"a": 2, "b": 1}]}, [{"a": 2, "b": 2}]),
        ({"a": [1], "exclude": [{"a": 1}], "include": [{"a": 1, "c": 3}]}, [{"a": 1, "c": 3}]),
        ({"a": [1], "exclude": [{"a": 1}]}, []),
        ({"a": [1], "exclude": [{"z": 1}]}, [{"a": 1}]),
        ({"include": [{"a": 1}, {"b": 2}]}, [{"a": 1}, {"b": 2}]),
        ({"a": [True, False], "exclude": [{"a": 1}]}, [{"a": True}, {"a": False}]),
    ],
    ids=[
        *("combinations in the order written", "exclude takes part of a cell", "exclude comes before include"),
        *("all excluded", "an unknown key excludes nothing", "include alone", "true is not one"),
    ],
)
def test_a_matrix_has_these_cells(keys: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert made(**{key: list(values) for key, values in keys.items()}) == expected


def test_a_product_is_cut_off_before_it_fills_the_memory() -> None:
    assert len(made(**{f"k{n}": list(range(50)) for n in range(9)})) == MAX_CELLS
    assert cells(None) == [{}]


@given(
    st.dictionaries(
        st.sampled_from("abc"), st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True), max_size=3
    ),
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), min_size=1, max_size=2), max_size=4),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), min_size=1, max_size=2), max_size=3),
)
def test_no_include_changes_an_original_value(
    axes: dict[str, list[int]], include: list[dict[str, int]], exclude: list[dict[str, int]]
) -> None:
    grid = made(**axes, exclude=exclude)
    found = made(**axes, exclude=exclude, include=include)
    assert len(grid) <= len(found) <= len(grid) + len(include)
    for original, extended in zip(grid, found, strict=False):
        assert original.items() <= extended.items()
    for extra in include:
        assert any(all(cell.get(key) is not None for key in extra) for cell in found)


def test_a_cell_is_shown_by_its_keys() -> None:
    assert (suffix({}), suffix({"a": 1})) == ("", "[a=1]")
    assert suffix({"a": True, "b": 1.5, "c": "x y"}) == "[a=true,b=1.5,c=x y]"


def test_cells_agree_on_the_keys_both_have() -> None:
    assert shared_cells({"a": 1, "b": 2}, {"a": 1, "c": 3})
    assert shared_cells({}, {"a": 1})
    assert not shared_cells({"a": 1}, {"a": 2})


PARAMS = {"crates": ["a", "b"], "sizes": [1, 2], "no": 2, "more": "b", "empty": [], "many": [*range(100)], "in": [[1]]}


def rendered(**keys: Any) -> list[dict[str, Any]]:
    return [dict(cell) for cell in cells(rendered_cell(Matrix.model_validate(keys), PARAMS))]


def test_expressions_of_parameters_are_values_and_lists_stand_for_their_items() -> None:
    assert rendered(crate="${{ params.crates }}") == [{"crate": "a"}, {"crate": "b"}]
    assert [cell["n"] for cell in rendered(n=[0, "${{ params.sizes }}", 3])] == [0, 1, 2, 3]
    assert rendered(n=["x${{ params.sizes[1] }}"]) == [{"n": "x2"}]
    assert rendered(n=[1, 2], exclude=[{"n": "${{ params.no }}"}]) == [{"n": 1}]
    assert rendered(n=[1], include=[{"k": "${{ params.more }}"}]) == [{"n": 1, "k": "b"}]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"n": "${{ params.empty }}"}, "matrix key `n` has no values"),
        ({"n": "${{ params.many }}", "m": "${{ params.many }}"}, f"more than {MAX_CELLS}"),
        ({"n": "${{ params }}"}, "matrix key `n`: a value of type dict is not allowed"),
        ({"n": ["${{ params.in }}"]}, "matrix key `n`: a value of type list is not allowed"),
        ({"n": [1], "include": [{"k": "${{ params.many }}"}]}, "matrix key `k`: a value of type list is not allowed"),
        ({"n": "${{ steps.a.outputs.b }}"}, "steps"),
    ],
)
def test_what_is_no_value_of_a_matrix_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(message)):
        rendered(**keys)
