"""Names and texts at any width: no line is wider, no text is lost, no control characters remain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.report.sanitize import NO_EDGE, cells, visible, wrapped
from perfflow.report.tables import described
from tests.report.results import HOSTILE

TEXTS = st.text(max_size=80).map(visible)


@given(TEXTS, st.integers(8, 60), st.integers(0, 6))
def test_a_broken_text_fits_and_is_whole(text: str, width: int, indent: int) -> None:
    lines = wrapped(text, width, " " * indent)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_blanks_inside_a_line_stay() -> None:
    assert wrapped("  why: a  b", 40) == ["  why: a  b"]
    assert wrapped("  why: one two  three", 12, "    ") == ["  why: one", "    two", "    three"]
    assert wrapped("日本語日本語", 5) == ["日本", "語日", "本語"]
    assert wrapped("", 5) == [""]


def test_without_an_edge_nothing_is_broken() -> None:
    assert wrapped("x " * 5000, NO_EDGE) == ["x " * 5000]
    assert len(described([("a", "b " * 900)], NO_EDGE)) == 1


@pytest.mark.parametrize("name", [*HOSTILE, "a" * 90, "日本語" * 20], ids=ascii)
@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
def test_every_list_fits(name: str, width: int) -> None:
    text = f"what {name} is for, said at some length so that it has to go on below"
    for line in described([(name, text), ("short", "")], width):
        assert cells(line) <= width
        assert line.isprintable()


def test_a_text_beside_a_name_goes_on_below_itself() -> None:
    rows = [("one", "a text that is too long for it"), ("three", "short")]
    assert described(rows, 30) == ["  one    a text that is too", "         long for it", "  three  short"]
    assert described([("a-name-that-is-long", "a text")], 30) == ["  a-name-that-is-long", "    a text"]
