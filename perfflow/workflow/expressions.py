"""``${{ }}``: Jinja2 expressions in single strings, rendered after the YAML is parsed.

Expressions run in a sandbox, and undefined names are errors. Only ``${{`` starts an expression, so ``${#a[@]}`` and
``{#`` in shell text are left alone. A value is one argument, or is shell-quoted in ``run`` text, so output of tools is
never executed. Of ``env``, only single variables can be used, because the environment may contain secrets.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import TemplateError, Undefined, nodes
from jinja2.environment import TemplateExpression
from jinja2.parser import Parser

from perfflow.model.similar import nearest
from perfflow.workflow import sandbox, shell_text
from perfflow.workflow.expression_text import CLOSE, LONGEST_EXPRESSION, OPEN, QUOTED, ExpressionError, Raw, as_text
from perfflow.workflow.shell_text import ShellText, UnquotableError

WHOLE = "`env` as a whole cannot be used, because it may contain secrets"
NAME_ONE = "use a single variable, such as ${{ env.HOME }}"


class WholeEnvironmentError(ValueError):
    """An expression uses the whole environment."""

    def __init__(self) -> None:
        super().__init__(WHOLE)


class Variables:
    """Variables by name. Operations on all of them, or on their names, raise WholeEnvironmentError."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        if not isinstance(name, str):
            raise WholeEnvironmentError
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a variable, or ``default`` if it is not set."""
        return self._values.get(name, default)

    def _refuse(self, *_others: object) -> NoReturn:
        raise WholeEnvironmentError

    __iter__ = __len__ = __bool__ = __str__ = __repr__ = __format__ = __eq__ = __add__ = __radd__ = _refuse
    items = keys = values = _refuse


def guarded_values(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the context of an expression with ``env`` replaced by Variables."""
    env = context.get("env")
    return {**context, "env": Variables(env)} if isinstance(env, Mapping) else context


def require_no_environment(value: Any) -> None:
    """Raise WholeEnvironmentError if a value is or contains the whole of ``env``."""
    if isinstance(value, Variables):
        raise WholeEnvironmentError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        require_no_environment(item)


_DASHED_STEP = re.compile(
    r"\bsteps\.(?P<id>[A-Za-z0-9_][\w.-]*?(?:\[[^\]'\"]*\])?)\.outputs\b(?:\.(?P<key>[A-Za-z_][\w-]*))?"
)


def names_in(source: str, shown: str) -> Iterator[tuple[str, ...]]:
    """Yield each dotted name that the expression uses, such as ``("params", "crate")``. Raises ExpressionError."""
    seen: set[int] = set()
    for node in _walk(parse_expression(source, shown)):
        if isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Name) and id(node) not in seen:
            path = _path(node, seen)
            if path:
                yield path


def value_of(source: str, shown: str, context: Mapping[str, Any]) -> Any:
    """Return the value of the expression, with its type. Raises ExpressionError."""
    tree = parse_expression(source, shown)
    try:
        with sandbox.limited_work():
            value = _compiled(source)(guarded_values(context))
            return _plain(sandbox.limited(value) if isinstance(tree, _MADE_HERE) else value)
    except WholeEnvironmentError as error:
        raise ExpressionError(f"{shown}: {error}", source.strip(), NAME_ONE) from error
    except _FAILURES as error:
        raise ExpressionError(f"{shown}: {_reason(error)}", source.strip()) from error


_MADE_HERE = (nodes.Concat, nodes.List, nodes.Tuple, nodes.Dict)
"""Expressions that make a value without an operation of the sandbox, which checks its own results."""


@lru_cache(maxsize=512)
def _compiled(source: str) -> TemplateExpression:
    return sandbox.environment(_as_raw).compile_expression(_rewrite(source), undefined_to_none=False)


def ends_in_raw(source: str, shown: str) -> bool:
    """Return whether the last filter is ``raw``. Raises ExpressionError."""
    tree = parse_expression(source, shown)
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
    require_no_environment(value)
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
def parse_expression(source: str, shown: str) -> nodes.Expr:
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
        reason = re.sub(r" at \d+$", "", str(error.message))
        message = "the expression is incomplete" if "end of template" in reason else reason
        raise ExpressionError(f"{shown}: {message}", source.strip()) from error
    except RecursionError as error:
        raise ExpressionError("the expression is nested too deeply", source.strip()[:40]) from error
    _require_known(tree, shown)
    if any(isinstance(node, nodes.Name) and node.name == "env" for node in _values(tree)):
        raise ExpressionError(f"{shown}: {WHOLE}", "env", NAME_ONE)
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
    if any(node.expr2 is None for node in _walk(tree) if isinstance(node, nodes.CondExpr)):
        # Jinja2 would print nothing.
        raise ExpressionError(f"{shown}: the `if` has no `else`", "if", "add `else` and a value")
    for kind, known in ((nodes.Filter, (*sandbox.FILTERS, "raw", "basename", "regex")), (nodes.Test, sandbox.TESTS)):
        for node in _walk(tree):
            if isinstance(node, kind) and node.name not in known:
                word = "filter" if kind is nodes.Filter else "test"
                near = nearest(node.name, known)
                hint = f"did you mean `{near}`?" if near else f"known {word}s: {', '.join(known)}"
                raise ExpressionError(f"{shown}: unknown {word} `{node.name}`", node.name, hint)


