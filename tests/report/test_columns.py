"""Tables and texts in any width: nothing wider, nothing lost, no name that acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.report.columns import aligned, described, fitting, narrowed
from perfflow.report.plain import NO_EDGE, cells, visible, wrapped
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
def test_every_table_fits(name: str, width: int) -> None:
    text = f"what {name} is for, said at some length so that it has to go on below"
    tables = [
        described([(name, text), ("short", "")], width),
        fitting(["name", "of", "machine"], [[name, "flow", text], ["b", "", "here"]], width),
    ]
    for line in (line for table in tables for line in table):
        assert cells(line) <= width
        assert line.isprintable()


def test_a_text_beside_a_name_goes_on_below_itself() -> None:
    rows = [("one", "a text that is too long for it"), ("three", "short")]
    assert described(rows, 30) == ["  one    a text that is too", "         long for it", "  three  short"]
    assert described([("a-name-that-is-long", "a text")], 30) == ["  a-name-that-is-long", "    a text"]


def test_a_wide_table_becomes_a_block_a_row() -> None:
    rows = [["before", "2026-11-20 10:31", "count-lines", ""]]
    head = ["name", "measured", "of", "revision"]
    assert fitting(head, rows, 80)[0] == "name    measured          of           revision"
    assert fitting(head, rows, 40) == ["before", "  measured 2026-11-20 10:31, of", "  count-lines"]


def test_names_give_way_to_figures() -> None:
    rows = [["core/decode/a-long-name", "time", "12.3 ms"], ["b", "rss", "8 MiB"]]
    assert aligned(rows)[0] == "core/decode/a-long-name  time  12.3 ms"
    lines = narrowed(rows, 30)
    assert all(cells(line) <= 30 for line in lines)
    assert lines[0] == "core/de…ng-name  time  12.3 ms"
    assert narrowed([], 30) == []
