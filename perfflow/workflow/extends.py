"""Merge a workflow with the workflows that it ``extends``: maps by key, the steps of a stage by ``id``.

If there are several parents, later ones win. A step ``ID: null`` removes an inherited step, and a stage whose value is
null removes an inherited stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.model.errors import Problem, Severity, SourcePosition, UserError
from perfflow.model.similar import nearest
from perfflow.workflow.document import MAX_DEPTH, Document, Loc
from perfflow.workflow.model import DOING, STAGES
from perfflow.workflow.yaml_text import Readable, read_file, read_text

MAX_EXTENDS = 10
"""Most files in one chain of ``extends``."""
MAX_FILES = 50
"""Most files of one workflow, including all parents; a file that is extended twice counts twice."""
Resolve = Callable[[str, Path], Path]
"""Converts a value of ``extends`` and the folder of its file to a path."""
Pair = tuple[Node, Node]
_OWN = frozenset({"perfflow", "extends", "name", "component", "description"})
"""Keys about the file itself; every parent has its own values, so differences are no conflict."""
_KEYS = {*DOING, "id", "name", "with", "env", "needs", "if"}
"""Keys of a step; a step with only one of these and no value is probably unfinished, not a removal by id."""
_MOST_COMPARED = 10_000


@dataclass
class _Clash:
    """Two parents with different values for one key; ``loc`` contains ids of steps instead of indices."""

    loc: Loc
    earlier: Node
    later: Node


@dataclass
class _Reading:
    """State shared by all files of one workflow; ``left`` is the number of files that may still be read."""

    resolve: Resolve
    readable: Readable
    left: int = field(default=MAX_FILES)


def read_with_parents(
    path: Path, resolve: Resolve, readable: Readable | None = None, text: str | None = None
) -> Document:
    """Read a file and the files it extends, and return the merged document.

    readable: folders that may be read; by default the folder of the file.
    text: content to use instead of the file's.
    Raises UserError if a file cannot be read or parsed.
    """
    document = _read(path, _Reading(resolve, readable or Readable.of(path.parent)), (), text)
    _drop_idle_removals(document)
    return document


def named(document: Document) -> list[tuple[str, SourcePosition]]:
    """Return the values under ``extends`` of one file, in order, each with its place."""
    node = document.child(document.root, "extends")
    if isinstance(node, ScalarNode):
        return [(node.value, document.place_of(node))]
    items = node.value if isinstance(node, SequenceNode) else []
    return [(item.value, document.place_of(item)) for item in items if isinstance(item, ScalarNode)]


def _read(path: Path, reading: _Reading, seen: tuple[str, ...], text: str | None = None) -> Document:
    document = read_file(path, reading.readable) if text is None else read_text(text, str(path))
    seen = (*seen, os.path.realpath(path))
    parents = [_parent(name, place, path.parent, reading, seen) for name, place in named(document)]
    if not parents:
        return document
    clashes: list[_Clash] = []
    base = parents[0].root
    for parent in parents[1:]:
        base = _merge(base, parent.root, (), clashes)
    lines = {name: text for each in (*parents, document) for name, text in each.lines.items()}
    merged = Document(str(path), merge(base, document.root), lines)
    merged.problems += [problem for parent in parents for problem in parent.problems]
    merged.problems += [_conflict_warning(merged, clash) for clash in clashes if not _settles(document.root, clash.loc)]
    return merged


def _parent(name: str, place: SourcePosition, folder: Path, reading: _Reading, seen: tuple[str, ...]) -> Document:
    reading.left -= 1
    if reading.left < 0:
        message = f"the workflow extends more than {MAX_FILES} files"
        raise UserError((Problem(message, "extend fewer files", place),))
    try:
        path = reading.resolve(name, folder)
        _refuse_circle(path, seen, place)
        return _read(path, reading, seen)
    except UserError as error:
        # Report a problem without a place, such as a missing file, where the file is named.
        problems = (problem if problem.place else replace(problem, place=place) for problem in error.problems)
        raise UserError(tuple(problems), error.exit) from error


def _refuse_circle(parent: Path, seen: tuple[str, ...], place: SourcePosition) -> None:
    if "\0" in str(parent):
        raise UserError((Problem("the path contains a NUL character", "remove it", place),))
    real = os.path.realpath(parent)
    if real in seen or len(seen) >= MAX_EXTENDS:
        chain = " -> ".join(Path(item).name for item in (*seen, real))
        message = "circular `extends`" if real in seen else f"more than {MAX_EXTENDS} files extend each other"
        hint = "extend a file that does not extend this one" if real in seen else "use a shorter chain"
        raise UserError((Problem(f"{message}: {chain}", hint, place),))


def _conflict_warning(document: Document, clash: _Clash) -> Problem:
    """Return the warning that two parents have different values for a key that the workflow itself does not set."""
    earlier, later = document.place_of(clash.earlier), document.place_of(clash.later)
    message = f"`{'.'.join(map(str, clash.loc))}` differs from {earlier.file}:{earlier.line}, which is also extended"
    hint = f"this value is used, since its file is named later; to choose another, set it in {document.file}"
    return Problem(message, hint, later, Severity.WARNING)


def _settles(node: Node, loc: Sequence[str | int]) -> bool:
    """Return whether a file itself sets a value at ``loc``, or removes it."""
    for number, part in enumerate(loc):
        if isinstance(node, MappingNode) and str(part) not in _keys(node) and "steps" in _keys(node):
            node = _keys(node)["steps"]
        if isinstance(node, SequenceNode):
            child = next((item for item in node.value if part in (_id_of(item), removed_by(item))), None)
        elif isinstance(node, MappingNode):
            child = _keys(node).get(str(part))
        else:  # a scalar replaces the whole value
            return number > 0
        if child is None or removed_by(child):
            return child is not None
        node = child
    return True


def _drop_idle_removals(document: Document) -> None:
    """Report each ``ID: null`` that matches no inherited step, and leave it out."""
    for name, stage in list(_keys(_keys(document.root).get("stages")).items()):
        steps = _keys(stage).get("steps", stage)
        for item in list(steps.value) if isinstance(steps, SequenceNode) else ():
            unknown = removed_by(item)
            if unknown and unknown not in _KEYS:
                message = f"cannot remove `{unknown}`: stage `{name}` inherits no such step"
                text = _inherited(document, name, steps, unknown)
                document.problems.append(Problem(message, text, document.place_of(item)))
                steps.value.remove(item)


def _inherited(document: Document, stage: str, steps: Node, unknown: str) -> str:
    """Return the hint for a removal whose id matches no inherited step."""
    nameless = {f"{stage}-{number}": item for number, item in enumerate(steps.value, 1) if not _id_of(item)}
    if step := nameless.get(unknown):
        place = document.place_of(step)
        return f"the step in {place.file}:{place.line} has no `id`: give it one there, and use it here"
    near = nearest(unknown, [_id_of(other) for other in steps.value if _id_of(other)])
    return f"did you mean `{near}`?" if near else "`ID: null` removes an inherited step by its id"


def removed_by(item: Node) -> str:
    """Return the id of the step that an item of a stage removes, or '' if the item is a step."""
    if isinstance(item, MappingNode) and len(item.value) == 1:
        ((key, value),) = item.value
        return _text(key) if _is_null(value) else ""
    return ""


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag.endswith(":null")


def merge(parent: Node, child: Node) -> Node:
    """Merge two nodes: maps by key, the steps of a stage by ``id``; other values of the child replace the parent's."""
    return _merge(parent, child, (), None)


