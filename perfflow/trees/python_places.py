"""Find the function around a line of Python, and properties of the line, from the syntax without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from perfflow.model.source_place import NOWHERE, SourcePlace, Use

MODULE = "<module>"
_ARRAYS = frozenset({"numpy", "torch", "pandas", "cupy", "jax", "array"})
_FILLS = frozenset({"append", "add", "setdefault", "update", "extend", "insert"})
_CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.AsyncFor | ast.While
_Scope = _Function | ast.ClassDef | ast.Lambda


class PythonSource:
    """The text of one module. Every place in a text that is not valid Python is ``NOWHERE``."""

    def __init__(self, text: str) -> None:
        try:
            self._tree = ast.parse(text)
            self._functions = list(_functions(self._tree, ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._tree, self._functions = ast.Module([], []), []

    def place(self, line: int, function: str = "") -> SourcePlace:
        """Return the place of a line (from 1); ``function``: name by a profiler, to choose among nested functions.

        A comprehension or lambda belongs to the function around it.
        """
        if not self._tree.body or line < 1:
            return NOWHERE
        name = function.rpartition(".")[2]
        around = [item for item in self._functions if _first(item[1]) <= line <= (item[1].end_lineno or 0)]
        named = [item for item in around if item[1].name == name]
        if name == MODULE or not around:
            return SourcePlace(MODULE, 0, tuple(self._uses(self._tree, line)))
        qualified, node = max(named or around, key=lambda item: _first(item[1]))
        return SourcePlace(qualified, _first(node), tuple(self._uses(node, line)))

    def _uses(self, owner: _Function | ast.Module, line: int) -> Iterator[Use]:
        loops = [
            node for node in _inside(owner) if isinstance(node, _Loop) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        statement = _statement(owner, line)
        if loops:
            yield Use.IN_LOOP
        if statement and _indexes(statement, {name for loop in loops for name in _targets(loop)}):
            yield Use.ELEMENTS
        if self._has_arrays:
            yield Use.ARRAYS
        if loops and statement and _adds_text(statement):
            yield Use.TEXT
        if not isinstance(owner, ast.Module):
            if any(map(_is_unbounded, owner.decorator_list)):
                yield Use.UNBOUNDED
            if statement and _fills(statement, self._containers):
                yield Use.CONTAINER

    @cached_property
    def _has_arrays(self) -> bool:
        names = [
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        return any(name.partition(".")[0] in _ARRAYS for name in names)

    @cached_property
    def _containers(self) -> set[str]:
        """Names of the module that are assigned a container."""
        found = set()
        for node in self._tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict | ast.List | ast.Set) or (
                isinstance(value, ast.Call) and _name(value.func) in _CONTAINERS
            ):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
        return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield every function with its qualified name, without ``<locals>``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _first(node: _Function) -> int:
    """Return the first line of a function as in the interpreter: that of its first decorator."""
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _inside(owner: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those inside nested functions and classes."""
    for child in ast.iter_child_nodes(owner):
        yield child
        if not isinstance(child, _Scope):
            yield from _inside(child)


def _statement(owner: ast.AST, line: int) -> ast.stmt | None:
    """Return the innermost statement on a line, for example the head of a loop."""
    around = [
        node for node in _inside(owner) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)), default=None)


def _targets(loop: _Loop) -> set[str]:
    """Return the target names of a loop; for a ``while`` loop the names in its condition."""
    head = loop.test if isinstance(loop, ast.While) else loop.target
    return {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}


def _indexes(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement, without its body, has a subscript with one of the names in it."""
    parts = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    subscripts = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Subscript))
    return any(isinstance(node, ast.Name) and node.id in names for sub in subscripts for node in ast.walk(sub.slice))


def _adds_text(statement: ast.stmt) -> bool:
    """Return whether it is ``x += TEXT`` or ``x = x + TEXT``, where TEXT is certainly a string."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Add) and _is_text(statement.value)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return False
    value, target = statement.value, statement.targets[0]
    left = value.left
    while isinstance(left, ast.BinOp):
        left = left.left
    same = isinstance(target, ast.Name) and isinstance(left, ast.Name) and target.id == left.id
    return same and isinstance(value.op, ast.Add) and _is_text(value)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or (isinstance(node.op, ast.Add) and _is_text(node.right))
    if isinstance(node, ast.Call):
        return _name(node.func) in {"str", "repr", "format", "hex", "join"}
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_unbounded(decorator: ast.expr) -> bool:
    """Return whether it is ``functools.cache``, or ``lru_cache`` with ``maxsize=None``."""
    if not isinstance(decorator, ast.Call):
        return _name(decorator) == "cache"
    sizes = [*decorator.args[:1], *(item.value for item in decorator.keywords if item.arg == "maxsize")]
    none = any(isinstance(size, ast.Constant) and size.value is None for size in sizes)
    return _name(decorator.func) == "lru_cache" and none


def _fills(statement: ast.stmt, containers: set[str]) -> bool:
    """Return whether it adds an item to one of the containers: ``X[k] = v``, ``X.append(v)``."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(isinstance(item, ast.Subscript) and _name(item.value) in containers for item in targets):
        return True
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _FILLS
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in containers
        for call in calls
    )


def _name(node: ast.expr) -> str:
    """Return the last name of an expression such as ``functools.cache``; '' for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
