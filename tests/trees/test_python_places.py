"""The source context of a line: the function around it, and properties of the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.plain_data import from_json, to_json
from perfflow.model.targets import NOWHERE, SourcePlace, Use
from perfflow.trees.python_layout import PythonSource

TEXT = """\
import functools
import numpy as np

SEEN = {}
LIMIT = 3


class Store:
    @functools.lru_cache(maxsize=None)
    def keep(self, key):
        return [part for part in key]

    def keep_few(self, key):
        def keep(part):
            return part
        return keep(key)


@functools.lru_cache(maxsize=64)
def bounded(key):
    return key


def total(a, b):
    found = 0.0
    text = ""
    for i in range(len(a)):
        found += a[i] * b[LIMIT]
        text += f"{i},"
        found += b[LIMIT]
    while LIMIT:
        SEEN[text] = found
        text = text + "x"
        found = found + 1
    text += "done"
    return found


SEEN[0] = 1
for n in range(3):
    print(n)
"""
ARRAYS = Use.ARRAYS


@pytest.mark.parametrize(
    ("line", "name", "function", "begins", "uses"),
    [
        (9, "keep", "Store.keep", 9, (ARRAYS, Use.UNBOUNDED)),  # the line of the decorator is the function's first line
        (11, "<listcomp>", "Store.keep", 9, (ARRAYS, Use.UNBOUNDED)),
        (13, "keep_few", "Store.keep_few", 13, (ARRAYS,)),
        (15, "keep", "Store.keep_few.keep", 14, (ARRAYS,)),
        (15, "Store.keep_few.<locals>.keep", "Store.keep_few.keep", 14, (ARRAYS,)),
        (15, "", "Store.keep_few.keep", 14, (ARRAYS,)),
        (21, "bounded", "bounded", 19, (ARRAYS,)),
        (27, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # the head has no subscript
        (28, "total", "total", 24, (Use.IN_LOOP, Use.ELEMENTS, ARRAYS)),
        (29, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.TEXT)),
        (30, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # not by a variable of the loop
        (32, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.CONTAINER)),
        (33, "total", "total", 24, (Use.IN_LOOP, ARRAYS, Use.TEXT)),
        (34, "total", "total", 24, (Use.IN_LOOP, ARRAYS)),  # a number
        (35, "total", "total", 24, (ARRAYS,)),  # a text, but not in a loop
        (39, "<module>", "<module>", 0, (ARRAYS,)),  # the module itself runs once
        (41, "<module>", "<module>", 0, (Use.IN_LOOP, ARRAYS)),
    ],
)
def test_the_place_of_a_line(line: int, name: str, function: str, begins: int, uses: tuple[Use, ...]) -> None:
    found = PythonSource(TEXT).place(line, name)
    assert found == SourcePlace(function, begins, uses)
    assert from_json(SourcePlace, to_json(found)) == found


def test_what_is_no_python_says_nothing() -> None:
    assert PythonSource("def f(:\n").place(1, "f") == NOWHERE
    assert PythonSource(TEXT).place(0, "keep") == NOWHERE
    assert from_json(SourcePlace, {}) == NOWHERE
    assert from_json(SourcePlace, {"function": "f", "begins": 2, "uses": ["of a later version"]}) == SourcePlace("f", 2)


@given(st.text(), st.integers(-2, 12))
def test_any_text(text: str, line: int) -> None:
    found = PythonSource(text).place(line, "f")
    assert from_json(SourcePlace, to_json(found)) == found
