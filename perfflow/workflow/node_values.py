"""Evaluate a parsed expression node by node, with limits on the size of each value and on the total work."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context

from perfflow.workflow.sandbox import LONGEST, Sandbox, weight

_WORK = 20 * LONGEST
"""Most characters and items that one expression may create in total."""
_OPERATORS = {
    nodes.Add: "+",
    nodes.Sub: "-",
    nodes.Mul: "*",
    nodes.Div: "/",
    nodes.FloorDiv: "//",
    nodes.Mod: "%",
    nodes.Pow: "**",
}
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
    "in": lambda one, other: one in other,
    "notin": lambda one, other: one not in other,
}
_PASSED_THROUGH = (nodes.Name, nodes.Const, nodes.Getattr, nodes.CondExpr, nodes.And, nodes.Or)
"""Nodes that create no new value, so they do not count as work."""


class Evaluation:
    """Evaluates one expression; the sandbox decides which attributes, calls, filters and tests are allowed."""

    def __init__(self, sandbox: Sandbox, names: Mapping[str, Any]) -> None:
        self._sandbox, self._names = sandbox, names
        self._context = Context(sandbox, {}, None, {})
        self._left = _WORK

    def value(self, node: nodes.Expr) -> Any:
        """Return the value of a node. Raises SecurityError if a limit is exceeded, and the errors of the operation."""
        found = self._kinds[type(node)](self, node)
        if isinstance(node, _PASSED_THROUGH):
            return found
        if isinstance(found, Iterator):
            # Some filters are lazy.
            found = list(islice(found, LONGEST + 1))
        size = weight(found)
        self._left -= size
        if size > LONGEST or self._left < 0:
            raise SecurityError(f"the value is too long: more than {LONGEST:,} characters")
        return found

    def _all(self, parts: list[nodes.Expr]) -> list[Any]:
        return [self.value(part) for part in parts]

    def _name(self, node: nodes.Name) -> Any:
        return self._names[node.name] if node.name in self._names else self._sandbox.undefined(name=node.name)

    def _attribute(self, node: nodes.Getattr) -> Any:
        return self._sandbox.getattr(self.value(node.node), node.attr)

    def _item(self, node: nodes.Getitem) -> Any:
        whole = self.value(node.node)
        if isinstance(node.arg, nodes.Slice):
            ends = (node.arg.start, node.arg.stop, node.arg.step)
            return whole[slice(*(None if end is None else self.value(end) for end in ends))]
        return self._sandbox.getitem(whole, self.value(node.arg))

    def _binary(self, node: nodes.BinExpr) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        return self._sandbox.call_binop(self._context, _OPERATORS[type(node)], left, right)

    def _compared(self, node: nodes.Compare) -> Any:
        found: Any = True
        left = self.value(node.expr)
        for operand in node.ops:
            right = self.value(operand.expr)
            found = _COMPARISONS[operand.op](left, right)
            if not found:
                break
            left = right
        return found

    def _either(self, node: nodes.CondExpr) -> Any:
        if self.value(node.test):
            return self.value(node.expr1)
        return self._sandbox.undefined("the `if` has no `else`") if node.expr2 is None else self.value(node.expr2)

    def _joined(self, node: nodes.Concat) -> str:
        words = self._all(node.nodes)
        if sum(weight(word) for word in words) > LONGEST:
            raise SecurityError("the joined text is too long")
        return "".join(map(str, words))

    def _called(self, node: nodes.Call) -> Any:
        args, kwargs = self._arguments(node)
        return self._sandbox.call(self._context, self.value(node.node), *args, **kwargs)

    def _filtered(self, node: nodes.Filter) -> Any:
        args, kwargs = self._arguments(node)
        return self._sandbox.call_filter(node.name, node.node and self.value(node.node), args, kwargs, self._context)

    def _tested(self, node: nodes.Test) -> Any:
        args, kwargs = self._arguments(node)
        return self._sandbox.call_test(node.name, self.value(node.node), args, kwargs, self._context)

    def _arguments(self, node: nodes.Call | nodes.Filter | nodes.Test) -> tuple[list[Any], dict[str, Any]]:
        args = self._all(node.args)
        kwargs = {str(pair.key): self.value(pair.value) for pair in node.kwargs}
        if node.dyn_args is not None:
            args += self.value(node.dyn_args)
        if node.dyn_kwargs is not None:
            kwargs |= self.value(node.dyn_kwargs)
        return args, kwargs

    _kinds: ClassVar[Mapping[type[nodes.Node], Callable[[Evaluation, Any], Any]]] = {
        **dict.fromkeys(_OPERATORS, _binary),
        nodes.Name: _name,
        nodes.Const: lambda _, node: node.value,
        nodes.Getattr: _attribute,
        nodes.Getitem: _item,
        nodes.List: lambda self, node: self._all(node.items),
        nodes.Tuple: lambda self, node: tuple(self._all(node.items)),
        nodes.Dict: lambda self, node: {self.value(pair.key): self.value(pair.value) for pair in node.items},
        nodes.Neg: lambda self, node: -self.value(node.node),
        nodes.Pos: lambda self, node: +self.value(node.node),
        nodes.Not: lambda self, node: not self.value(node.node),
        nodes.And: lambda self, node: self.value(node.left) and self.value(node.right),
        nodes.Or: lambda self, node: self.value(node.left) or self.value(node.right),
        nodes.Compare: _compared,
        nodes.CondExpr: _either,
        nodes.Concat: _joined,
        nodes.Call: _called,
        nodes.Filter: _filtered,
        nodes.Test: _tested,
    }
