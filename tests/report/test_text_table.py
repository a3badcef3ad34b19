"""Tables as lines of text at every terminal width, with names of any kind, and with drawings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.result import Result
from perfflow.report import tables
from perfflow.report.page import page_of
from perfflow.report.sanitize import NO_EDGE, ascii_text, cells
from perfflow.report.table import Bar, Cell, Column, Density, Table, TextKind, Tone, mark, name, table, value, words
from perfflow.report.text_table import LEAST_DRAWN, TextTable, drawn, laid_out
from tests.report.exported import large
from tests.report.gated import gated, hostile_gate
from tests.report.results import HOSTILE, everything, hostile, stored

WIDTHS = st.integers(60, 160)
PLACES = st.floats(-0.5, 1.5) | st.sampled_from([-math.inf, 0.0, 1.0, math.inf])
BAR = re.compile(r"[ ┊│]*(?:◂|├|●)?[━┿]*●?[━┿]*(?:┤|▸|●)?[ ┊│]*")


def tables_of(result: Result) -> list[Table]:
    page = page_of(result)
    samples = [
        found
        for row in page.comparisons
        for found in tables.distributions(row.source, row.dimension, ("baseline", "candidate"), row.operation)
    ]
    return [
        tables.requirements(page.requirements),
        tables.comparisons(page, page.comparisons),
        tables.figures(page.figures),
        *samples,
    ]


def lines_of(laid: TextTable) -> list[str]:
    return [laid.head, *(line for entry in laid.entries for line in entry)]


def check_fits(found: Table, width: int) -> None:
    """Check that no line is wider, that a row takes one line, and that the decision's beginning is visible."""
    for titles in (True, False):
        laid = laid_out(found, width, titles=titles)
        for line in lines_of(laid):
            assert cells(line) <= width
            assert line.isprintable()
        for row, entry in zip(found.rows, laid.entries, strict=True):
            last = row[-1]
            if found.columns[-1].title == "Decision":
                assert len(entry) == 1
                assert isinstance(last, str)
                assert entry[0].endswith(last) or entry[0].rpartition("  ")[2][:9] == last[:9]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_row_is_one_line_with_its_decision_whatever_its_name_is(text: str) -> None:
    for result in (hostile(text), stored(text)):
        for found in tables_of(result):
            for width in (60, 80, 120, 160):
                check_fits(found, width)


@given(st.text(max_size=60), WIDTHS)
def test_any_name_in_any_width(text: str, width: int) -> None:
    row: list[Cell] = [text, text, "12.3 ms ±0.5%", Bar(0.2, 0.8, Tone.GOOD, 0.5), "regressed (action)", text]
    columns = [name("Name"), name("Metric"), value("Value", rank=2), Column("-13% … +15%", TextKind.DRAWN, rank=1)]
    found = table([*columns, mark("Decision"), words("Note")], [row, ["b", "c", "1 s", "", "same", ""]])
    laid = laid_out(found, width)
    assert all(cells(line) <= width and line.isprintable() for line in lines_of(laid))
    assert "regressed (action)" in laid.entries[0][0]
    assert laid.entries[1][0].endswith("same")


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
@pytest.mark.parametrize(
    "result",
    [
        everything,
        gated,
        lambda: hostile_gate("a"),
        lambda: large(["x", "y" * 90], ["met"], [("regressed", "action")], ""),
    ],
)
def test_what_is_compared_has_its_estimate_and_its_decision(width: int, result: Callable[[], Result]) -> None:
    page = page_of(result())
    found = tables.comparisons(page, page.comparisons, short=False)
    for row, (line, *_) in zip(page.comparisons, laid_out(found, width).entries, strict=True):
        estimate = (row.change if page.gated else row.speedup).partition(" ")[0]
        assert estimate in line
        assert row.decision in line


