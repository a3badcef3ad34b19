"""Differences between outputs, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.tools.same_output import difference


@pytest.mark.parametrize(
    ("expected", "actual", "tolerance", "said"),
    [
        (b"a\nb\n", b"a\nb\n", 0, ""),
        (b"", b"", 0, ""),
        (b"a\n", b"", 0, "the output is empty"),
        (b"", b"a\n", 0, "1 line instead of 0"),
        (b"a\nb\n", b"a\nc\n", 0, "line 2: expected 'b', got 'c'"),
        (b"a\nb\n", b"a\n", 0, "1 line instead of 2"),
        (b"a\n", b"a\r\n", 0, "the line ends differ"),
        (b"a\n", b"a", 0, "the line ends differ"),
        (b"a\n", b"a", 0.1, ""),
        (b"x 1.00 y\n", b"x 1.05 y\n", 0.1, ""),
        (
            *(b"x 1.00 y 7\n", b"x 1.25 y 7\n", 0.1),
            "line 1: expected 'x 1.00 y 7', got 'x 1.25 y 7'; differs by 0.2, more than the tolerance of 0.1",
        ),
        (b"x 1.00\n", b"z 1.25\n", 0.1, "line 1: expected 'x 1.00', got 'z 1.25'"),
        (b"1.0\n", b"inf\n", 0.1, "line 1: expected '1.0', got 'inf'"),
        (b"x 1.00 y\n", b"z 1.00 y\n", 0.1, "line 1: expected 'x 1.00 y', got 'z 1.00 y'"),
        (b"(1.00, 2)\n", b"(1.01, 2)\n", 0.1, ""),
        (b"1 2\n", b"1\n", 0.1, "line 1: expected '1 2', got '1'"),
        (b"1e6\n", b"1000001\n", 1e-5, ""),
        (b"nan\n", b"nan \n", 0.1, ""),
        (b"inf\n", b"1e999\n", 0.1, ""),
        (b"\xff\n", b"\xfe\n", 0.1, r"line 1: expected '\udcff', got '\udcfe'"),
    ],
)
def test_differences(expected: bytes, actual: bytes, tolerance: float, said: str) -> None:
    assert difference(expected, actual, tolerance) == said


def test_a_long_line_says_where() -> None:
    expected, actual = b"x" * 70 + b"a\n", b"x" * 70 + b"b\n"
    assert difference(expected, actual).endswith("(from column 71)")
    assert len(difference(b"x" * 10_000, b"y" * 10_000)) < 600


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_different_bytes_are_never_called_the_same(left: bytes, right: bytes) -> None:
    assert (difference(left, right) == "") == (left == right)
    assert difference(left, left, 0.5) == ""


@given(st.floats(-1e6, 1e6), st.floats(-1, 1), st.floats(1e-6, 0.5))
def test_numbers_differ_by_no_more_than_the_tolerance(value: float, off: float, tolerance: float) -> None:
    other = value + off
    said = difference(f"n {value!r}\n".encode(), f"n {other!r}\n".encode(), tolerance)
    allowed = tolerance * max(1, abs(value), abs(other))
    if abs(other - value) <= tolerance:
        assert said == ""
    if abs(other - value) > allowed * (1 + 1e-9):
        assert said