def _merge(parent: Node, child: Node, loc: Loc, clashes: list[_Clash] | None) -> Node:
    if len(loc) > MAX_DEPTH:  # an alias that contains itself
        return child
    if _is_stage(loc) and type(parent) is not type(child):
        parent, child = _as_map(parent, "steps"), _as_map(child, "steps")
    if len(loc) == 2 and loc[0] == "params" and type(parent) is not type(child):
        # A plain value for a parent's parameter replaces its default only: type, enum and help stay.
        parent, child = _as_map(parent, "default"), _as_map(child, "default")
    if isinstance(parent, MappingNode) and isinstance(child, MappingNode):
        return _merge_maps(parent, child, loc, clashes)
    holds_steps = _is_stage(loc) or (_is_stage(loc[:-1]) and loc[-1] == "steps")
    if holds_steps and isinstance(parent, SequenceNode) and isinstance(child, SequenceNode):
        return _merge_steps(parent, child, loc, clashes)
    if clashes is not None and loc[0] not in _OWN and not _same(parent, child):
        clashes.append(_Clash(_without_steps(loc), parent, child))
    return child


def _without_steps(loc: Loc) -> Loc:
    return (*loc[:2], *loc[3:]) if loc[2:3] == ("steps",) else loc


def _same(one: Node, other: Node) -> bool:
    """Return whether two values are written equally; values that expand to very many nodes count as different."""
    pairs, left = [(one, other)], _MOST_COMPARED
    while pairs:
        a, b = pairs.pop()
        left -= 1
        if type(a) is not type(b) or a.tag != b.tag or left < 0:
            return False
        if isinstance(a, ScalarNode):
            if a.value != b.value:
                return False
        elif len(a.value) != len(b.value):
            return False
        else:
            both = zip(_flat(a), _flat(b), strict=True)
            pairs += both
    return True