def test_columns_go_before_names_and_names_before_bars() -> None:
    bar = Bar(0.2, 0.6, Tone.GOOD, 0.4)
    columns = [name("Name"), value("Value"), Column("0.5x … 2x", TextKind.DRAWN, rank=1), value("Pairs", rank=3)]
    found = table(columns, [["a-name-of-thirty-five-letters-or-so", "1.25x", bar, "14"]])
    wide, narrow, narrower, narrowest = (laid_out(found, width).entries[0][0] for width in (90, 60, 45, 30))
    assert wide.split()[0] == narrow.split()[0] == "a-name-of-thirty-five-letters-or-so"
    assert wide.endswith("14")
    assert "14" not in narrow
    assert "●" in narrow
    assert "…" in narrower
    assert "●" in narrower
    assert "●" not in narrowest
    assert "1.25x" in narrowest


def test_in_a_log_a_table_is_whole() -> None:
    found = table([name("Name"), value("Value"), words("Note")], [["n" * 300, "1 s", "note " * 100]])
    ((line,),) = laid_out(found, NO_EDGE).entries
    assert "n" * 300 in line
    assert line.rstrip().endswith("note")


def test_a_remark_stands_beside_its_row_or_below_it() -> None:
    found = table([mark(""), name("Name"), words("Note")], [["❌ not met", "b", "why it is so, at some length"]])
    assert laid_out(found, 60).entries == (("✗ b   why it is so, at some length",),)
    assert laid_out(found, 30).entries == (("✗ b", "    why it is so, at some", "    length"),)


def test_numbers_end_in_the_same_column() -> None:
    found = table([name("b"), value("v")], [["x", "3.98 ms"], ["y", "625 μs [250 μs, 1 ms]"], ["z", "–"], ["w", "+5%"]])
    lines = [entry[0] for entry in laid_out(found).entries]
    assert {line.index(unit) for line, unit in zip(lines, (" ms", " μs", "%"), strict=False) if unit in line} == {9}
    assert lines[2].rstrip().endswith("   –")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLACES, PLACES, PLACES, st.lists(PLACES, max_size=2), st.none() | st.just(0.5), st.integers(LEAST_DRAWN, 41))
def test_a_bar_says_on_which_side_of_a_bound_the_interval_lies(
    one: float, middle: float, other: float, bounds: list[float], none: float | None, width: int
) -> None:
    low, point, high = sorted((one, middle, other))
    text = drawn(Bar(low, high, Tone.UNSURE, point, tuple(bounds), none), width)
    assert len(text) == cells(text) == width
    assert BAR.fullmatch(text)
    assert len(ascii_text(text)) == width
    inside = [at for at, letter in enumerate(text) if letter not in " ┊│"]
    lines = [at for at, letter in enumerate(text) if letter in "┊│"]
    outer = [place for place in (*bounds, *([] if none is None else [none])) if not low <= place <= high]
    assert [at for at in lines if at < inside[0]] == [] or any(place < low for place in outer)
    assert [at for at in lines if at > inside[-1]] == [] or any(place > high for place in outer)
    if low >= 0 and high <= 1 and low < high and not bounds and none is None:
        assert text.strip()[0] in "├●"
        assert text.strip()[-1] in "┤●"
    assert ("◂" in text) == (low < 0)
    assert ("▸" in text) == (high > 1)


def test_a_bound_that_is_just_missed_is_not_touched() -> None:
    assert drawn(Bar(0.2, 0.49, Tone.GOOD, 0.3, (0.5,)), 11) == "  ├●━┤┊    "
    assert drawn(Bar(0.51, 0.8, Tone.GOOD, 0.7, (0.5,)), 11) == "    ┊├━●┤  "
    assert drawn(Bar(0.3, 0.8, Tone.UNSURE, 0.7, (0.5,)), 11) == "   ├━┿━●┤  "


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.integers(LEAST_DRAWN, 41))
def test_a_distribution_shows_every_value(places: list[float], width: int) -> None:
    text = drawn(Density(tuple(places)), width)
    assert len(text) == len(ascii_text(text)) == width
    taken = {min(width - 1, int(place * width)) for place in places}
    assert {at for at, letter in enumerate(text) if letter != " "} == taken
    assert "█" in text
