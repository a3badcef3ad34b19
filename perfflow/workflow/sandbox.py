"""The Jinja2 environment of expressions: no access to internals of objects, and no operation that runs for long.

The block and comment delimiters contain a NUL, which YAML does not allow, so ``${#a[@]}`` and ``{#`` in shell text are
left alone. Filters, tests and methods are listed one by one: many of Jinja2 and Python build a string of any length
from a few characters (``center``, ``format``, ``%``), and checking a workflow must not hang.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from itertools import islice
from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.filters import do_round
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from perfflow.workflow.expression_text import CLOSE, OPEN, Raw

FILTERS = (
    *("abs", "bool", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "join"),
    *("last", "length", "list", "lower", "max", "min", "replace", "reverse", "round", "sort", "string", "sum"),
    *("title", "tojson", "trim", "unique", "upper"),
)
"""Filters of Jinja2 that expressions can use; perfflow adds ``raw``, ``basename`` and ``regex``."""
TESTS = (
    *("defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number", "string", "mapping"),
    *("sequence", "iterable", "odd", "even", "divisibleby", "in", "eq", "equalto", "==", "ne", "!=", "lt", "lessthan"),
    *("<", "le", "<=", "gt", "greaterthan", ">", "ge", ">=", "lower", "upper", "filter", "test"),
)
METHODS = frozenset(
    {"startswith", "endswith", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "split", "rsplit"}
    | {"splitlines", "partition", "rpartition", "removeprefix", "removesuffix", "replace", "find", "index", "count"}
    | {"get", "keys", "values", "items", "isdigit", "isalpha", "isalnum", "isidentifier"}
    | {"in"}  # method of the facts in routes
)
LONGEST = 100_000
"""Most characters of a string, and most items of a list, that an expression may create."""
_MOST_WORK = 20 * LONGEST
"""Most characters and items that one expression may create in total."""
_BITS = 4096
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_DIGITS = 100


class Sandbox(ImmutableSandboxedEnvironment):
    """Refuses all filters, tests and methods that are not listed above, and results that are too large."""

    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Evaluate one operation. Raises SecurityError if its result would be too large."""
        if operator == "%" and isinstance(left, str):
            raise SecurityError("`%` does not format strings here; use `~` to join them")
        if operator == "**" and _power_bits(left, right) > _BITS:
            raise SecurityError(f"the power is too large: more than {_BITS:,} bits")
        if operator == "*" and max(_product_size(left, right), _product_size(right, left)) > LONGEST:
            raise SecurityError(f"the repeated string or list is too long: more than {LONGEST:,} characters or items")
        return limited(super().call_binop(context, operator, left, right))

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a status function or an allowed method."""
        if getattr(obj, "__name__", "") == "replace":
            _refuse_growth(obj.__self__, args)
        return limited(super().call(context, obj, *args, **kwargs))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Read ``obj.name``; a key named ``values`` or ``copy`` takes precedence over the method of the map."""
        if isinstance(obj, Mapping) and (attribute in obj or hasattr(obj, "__missing__")):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def wrap_str_format(self, value: Any) -> None:
        """Disable ``format``: a width in the format string creates a result of any length."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether ``obj.attr`` may be read: no private attributes, and only the methods listed above."""
        if callable(value) and attr not in METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)


def _power_bits(base: Any, exponent: Any) -> float:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        return base.bit_length() * min(exponent, _BITS + 1)
    return 0


def _product_size(sequence: Any, times: Any) -> int:
    return weight(sequence) * times if isinstance(sequence, str | list | tuple) and isinstance(times, int) else 0


def weight(value: Any) -> int:
    """Return the number of characters and items of a value when it is written out.

    Repeated references count each time. Counting stops beyond LONGEST.
    """
    total, waiting = 0, [value]
    while waiting and total <= LONGEST:
        part = waiting.pop()
        if isinstance(part, str):
            total += max(len(part), 1)
        elif isinstance(part, list | tuple | dict):
            total += len(part) + 1
            if total <= LONGEST:
                waiting += [*part, *part.values()] if isinstance(part, dict) else part
        else:
            # About three bits of an integer make one digit.
            total += part.bit_length() // 3 if isinstance(part, int) and part.bit_length() > 3 else 1
    return total


