"""Parse expressions with Jinja2, list the names they use, and evaluate them in a sandbox.

Separate from ``expressions``, because a workflow without ``${{`` does not need Jinja2, which is slow to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import TemplateError, Undefined, nodes
from jinja2.parser import Parser

from perfflow.model.similar import nearest
from perfflow.workflow import sandbox, variables
from perfflow.workflow.expression_text import LONGEST_EXPRESSION, OPEN, QUOTED, ExpressionError, Raw, as_text
from perfflow.workflow.node_values import Evaluation

_DASHED_STEP = re.compile(
    r"\bsteps\.(?P<id>[A-Za-z0-9_][\w.-]*?(?:\[[^\]'\"]*\])?)\.outputs\b(?:\.(?P<key>[A-Za-z_][\w-]*))?"
)


def names(source: str, shown: str) -> Iterator[tuple[str, ...]]:
    """Yield each dotted name that the expression uses, such as ``("params", "crate")``. Raises ExpressionError."""
    seen: set[int] = set()
    for node in _walk(parse(source, shown)):
        if isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Name) and id(node) not in seen:
            path = _path(node, seen)
            if path:
                yield path


def value(source: str, shown: str, context: Mapping[str, Any]) -> Any:
    """Return the value of the expression, with its type. Raises ExpressionError."""
    tree = parse(source, shown)
    try:
        return _plain(Evaluation(sandbox.environment(_as_raw), variables.guarded(context)).value(tree))
    except variables.WholeEnvironmentError as error:
        raise ExpressionError(f"{shown}: {error}", source.strip(), variables.NAME_ONE) from error
    except _FAILURES as error:
        raise ExpressionError(f"{shown}: {_reason(error)}", source.strip()) from error


def ends_in_raw(source: str, shown: str) -> bool:
    """Return whether the last filter is ``raw``. Raises ExpressionError."""
    tree = parse(source, shown)
    return isinstance(tree, nodes.Filter) and tree.name == "raw"


_FAILURES = (
    *(TemplateError, ArithmeticError, TypeError, ValueError, AttributeError, LookupError),
    *(RecursionError, MemoryError, SyntaxError),
)


def _reason(error: BaseException) -> str:
    """Return the message of an error, without names of internal classes of Jinja2 and Python."""
    if isinstance(error, RecursionError | MemoryError | SyntaxError):
        return "the expression is nested too deeply"
    return re.sub(r"'(?:dict|perfflow\.\S+|\S*Unknown) object' has no attribute", "there is no", str(error))


def _plain(value: Any) -> Any:
    """Return the value as plain data; an undefined value fails here, since it would be printed as an empty string."""
    if isinstance(value, Undefined):
        return str(value)
    variables.require_no_environment(value)
    if callable(value):
        raise TypeError("a function is not a value; call it with ()")
    if isinstance(value, Mapping):
        return value if isinstance(value, dict) else dict(value)
    return value if isinstance(value, str | int | float | list | None) else list(value)


def _as_raw(value: Any) -> Raw:
    return Raw(as_text(value))


def _walk(tree: nodes.Node) -> Iterator[nodes.Node]:
    """Yield all nodes from the top down, without recursion."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list(node.iter_child_nodes()))


def _path(node: nodes.Node, seen: set[int]) -> tuple[str, ...]:
    """Return the constant dotted path of a node, or () if the path is computed."""
    parts: list[str] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        seen.add(id(node))
        if isinstance(node, nodes.Getattr):
            parts.append(node.attr)
        elif isinstance(node.arg, nodes.Const):
            parts.append(str(node.arg.value))
        else:
            parts.clear()
        node = node.node
    if not isinstance(node, nodes.Name):
        return ()
    seen.add(id(node))
    return (node.name, *reversed(parts))


def _rewrite(source: str) -> str:
    """Quote ids, which may contain ``-`` and ``[k=v]``: ``steps.a-b.outputs.c`` -> ``steps["a-b"].outputs["c"]``."""

    def quoted(match: re.Match[str]) -> str:
        key = f'["{match["key"]}"]' if match["key"] else ""
        return f'steps["{match["id"]}"].outputs{key}'

    parts = QUOTED.split(source)
    return "".join(part if number % 2 else _DASHED_STEP.sub(quoted, part) for number, part in enumerate(parts)).strip()


@lru_cache(maxsize=512)
def parse(source: str, shown: str) -> nodes.Expr:
    """Return the syntax tree of one expression; ``shown`` is its text in error messages.

    Raises ExpressionError, also for unknown filters and tests.
    """
    if not source.strip():
        raise ExpressionError("empty expression", OPEN, "write a name, such as ${{ params.size }}")
    if len(source) > LONGEST_EXPRESSION:
        message = f"the expression has more than {LONGEST_EXPRESSION} characters"
        raise ExpressionError(message, source.strip()[:40])
    try:
        parser = Parser(sandbox.environment(_as_raw), _rewrite(source), state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise ExpressionError(f"{shown}: unexpected `{parser.stream.current.value}`", source.strip())
    except TemplateError as error:
        said = re.sub(r" at \d+$", "", str(error.message))
        message = "the expression is incomplete" if "end of template" in said else said
        raise ExpressionError(f"{shown}: {message}", source.strip()) from error
    except RecursionError as error:
        raise ExpressionError("the expression is nested too deeply", source.strip()[:40]) from error
    _require_known(tree, shown)
    if any(isinstance(node, nodes.Name) and node.name == "env" for node in _values(tree)):
        raise ExpressionError(f"{shown}: {variables.WHOLE}", "env", variables.NAME_ONE)
    return tree


def _values(tree: nodes.Node) -> Iterator[nodes.Node]:
    """Yield all nodes whose value is used itself: not the map of ``map.key``, nor the right operand of ``in``."""
    containers: set[int] = set()
    for node in _walk(tree):
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            containers.add(id(node.node))
        elif isinstance(node, nodes.Compare):
            containers.update(id(item.expr) for item in node.ops if item.op in ("in", "notin"))
        if id(node) not in containers:
            yield node


def _require_known(tree: nodes.Node, shown: str) -> None:
    for kind, known in ((nodes.Filter, (*sandbox.FILTERS, "raw", "basename")), (nodes.Test, sandbox.TESTS)):
        for node in _walk(tree):
            if isinstance(node, kind) and node.name not in known:
                word = "filter" if kind is nodes.Filter else "test"
                near = nearest(node.name, known)
                hint = f"did you mean `{near}`?" if near else f"known {word}s: {', '.join(known)}"
                raise ExpressionError(f"{shown}: unknown {word} `{node.name}`", node.name, hint)
