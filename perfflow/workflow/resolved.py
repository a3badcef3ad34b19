"""Show a workflow after ``extends`` is resolved: as YAML, and the file and line of each value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.workflow.document import Document, Loc

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that are not strings in YAML 1.2, or in YAML 1.1, which other programs use."""
DisplayName = Callable[[str], str]
"""Converts the name of a file to the name that is shown."""


def origins(document: Document, shown: DisplayName) -> dict[str, str]:
    """Return the ``FILE:LINE`` of each value by its path in the data, such as ``stages.baseline.0.run``."""
    return {".".join(map(str, loc)): _origin(document, node, shown) for loc, node in _leaves(document.root, ())}


def lines(document: Document, shown: DisplayName) -> Iterator[str]:
    """Yield the lines of an equivalent YAML file without ``extends``; a comment gives the origin of each value."""
    yield from _Text(document, shown).lines()


def _leaves(node: Node, loc: Loc) -> Iterator[tuple[Loc, Node]]:
    if isinstance(node, MappingNode) and node.value:
        for key, value in node.value:
            if loc or key.value != "extends":
                yield from _leaves(value, (*loc, key.value))
    elif isinstance(node, SequenceNode) and node.value:
        for index, item in enumerate(node.value):
            yield from _leaves(item, (*loc, index))
    else:
        yield loc, node


def _origin(document: Document, node: Node, shown: DisplayName) -> str:
    place = document.place_of(node)
    return f"{shown(place.file)}:{place.line}"


class _Text:
    def __init__(self, document: Document, shown: DisplayName) -> None:
        self._document, self._shown = document, shown

    def lines(self) -> Iterator[str]:
        root = self._document.root
        pairs = [pair for pair in root.value if pair[0].value != "extends"]
        yield from self._map(MappingNode(root.tag, pairs, root.start_mark, root.end_mark), "")

    def _map(self, node: MappingNode, pad: str) -> Iterator[str]:
        for key, value in node.value:
            name = _scalar(key)
            if isinstance(value, ScalarNode):
                yield from self._value(f"{pad}{name}:", value, pad)
            elif not value.value:
                yield f"{pad}{name}: {'{}' if isinstance(value, MappingNode) else '[]'}{self._comment(value)}"
            else:
                yield f"{pad}{name}:"
                yield from self._inner(value, f"{pad}  ")

    def _inner(self, node: Node, pad: str) -> Iterator[str]:
        if isinstance(node, MappingNode):
            yield from self._map(node, pad)
            return
        for item in node.value:
            if isinstance(item, ScalarNode):
                yield from self._value(f"{pad}-", item, pad)
            elif not item.value:
                yield f"{pad}- {'{}' if isinstance(item, MappingNode) else '[]'}{self._comment(item)}"
            else:
                first, *rest = self._inner(item, f"{pad}  ")
                yield f"{pad}- {first[len(pad) + 2 :]}"
                yield from rest

    def _value(self, start: str, node: ScalarNode, pad: str) -> Iterator[str]:
        """Yield one line, or a block scalar for a string of several lines."""
        text = str(node.value)
        body = text.rstrip("\n")
        block = "\n" in body and not body.startswith((" ", "\n")) and not body.endswith(" ")
        if not (block and all(line.isprintable() for line in body.split("\n"))):
            yield f"{start} {_scalar(node)}{self._comment(node)}"
            return
        ending = len(text) - len(body)
        yield f"{start} |{'-' if not ending else '' if ending == 1 else '+'}{self._comment(node)}"
        yield from (f"{pad}  {line}".rstrip() if not line else f"{pad}  {line}" for line in body.split("\n"))
        yield from [""] * max(0, ending - 1)

    def _comment(self, node: Node) -> str:
        return f"  # {_origin(self._document, node, self._shown)}"


def _scalar(node: Node) -> str:
    """Return a scalar on one line that keeps its type; JSON strings are valid YAML."""
    text = str(node.value)
    if not node.tag.endswith(":str"):
        return text if text and not node.tag.endswith(":null") else "null"
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    return text if is_plain else json.dumps(text, ensure_ascii=not text.isprintable())
