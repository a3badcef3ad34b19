"""``extends``: a workflow's text over that of its parents. Maps merge by key, the steps of a stage by ``id``.

Of several parents the later ones win. A step of the form ``ID: null`` removes an inherited step, and a stage that is
null removes an inherited stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.model.errors import Place, Problem, Severity, UserError
from perfflow.model.later import dataclass
from perfflow.workflow.document import MAX_DEPTH, Document, Loc
from perfflow.workflow.model import DOING, STAGES
from perfflow.workflow.readable import Readable
from perfflow.workflow.yaml_hints import nearest
from perfflow.workflow.yaml_text import read_file, read_text

MAX_EXTENDS = 10
"""Files of one chain."""
MAX_FILES = 50
"""Files of one workflow, over all of its parents; one that is extended twice counts twice."""
Resolve = Callable[[str, Path], Path]
"""Turns the text of ``extends`` and the folder of the file that says it into a path."""
Pair = tuple[Node, Node]
_OWN = frozenset({"perfflow", "extends", "name", "component", "description"})
"""Keys about a file itself: every parent has its own, so that they contradict nothing."""
_KEYS = {*DOING, "id", "name", "with", "env", "needs", "if"}
"""Of a step: one of these without a value is more likely an unfinished step than the id of another."""
_MOST_COMPARED = 10_000


@dataclass
class _Clash:
    """Two parents that give different values to one key; ``loc`` names steps by their ids."""

    loc: Loc
    earlier: Node
    later: Node


@dataclass
class _Reading:
    """What holds for all files of one workflow; ``left`` is how many may still be read."""

    resolve: Resolve
    readable: Readable
    left: int = field(default=MAX_FILES)


def read_with_parents(
    path: Path, resolve: Resolve, readable: Readable | None = None, text: str | None = None
) -> Document:
    """Read a file and what it extends, within ``readable`` (by default its own folder).

    ``text`` is what the file is to say, where that is not written yet. Raises UserError when a file cannot be read.
    """
    document = _read(path, _Reading(resolve, readable or Readable.of(path.parent)), (), text)
    _drop_idle_removals(document)
    return document


def named(document: Document) -> list[tuple[str, Place]]:
    """The texts under ``extends`` of one file, in order, and where each stands."""
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
    merged.problems += [_told(merged, clash) for clash in clashes if not _settles(document.root, clash.loc)]
    return merged


def _parent(name: str, place: Place, folder: Path, reading: _Reading, seen: tuple[str, ...]) -> Document:
    reading.left -= 1
    if reading.left < 0:
        message = f"the workflow consists of more than {MAX_FILES} files"
        raise UserError((Problem(message, "extend fewer files", place),))
    try:
        path = reading.resolve(name, folder)
        _refuse_circle(path, seen, place)
        return _read(path, reading, seen)
    except UserError as error:
        # What has no place of its own, such as a missing file, is wrong where it is named.
        problems = (problem if problem.place else replace(problem, place=place) for problem in error.problems)
        raise UserError(tuple(problems), error.exit) from error


def _refuse_circle(parent: Path, seen: tuple[str, ...], place: Place) -> None:
    if "\0" in str(parent):
        raise UserError((Problem("a path cannot hold a NUL character", "", place),))
    real = os.path.realpath(parent)
    if real in seen or len(seen) >= MAX_EXTENDS:
        chain = " -> ".join(Path(item).name for item in (*seen, real))
        message = (
            "`extends` comes back to itself" if real in seen else f"more than {MAX_EXTENDS} files extend each other"
        )
        raise UserError((Problem(f"{message}: {chain}", "extend a file that does not extend this one", place),))


def _told(document: Document, clash: _Clash) -> Problem:
    """The warning about two parents that contradict each other, where the workflow itself does not decide."""
    earlier, later = document.place_of(clash.earlier), document.place_of(clash.later)
    message = f"`{'.'.join(map(str, clash.loc))}` differs from {earlier.file}:{earlier.line}, which is extended as well"
    hint = f"this one holds, since it is named later; to choose, set it in {document.file}"
    return Problem(message, hint, later, Severity.WARNING)


def _settles(node: Node, loc: Sequence[str | int]) -> bool:
    """Whether a file itself says something at ``loc``, or removes what is there."""
    for number, part in enumerate(loc):
        if isinstance(node, MappingNode) and str(part) not in _keys(node) and "steps" in _keys(node):
            node = _keys(node)["steps"]
        if isinstance(node, SequenceNode):
            found = next((item for item in node.value if part in (_id_of(item), removed_by(item))), None)
        elif isinstance(node, MappingNode):
            found = _keys(node).get(str(part))
        else:  # a value stands for all of it
            return number > 0
        if found is None or removed_by(found):
            return found is not None
        node = found
    return True


def _drop_idle_removals(document: Document) -> None:
    """Complain of each ``ID: null`` that no inherited step has answered to, and leave it out."""
    for name, stage in list(_keys(_keys(document.root).get("stages")).items()):
        steps = _keys(stage).get("steps", stage)
        for item in list(steps.value) if isinstance(steps, SequenceNode) else ():
            unknown = removed_by(item)
            if unknown and unknown not in _KEYS:
                message = f"stage `{name}` inherits no step `{unknown}`"
                text = _inherited(document, name, steps, unknown)
                document.problems.append(Problem(message, text, document.place_of(item)))
                steps.value.remove(item)


def _inherited(document: Document, stage: str, steps: Node, unknown: str) -> str:
    """What may be meant by the id of a step that is not there."""
    nameless = {f"{stage}-{number}": item for number, item in enumerate(steps.value, 1) if not _id_of(item)}
    if step := nameless.get(unknown):
        place = document.place_of(step)
        return f"the step in {place.file}:{place.line} has no `id`: give it one there, and name it here"
    near = nearest(unknown, [_id_of(other) for other in steps.value if _id_of(other)])
    return f"did you mean `{near}`?" if near else "`ID: null` removes a step that a file inherits"


def removed_by(item: Node) -> str:
    """The id of the step that an item of a stage removes, '' where it is a step itself."""
    if isinstance(item, MappingNode) and len(item.value) == 1:
        ((key, value),) = item.value
        return _text(key) if _is_null(value) else ""
    return ""


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag.endswith(":null")


def merge(parent: Node, child: Node) -> Node:
    """Merge maps by key and the steps of a stage by ``id``; anything else of the child replaces the parent's."""
    return _merge(parent, child, (), None)


