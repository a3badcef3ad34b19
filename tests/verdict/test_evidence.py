"""Evidence lines are written by one function and read by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.units import Dimension, format_change, format_quantity
from perfflow.verdict import evidence

NAMES = st.text(min_size=1).filter(lambda name: name.isprintable())


@given(NAMES, st.floats(0, 1e15), st.sampled_from(Dimension), st.none() | st.floats(-1, 1e6), st.booleans())
def test_lines_round_trip(what: str, value: float, dimension: Dimension, change: float | None, at_most: bool) -> None:
    line = evidence.line(what, value, dimension, change, at_most=at_most)
    shown = ("≤" if at_most else "") + format_quantity(value, dimension)
    assert evidence.read(line) == (what, shown, "none" if change is None else format_change(change))


@given(st.text(min_size=1), st.floats(0, 1e9))
def test_any_name_gives_one_line(what: str, value: float) -> None:
    line = evidence.line(what, value, Dimension.TIME, 0.12)
    assert line.isprintable()
    assert evidence.read(line)[1:] == (format_quantity(value, Dimension.TIME), "+12.0%")


@pytest.mark.parametrize(
    ("what", "value", "dimension", "change", "line"),
    [
        ("a: b; Δ vs baseline: none", 0.0123, Dimension.TIME, -0.5, None),
        ("core/decode", 0.0123, Dimension.TIME, None, "perf: core/decode: 12.3 ms; Δ vs baseline: none"),
        ("core/decode", 0.0123, Dimension.TIME, 0.12, "perf: core/decode: 12.3 ms; Δ vs baseline: +12.0%"),
        ("heap", 2048.0, Dimension.BYTES, -0.0001, "perf: heap: 2.00 KiB; Δ vs baseline: 0.0%"),
        ("allocs", 0.0, Dimension.COUNT, float("inf"), "perf: allocs: 0; Δ vs baseline: n/a"),
    ],
)
def test_lines(what: str, value: float, dimension: Dimension, change: float | None, line: str | None) -> None:
    written = evidence.line(what, value, dimension, change)
    assert evidence.read(written)[0] == what
    if line:
        assert written == line


@pytest.mark.parametrize("text", ["", "perf:", "perf: x", "note: x: 1 ms", "perf: x: 1 ms; Δ vs baseline: better"])
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an evidence line"):
        evidence.read(text)
