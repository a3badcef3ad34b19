"""Expressions: splitting, rendering, quoting, and the sandbox."""

from __future__ import annotations

import ast
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import (
    Expression,
    check_shell,
    condition,
    literals_of,
    render,
    render_shell,
    render_words,
    single,
    split,
)
from tests.workflow.drafts import FILES, table

properties = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
in_bash = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
shell_words = st.text(st.sampled_from(" \t\n'\"\\$`(){}[]*?~#;&|<>!=%,.-aA0é😀"), max_size=12) | words
SECRET = "correct-horse"  # noqa: S105 (of these tests)
PARAMS: dict[str, Any] = {"size": 10, "name": "it's", "full": True, "words": ["a b", "c"], "copy": "C", "none": None}
CONTEXT: dict[str, Any] = {
    "params": PARAMS | {"variable": "HOME", "method": "items"},
    "steps": {
        "my-step": {"outputs": {"a-b": "AB", "path": "/x y/z"}},
        "m[k=1.5,l=a b]": {"outputs": {"v": "cell"}},
        "m[f=#@x]": {"outputs": {"v": "odd"}},
    },
    "matrix": {"size": 3},
    "env": {"HOME": "/home/ada", "API_TOKEN": SECRET},
}
VALUES = table("values.txt")


def test_a_text_is_split_at_its_expressions() -> None:
    assert split("") == []
    assert split("plain") == ["plain"]
    assert split("a ${{ b }} c ${{d}}") == ["a ", Expression(" b "), " c ", Expression("d")]
    assert split("${{ '}}' ~ '{{' }}}") == [Expression(" '}}' ~ '{{' "), "}"]
    assert split("${{ {'a': {'b': 1}}['a'] }}") == [Expression(" {'a': {'b': 1}}['a'] ")]
    assert split(r"${{ 'it\'s }}' }}") == [Expression(r" 'it\'s }}' ")]


@pytest.mark.parametrize(
    "text",
    [
        "${#a[@]} ${a[0]} $a $$ $# ${x:-{y}}",
        "printf '{#%s#}' '{% raw %}' '{{ x }}' {{.Names}}",
        "a\r\nb\rc\x85\u2028\n\n",
        "awk '{print $1}' | sed 's/}}/{{/' # {# comment #}",
        "$ {{ x }} $${ { x } }",
        "- + -%} {%- x -%}",
        "trailing newline\n",
    ],
)
def test_awkward_text_stays_what_it_is(text: str) -> None:
    assert split(text) == [text]
    assert render(text, {}) == text
    assert render_shell(text, {}) == text
    assert "".join(str(part) for part in split(text + " ${{ 1 }} " + text)) == text + " ${{ 1 }} " + text


@properties
@given(words.filter(lambda text: "${{" not in text))
def test_any_text_without_an_expression_stays_what_it_is(text: str) -> None:
    assert render(text, {}) == text
    assert render_shell(text, {}) == text


