"""YAML 1.2 scalars, positions and limits."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.workflow.yaml_text import LARGEST, read_file, read_text
from tests.workflow.drafts import document, table, where

properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def value_of(scalar: str) -> Any:
    return document(f"key: {scalar}\n").data()["key"]


@pytest.mark.parametrize(("written", "value"), [*table("scalars.txt"), ("", "None"), ("9" * 301, repr("9" * 301))])
def test_a_scalar_is_read_as_in_yaml_1_2(written: str, value: str) -> None:
    expected, read = ast.literal_eval(value), value_of(written)
    assert read == expected
    assert isinstance(read, type(expected))


def test_not_a_number_is_a_float() -> None:
    assert math.isnan(value_of(".nan"))


@properties
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50) | st.integers() | st.floats(allow_nan=False))
@example(None)
@example(True)  # noqa: FBT003
@example("\x85")
@example("a\u2028b")
@example("\ufeff")
def test_what_yaml_writes_is_read_back(value: object) -> None:
    style = '"' if isinstance(value, str) else None
    assert document(yaml.safe_dump({"key": value}, default_style=style)).data() == {"key": value}


@properties
@given(st.text(max_size=200))
@example("a: &a [*a]")
@example("? a\n: b")
@example("{a: b, ? [c]: d}")
@example("--- a\n--- b")
@example("%YAML 9.9\n---\na: b")
@example("a: !<tag:x> b")
@example("\t")
@example("'")
@example("a: |1\n  x")
@example("a\x85b: c")
def test_any_text_gives_data_or_a_problem_with_a_place(text: str) -> None:
    try:
        found = read_text(text, "x.yaml")
        found.data()
        problems = tuple(found.problems)
    except UserError as error:
        problems = error.problems
        assert problems
    lines = found_lines(text)
    for problem in problems:
        assert problem.place is not None
        assert 1 <= problem.place.line <= len(lines)
        assert problem.place.text == lines[problem.place.line - 1]
        assert 1 <= problem.place.column <= len(problem.place.text) + 1


def found_lines(text: str) -> list[str]:
    for end in ("\r\n", "\r", "\x85", "\u2028", "\u2029"):
        text = text.replace(end, "\n")
    return text.split("\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028"], ids=ascii)
def test_line_numbers_hold_for_every_kind_of_line_end(end: str) -> None:
    found = document(end.join(["a: 1", "b: 2", "c: 3", "b: 4"]))
    found.data()
    assert [(where(problem.place), problem.message) for problem in found.problems] == [
        ("4:1 ", "duplicate key 'b', first written in line 2")
    ]


def test_columns_count_characters() -> None:
    found = document("größe: {μ: 1, μ: 2}\n")
    found.data()
    assert where(found.problems[0].place) == "1:15 "


def test_a_repeated_key_keeps_the_first_and_is_reported_once() -> None:
    found = document("a: 1\na: 2\nb: {c: 1, c: 2}\n")
    assert found.data() == {"a": 1, "b": {"c": 1}}
    found.data()
    assert len(dict.fromkeys(found.problems)) == 2


def test_aliases_are_values_and_merge_keys_are_not() -> None:
    found = document("a: &x {k: 1}\nb: *x\nc: {<<: *x, l: 2}\n")
    assert found.data() == {"a": {"k": 1}, "b": {"k": 1}, "c": {"l": 2}}
    assert [problem.message for problem in found.problems] == ["merge keys are not supported"]
    assert found.wrong == [("c",)]


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a: 1\n#" + b"x" * (LARGEST - 6))
    assert read_file(tmp_path / "a.yaml").data() == {"a": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nü: ".encode() + b"\xff2\nb: 3\n", "2:4: error: not a text file: byte 0xFF is not UTF-8"),
        (b"\xff", "1:1: error: not a text file"),
        (b"a: 1\n#" + b"x" * (LARGEST - 5), "1:1: error: the file is larger than 1 MiB"),
    ],
    ids=["a byte in the middle", "the first byte", "one byte too large"],
)
def test_what_is_no_text_or_too_large_is_named_with_its_place(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"a\.yaml:{message}"):
        read_file(path)


def test_a_path_with_a_nul_is_no_path() -> None:
    with pytest.raises(UserError, match="invalid path"):
        read_file(Path("a\0b"))


def test_forty_levels_are_read_and_one_more_is_not() -> None:
    assert document("a: " + "[" * 39 + "]" * 39).data()
    with pytest.raises(UserError, match="more than 40 levels"):
        document("a: " + "[" * 40 + "]" * 40)