ROOTS = ("params", "env", "steps", "matrix", "ops", "run", "machine", "git", "layout", "pair", "holdout")
"""Names with which an expression can start."""
STATUS_FUNCTIONS = ("success", "failure", "always")
_SHOWN = 80
LONGEST_TEXT = 1_000_000
"""Most characters of a rendered string."""
MOST_EXPRESSIONS = 200
"""Most expressions in one string."""


@dataclass(frozen=True)
class Expression:
    """One ``${{ }}`` of a string; ``source`` has no delimiters."""

    source: str

    def names(self) -> Iterator[tuple[str, ...]]:
        """Yield each dotted name that the expression uses, such as ``("params", "crate")``. Raises ExpressionError."""
        return names_in(self.source, str(self))

    def value(self, context: Mapping[str, Any]) -> Any:
        """Return the value of the expression, with its type. Raises ExpressionError."""
        return value_of(self.source, str(self), context)

    def require_sound(self) -> None:
        """Raise ExpressionError if the expression does not parse, or uses an unknown filter or test."""
        parse_expression(self.source, str(self))

    @property
    def opts_out(self) -> bool:
        """Whether the value is inserted into shell text without quoting. Raises ExpressionError."""
        return ends_in_raw(self.source, str(self))

    def __str__(self) -> str:
        source = self.source.strip()
        return f"{OPEN} {source if len(source) <= _SHOWN else source[: _SHOWN - 3] + '...'} {CLOSE}"


def split(text: str) -> list[str | Expression]:
    """Split a string into literal parts and expressions. Raises ExpressionError for an invalid or unclosed one."""
    parts = list(pieces(text))
    for part in parts:
        if isinstance(part, Expression):
            part.require_sound()
    return parts


def pieces(text: str) -> Iterator[str | Expression]:
    """Yield literal parts and expressions without parsing them. Raises ExpressionError if one is not closed."""
    position = count = 0
    while (start := text.find(OPEN, position)) >= 0:
        count += 1
        if count > MOST_EXPRESSIONS:
            message = f"more than {MOST_EXPRESSIONS} expressions in one string"
            raise ExpressionError(message, OPEN, "split the string")
        end = _end_of(text, start + len(OPEN))
        if start > position:
            yield text[position:start]
        yield Expression(text[start + len(OPEN) : end])
        position = end + len(CLOSE)
    if position < len(text):
        yield text[position:]


_SIGN = re.compile(r"""["'{}]""")
_CLOSED = {sign: re.compile(rf"""{sign}(?:\\.|[^{sign}\\])*+{sign}""", re.DOTALL) for sign in "\"'"}


def _end_of(text: str, start: int) -> int:
    """Return the index of the ``}}`` that closes an expression, outside quotes and maps. Raises ExpressionError."""
    depth, position = 0, start
    unclosed = set()
    while token := _SIGN.search(text, position):
        sign, position = token[0], token.end()
        if sign in _CLOSED:
            closed = None if sign in unclosed else _CLOSED[sign].match(text, token.start())
            if closed:
                position = closed.end()
            else:
                # If a quote is not closed, no later quote of its kind is either, so do not search for them again.
                unclosed.add(sign)
        elif sign == "{":
            depth += 1
        elif depth:
            depth -= 1
        elif text.startswith(CLOSE, token.start()):
            return token.start()
        else:
            break
    near = text[start - len(OPEN) :].split("\n", 1)[0]
    raise ExpressionError("a `${{` is not closed", near, "close it with `}}`: ${{ ... }}")


def single(text: str) -> Expression | None:
    """Return the expression if the string is exactly one ``${{ }}``, else None."""
    parts = split(text.strip()) if text.strip().startswith(OPEN) else []
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Expression) else None


def render(value: Any, context: Mapping[str, Any]) -> Any:
    """Render every string inside ``value``; a string that is exactly one ``${{ }}`` becomes a value with its type.

    Raises ExpressionError.
    """
    if isinstance(value, dict):
        return {key: render(item, context) for key, item in value.items()}
    if isinstance(value, list):
        return [render(item, context) for item in value]
    if not isinstance(value, str) or OPEN not in value:
        return value
    whole = single(value)
    if whole:
        return whole.value(context)
    return _joined(part if isinstance(part, str) else as_text(part.value(context)) for part in split(value))