def _merge(parent: Node, child: Node, loc: Loc, clashes: list[_Clash] | None) -> Node:
    if len(loc) > MAX_DEPTH:  # an alias that holds itself
        return child
    if _is_stage(loc) and type(parent) is not type(child):
        parent, child = _as_map(parent, "steps"), _as_map(child, "steps")
    if len(loc) == 2 and loc[0] == "params" and type(parent) is not type(child):
        # A value given to a parent's parameter is its default: type, enum and help stay.
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
    """Whether two values are equal as they are written; what expands to very many is not."""
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
    """The long form of a stage's list of steps, or of a parameter's default: a map with that under ``key``."""
    if isinstance(node, MappingNode) or (key == "steps" and not isinstance(node, SequenceNode)):
        return node
    word = ScalarNode("tag:yaml.org,2002:str", key, node.start_mark, node.start_mark)
    return MappingNode("tag:yaml.org,2002:map", [(word, node)], node.start_mark, node.end_mark)


def _merge_maps(parent: MappingNode, child: MappingNode, loc: Loc, clashes: list[_Clash] | None) -> MappingNode:
    pairs: list[Pair | None] = [pair for pair in parent.value if loc or _text(pair[0]) != "extends"]
    index = {_text(pair[0]): number for number, pair in enumerate(pairs) if pair and isinstance(pair[0], ScalarNode)}
    new: list[Pair] = []
    for key, value in child.value:
        # A key that the child repeats is added as it is, so that it is found to be a duplicate.
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
    """Where a stage that the parent does not have belongs: before the first of a later kind."""
    if _text(key) not in STAGES:
        return len(pairs)
    later = STAGES[STAGES.index(_text(key)) + 1 :]
    return next((number for number, (other, _) in enumerate(pairs) if _text(other) in later), len(pairs))


def _merge_steps(parent: SequenceNode, child: SequenceNode, loc: Loc, clashes: list[_Clash] | None) -> SequenceNode:
    steps: list[Node | None] = list(parent.value)
    index = {_id_of(item): number for number, item in enumerate(parent.value)}
    for item in child.value:
        name = _id_of(item) or removed_by(item)
        number = index.pop(name, None) if name else None
        old = None if number is None else steps[number]
        if number is None or old is None:
            steps.append(item)
        elif removed_by(item):
            steps[number] = None
        else:
            at = (*loc, name)
            if clashes is not None and not _does_the_same(old, item):
                clashes.append(_Clash(_without_steps(at), old, item))
            steps[number] = _merge(_without_other_action(old, item), item, at, clashes)
    left = [step for step in steps if step]
    return SequenceNode(child.tag, left, child.start_mark, child.end_mark, child.flow_style)


def _does_the_same(one: Node, other: Node) -> bool:
    """Whether two steps of one id do not name different tools or commands."""
    first, second = ({key: _keys(step)[key] for key in DOING if key in _keys(step)} for step in (one, other))
    return not (first and second) or (first.keys() == second.keys() and all(_same(first[k], second[k]) for k in first))


def _without_other_action(parent: Node, child: Node) -> Node:
    """The parent's step without what it does, where the child's step does something else instead."""
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
    """The text of a scalar, '' of anything else."""
    return str(node.value) if isinstance(node, ScalarNode) else ""


def _id_of(node: Node) -> str:
    return _text(_keys(node).get("id"))
