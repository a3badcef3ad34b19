"""Shell syntax in commands that run without a shell is found outside quotes only."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import Severity
from perfflow.workflow import shell_text
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import masked, render_words
from tests.workflow.drafts import opened, said

CANDIDATE = "stages: {{baseline: [{{id: b, uses: command, with: {{command: ./x}}, candidate: {other}}}]}}\n"
PARAMETER = "stages: {baseline: [{id: b, uses: command, with: {command: '${{ params.c }}'}}]}\n"


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("a | b", "|"),
        ("a|b", "|"),
        ("a || b", "||"),
        ("true && sleep 1", "&&"),
        ("a; b", ";"),
        ("a < b", "<"),
        ("a > b", ">"),
        ("a 2>&1", ">&"),
        ("a >> b", ">>"),
        ("a &", "&"),
        ("a $(b)", "$("),
        ("a `b`", "`"),
        ("a $NAME", "$NAME"),
        ("a --x=${NAME}", "${"),
        ("a $1", "$1"),
        ("a 'b' | c", "|"),
        ("a \\' | c", "|"),
        ('a "\\"" | c', "|"),
        ("A=1 b", "A="),
        ("  A=1 b", "A="),
        ("a *.txt < b", "<"),
        ("a *.txt", "*"),
        ("a ?.txt", "?"),
        ("<params.x> | b", "|"),
    ],
)
def test_shell_syntax_is_found_where_it_stands(text: str, syntax: str) -> None:
    found = shell_text.first_word(text)
    assert found is not None
    assert found.text == syntax
    assert text.startswith(syntax, found.offset)
    assert found.is_pattern == (syntax in "*?")


@pytest.mark.parametrize(
    "text",
    [
        "sh -c 'a | b && $c'",
        'a "x; y" "<"',
        "a \\| \\; \\$x \\*",
        "a --x=1 B=2",
        "./A=1",
        "a 5$ x#y #z",
        "<steps.build.outputs.program> <params.size>",
        "a 'it'\\''s | so'",
        "",
    ],
)
def test_what_is_quoted_or_no_syntax_is_left_alone(text: str) -> None:
    assert shell_text.first_word(text) is None


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


def test_a_parameter_is_checked_with_the_value_it_gets(tmp_path: Path) -> None:
    text = "params: {c: ./fine}\n" + PARAMETER
    assert not opened(tmp_path, text).draft.errors
    wrong = opened(tmp_path, text, "c=true && sleep 1")
    assert any(item.startswith("3:60 `params.c` is 'true && sleep 1': `&&` needs a shell") for item in said(wrong))
    # A parameter without a value becomes `<params.c>`, which is not a redirection.
    lacking = opened(tmp_path, "params: {c: {type: string}}\n" + PARAMETER).draft.errors
    assert [error.rule for error in lacking] == ["missing-parameter"]


def test_a_candidates_parameter_is_checked(tmp_path: Path) -> None:
    text = "params: {c: ./fine}\n" + PARAMETER.replace("'}}]", "'}, candidate: {params: {c: 'a | b'}}}]")
    assert [item for item in said(opened(tmp_path, text)) if "`|` needs a shell" in item]


def test_a_candidate_is_read_like_the_step(tmp_path: Path) -> None:
    assert len(opened(tmp_path, CANDIDATE.format(other="'a | b'")).draft.errors) == 1
    assert not opened(tmp_path, CANDIDATE.format(other="{command: 'a | b', with: {shell: true}}")).draft.errors
    assert not opened(tmp_path, CANDIDATE.format(other="[a, '|', b]")).draft.errors


def test_a_glob_is_a_warning(tmp_path: Path) -> None:
    text = "stages: {baseline: [{id: b, uses: command, with: {command: 'cat *.txt'}}]}\n"
    found = [problem for problem in opened(tmp_path, text).problems if "is not expanded" in problem.message]
    assert [(problem.severity, problem.hint) for problem in found] == [
        (Severity.WARNING, "add `shell: true`, or quote it")
    ]


@pytest.mark.parametrize("tool", ["google-benchmark", "py-spy", "cprofile"])
def test_a_tool_that_takes_no_shell_gets_another_remedy(tool: str, tmp_path: Path) -> None:
    text = f"stages: {{baseline: [{{id: b, uses: {tool}, with: {{command: 'python3 x.py > y'}}}}]}}\n"
    hints = [error.hint for error in opened(tmp_path, text).draft.errors]
    assert hints == ["quote it; or write a script, or `run:` with `parse`"]
