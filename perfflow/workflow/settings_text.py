"""Write settings into the text of a workflow: only their values change, every other character stays as it is.

ruamel.yaml gives the position of each value. Dumping the whole file with a library would lose line ends, widths or
columns that the author chose. So only the values are replaced, and the new text is parsed again as a check.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML

from perfflow.model.errors import Problem, SourcePosition, UserError
from perfflow.workflow.document import Loc
from perfflow.workflow.roles import CANDIDATES_STAGE
from perfflow.workflow.yaml_text import read_text, scalar

_ALIAS = re.compile(r"\s*:\s+(\*[^\s,\[\]{}]+)")
UNTOUCHED = ("setup", CANDIDATES_STAGE)
"""Stages whose steps never ran with the settings: setup runs once, in the user's tree."""
_MARK = "\ufeff"


@dataclass(frozen=True)
class Written:
    """One written value: the path of its key, its 1-based line, the old text ('' for a new value) and the new text."""

    key: str
    line: int
    old: str
    new: str


def with_settings(text: str, name: str, params: Mapping[str, Any], env: Mapping[str, str]) -> tuple[str, list[Written]]:
    """Set defaults of parameters and environment variables in the text of the file ``name``.

    Returns the new text and the written values. A variable is replaced everywhere the file sets it, or else added to
    the top-level ``env``. Raises UserError with the line if a value cannot be written without changing other values.
    """
    mark, body = (_MARK, text.removeprefix(_MARK)) if text.startswith(_MARK) else ("", text)
    draft = _Draft(body, name)
    for key, value in params.items():
        draft.set_param(key, value)
    new: dict[str, Any] = {}
    for key, value in env.items():
        places = list(draft.places_of(key))
        for loc, pair in places:
            draft.replace((*loc, key), pair, value)
        if not places:
            new[key] = value
    if new:
        draft.add_env(new)
    return mark + draft.finished(), sorted(draft.written, key=lambda item: item.line)


Pair = tuple[Any, Any]
"""Nodes of a key and its value, as composed by ruamel.yaml, which has no types for them."""