def _flat(node: Node) -> Iterator[Node]:
    for item in node.value:
        yield from item if isinstance(item, tuple) else (item,)


def _is_stage(loc: Loc) -> bool:
    return len(loc) == 2 and loc[0] == "stages"


def _as_map(node: Node, key: str) -> Node:
    """Return the long form of a list of steps or of a parameter's default: a map with the value under ``key``."""
    if isinstance(node, MappingNode) or (key == "steps" and not isinstance(node, SequenceNode)):
        return node
    word = ScalarNode("tag:yaml.org,2002:str", key, node.start_mark, node.start_mark)
    return MappingNode("tag:yaml.org,2002:map", [(word, node)], node.start_mark, node.end_mark)


def _merge_maps(parent: MappingNode, child: MappingNode, loc: Loc, clashes: list[_Clash] | None) -> MappingNode:
    pairs: list[Pair | None] = [pair for pair in parent.value if loc or _text(pair[0]) != "extends"]
    index = {_text(pair[0]): number for number, pair in enumerate(pairs) if pair and isinstance(pair[0], ScalarNode)}
    new: list[Pair] = []
    for key, value in child.value:
        # Keep a key that the child repeats, so that it is reported as a duplicate.
        number = index.pop(_text(key), None) if isinstance(key, ScalarNode) else None
        old = None if number is None else pairs[number]
        if number is None or old is None:
            new.append((key, value))
        elif loc == ("stages",) and _is_null(value):
            pairs[number] = None
        else:
            pairs[number] = (key, _merge(old[1], value, (*loc, _text(key)), clashes))
    kept = [pair for pair in pairs if pair]
    for pair in new:
        kept.insert(_slot(kept, pair[0]) if loc == ("stages",) else len(kept), pair)
    return MappingNode(child.tag, kept, child.start_mark, child.end_mark, child.flow_style)


def _slot(pairs: list[Pair], key: Node) -> int:
    """Return the index at which to insert a stage that the parent does not have: before the first later stage."""
    if _text(key) not in STAGES:
        return len(pairs)
    later = STAGES[STAGES.index(_text(key)) + 1 :]
    return next((number for number, (other, _) in enumerate(pairs) if _text(other) in later), len(pairs))


def _merge_steps(parent: SequenceNode, child: SequenceNode, loc: Loc, clashes: list[_Clash] | None) -> SequenceNode:
    steps: list[Node | None] = list(parent.value)
    index = {_id_of(own_step): number for number, own_step in enumerate(parent.value)}
    for own_step in child.value:
        name = _id_of(own_step) or removed_by(own_step)
        number = index.pop(name, None) if name else None
        old = None if number is None else steps[number]
        if number is None or old is None:
            steps.append(own_step)
        elif removed_by(own_step):
            steps[number] = None
        else:
            at = (*loc, name)
            if clashes is not None and not _does_the_same(old, own_step):
                clashes.append(_Clash(_without_steps(at), old, own_step))
            steps[number] = _merge(_without_other_action(old, own_step), own_step, at, clashes)
    left = [step for step in steps if step]
    return SequenceNode(child.tag, left, child.start_mark, child.end_mark, child.flow_style)


def _does_the_same(one: Node, other: Node) -> bool:
    """Return whether two steps with the same id name the same tool or command, or only one of them names any."""
    first, second = ({key: _keys(step)[key] for key in DOING if key in _keys(step)} for step in (one, other))
    return not (first and second) or (first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first))


def _without_other_action(parent: Node, child: Node) -> Node:
    """Return the parent's step without its action if the child's step has another action."""
    own = _keys(child)
    if not isinstance(parent, MappingNode) or not any(key in own for key in DOING):
        return parent
    replaced = {*DOING} - ({"uses"} if "uses" in own else set())
    if "uses" not in own or _text(own["uses"]) != _text(_keys(parent).get("uses")):
        replaced |= {"with", "uses"}
    pairs = [pair for pair in parent.value if _text(pair[0]) not in replaced]
    return MappingNode(parent.tag, pairs, parent.start_mark, parent.end_mark, parent.flow_style)


def _keys(node: Node | None) -> dict[str, Node]:
    return {_text(key): value for key, value in node.value} if isinstance(node, MappingNode) else {}


def _text(node: Node | None) -> str:
    """Return the text of a scalar, or '' for any other node."""
    return str(node.value) if isinstance(node, ScalarNode) else ""


def _id_of(node: Node) -> str:
    return _text(_keys(node).get("id"))