_work: ContextVar[int] = ContextVar("_work", default=0)
"""Characters and items that the current expression has created."""


@contextmanager
def limited_work() -> Iterator[None]:
    """Count the work of one expression, which ``limited`` bounds."""
    token = _work.set(0)
    try:
        yield
    finally:
        _work.reset(token)


def limited(value: Any) -> Any:
    """Return the value, a lazy one as a list. Raises SecurityError if it, or all values so far, are too long."""
    found = list(islice(value, LONGEST + 1)) if isinstance(value, Iterator) else value
    size = weight(found)
    _work.set(_work.get() + size)
    if size > LONGEST or _work.get() > _MOST_WORK:
        raise SecurityError(f"the value is too long: more than {LONGEST:,} characters")
    return found


def _limited_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)  # Jinja2 marks filters that take an environment or context.
    def call(*args: Any, **kwargs: Any) -> Any:
        return limited(function(*args, **kwargs))

    return call


def _refuse_growth(text: Any, args: tuple[Any, ...]) -> None:
    """Raise SecurityError if ``replace`` would create a string that is too long."""
    if isinstance(text, str) and len(args) > 1:
        old, new = str(args[0]), str(args[1])
        found = text.count(old)
        if len(text) + found * len(new) > LONGEST:
            raise SecurityError("the string becomes too long")


def _replace(text: Any, old: str, new: str, count: int = -1) -> str:
    _refuse_growth(str(text), (old, new))
    return str(text).replace(old, new, count)


def _join(items: Any, separator: str = "") -> str:
    words = [str(item) for item in items]
    if sum(len(word) + len(separator) for word in words) > LONGEST:
        raise SecurityError("the string becomes too long")
    return separator.join(words)


def _basename(path: Any) -> str:
    return str(path).rstrip("/").rpartition("/")[2]


def _regex(value: Any) -> str:
    """Return a regular expression for exactly this name. Each part between slashes has its own anchors, as Go needs."""
    return "/".join(f"^{_SPECIAL.sub(lambda special: chr(92) + special[0], part)}$" for part in str(value).split("/"))


def _bool(value: Any) -> bool:
    """Convert a string to a boolean, for outputs of steps in conditions."""
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off", ""):
        return False
    raise ValueError(f"{str(value)!r} is neither true nor false")


def _no_json(value: Any) -> Any:
    raise TypeError(f"{str(value)[:40]!r} is not plain data")


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    if not isinstance(precision, int) or abs(precision) > _DIGITS:
        raise SecurityError(f"`round` takes at most {_DIGITS} digits")
    return do_round(value, precision, method)


_OWN: Mapping[str, Callable[..., Any]] = {
    "basename": _basename,
    "bool": _bool,
    "join": _join,
    "regex": _regex,
    "replace": _replace,
    "round": _round,
    "tojson": lambda value: json.dumps(value, ensure_ascii=False, default=_no_json),
}


@cache
def environment(as_raw: Callable[[Any], Raw]) -> Sandbox:
    """Return the environment; ``as_raw`` is the filter that disables shell quoting."""
    sandbox = Sandbox(
        block_start_string="\0%",
        block_end_string="%\0",
        variable_start_string=OPEN,
        variable_end_string=CLOSE,
        comment_start_string="\0#",
        comment_end_string="#\0",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        optimized=False,
    )
    sandbox.globals.clear()
    known = {name: sandbox.filters[name] for name in FILTERS if name not in _OWN}
    sandbox.filters = {name: _limited_filter(function) for name, function in {**known, **_OWN}.items()} | {
        "raw": as_raw
    }
    sandbox.tests = {name: sandbox.tests[name] for name in TESTS}
    return sandbox
