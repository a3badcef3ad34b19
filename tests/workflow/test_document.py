"""Places of values, keys and texts inside values."""

from __future__ import annotations

from typing import Any

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
    ("loc", "asked", "place"),
    [
        ((), {}, "1:1 "),
        (("name",), {}, "1:7 "),
        (("params", "size"), {}, "3:9 "),
        (("params", "size", "default"), {}, "3:9 "),
        (("stages", "build", "steps", 0), {}, "6:7 "),
        (("stages", "build", 0, "run"), {}, "7:12 "),
        (("stages", "build", "steps", 1, "argv", 2), {}, "10:38 "),
        (("stages", "build", "steps", 7), {}, "6:5 "),
        (("stages", "build", "steps", -1), {}, "6:5 "),
        (("nowhere", "at", "all"), {}, "1:1 "),
        (("params", "size"), {"key": True}, "3:3 "),
        (("stages", "build", "steps", 1, "argv"), {"key": True}, "10:15 "),
        (("params", "none"), {"key": True}, "3:3 "),
        (("stages", "build", 0, "run"), {"find": "two"}, "9:18 "),
        (("stages", "build", 0, "run"), {"find": "make"}, "8:9 "),
        (("stages", "build", 0, "run"), {"find": "name"}, "7:12 "),
        (("stages", "build", 1, "argv", 2), {"find": "two"}, "10:43 "),
        (("stages", "build", 1, "argv", 1), {"find": "two"}, "10:28 "),
        (("name",), {"find": "size"}, "1:7 "),
    ],
    ids=str,
)
def test_a_value_a_key_and_a_text_in_a_value_have_places(
    loc: tuple[str | int, ...], asked: dict[str, Any], place: str
) -> None:
    assert where(DOCUMENT.place(loc, **asked)) == place


def test_the_node_and_the_style_of_a_value() -> None:
    assert DOCUMENT.node(("params", "size")).value == "10"
    assert DOCUMENT.style(("stages", "build", 0, "run")) == "|"
    assert DOCUMENT.style(("name",)) == ""
    assert DOCUMENT.style(("params",)) == ""
    assert DOCUMENT.written(("stages", "build", "steps", 1, "id", "x")) == ("stages", "build", 1, "id")


def test_an_index_of_a_map_is_its_key() -> None:
    assert document("a: {0: zero, 1: one}").node(("a", 1)).value == "one"
