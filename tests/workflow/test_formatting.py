"""Formatting of workflow files keeps the data and all comments, and is idempotent."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.workflow.formatting import LONGEST, formatted
from perfflow.workflow.yaml_text import read_text

ROOT = Path(__file__).parents[2]
OURS = sorted([*(ROOT / "workflows").glob("*.yaml"), *(ROOT / "perfflow" / "library").glob("*.yaml")])
SOUND = sorted((ROOT / "tests" / "workflows").rglob("*.yaml"))
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def data(text: str) -> object:
    return read_text(text, "flow.yaml").data()


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_what_ships_is_laid_out(path: Path) -> None:
    assert formatted(path.read_text(), path.name) == path.read_text()


def test_there_are_files_to_lay_out() -> None:
    assert len(OURS) > 20
    assert len(SOUND) > 100


def test_a_file_says_the_same_afterwards_and_a_second_time_changes_nothing() -> None:
    refused = 0
    for path in SOUND:
        text = path.read_text()
        try:
            after = formatted(text, path.name)
        except UserError:
            refused += 1
            continue
        assert data(after) == data(text), path
        assert formatted(after, path.name) == after, path
        assert after.count("#") == text.count("#"), path
    assert refused < len(SOUND) / 4


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans() | st.none(), st.integers(2, 9), st.integers(20, 300))
def test_any_data_stay_the_same(values: dict[str, object], flow: bool | None, indent: int, width: int) -> None:
    text = yaml.safe_dump(values, default_flow_style=flow, indent=indent, width=width, allow_unicode=True)
    try:
        before = data(text)
    except UserError:
        return
    try:
        after = formatted(text, "flow.yaml")
    except UserError as error:
        # If it would lose something, it raises an error instead.
        assert "cannot be formatted without" in str(error) or "cannot be read" in str(error)  # noqa: PT017
        return
    assert data(after) == before
    assert formatted(after, "flow.yaml") == after


def test_indentation_brackets_and_comments() -> None:
    text = (
        "\ufeffa: [1,   2]  # c\r\nb:\r\n- {x: 1}\r\n-   y:  'z' # d\r\n# e\r\nlong: " + f"[{', '.join(['word'] * 30)}]"
    )
    words = "".join("  - word\n" for _ in range(30))
    assert formatted(text, "flow.yaml") == f"a: [1, 2]    # c\nb:\n  - {{x: 1}}\n  - y: 'z'  # d\n# e\nlong:\n{words}"


def test_a_long_text_is_not_broken() -> None:
    text = f"why: {'word ' * 40}end\nrun: |\n  one   \n  two\n"
    assert formatted(text, "flow.yaml") == text


def test_only_the_outermost_brackets_of_a_long_line_are_broken() -> None:
    text = f"step: {{with: {{command: [{', '.join(['word'] * 15)}]}}, note: {'x' * 40}}}\n"
    after = formatted(text, "flow.yaml")
    assert after.splitlines()[:2] == ["step:", f"  with: {{command: [{', '.join(['word'] * 15)}]}}"]
    assert max(map(len, after.splitlines())) <= LONGEST


@pytest.mark.parametrize("text", ["a: [1", "a: 1\na: 2\n", "a: 2026-02-31\n", "\tx: 1\n"])
def test_what_is_not_sound_yaml_is_an_error(text: str) -> None:
    with pytest.raises(UserError):
        formatted(text, "flow.yaml")
