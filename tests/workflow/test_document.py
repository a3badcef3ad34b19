"""Places of values, keys and texts inside values."""

from __future__ import annotations

import pytest

from tests.workflow.drafts import document, where

TEXT = """\
name: x
params:
  size: 10
stages:
  build:
    - id: a
      run: |
        make one
        make ${{ two }} ${{ two }}
    - {id: b, argv: [make, "t\\x77o", '${{ two }}']}
"""
DOCUMENT = document(TEXT)


@pytest.mark.parametrize(
    ("loc", "place"),
    [
        ((), "1:1 "),
        (("name",), "1:7 "),
        (("params", "size"), "3:9 "),
        (("params", "size", "default"), "3:9 "),
        (("stages", "build", "steps", 0), "6:7 "),
        (("stages", "build", 0, "run"), "7:12 "),
        (("stages", "build", "steps", 1, "argv", 2), "10:38 "),
        (("stages", "build", "steps", 7), "6:5 "),
        (("stages", "build", "steps", -1), "6:5 "),
        (("nowhere", "at", "all"), "1:1 "),
    ],
)
def test_a_value_has_a_place_as_deep_as_the_text_goes(loc: tuple[str | int, ...], place: str) -> None:
    assert where(DOCUMENT.place(loc)) == place


def test_a_key_has_a_place_of_its_own() -> None:
    assert where(DOCUMENT.place(("params", "size"), key=True)) == "3:3 "
    assert where(DOCUMENT.place(("stages", "build", "steps", 1, "argv"), key=True)) == "10:15 "
    assert where(DOCUMENT.place(("params", "none"), key=True)) == "3:3 "


@pytest.mark.parametrize(
    ("loc", "find", "place"),
    [
        (("stages", "build", 0, "run"), "two", "9:18 "),
        (("stages", "build", 0, "run"), "make", "8:9 "),
        (("stages", "build", 0, "run"), "name", "7:12 "),
        (("stages", "build", 1, "argv", 2), "two", "10:43 "),
        (("stages", "build", 1, "argv", 1), "two", "10:28 "),
        (("name",), "size", "1:7 "),
    ],
    ids=str,
)
def test_a_text_is_found_inside_its_value_only(loc: tuple[str | int, ...], find: str, place: str) -> None:
    assert where(DOCUMENT.place(loc, find=find)) == place


def test_the_node_and_the_style_of_a_value() -> None:
    assert DOCUMENT.node(("params", "size")).value == "10"
    assert DOCUMENT.style(("stages", "build", 0, "run")) == "|"
    assert DOCUMENT.style(("name",)) == ""
    assert DOCUMENT.style(("params",)) == ""
    assert DOCUMENT.written(("stages", "build", "steps", 1, "id", "x")) == ("stages", "build", 1, "id")


def test_an_index_of_a_map_is_its_key() -> None:
    assert document("a: {0: zero, 1: one}").node(("a", 1)).value == "one"
