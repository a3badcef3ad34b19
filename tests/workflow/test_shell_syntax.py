"""Shell syntax in commands that run without a shell is found outside quotes only; whole workflows are in ``cases``."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.workflow import shell_text
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import masked, render_words
from tests.workflow.drafts import table


@pytest.mark.parametrize(("text", "syntax"), table("shell_words.txt"))
def test_shell_syntax_is_found_where_it_stands(text: str, syntax: str) -> None:
    found = shell_text.first_word(text)
    if not syntax:
        assert found is None
        return
    assert found is not None
    assert found.text == syntax
    assert text.startswith(syntax, found.offset)
    assert found.is_pattern == (syntax in "*?")


@given(st.text())
def test_a_quoted_word_is_never_syntax(text: str) -> None:
    assert shell_text.first_word(f"x {shlex.quote(text)}" if shlex.quote(text) != text else "x") is None


def test_values_are_words_and_never_syntax() -> None:
    text = "run ${{ a }} --b=${{ b }}"
    assert shell_text.first_word(masked(text)) is None
    assert len(masked(text)) == len(text)
    assert render_words(text, {"a": "< x", "b": "$HOME; y"}) == ["run", "< x", "--b=$HOME; y"]


def test_a_value_that_is_the_command_may_not_need_a_shell() -> None:
    with pytest.raises(ExpressionError, match=r"'x && y': `&&` needs a shell.*shell: true"):
        render_words("${{ a }}", {"a": "x && y"})
    assert render_words("${{ a }}", {"a": ["x", "&&", "y"]}) == ["x", "&&", "y"]