@dataclass
class _Draft:
    """The text, its nodes, and the edits collected so far as (start, end, new text)."""

    text: str
    name: str
    written: list[Written] = field(default_factory=list)
    _edits: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._data = read_text(self.text, self.name).data()
        self._wanted = copy.deepcopy(self._data)
        self._root = YAML().compose(self.text)
        self._events = list(YAML().parse(self.text))
        self._end_of_line = "\r\n" if "\r\n" in self.text else "\n"

    # -- positions

    def places_of(self, variable: str) -> Iterator[tuple[Loc, Pair]]:
        """Yield the places that set an environment variable for steps that build or measure."""
        for loc, env in self._environments():
            pair = _pairs(env).get(variable)
            if pair:
                yield loc, pair

    def _environments(self) -> Iterator[tuple[Loc, Any]]:
        top = _pairs(self._root)
        yield from _own_env((), self._root)
        if "defaults" in top:
            yield from _own_env(("defaults",), top["defaults"][1])
        for name, (_, stage) in _pairs(top["stages"][1] if "stages" in top else None).items():
            if name in UNTOUCHED:
                continue
            yield from _own_env(("stages", name), stage)
            loc: Loc = ("stages", name) if stage.id == "sequence" else ("stages", name, "steps")
            steps = stage if stage.id == "sequence" else _pairs(stage).get("steps", (None, None))[1]
            for number, step in enumerate(steps.value if steps is not None and steps.id == "sequence" else ()):
                yield from _own_env((*loc, number), step)

    def _line_of(self, index: int) -> int:
        return len(re.findall("\r\n|\r|\n", self.text[:index])) + 1

    def refuse(self, index: int, key: str, why: str, value: Any) -> UserError:
        """Return the error for a value that cannot be written, with its place and the text to write by hand."""
        line = self._line_of(index)
        column = index - max(self.text.rfind("\n", 0, index), self.text.rfind("\r", 0, index))
        shown = re.split("\r\n|\r|\n", self.text)[line - 1]
        hint = f"write it by hand: {key}: {json.dumps(value, ensure_ascii=False)}"
        return UserError(
            (Problem(f"{key} cannot be set: {why}", hint, SourcePosition(self.name, line, column, shown)),)
        )

    # -- edits

    def set_param(self, name: str, value: Any) -> None:
        """Set the default of a parameter, in its short or its long form."""
        pair = _pairs(_pairs(self._root).get("params", (None, None))[1]).get(name)
        if pair is None:
            raise self.refuse(0, f"params.{name}", "the file has no such parameter", value)
        key, node = pair
        if node.id != "mapping" or self._alias(key):
            self.replace(("params", name), pair, value)
        elif "default" in _pairs(node):
            self.replace(("params", name, "default"), _pairs(node)["default"], value)
        else:
            self._insert(("params", name), node, {"default": value})

    def replace(self, loc: Loc, pair: Pair, value: Any) -> None:
        """Replace a scalar by another one in the same quotes."""
        key, node = pair
        alias = self._alias(key)
        if node.id != "scalar":
            raise self.refuse(key.start_mark.index, _shown(loc), "it is a list or a map", value)
        start, end = alias or (node.start_mark.index, node.end_mark.index)
        old = self.text[start:end]
        new = scalar(value, old)
        if not alias and node.anchor and old.startswith("&"):
            new = self._without_anchor(loc, node, value, old) or f"&{node.anchor} {new}"
        if start == end:
            start = end = self.text.index(":", key.end_mark.index) + 1
            new = f" {new}"
        elif not alias and node.style in ("|", ">"):
            new += self._end_of_line if old.endswith(("\n", "\r")) else ""
        if old != new:
            self._edits.append((start, end, new))
            self._note(loc, key.start_mark.index, old, new, value)

    def _without_anchor(self, loc: Loc, node: Any, value: Any, old: str) -> str:
        """Move the anchor and its old value to the first alias, so that the aliases keep their value.

        Returns the new text, or '' if no alias uses the anchor.
        """
        aliases = [
            event
            for event in self._events
            if type(event).__name__ == "AliasEvent"
            and event.anchor == node.anchor
            and event.start_mark.index > node.start_mark.index
        ]
        if not aliases:
            return ""
        if node.style in ("|", ">"):
            raise self.refuse(node.start_mark.index, _shown(loc), "other values use its anchor", value)
        first = aliases[0]
        self._edits.append((first.start_mark.index, first.end_mark.index, old))
        return scalar(value, old.partition(" ")[2].lstrip())

    def _alias(self, key: Any) -> tuple[int, int] | None:
        """Return the span of the alias that is the value of a key, or None if the value is no alias."""
        found = _ALIAS.match(self.text, key.end_mark.index)
        return found.span(1) if found else None

    def add_env(self, values: Mapping[str, str]) -> None:
        """Set variables in the top-level ``env``, which is created before ``stages`` if it does not exist."""
        top = _pairs(self._root)
        if "env" in top:
            key, env = top["env"]
            if env.id != "mapping" or self._alias(key):
                name, value = next(iter(values.items()))
                raise self.refuse(key.start_mark.index, f"env.{name}", "`env` is shared by an anchor", value)
            self._insert(("env",), env, values)
        elif self._root.flow_style:
            inner = ", ".join(f"{name}: {scalar(value)}" for name, value in values.items())
            self._put(self._root.end_mark.index - 1, f", env: {{{inner}}}", ("env",), values)
        else:
            indent, step = " " * self._root.start_mark.column, " " * self._indentation()
            index = self._before("stages")
            lines = [f"{indent}env:", *(f"{indent}{step}{name}: {scalar(value)}" for name, value in values.items())]
            ends = index == 0 or self.text[index - 1] in "\r\n"
            block = ("" if ends else self._end_of_line) + "".join(f"{line}{self._end_of_line}" for line in lines)
            spaced = re.search(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)\Z", self.text[:index])
            self._put(index, block + (self._end_of_line if spaced else ""), ("env",), values)

    def _indentation(self) -> int:
        """Return the number of columns by which the file indents its maps."""
        nested = [value for _, value in _pairs(self._root).values() if value.id == "mapping" and not value.flow_style]
        columns = {node.start_mark.column - self._root.start_mark.column for node in nested if node.value}
        return min((column for column in columns if column > 0), default=2)

    def _before(self, name: str) -> int:
        """Return the index at which to insert a block before a top-level key and the comments directly above it."""
        pair = _pairs(self._root).get(name)
        if pair is None:
            return len(self.text)
        index = pair[0].start_mark.index - pair[0].start_mark.column
        while above := re.search(r"(?:\A|(?<=[\r\n]))[ \t]*#[^\r\n]*(?:\r\n|\r|\n)\Z", self.text[:index]):
            index = above.start()
        return int(index)

    def _insert(self, loc: Loc, node: Any, values: Mapping[str, Any]) -> None:
        """Add pairs at the end of a map, or before its first key if its last value is not a scalar."""
        texts = [f"{name}: {scalar(value)}" for name, value in values.items()]
        if node.flow_style:
            last = self._end_of(node.value[-1]) if node.value else node.start_mark.index + 1
            self._put(last, ("" if not node.value else ", ") + ", ".join(texts), loc, values)
            return
        indent, end = " " * node.start_mark.column, self._end_of_line
        if node.value[-1][1].id != "scalar":
            first = node.start_mark.index - node.start_mark.column
            self._put(first, "".join(f"{indent}{text}{end}" for text in texts), loc, values)
            return
        last = self._end_of(node.value[-1])
        if self.text[last - 1] in "\r\n":
            self._put(last, "".join(f"{indent}{text}{end}" for text in texts), loc, values)
        else:
            rest = re.compile("[^\r\n]*").match(self.text, last)
            index = rest.end() if rest else last
            self._put(index, "".join(f"{end}{indent}{text}" for text in texts), loc, values)

    def _end_of(self, pair: Pair) -> int:
        alias = self._alias(pair[0])
        return alias[1] if alias else max(int(pair[0].end_mark.index), int(pair[1].end_mark.index))

    def _put(self, index: int, text: str, loc: Loc, values: Mapping[str, Any]) -> None:
        self._edits.append((index, index, text))
        for name, value in values.items():
            self._note((*loc, name), index, "", scalar(value), value)

    def _note(self, loc: Loc, index: int, old: str, new: str, value: Any) -> None:
        self.written.append(Written(_shown(loc), self._line_of(index), old.rstrip(), new.rstrip()))
        parent = self._wanted
        for part in loc[:-1]:
            parent = parent.setdefault(part, {}) if isinstance(parent, dict) else parent[part]
        parent[loc[-1]] = value

    def finished(self) -> str:
        """Return the text with all edits. Raises UserError if other values would change."""
        text = self.text
        for start, end, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[end:]
        try:
            same = read_text(text, self.name).data() == self._wanted
        except UserError:
            same = False
        if not same:
            shown = "; ".join(f"{item.key}: {item.new}" for item in self.written)
            raise UserError.of(
                f"{self.name}: the settings cannot be written without changing other values",
                f"check anchors and aliases, or write them by hand: {shown}",
            )
        return text


def _own_env(loc: Loc, node: Any) -> Iterator[tuple[Loc, Any]]:
    env = _pairs(node).get("env")
    if env:
        yield (*loc, "env"), env[1]


def _pairs(node: Any) -> dict[str, Pair]:
    if node is None or node.id != "mapping":
        return {}
    return {str(key.value): (key, value) for key, value in node.value}


def _shown(loc: Loc) -> str:
    return ".".join(map(str, loc))
