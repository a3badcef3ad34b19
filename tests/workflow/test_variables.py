"""Expressions can use single variables of `env`, but never all of them."""

from __future__ import annotations

import pytest

from perfflow.model.errors import UserError
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import Expression, render, render_shell, render_words
from tests.session.conftest import project
from tests.session.project import Project

__all__ = ["project"]

SECRET = "correct-horse"  # noqa: S105 (of these tests)
CONTEXT = {"env": {"HOME": "/home/ada", "API_TOKEN": SECRET}, "params": {"name": "HOME", "method": "items"}}
WHOLE = [
    *("env", "env|tojson", "env|string", "env|list", "env|items|list", "env|dictsort", "env|join(' ')", "env|first"),
    *("env|length", "env|sort", "env|max", "env|sum", "env|unique|list", "env|reverse|list", "env|default('x')"),
    *("env ~ ''", "'' ~ env", "'%s' % env", "env + ''", "env * 2", "dict(env)", "[env]", "[env]|tojson", "(env,)"),
    *(
        "{'a': env}",
        "{'a': env}|tojson",
        "env if true else 1",
        "(env)",
        "(env if true else 1).HOME",
        "env or 1",
        "not env",
    ),
    *("env == env", "env is mapping", "env.items()", "env.values()|list", "env.keys()|list", "env['items']()"),
    *("env[params.method]()", "[env.items][0]()", "(env.items if true else 1)()", "env|upper", "env|replace('a', 'b')"),
    *("params|string ~ env", "[1, env][1]|string", "env|trim", "env|raw", "env|capitalize", "env|int"),
]


@pytest.mark.parametrize("source", WHOLE)
def test_no_text_is_made_of_all_variables(source: str) -> None:
    for make in (Expression(source).value, lambda context: render_shell("echo ${{ " + source + " }}", context)):
        with pytest.raises(ExpressionError) as caught:
            make(CONTEXT)
        assert SECRET not in str(caught.value)
        assert "`env` as a whole cannot be used" in str(caught.value) or "unknown filter" in str(caught.value)
        assert caught.value.hint


@pytest.mark.parametrize(
    "source", ["env.__class__", "env._values", "env.copy()", "env.get", "env.items", "env.API_TOKEN.x"]
)
def test_no_inside_of_it_is_told(source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(source).value(CONTEXT)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("env.HOME", "/home/ada"),
        ("env['HOME']", "/home/ada"),
        ("env[params.name]", "/home/ada"),
        ("env.get('HOME')", "/home/ada"),
        ("env.get('NONE', 'x')", "x"),
        ("env.NONE|default('x')", "x"),
        ("env.HOME ~ '/x'", "/home/ada/x"),
        ("'HOME' in env", True),
        ("'NONE' not in env", True),
        ("env.HOME is defined", True),
        ("env.NONE is defined", False),
        ("params|tojson", '{"name": "HOME", "method": "items"}'),
    ],
)
def test_one_variable_is_read_as_before(source: str, value: object) -> None:
    assert Expression(source).value(CONTEXT) == value


def test_lists_of_words_and_nested_keys_hold_none_either() -> None:
    for text in ("${{ env }}", "a ${{ [env] }} b"):
        with pytest.raises(ExpressionError, match="as a whole"):
            render({"a": [text]}, CONTEXT)
        with pytest.raises(ExpressionError, match="as a whole"):
            render_words(text, CONTEXT)


def test_it_is_found_when_the_file_is_read(project: Project) -> None:
    with pytest.raises(UserError) as caught:
        project.open("stages: {build: [{id: leak, run: 'echo ${{ env|tojson }}'}]}")
    (problem,) = caught.value.problems
    assert "`env` as a whole cannot be used" in problem.message
    assert problem.hint == "use a single variable, such as ${{ env.HOME }}"
    assert problem.place is not None
    assert (problem.place.line, problem.place.text[problem.place.column - 1 :][:3]) == (2, "env")