@pytest.mark.parametrize(
    ("text", "message", "near"),
    [
        ("make ${{ a", "a `${{` is not closed", "${{ a"),
        ("make ${{ a }", "a `${{` is not closed", "${{ a }"),
        ("a ${{ 'x }}\nb", "${{ 'x }}: unexpected char \"'\"", "'x"),
        ("a ${{ {'x' }}\nb", "a `${{` is not closed", "${{ {'x' }}"),
        ("${{ }}", "empty expression", "${{"),
        ("${{ a b }}", "${{ a b }}: unexpected `b`", "a b"),
        ("${{ a + }}", "${{ a + }}: the expression is incomplete", "a +"),
        ("${{ a | nofilter }}", "${{ a | nofilter }}: unknown filter `nofilter`", "nofilter"),
        ("${{ a is notest }}", "${{ a is notest }}: unknown test `notest`", "notest"),
        ("${{ a | attr('b') }}", "${{ a | attr('b') }}: unknown filter `attr`", "attr"),
        ("${{ " + "(" * 900 + "1" + ")" * 900 + " }}", "the expression is nested too deeply", "(" * 40),
        ("${{ " + "a" * 4001 + " }}", "the expression has more than 4000 characters", "a" * 40),
    ],
)
def test_what_is_no_expression_is_explained(text: str, message: str, near: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        split(text)
    assert str(raised.value) == message
    assert raised.value.near == near


@pytest.mark.parametrize(("source", "value"), [row for row in VALUES if row[1][0] != "!"])
def test_an_expression_has_a_value(source: str, value: str) -> None:
    found, expected = Expression(source).value(CONTEXT), ast.literal_eval(value)
    assert found == expected
    assert type(found) is type(expected)


MUCH_WORK = " + ".join(["('ab' * 30000) | upper | length"] * 60)


@pytest.mark.parametrize(
    ("source", "reason"), [*(row for row in VALUES if row[1][0] == "!"), (MUCH_WORK, "! too long")]
)
def test_an_expression_that_fails_says_why_and_does_no_harm(source: str, reason: str) -> None:
    before = str(CONTEXT)
    with pytest.raises(ExpressionError) as raised:
        Expression(source).value(CONTEXT)
    assert reason[2:] in str(raised.value)
    assert SECRET not in str(raised.value)
    assert str(CONTEXT) == before


WHOLE = (FILES / "whole_env.txt").read_text().splitlines()[1:]


@pytest.mark.parametrize("source", WHOLE)
def test_no_text_is_made_of_all_variables(source: str) -> None:
    for make in (Expression(source).value, lambda context: render_shell("echo ${{ " + source + " }}", context)):
        with pytest.raises(ExpressionError) as caught:
            make(CONTEXT)
        assert SECRET not in str(caught.value)
        assert "`env` as a whole cannot be used" in str(caught.value) or "unknown filter" in str(caught.value)
        assert caught.value.hint


@pytest.mark.parametrize("text", ["${{ env }}", "a ${{ [env] }} b"])
def test_lists_of_words_and_nested_keys_hold_none_either(text: str) -> None:
    with pytest.raises(ExpressionError, match="as a whole"):
        render({"a": [text]}, CONTEXT)
    with pytest.raises(ExpressionError, match="as a whole"):
        render_words(text, CONTEXT)


def test_quotes_that_do_not_end_are_looked_at_once() -> None:
    began = time.process_time()
    with pytest.raises(ExpressionError, match="is not closed"):
        split('${{ "' + '\\"' * 300_000)
    with pytest.raises(ExpressionError):
        split("${{ " + '\\"' * 1900 + " }}")
    assert time.process_time() - began < 5


def test_a_text_has_so_many_expressions_and_no_more() -> None:
    assert len(split("${{ 1 }}" * 200)) == 200
    with pytest.raises(ExpressionError, match="more than 200 expressions"):
        split("${{ 1 }}" * 201)


def test_a_text_does_not_grow_without_end() -> None:
    large = {"params": {"text": "a" * 90_000}}
    assert len(render("${{ params.text }} " * 10, large)) == 900_010
    with pytest.raises(ExpressionError, match="more than 1,000,000"):
        render("${{ params.text }} " * 12, large)


def test_shell_text_of_many_lines_and_levels_is_read_once() -> None:
    began = time.process_time()
    here = "cat <<E\n" + "e\n" * 100_000 + "E\necho ${{ 1 }}\n"
    assert render_shell(here, {}).endswith("echo 1\n")
    heres = "cat " + "<<a " * 99 + "\n" + "a\n" * 99 + "echo ${{ 1 }}\n"
    assert render_shell(heres, {}).endswith("echo 1\n")
    for text in ("${a:-'" * 100_000, "$((" * 100_000, "cat " + "<<a" * 100_000 + "\n" + "a\n" * 100_000):
        with pytest.raises(ExpressionError, match="not allowed"):
            render_shell(text + "\necho ${{ 1 }}", {})
    assert time.process_time() - began < 10


@properties
@given(st.text(st.sampled_from("abz019.[](){}'\"|~+-*/%=!<>, _:#\\"), max_size=30))
def test_any_expression_has_a_value_or_an_explanation(source: str) -> None:
    with suppress(ExpressionError):
        list(Expression(source).names())
        as_text(Expression(source).value({"a": 1, "b": "text", "z": {"a": []}}))


@pytest.mark.parametrize("source", ["1" + " + 1" * 900, "a" + ".a" * 900, "not " * 900 + "a", "a" + "[0]" * 900])
def test_a_long_expression_has_names_or_an_explanation(source: str) -> None:
    with suppress(ExpressionError):
        list(Expression(source).names())
        Expression(source).value({"a": 1})


def test_names_are_dotted_and_constant() -> None:
    names = list(Expression("params.a.b + x[params['c']] + steps.my-step.outputs.d | default(matrix.e)").names())
    dotted = {"params.a.b", "x", "params.c", "steps.my-step.outputs.d", "matrix.e"}
    assert set(names) == {tuple(name.split(".")) for name in dotted}


def test_a_whole_expression_keeps_its_type_and_others_are_texts() -> None:
    assert render("${{ params.size }}", CONTEXT) == 10
    assert render(" ${{ params.words }}\n", CONTEXT) == ["a b", "c"]
    assert render("n=${{ params.size }}", CONTEXT) == "n=10"
    assert render("${{ params.full }}${{ params.none }}", CONTEXT) == "true"
    assert render({"a": ["${{ params.size }}", 1.5, None]}, CONTEXT) == {"a": [10, 1.5, None]}
    assert single("${{ a }}") == Expression(" a ")
    assert single("${{ a }}${{ b }}") is None
    assert single("a") is None


def test_texts_with_expressions_are_found_in_nested_data() -> None:
    data = {"a": "${{ x }}", "b": ["no", {"c": "${{ y }} z"}], "d": 1}
    assert list(literals_of(data)) == ["${{ x }}", "${{ y }} z"]


def bash(*words: str, check: bool = False, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", *words], cwd=cwd, capture_output=True, check=check, stdin=subprocess.DEVNULL, timeout=900
    )


def output_of(script: str) -> str:
    return bash("--noprofile", "--norc", "-c", script, check=True).stdout.decode()


@in_bash
@given(shell_words)
@example("$(touch /tmp/never)`id`'\"\\\n;#*")
@example("'")
@example("\\")
@example("!x")
@example("\n")
@example("-n")
@example("")
def test_any_value_is_one_word_of_the_shell_whatever_quotes_it_stands_in(text: str) -> None:
    places = {
        "${{ v }}": text,
        "'${{ v }}'": text,
        '"${{ v }}"': text,
        "pre'a'${{ v }}\"b\"": f"prea{text}b",
        "\"$(printf %s. '${{ v }}')\"": f"{text}.",
        "'a'\"${{ v }}\"": f"a{text}",
    }
    script = "# ${{ v }}\n" + "".join(f"printf '%s\\0' {place}\n" for place in places)
    assert output_of(render_shell(script, {"v": text})).split("\0")[:-1] == [*places.values()]


@in_bash
@given(shell_words.filter(lambda text: "\n" not in text))
@example("$(id)`id`\\$HOME")
@example("EOF")
@example("")
@example("E")
def test_any_line_stands_in_a_here_document(text: str) -> None:
    script = "cat <<EOF\n>${{ v }}<\nEOF\ncat <<-'EOF'\n\t>${{ v }}<\n\tEOF\nprintf '%s' ${{ v }}"
    assert output_of(render_shell(script, {"v": text})) == f">{text}<\n>{text}<\n{text}"


_PIECES = [
    *(
        "'",
        '"',
        "`",
        "$(",
        ")",
        "(",
        "((",
        "))",
        "$((",
        "${x:-",
        "}",
        "\\",
        "\n",
        " ",
        "#",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
    ),
    *("<<-E\n", "echo ", "case x in x) ", ";; ", "esac", "$", "$'", "; ", "E", "<<", "<<<", "&& ", "x="),
]
_ATTACKS = [
    *("$(touch hit)", "`touch hit`", "\ntouch hit\n", ";touch hit;", "\\$(touch hit)", "E\ntouch hit\n", "E", "\\"),
    *("';touch hit;'", '";touch hit;"', "}$(touch hit)", ")$(touch hit)", "a[$(touch hit)]", "#\ntouch hit\n"),
]


@settings(in_bash)
@given(
    st.lists(st.sampled_from([*_PIECES, *(["v"] * 9)]), min_size=2, max_size=12),
    st.lists(st.sampled_from(_ATTACKS), min_size=12, max_size=12),
)
@example(["x=(('", "v"], [_ATTACKS[2]] * 12)
@example(["echo ", "$", "$", "((", "'", "((", "v", ")", "v"], [_ATTACKS[2]] * 12)
@example(["$(", "\n", ")", "#", "v"], [_ATTACKS[1]] * 12)
@example(["$(", "<<'E'\n", "echo ", "v", ")", "#"], [_ATTACKS[0]] * 12)
def test_no_value_is_executed_whatever_it_stands_in(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], values: list[str]
) -> None:
    text = "".join(f"${{{{ v{n} }}}}" if piece == "v" else piece for n, piece in enumerate(pieces))
    folder = tmp_path_factory.mktemp("shell")
    try:
        script = render_shell(text, {f"v{n}": value for n, value in enumerate(values)})
    except ExpressionError:
        return
    if bash("-n", "-c", script).returncode:
        return  # bash rejects the script itself, so there is nothing to compare
    bash("-c", script, cwd=folder)
    assert not (folder / "hit").exists()


