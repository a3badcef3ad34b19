"""Convert the nodes of one or several YAML files to plain data, and find the position of every value.

Duplicate keys, merge keys and tags are errors. Each alias counts as all values that it expands to. ``replace_file``
replaces the contents of a file in the user's project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.model.errors import Problem, SourcePosition, UserError
from perfflow.workflow import yaml_hints
from perfflow.workflow.written_numbers import real, whole

MAX_DEPTH = 40
MAX_NODES = 50_000
"""Most values of a file after aliases are expanded; the largest known workflow has about 2,000."""

Loc = tuple[str | int, ...]
"""Location of a value in the data: the keys and indices from the root."""


@dataclass
class Document:
    """One YAML file, or several merged ones: the root node, the lines of each file, and the problems found so far.

    ``wrong`` has the locations in the data where a value was left out because of a problem.
    """

    file: str
    root: Node
    lines: dict[str, list[str]]
    problems: list[Problem] = field(default_factory=list)
    wrong: list[Loc] = field(default_factory=list)
    _index: dict[int, dict[str, tuple[Node, Node]]] = field(default_factory=dict, repr=False)

    def node(self, loc: Sequence[str | int]) -> Node:
        """Return the deepest node on the way to ``loc``; parts of ``loc`` that the text does not have are skipped.

        With short forms the text has a list where the data has ``{steps: [...]}``, or a scalar for ``{default: ...}``.
        """
        node = self.root
        for part in loc:
            node = self.child(node, part) or node
        return node

    def child(self, node: Node, part: str | int) -> Node | None:
        """Return one item of a list or one value of a map, or None if there is none."""
        if isinstance(node, SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
            found: Node = node.value[part]
            return found
        if isinstance(node, MappingNode):
            return self._pairs(node).get(str(part), (None, None))[1]
        return None

    def written(self, loc: Sequence[str | int]) -> Loc:
        """Return ``loc`` without the parts that the text does not have."""
        node, found = self.root, []
        for part in loc:
            child = self.child(node, part)
            if child is not None:
                node = child
                found.append(part)
        return tuple(found)

    def place(self, loc: Sequence[str | int], *, key: bool = False, find: str = "") -> SourcePosition:
        """Return the position of the value at ``loc``, of its key, or of the text ``find`` inside the value."""
        if key and loc:
            parent = self.node(loc[:-1])
            if isinstance(parent, MappingNode) and str(loc[-1]) in self._pairs(parent):
                return self.place_of(self._pairs(parent)[str(loc[-1])][0])
        node = self.node(loc)
        return (self._place_inside(node, find) if find else None) or self.place_of(node)

    def style(self, loc: Sequence[str | int]) -> str:
        """Return the style of a scalar: '' (plain), ``'``, ``"``, ``|`` or ``>``."""
        node = self.node(loc)
        return (node.style or "") if isinstance(node, ScalarNode) else ""

    def place_of(self, node: Node) -> SourcePosition:
        """Return the position where a node starts."""
        mark = node.start_mark
        return self._place(mark.name, mark.line, mark.column)

    def data(self) -> Any:
        """Return plain data; add duplicate keys and other mistakes to ``problems``. Raises UserError at the limits."""
        return _Construction(self).value(self.root, ())

    def _place(self, name: str, line: int, column: int) -> SourcePosition:
        lines = self.lines.get(name, [])
        return SourcePosition(name, line + 1, column + 1, lines[line] if line < len(lines) else "")

    def _place_inside(self, node: Node, find: str) -> SourcePosition | None:
        """Return the first place of ``find`` in the text of a node; escaped and folded text is not found."""
        start, end = node.start_mark, node.end_mark
        lines = self.lines.get(start.name, [])
        for line in range(start.line, min(end.line + 1, len(lines))):
            column = lines[line].find(find, start.column if line == start.line else 0)
            if column >= 0 and (line, column) < (end.line, end.column):
                return self._place(start.name, line, column)
        return None

    def _pairs(self, node: MappingNode) -> dict[str, tuple[Node, Node]]:
        """Return the key and value nodes of a map by key; for a repeated key, the first pair."""
        found = self._index.get(id(node))
        if found is None:
            scalars = [(key, value) for key, value in node.value if isinstance(key, ScalarNode)]
            found = {key.value: (key, value) for key, value in reversed(scalars)}
            self._index[id(node)] = found
        return found


class _Construction:
    """Converts nodes to data and counts them: aliases are references, so nine lines can expand to a billion values."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.left = MAX_NODES

    def value(self, node: Node, loc: Loc) -> Any:
        self.left -= 1
        if self.left < 0:
            message = f"aliases expand to more than {MAX_NODES:,} values"
            raise _refuse(self.document, node, message, "use fewer `*aliases`")
        if len(loc) > MAX_DEPTH:
            # Nesting is checked while parsing, so only an alias that contains itself gets here.
            message = f"more than {MAX_DEPTH} levels of nesting after aliases are expanded"
            raise _refuse(self.document, node, message, "remove the alias that contains itself")
        if isinstance(node, MappingNode):
            return self.mapping(node, loc)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*loc, index)) for index, item in enumerate(node.value)]
        return self.scalar(node, loc)

    def mapping(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.complain(key, loc, "a key must be a plain word", yaml_hints.for_key(key))
            elif key.value == "<<":
                self.complain(key, loc, "merge keys are not supported", "repeat the keys, or use `extends`")
            elif key.value in first:
                line = first[key.value].start_mark.line + 1
                self.complain(
                    key, loc, f"duplicate key {key.value!r}, first written in line {line}", "keep one of the two"
                )
            else:
                first[key.value] = key
                result[key.value] = self.value(value, (*loc, key.value))
        return result

    def scalar(self, node: Node, loc: Loc) -> Any:
        text: str = node.value
        kind = node.tag.rpartition(":")[2]
        if kind == "bool":
            return text if _is_for_programs(loc) else text.lower() == "true"
        if kind == "null":
            return None
        if kind == "int":
            return _whole(text)
        if kind == "float":
            return real(text)
        if kind != "str":
            hint = "remove the tag, or quote strings that start with `!`"
            self.complain(node, loc, f"the tag {node.tag!r} is not supported", hint)
        return text

    def complain(self, node: Node, loc: Loc, message: str, hint: str) -> None:
        self.document.problems.append(Problem(message, hint, self.document.place_of(node)))
        self.document.wrong.append(loc)


def _is_for_programs(loc: Loc) -> bool:
    """Return whether a value is passed to a program as it is written: an item of ``argv``, a variable of ``env``."""
    parent = loc[-2:-1]
    return loc[:1] != ("params",) and loc[-3:-2] != ("matrix",) and parent in (("argv",), ("env",))


def _whole(text: str) -> int | str:
    """Return an int; a number of more than 300 characters stays a string, since no key accepts one that large."""
    if len(text) > 300:
        return text
    return whole(text)


def _refuse(document: Document, node: Node, message: str, hint: str) -> UserError:
    return UserError((Problem(message, hint, document.place_of(node)),))


def replace_file(path: Path, shown: str, before: bytes, after: bytes, remedy: str) -> None:
    """Replace the contents of a file atomically and keep its mode.

    Raises UserError, with ``remedy`` as its hint, if the file cannot be written, or differs from ``before``.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.read_bytes() != before:
            raise UserError.of(f"{shown} was changed by another program, so it is not written", remedy)
        mode = stat.S_IMODE(path.stat().st_mode)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        raise UserError.of(f"{shown} cannot be written: {error.strerror}", remedy) from error
    finally:
        fresh.unlink(missing_ok=True)
