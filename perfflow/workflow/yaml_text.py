"""YAML text -> nodes that know where they stand -> plain data.

PyYAML's C loader with the scalars of the YAML 1.2 core schema (no ``on``/``no`` booleans, no sexagesimals, no dates),
duplicate keys refused, no merge keys, no tags, and limits that keep a hostile file from taking the machine with it.
Positions come from the nodes' marks, so every later complaint can point at the text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.errors import Place, Problem, UserError
from perfflow.workflow import yaml_hints

MAX_BYTES = 2**20
MAX_DEPTH = 40
MAX_NODES = 200_000

Loc = tuple[str | int, ...]
"""Where a value stands in the data: keys and indices from the root."""


class Loader(yaml.CSafeLoader):
    """CSafeLoader with the YAML 1.2 core schema; only its composer is used."""


_CORE_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)
Loader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in _CORE_SCALARS:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_pattern})$"), list(_first))


class _NamedText(io.StringIO):
    """Text whose marks carry the file's name."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass
class Document:
    """One or several merged YAML files: the root node, the files' lines, and what was wrong on the way."""

    file: str
    root: Node
    lines: dict[str, list[str]]
    problems: list[Problem] = field(default_factory=list)

    def node(self, loc: Sequence[str | int]) -> Node:
        """Return the deepest node on the way to ``loc``; steps that the text does not have are passed over.

        A list may stand where data has ``{steps: [...]}``, and a scalar where it has ``{default: ...}``.
        """
        node = self.root
        for part in loc:
            node = _child(node, part) or node
        return node

    def place(self, loc: Sequence[str | int], *, key: bool = False) -> Place:
        """Return the position of the value at ``loc``, or of its key."""
        if key and loc:
            parent = self.node(loc[:-1])
            if isinstance(parent, MappingNode):
                for key_node, _ in parent.value:
                    if key_node.value == str(loc[-1]):
                        return self.place_of(key_node)
        return self.place_of(self.node(loc))

    def style(self, loc: Sequence[str | int]) -> str:
        """Return how a scalar was written: '' plain, ``'``, ``"``, ``|`` or ``>``."""
        node = self.node(loc)
        return (node.style or "") if isinstance(node, ScalarNode) else ""

    def place_of(self, node: Node) -> Place:
        """Return the position where a node starts."""
        mark = node.start_mark
        lines = self.lines.get(mark.name, [])
        text = lines[mark.line] if mark.line < len(lines) else ""
        return Place(mark.name, mark.line + 1, mark.column + 1, text)

    def data(self) -> Any:
        """Return plain data; duplicate keys and the like are added to ``problems``."""
        return _Construction(self).value(self.root, 0)


def _child(node: Node, part: str | int) -> Node | None:
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        found: Node = node.value[part]
        return found
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == str(part)), None)
    return None


class _Construction:
    """Turns nodes into data, counting them: an alias is a reference, and nine lines can make a billion leaves."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.left = MAX_NODES

    def value(self, node: Node, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _refuse(self.document, node, "aliases expand to more than 200,000 values", "write fewer `*aliases`")
        if depth > MAX_DEPTH:
            # Unreachable through nesting, which is checked while parsing; an alias that holds itself gets here.
            raise _refuse(self.document, node, "the values are nested too deeply", "an alias may hold itself")
        if isinstance(node, MappingNode):
            return self.mapping(node, depth)
        if isinstance(node, SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self.scalar(node)

    def mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[Hashable, Node] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.complain(key, "a key must be a plain word", yaml_hints.for_key(value))
                continue
            if key.value == "<<":
                self.complain(key, "merge keys are not supported", "repeat the keys, or use `extends`")
            elif key.value in first:
                line = first[key.value].start_mark.line + 1
                self.complain(key, f"duplicate key {key.value!r}, first written in line {line}", "keep one of the two")
            else:
                first[key.value] = key
                result[key.value] = self.value(value, depth + 1)
        return result

    def scalar(self, node: Node) -> Any:
        text = node.value
        kind = node.tag.rpartition(":")[2]
        if kind == "bool":
            return text.lower() == "true"
        if kind == "null":
            return None
        if kind == "int":
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text) if len(text) < 300 else text
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if kind != "str":
            self.complain(
                node, f"the tag {node.tag!r} is not supported", "remove the tag, or quote a text that starts with `!`"
            )
        return text

    def complain(self, node: Node, message: str, hint: str = "") -> None:
        self.document.problems.append(Problem(message, hint, self.document.place_of(node)))


def _refuse(document: Document, node: Node, message: str, hint: str) -> UserError:
    return UserError((Problem(message, hint, document.place_of(node)),))


def read_file(path: Path) -> Document:
    """Read one YAML file into nodes. Raises UserError when it cannot be read or is not YAML."""
    name = str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError((_unreadable(path, error),)) from error
    if len(raw) > MAX_BYTES:
        raise UserError.of(
            f"{name}: the file is larger than 1 MiB", "a workflow is a short text; is this the right file?"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = "a workflow is UTF-8 text; is this the right file?"
        raise UserError.of(f"{name}: not a text file (byte {error.start} is not UTF-8)", hint) from error
    return read_text(text, name)


def _unreadable(path: Path, error: OSError) -> Problem:
    if path.is_dir():
        inside = sorted(item.name for item in path.glob("*.y*ml"))[:3]
        return Problem(f"{path} is a directory", f"name one of its files, such as {path / inside[0]}" if inside else "")
    if isinstance(error, FileNotFoundError):
        near = yaml_hints.nearest_file(path)
        return Problem(f"{path}: no such file", f"did you mean {near}?" if near else "check the path")
    return Problem(f"{path}: {error.strerror}", "check its permissions")


def read_text(text: str, name: str) -> Document:
    """Parse YAML text. After a syntax error just that is reported, since the rest of the file cannot be trusted."""
    lines = text.split("\n")
    try:
        _check_limits(text, name, lines)
        root = Loader(_NamedText(text, name)).get_single_node()
    except yaml.YAMLError as error:
        raise UserError((_syntax_problem(error, name, lines),)) from error
    if not isinstance(root, MappingNode):
        raise UserError.of(f"{name}: a workflow is a mapping of keys, starting with `perfflow: 1`")
    return Document(name, root, {name: lines})


def _check_limits(text: str, name: str, lines: list[str]) -> None:
    """Walk the parser's events first: its composer recurses, and deep nesting would overflow the C stack."""
    depth = 0
    for event in _events(text, name):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark = event.start_mark
                place = Place(name, mark.line + 1, mark.column + 1, lines[mark.line]) if mark else None
                raise UserError((Problem(f"more than {MAX_DEPTH} levels of nesting", "", place),))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _events(text: str, name: str) -> Iterator[yaml.Event]:
    loader = Loader(_NamedText(text, name))
    while (event := loader.get_event()) is not None:
        yield event
        if isinstance(event, yaml.StreamEndEvent):
            return


def _syntax_problem(error: yaml.YAMLError, name: str, lines: list[str]) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    message = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).strip()
    if mark is None:
        return Problem(f"{name}: {message}", "is this a workflow file?")
    hinted = yaml_hints.for_syntax_error(lines, mark.line)
    line, column = (hinted.line, hinted.column) if hinted else (mark.line, mark.column)
    text = lines[line] if line < len(lines) else ""
    place = Place(name, line + 1, column + 1, text)
    return Problem(hinted.message if hinted else f"YAML: {message}", hinted.hint if hinted else "", place)