def test_a_list_is_words_and_raw_is_text() -> None:
    assert render_shell("x ${{ params.words }}", CONTEXT) == "x 'a b' c"
    assert render_shell("x '${{ params.words }}'", CONTEXT) == "x 'a b c'"
    assert render_shell("${{ 'a | b' | raw }}", {}) == "a | b"
    assert render_shell("${{ params.words | raw }}", CONTEXT) == "a b c"
    # A raw value may open quotes, so that the following text is inside them.
    assert render_shell("${{ '\"' | raw }}${{ '$x' }}\"", {}) == '"\\$x"'
    with pytest.raises(ExpressionError, match="not allowed"):
        render_shell("${{ '$' | raw }}${{ '(id)' }}", {})


SHELL_TEXTS = [tuple(part.split("\n", 1)) for part in (FILES / "shell_texts.txt").read_text().split("\n=== ")[1:]]


@pytest.mark.parametrize("text", [text for kind, text in SHELL_TEXTS if kind == "refused"])
def test_a_value_is_refused_where_no_quoting_is_safe(text: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        check_shell(text)
    assert "not allowed" in str(raised.value)
    assert "env:" in raised.value.hint
    with pytest.raises(ExpressionError):
        render_shell(text, {"v": "x"})


@pytest.mark.parametrize("value", ["1; id", "a[$(id)]", "", "x"])
def test_only_whole_numbers_stand_in_arithmetic(value: str) -> None:
    for text in ("echo $((${{ v }} + 1))", "((i < ${{ v }}))", "for ((i=0; i<${{ v }}; i++)); do echo; done"):
        check_shell(text)
        assert "-3" in render_shell(text, {"v": -3})
        with pytest.raises(ExpressionError, match="whole number"):
            render_shell(text, {"v": value})


def test_a_line_that_may_end_a_here_document_makes_the_rest_unsure() -> None:
    text = "cat <<EOF\n${{ a }}OF\n; ${{ b }}\nEOF\n"
    assert render_shell(text, {"a": "x", "b": "y"}) == "cat <<EOF\nxOF\n; y\nEOF\n"
    with pytest.raises(ExpressionError):
        render_shell(text, {"a": "E", "b": "id"})


@pytest.mark.parametrize("text", [text for kind, text in SHELL_TEXTS if kind == "taken"])
def test_common_shell_text_takes_values(text: str) -> None:
    assert render_shell(text, {"v": "a b"}) == text.replace("${{ v }}", "'a b'")
    bash("-n", "-c", render_shell(text, {"v": "a b"}), check=True)


@properties
@given(words, words)
@example("'", '"')
@example("\U000f0000", "\U000f0001")
def test_any_value_is_one_word_of_a_command(text: str, other: str) -> None:
    context = {"a": text, "b": other}
    found = render_words("x ${{ a }} --b=${{ b }} '${{ a }} ${{ b }}'", context)
    assert found == ["x", text, f"--b={other}", f"{text} {other}"]
    assert render_words(["x", "${{ a }}", "--b=${{ b }}"], context) == ["x", text, f"--b={other}"]


@properties
@given(words, words)
def test_a_commands_own_text_is_never_taken_for_a_value(literal: str, text: str) -> None:
    assume("${{" not in literal)
    quoted = "'" + literal.replace("'", "'\"'\"'") + "'"
    assert render_words(f"{quoted} ${{{{ a }}}}", {"a": text}) == [literal, text]


def test_a_command_that_is_one_expression_is_split() -> None:
    assert render_words("${{ a }}", {"a": "x 'y z'"}) == ["x", "y z"]
    assert render_words("${{ a }}", {"a": ["x", "y z", 1]}) == ["x", "y z", "1"]
    assert render_words(["run", "${{ a }}"], {"a": ["x", "y z"]}) == ["run", "x", "y z"]


@pytest.mark.parametrize(("text", "a"), [("x 'y ${{ a }}", ""), ("${{ a }}", "'"), ("x ${{ a }}", "\0")])
def test_what_cannot_be_words_is_an_error(text: str, a: str) -> None:
    with pytest.raises(ExpressionError):
        render_words(text, {"a": a})
    if a == "\0":
        with pytest.raises(ExpressionError, match="NUL"):
            render_shell(text, {"a": a})


def test_a_condition_is_a_boolean() -> None:
    functions = {"success": lambda: True, "failure": lambda: False}
    assert condition("params.size > 5 and success()", {**CONTEXT, **functions}) is True
    assert condition(" not failure() and params.name == 'x' ", {**CONTEXT, **functions}) is False
    for text in ("params.size", "params.name", "params.none", "'true'", "success"):
        with pytest.raises(ExpressionError):
            condition(text, {**CONTEXT, **functions})
