"""Change the text of a workflow: replace, add or wrap keys, and leave every other character as it is.

ruamel.yaml gives the position of each value. The new text is parsed again, and its data must be exactly the intended
data.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.lazy import dataclass, lazy_pattern
from perfflow.workflow.document import Loc
from perfflow.workflow.yaml_scalar import scalar
from perfflow.workflow.yaml_text import read_text

_ALIAS = lazy_pattern(r"\s*:\s+\*[^\s,\[\]{}]+")
_MARK = "\ufeff"
_ROUNDS = 100
"""Most passes over the text; nested changes need two."""


@dataclass(frozen=True)
class Put:
    """Put ``values`` into the map at ``loc``, in place of ``instead_of``, else after its first ``after`` keys."""

    loc: Loc
    values: Mapping[str, Any]
    said: str
    instead_of: str = ""
    after: int = 1


@dataclass(frozen=True)
class Wrap:
    """Replace the list at ``loc`` by a map with ``values``, followed by ``key`` with the list as its value."""

    loc: Loc
    values: Mapping[str, Any]
    said: str
    key: str = "steps"


Change = Put | Wrap
Rule = Callable[[dict[str, Any]], Iterable[Change]]
"""Returns the changes for the data of a file; for data with these changes it returns none."""
Edit = tuple[int, int, str]
"""Start and end index in the text, and the replacement."""


def rewritten(text: str, name: str, rules: Iterable[Rule]) -> tuple[str, list[str]]:
    """Return the text of the file ``name`` after all changes, and the descriptions of the changes.

    Raises UserError if a change would also alter other values, for example through an anchor.
    """
    mark, body = (_MARK, text.removeprefix(_MARK)) if text.startswith(_MARK) else ("", text)
    rules, said = list(rules), list[str]()
    for _ in range(_ROUNDS):
        data = read_text(body, name).data()
        changes = [change for rule in rules for change in rule(data)]
        if not changes:
            return mark + body, list(dict.fromkeys(said))
        body, done = _Text(body).changed(changes, data, name)
        said += [change.said for change in done]
    raise _by_hand(name, said)


def _by_hand(name: str, said: Iterable[str]) -> UserError:
    hint = f"do it by hand: {'; '.join(dict.fromkeys(said))}"
    return UserError.of(f"{name} cannot be rewritten without changing other values", hint)


@dataclass
class _Text:
    """A YAML text with the positions of its values."""

    text: str
    _root: Any = field(init=False)
    _end: str = field(init=False)

    def __post_init__(self) -> None:
        from ruamel.yaml import YAML

        self._root = YAML().compose(self.text)
        self._end = "\r\n" if "\r\n" in self.text else "\n"

    def changed(self, changes: Iterable[Change], data: Any, name: str) -> tuple[str, list[Change]]:
        """Apply the changes that do not overlap; return the new text and these changes. Raises UserError."""
        edits: dict[Edit, None] = {}
        done: list[Change] = []
        wanted = copy.deepcopy(data)
        for change in changes:
            own = [edit for edit in self._edits(change) if edit not in edits]
            if any(_overlap(edit, other) for edit in own for other in edits):
                continue
            edits |= dict.fromkeys(own)
            done.append(change)
            _apply(change, wanted)
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        try:
            same = read_text(text, name).data() == wanted
        except UserError:
            same = False
        if not same:
            raise _by_hand(name, (change.said for change in changes))
        return text, done

    def _edits(self, change: Change) -> Iterator[Edit]:
        node = self._node(change.loc)
        if isinstance(change, Wrap):
            return self._wrap(node, change)
        return self._put(node, change)

    def _node(self, loc: Loc) -> Any:
        node = self._root
        for part in loc:
            node = node.value[part] if isinstance(part, int) else _pair(node, part)[1]
        return node

    def _put(self, node: Any, change: Put) -> Iterator[Edit]:
        # The mark of a map with an anchor is at the anchor, so take the column of the first key.
        apart = ", " if node.flow_style else f"{self._end}{' ' * node.value[0][0].start_mark.column}"
        if change.instead_of:
            key, value = _pair(node, change.instead_of)
            old = self.text[value.start_mark.index : value.end_mark.index]
            yield key.start_mark.index, self._end_of(key, value), apart.join(_pairs_text(change.values, old))
            return
        texts = _pairs_text(change.values)
        if change.after < len(node.value):
            start = node.value[change.after][0].start_mark.index
            yield start, start, "".join(text + apart for text in texts)
        else:
            last = self._end_of(*node.value[-1])
            at = last if node.flow_style else self._end_of_line(last)
            yield at, at, "".join(apart + text for text in texts)

    def _wrap(self, node: Any, change: Wrap) -> Iterator[Edit]:
        texts = _pairs_text(change.values)
        start, end = node.start_mark.index, node.end_mark.index
        if node.flow_style:
            yield start, start, f"{{{', '.join(texts)}, {change.key}: "
            yield end, end, "}"
            return
        dash = self.text.rfind("-", 0, node.value[0].start_mark.index)
        line = self.text.rfind("\n", 0, dash) + 1
        column = dash - line
        head = [*texts, f"{change.key}:"]
        if column > self._node(change.loc[:-1]).start_mark.column:
            yield line, line, "".join(f"{' ' * column}{text}{self._end}" for text in head)
            return
        # If the list is in the column of its key, its lines are indented to make room for the new keys. Its end mark is
        # at the next token.
        below = self.text.rfind("\n", 0, end) + 1
        end = below if not self.text[below:end].strip() else end
        moved = re.sub(r"(?m)^(?=[^\r\n])", "  ", self.text[line:end])
        yield line, end, "".join(f"{' ' * (column + 2)}{text}{self._end}" for text in head) + moved

    def _end_of(self, key: Any, value: Any) -> int:
        """Return the index at which a pair ends; the value node of an alias is at its anchor, so look for the alias."""
        alias = _ALIAS.match(self.text, key.end_mark.index)
        return alias.end() if alias else int(value.end_mark.index)

    def _end_of_line(self, index: int) -> int:
        found = re.compile("[^\r\n]*").match(self.text, index)
        return found.end() if found else index


def _overlap(one: Edit, other: Edit) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _pair(node: Any, key: str) -> tuple[Any, Any]:
    return next((own, value) for own, value in node.value if str(own.value) == key)


def _pairs_text(values: Mapping[str, Any], old: str = "") -> list[str]:
    return [f"{name}: {_value_text(value, old)}" for name, value in values.items()]


def _value_text(value: Any, old: str) -> str:
    """Return a value as YAML: as it was written if unchanged, without quotes if possible."""
    if _reads_as(old, value):
        return old
    if isinstance(value, str) and old[:1] not in ("'", '"') and _reads_as(value, value):
        return value
    return scalar(value, old)


def _reads_as(text: str, value: Any) -> bool:
    """Return whether a text is parsed as ``value``, also inside brackets."""
    try:
        return bool(read_text(f"{{k: {text}}}", "").data() == {"k": value})
    except UserError:
        return False


def _apply(change: Change, data: Any) -> None:
    """Apply a change to the data."""
    parent: Any = None
    place: Any = None
    here = data
    for part in change.loc:
        parent, place, here = here, part, here[part]
    if isinstance(change, Wrap):
        parent[place] = {**change.values, change.key: here}
        return
    here.pop(change.instead_of, None)
    here.update(change.values)
