"""``${{ }}``: Jinja2 expressions in single strings, rendered after the YAML is parsed.

Sandboxed; undefined names are errors; the block and comment delimiters hold a NUL, which YAML text cannot contain, so
``${#a[@]}`` and ``{#`` in shell text stay what they are. A value is one argv word, or shell-quoted in ``run`` text, so
nothing from a tool's output is ever executed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError, Undefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOTS = ("params", "env", "steps", "matrix", "ops", "run", "machine", "git")
"""Names an expression can start from."""
STATUS_FUNCTIONS = ("success", "failure", "always")
_OPEN, _CLOSE = "${{", "}}"
_DASHED_STEP = re.compile(
    r"\bsteps\.(?P<id>[A-Za-z0-9_][\w.-]*?(?:\[[^\]'\"]*\])?)\.outputs(?:\.(?P<key>[A-Za-z_][\w-]*))?"
)


class ExpressionError(ValueError):
    """An expression that does not parse, names something unknown, or fails when it is rendered."""


class Raw(str):
    """A value that ``| raw`` exempts from shell quoting."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """One ``${{ }}`` of a text, without its delimiters."""

    source: str

    def names(self) -> Iterator[tuple[str, ...]]:
        """Yield each dotted name it reads: ``("params", "crate")``."""
        tree = _parse(self.source)
        seen: set[int] = set()
        for node in tree.find_all((nodes.Getattr, nodes.Getitem, nodes.Name)):
            if id(node) not in seen:
                path = _path(node, seen)
                if path:
                    yield path

    def value(self, context: Mapping[str, Any]) -> Any:
        """Return the value in its own type. Raises ExpressionError."""
        try:
            value = _environment().compile_expression(_rewrite(self.source), undefined_to_none=False)(**context)
            # An undefined name only fails when it is used; handing it on would print as an empty text.
            return str(value) if isinstance(value, Undefined) else value
        except (TemplateError, ArithmeticError, TypeError, ValueError, AttributeError, LookupError) as error:
            raise ExpressionError(f"${{{{ {self.source.strip()} }}}}: {error}") from error


def _path(node: nodes.Node, seen: set[int]) -> tuple[str, ...]:
    """The constant dotted path a node stands for, () when it is computed."""
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


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        block_start_string="\0%",
        block_end_string="%\0",
        variable_start_string=_OPEN,
        variable_end_string=_CLOSE,
        comment_start_string="\0#",
        comment_end_string="#\0",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.globals.clear()
    environment.filters["raw"] = Raw
    return environment


def _rewrite(source: str) -> str:
    """``steps.my-step.outputs.a-b`` -> ``steps["my-step"].outputs["a-b"]``: ids may hold ``-`` and ``[k=v]``."""

    def quoted(match: re.Match[str]) -> str:
        key = f'["{match["key"]}"]' if match["key"] else ""
        return f'steps["{match["id"]}"].outputs{key}'

    return _DASHED_STEP.sub(quoted, source)


def _parse(source: str) -> nodes.Template:
    try:
        return _environment().parse(f"{_OPEN} {_rewrite(source)} {_CLOSE}")
    except TemplateError as error:
        raise ExpressionError(f"${{{{ {source.strip()} }}}}: {error}") from error
    except RecursionError as error:
        raise ExpressionError("the expression is nested too deeply") from error


def split(text: str) -> list[str | Expression]:
    """Split a text into literal parts and expressions. Raises ExpressionError for one that does not end or parse."""
    if _OPEN not in text:
        return [text] if text else []
    parts: list[str | Expression] = []
    source: list[str] | None = None
    try:
        for _, kind, value in _environment().lex(text):
            if kind == "variable_begin":
                source = []
            elif kind == "variable_end":
                parts.append(Expression("".join(source or [])))
                source = None
            elif source is not None:
                source.append(value)
            else:
                parts.append(value)
    except TemplateError as error:
        raise ExpressionError(str(error)) from error
    if source is not None:
        raise ExpressionError("a `${{` has no `}}`")
    for part in parts:
        if isinstance(part, Expression):
            _parse(part.source)
    return parts


def single(text: str) -> Expression | None:
    """The expression, when the text is exactly one ``${{ }}``."""
    parts = split(text.strip()) if text.strip().startswith(_OPEN) else []
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Expression) else None


def render(value: Any, context: Mapping[str, Any]) -> Any:
    """Render every text inside ``value``; a text that is exactly one ``${{ }}`` keeps the value's type."""
    if isinstance(value, dict):
        return {key: render(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [render(item, context) for item in value]
    if not isinstance(value, str) or _OPEN not in value:
        return value
    whole = single(value)
    if whole:
        return whole.value(context)
    return "".join(part if isinstance(part, str) else as_text(part.value(context)) for part in split(value))


def as_text(value: Any) -> str:
    """The text of a value: booleans as YAML writes them, lists as words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return " ".join(as_text(item) for item in value)
    return str(value)


def render_shell(text: str, context: Mapping[str, Any]) -> str:
    """Render ``run`` text: each value is quoted for the shell, a list word by word; ``| raw`` opts out."""
    return "".join(part if isinstance(part, str) else _quoted(part.value(context)) for part in split(text))


def _quoted(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, list | tuple):
        return " ".join(shlex.quote(as_text(item)) for item in value)
    return shlex.quote(as_text(value))


def render_words(text: str | list[str], context: Mapping[str, Any]) -> list[str]:
    """Render a command to argv: the words are split first, so a value is one word whatever it holds.

    A command that is exactly one ``${{ }}`` is split after rendering. Raises ExpressionError for unbalanced quotes.
    """
    if isinstance(text, list):
        return [word for item in text for word in _words_of_item(item, context)]
    whole = single(text)
    if whole:
        value = whole.value(context)
        return [as_text(item) for item in value] if isinstance(value, list) else _split_words(as_text(value))
    # Expressions become single characters of a private-use plane, so that their text is not split.
    parts = split(text)
    found = [part for part in parts if isinstance(part, Expression)]
    marked = "".join(part if isinstance(part, str) else chr(_PRIVATE + found.index(part)) for part in parts)
    values = {chr(_PRIVATE + number): as_text(part.value(context)) for number, part in enumerate(found)}
    return ["".join(values.get(letter, letter) for letter in word) for word in _split_words(marked)]


_PRIVATE = 0xF0000


def _words_of_item(item: str, context: Mapping[str, Any]) -> list[str]:
    value = render(item, context)
    return [as_text(word) for word in value] if isinstance(value, list) else [as_text(value)]


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ExpressionError(f"{text.strip()!r}: {error}") from error


def condition(text: str, context: Mapping[str, Any]) -> bool:
    """Value of an ``if``. Raises ExpressionError when it is not a boolean."""
    value = Expression(text).value(context)
    if not isinstance(value, bool):
        raise ExpressionError(f"`if: {text.strip()}` is {value!r}, not true or false; compare it with something")
    return value


def literals_of(value: Any) -> Iterator[str]:
    """Every text inside nested data that holds an expression."""
    if isinstance(value, str):
        if _OPEN in value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from literals_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from literals_of(item)
