"""Messages about differences between outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.tools.shell.same_output import difference
from tests.tools.tables import answers


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
            "line 1: expected 'x 1.00 y 7', got 'x 1.25 y 7'; differs by 0.25, more than the allowed 0.2",
        ),
        (b"x 1.00\n", b"z 1.25\n", 0.1, "line 1: expected 'x 1.00', got 'z 1.25'"),
        (b"1.0\n", b"inf\n", 0.1, "line 1: expected '1.0', got 'inf'"),
        (b"x 1.00 y\n", b"z 1.00 y\n", 0.1, "line 1: expected 'x 1.00 y', got 'z 1.00 y'"),
        (b"(1.00, 2)\n", b"(1.01, 2)\n", 0.1, ""),
        (b"1 2\n", b"1\n", 0.1, "line 1: expected '1 2', got '1'"),
        (b"1e6\n", b"1000001\n", 1e-5, ""),
        (b"nan\n", b"nan \n", 0.1, ""),
        (b"inf\n", b"Infinity\n", 0.1, ""),
        (b"inf\n", b"-inf\n", 0.1, "line 1: expected 'inf', got '-inf'"),
        (b"inf\n", b"1.0\n", 0.1, "line 1: expected 'inf', got '1.0'"),
        (b"inf\n", b"1e999\n", 0.1, "line 1: expected 'inf', got '1e999'"),
        (b"nan\n", b"NaN\n", 0.1, ""),
        (b"nan\n", b"1\n", 0.1, "line 1: expected 'nan', got '1'"),
        (b"nan\n", b"NaN\n", 0, "line 1: expected 'nan', got 'NaN'"),
        (b"1_0 a\n", b"10 a\n", 0.1, "line 1: expected '1_0 a', got '10 a'"),
        (b"(1\n", b"1)\n", 0.1, "line 1: expected '(1', got '1)'"),
        (b"1" * 400 + b" x\n", b"1" * 400 + b".5 x\n", 0.1, "line 1: expected "),
        (b"\xff\n", b"\xfe\n", 0.1, r"line 1: expected '\udcff', got '\udcfe'"),
    ],
)
def test_differences(expected: bytes, actual: bytes, tolerance: float, said: str) -> None:
    found = difference(expected, actual, tolerance, tolerance)
    assert found.startswith(said) if said.endswith(" ") else found == said


def _same(expected: str, actual: str, relative: float, absolute: float) -> bool:
    return difference(expected.encode(), actual.encode(), relative, absolute) == ""


test_what_is_allowed_is_a_share_and_a_difference = answers(
    _same,
    ("1000001", "1009999", 0.0, 0.01, False),
    ("1000001", "1009999", 0.01, 0.0, True),
    ("0.001", "0.009", 0.01, 0.0, False),
    ("0.001", "0.009", 0.0, 0.01, True),
    ("100", "101.5", 0.01, 0.5, True),
    ("100", "101.6", 0.01, 0.5, False),
    # The share is of the expected number, not of the larger one.
    ("100", "111", 0.1, 0.0, False),
    ("111", "100", 0.1, 0.0, True),
    ("12345678901234567", "12345678901234568", 0.0, 0.5, False),
    ("12345678901234567", "12345678901234568", 0.0, 1.0, True),
    ("0", "1e-300", 0.5, 0.0, False),
    ("1.0", "1.00", 0.0, 0.0, False),
)


def test_a_long_line_says_where() -> None:
    expected, actual = b"x" * 70 + b"a\n", b"x" * 70 + b"b\n"
    assert difference(expected, actual).endswith("(from column 71)")
    assert len(difference(b"x" * 10_000, b"y" * 10_000)) < 600


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_different_bytes_are_never_called_the_same(left: bytes, right: bytes) -> None:
    assert (difference(left, right) == "") == (left == right)
    assert difference(left, left, 0.5, 0.5) == ""


@given(st.floats(-1e6, 1e6), st.floats(-1, 1), st.floats(1e-6, 0.5))
def test_numbers_differ_by_no_more_than_the_tolerance(value: float, off: float, tolerance: float) -> None:
    other = value + off
    said = difference(f"n {value!r}\n".encode(), f"n {other!r}\n".encode(), tolerance, tolerance / 2)
    allowed = tolerance / 2 + tolerance * abs(value)
    if abs(other - value) < allowed * (1 - 1e-9):
        assert said == ""
    if abs(other - value) > allowed * (1 + 1e-9):
        assert said
