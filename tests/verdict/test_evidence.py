"""Evidence lines are written by one function and read by one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perfflow.model.units import Dimension, format_percent, format_quantity
from perfflow.verdict import evidence
from perfflow.verdict.evidence import Evidence

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "result.md").read_text()
HOSTILE = st.text(alphabet='ab: ;,"\\\n\tΔ vsbaline+1%≤xm\u202e\u200b😀\x00') | st.text()
VALUES = st.builds(
    lambda relation, value, dimension: relation + format_quantity(value, dimension),
    st.sampled_from(["", "≤", "≥", "<", ">"]),
    st.floats(),
    st.sampled_from(Dimension),
)
CHANGES = st.none() | st.sampled_from(["none", "n/a"]) | st.floats(-1, 1e6).map(format_percent)
FACTORS = st.floats(0, 1e6).map(lambda value: format_quantity(value, Dimension.RATIO, unit="x"))
LINES = st.builds(Evidence, HOSTILE, st.lists(VALUES, min_size=1, max_size=4).map(tuple), CHANGES) | st.builds(
    lambda what, factor, other: Evidence(what, (factor,), None, other), HOSTILE, FACTORS, HOSTILE
)


@given(LINES)
@example(Evidence("a: 1 ms; Δ vs baseline: none", ("5 ms",), "+1.0%"))
@example(Evidence("a", ("2.3x",), None, "b: 5 ms; Δ vs baseline: +1.0%"))
@example(Evidence("a: 2x vs b", ("5 ms",), "+1.0%"))
@example(Evidence("a:", ("5 ms", "12"), "none"))
@example(Evidence('"a"', ("2x",), None, '"b'))
def test_lines_round_trip(found: Evidence) -> None:
    written = evidence.write(found)
    assert written.isprintable()
    assert evidence.parse(written) == found
    assert evidence.write(evidence.parse(written)) == written


@given(HOSTILE, st.floats(0, 1e15), st.sampled_from(Dimension), st.none() | st.floats(-1, 1e6), st.booleans())
def test_values_have_lines(what: str, value: float, dimension: Dimension, change: float | None, at_most: bool) -> None:
    found = evidence.parse(evidence.line(what, value, dimension, change, at_most=at_most))
    shown = ("≤" if at_most else "") + format_quantity(value, dimension)
    assert found == Evidence(what, (shown,), "none" if change is None else format_percent(change))


@pytest.mark.parametrize(
    ("what", "value", "dimension", "change", "line"),
    [
        ("a: b; Δ", 0.0123, Dimension.TIME, -0.5, 'perf: "a: b; Δ": 12.3 ms; Δ vs baseline: -50.0%'),
        ("a\nb", 0.0123, Dimension.TIME, None, r'perf: "a\nb": 12.3 ms; Δ vs baseline: none'),
        ("core/decode", 0.0123, Dimension.TIME, None, "perf: core/decode: 12.3 ms; Δ vs baseline: none"),
        ("core/decode", 0.0123, Dimension.TIME, 0.12, "perf: core/decode: 12.3 ms; Δ vs baseline: +12.0%"),
        ("std::map<a; b>", 0.0123, Dimension.TIME, 0.12, "perf: std::map<a; b>: 12.3 ms; Δ vs baseline: +12.0%"),
        ("heap", 2048.0, Dimension.BYTES, -0.0001, "perf: heap: 2.00 KiB; Δ vs baseline: 0.0%"),
        ("allocs", 0.0, Dimension.COUNT, float("inf"), "perf: allocs: 0; Δ vs baseline: n/a"),
    ],
)
def test_lines(what: str, value: float, dimension: Dimension, change: float | None, line: str) -> None:
    assert evidence.line(what, value, dimension, change) == line
    assert evidence.parse(line).what == what


@pytest.mark.parametrize(("change", "share"), [("+12.0%", 0.12), ("-50%", -0.5), ("none", None), (None, None)])
def test_a_change_is_a_share(change: str | None, share: float | None) -> None:
    assert Evidence("b", ("1 ms",), change).share == share


@pytest.mark.parametrize(
    "text",
    [
        *("", "perf:", "perf: x", "note: x: 1 ms", "perf: x: 1 ms; Δ vs baseline: better", "perf: : 1 ms"),
        *("perf: x: fast", "perf: x: 1 ms,2 ms", "perf: x: 1 ms; Δ vs baseline: +1%\n", "perf: a\nb: 1 ms"),
        *('perf: "x: 1 ms', 'perf: "x"y: 1 ms', r'perf: "\x": 1 ms', "perf: x: 2x vs ", 'perf: x: 2x vs "y" '),
        *("perf: x: 1 ms vs y, 2 ms vs z; Δ vs baseline: none\t", "perf:  x: 1 ms"),
    ],
)
def test_other_lines_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an evidence line"):
        evidence.parse(text)


@pytest.mark.parametrize(
    "found",
    [
        *(Evidence("b", ()), Evidence("b", ("fast",)), Evidence("b", ("1 ms",), "better")),
        *(Evidence("b", ("1 ms",), "+1%", "c"), Evidence("b", ("1 ms", "2 ms"), None, "c"), Evidence("b", ("1, 2",))),
    ],
)
def test_what_could_not_be_read_back_is_not_written(found: Evidence) -> None:
    with pytest.raises(ValueError, match=r"evidence line|with a factor"):
        evidence.write(found)


def test_the_examples_of_the_page_are_evidence_lines() -> None:
    section = PAGE.split("\n## Evidence lines\n")[1].split("\n## ")[0]
    examples = [text for text in re.findall(r"^perf: .*$", section, re.MULTILINE) if "<" not in text]
    assert len(examples) >= 5
    for text in examples:
        assert evidence.write(evidence.parse(text)) == text