def _joined(parts: Iterable[str]) -> str:
    """Join the parts of a rendered string. Raises ExpressionError if the result is too long."""
    found, length = [], 0
    for part in parts:
        found.append(part)
        length += len(part)
        if length > LONGEST_TEXT:
            raise ExpressionError(f"the rendered string has more than {LONGEST_TEXT:,} characters", OPEN)
    return "".join(found)


def render_shell(text: str, context: Mapping[str, Any]) -> str:
    """Render ``run`` text: quote each value for its place, a list word by word; ``| raw`` disables quoting.

    Raises ExpressionError where no quoting is safe.
    """
    return _in_shell(text, lambda expression: expression.value(context))


def check_shell(text: str) -> None:
    """Raise ExpressionError if an expression is at a place of the shell text where no quoting is safe."""
    _in_shell(text, lambda _: "0")


def _in_shell(text: str, value_of: Callable[[Expression], Any]) -> str:
    if OPEN not in text:
        return text
    shell = ShellText()
    for part in split(text):
        if isinstance(part, str):
            shell.add(part)
            continue
        value = value_of(part)
        if isinstance(value, Raw) or part.opts_out:
            shell.add(as_text(value))
            continue
        words = [as_text(item) for item in value] if isinstance(value, list | tuple) else [as_text(value)]
        try:
            shell.add_words(words)
        except UnquotableError as error:
            raise ExpressionError(f"{part}: {error}", part.source.strip(), error.hint) from error
    return shell.text


def render_words(text: str | list[str], context: Mapping[str, Any], remedy: str = "") -> list[str]:
    """Render a command to argv: it is split into words first, so each value stays within one word.

    A command that is exactly one ``${{ }}`` is split after rendering. Raises ExpressionError for unclosed quotes and
    unquoted shell syntax; ``remedy`` replaces its hint.
    """
    if isinstance(text, list):
        return [_argument(word) for item in text for word in _words_of_item(item, context)]
    whole = single(text)
    if whole:
        value = whole.value(context)
        words = [as_text(item) for item in value] if isinstance(value, list) else _split_words(as_text(value), remedy)
        return [_argument(word) for word in words]
    parts = split(text)
    # Replace each expression by a character that the text does not contain, so that its value is not split.
    unused = (chr(code) for code in range(0xF0000, 0x110000) if chr(code) not in text)
    values: dict[str, str] = {}
    marked = ""
    for part in parts:
        letter = part if isinstance(part, str) else next(unused)
        marked += letter
        if isinstance(part, Expression):
            values[letter] = as_text(part.value(context))
    return [_argument("".join(values.get(letter, letter) for letter in word)) for word in _split_words(marked, remedy)]


def _words_of_item(item: str, context: Mapping[str, Any]) -> list[str]:
    value = render(item, context)
    return [as_text(word) for word in value] if isinstance(value, list) else [as_text(value)]


def _argument(word: str) -> str:
    if "\0" in word:
        raise ExpressionError(f"the argument {word[:40]!r} contains a NUL character")
    return word


def _split_words(text: str, remedy: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ExpressionError(f"{text.strip()!r}: {error}") from error
    found = shell_text.first_word(text)
    if found and not found.is_pattern:
        hint = remedy or found.hint()
        raise ExpressionError(f"{text.strip()!r}: {found.message}; {hint}", found.text, hint)
    return words


def needs_shell(text: str) -> bool:
    """Return whether a command has shell syntax outside of the values of its expressions, or a raw value.

    Raises ExpressionError for an invalid expression.
    """
    parts = split(text) if OPEN in text else [text]
    raw = any(isinstance(part, Expression) and part.opts_out for part in parts)
    return raw or shell_text.needs_shell("".join(part if isinstance(part, str) else "x" for part in parts))


def masked(text: str) -> str:
    """Return the text with each character of its expressions replaced by a dot: their values are never syntax.

    Raises ExpressionError if an expression is not closed.
    """
    return "".join(
        part if isinstance(part, str) else "." * (len(OPEN) + len(part.source) + len(CLOSE)) for part in pieces(text)
    )


def condition(text: str, context: Mapping[str, Any]) -> bool:
    """Return the value of an ``if``. Raises ExpressionError if it is not a boolean."""
    value = Expression(text).value(context)
    if not isinstance(value, bool):
        raise ExpressionError(f"`if: {text.strip()}` is {value!r}, not true or false; write a comparison")
    return value


def literals_of(value: Any) -> Iterator[str]:
    """Yield every string inside nested data that contains an expression."""
    if isinstance(value, str):
        if OPEN in value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from literals_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from literals_of(item)
