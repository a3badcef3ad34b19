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


def test_without_a_matrix_there_is_one_cell_without_keys() -> None:
    assert cells(None) == [{}]


def test_combinations_come_in_the_order_written() -> None:
    assert made(b=[1, 2], a=["x", "y"]) == [
        {"b": 1, "a": "x"},
        {"b": 1, "a": "y"},
        {"b": 2, "a": "x"},
        {"b": 2, "a": "y"},
    ]


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


def test_exclude_takes_part_of_a_cell_and_comes_before_include() -> None:
    assert made(a=[1, 2], b=[1, 2], exclude=[{"a": 1}, {"a": 2, "b": 1}]) == [{"a": 2, "b": 2}]
    assert made(a=[1], exclude=[{"a": 1}], include=[{"a": 1, "c": 3}]) == [{"a": 1, "c": 3}]
    assert made(a=[1], exclude=[{"a": 1}]) == []
    assert made(a=[1], exclude=[{"z": 1}]) == [{"a": 1}]


def test_include_alone_makes_cells() -> None:
    assert made(include=[{"a": 1}, {"b": 2}]) == [{"a": 1}, {"b": 2}]


def test_true_is_not_one() -> None:
    assert made(a=[True, False], exclude=[{"a": 1}]) == [{"a": True}, {"a": False}]


def test_a_product_is_cut_off_before_it_fills_the_memory() -> None:
    assert len(made(**{f"k{n}": list(range(50)) for n in range(9)})) == MAX_CELLS


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


@pytest.mark.parametrize(
    ("cell", "text"),
    [({}, ""), ({"a": 1}, "[a=1]"), ({"a": True, "b": 1.5, "c": "x y"}, "[a=true,b=1.5,c=x y]")],
)
def test_a_cell_is_shown_by_its_keys(cell: dict[str, Any], text: str) -> None:
    assert suffix(cell) == text


def test_cells_agree_on_the_keys_both_have() -> None:
    assert shared_cells({"a": 1, "b": 2}, {"a": 1, "c": 3})
    assert shared_cells({}, {"a": 1})
    assert not shared_cells({"a": 1}, {"a": 2})


def _rendered(params: dict[str, Any], **keys: Any) -> list[dict[str, Any]]:
    return [dict(cell) for cell in cells(rendered_cell(Matrix.model_validate(keys), params))]


def test_an_expression_that_is_a_list_stands_for_its_items() -> None:
    params = {"crates": ["a", "b"], "sizes": [1, 2]}
    assert _rendered(params, crate="${{ params.crates }}") == [{"crate": "a"}, {"crate": "b"}]
    assert [cell["n"] for cell in _rendered(params, n=[0, "${{ params.sizes }}", 3])] == [0, 1, 2, 3]
    assert _rendered(params, n=["x${{ params.sizes[1] }}"]) == [{"n": "x2"}]


def test_include_and_exclude_can_be_of_parameters() -> None:
    left = _rendered({"no": 2, "more": "b"}, n=[1, 2], exclude=[{"n": "${{ params.no }}"}])
    assert left == [{"n": 1}]
    assert _rendered({"more": "b"}, n=[1], include=[{"k": "${{ params.more }}"}]) == [{"n": 1, "k": "b"}]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"n": "${{ params.empty }}"}, "matrix key `n` has no values"),
        ({"n": "${{ params.many }}", "m": "${{ params.many }}"}, f"more than {MAX_CELLS}"),
        ({"n": "${{ params }}"}, "matrix key `n`: a value of type dict is not allowed"),
        ({"n": ["${{ params.nested }}"]}, "matrix key `n`: a value of type list is not allowed"),
        ({"n": [1], "include": [{"k": "${{ params.many }}"}]}, "matrix key `k`: a value of type list is not allowed"),
        ({"n": "${{ steps.a.outputs.b }}"}, "steps"),
    ],
)
def test_what_is_no_value_of_a_matrix_is_refused(keys: dict[str, Any], message: str) -> None:
    params = {"empty": [], "many": list(range(100)), "nested": [[1]]}
    with pytest.raises(ExpressionError, match=re.escape(message)):
        _rendered(params, **keys)
