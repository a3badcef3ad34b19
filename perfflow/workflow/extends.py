"""``extends``: a workflow's text over that of its parent. Maps merge by key, the steps of a stage by ``id``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.errors import Place, Problem, UserError
from perfflow.workflow.document import MAX_DEPTH, Document, Loc
from perfflow.workflow.model import DOING, STAGES
from perfflow.workflow.readable import Readable
from perfflow.workflow.yaml_text import read_file, read_text

MAX_EXTENDS = 10
Resolve = Callable[[str, Path], Path]
"""Turns the text of ``extends`` and the folder of the file that says it into a path."""
Pair = tuple[Node, Node]


def read_with_parents(
    path: Path, resolve: Resolve, readable: Readable | None = None, text: str | None = None
) -> Document:
    """Read a file and what it extends, within ``readable`` (by default its own folder).

    ``text`` is what the file is to say, where that is not written yet. Raises UserError when a file cannot be read.
    """
    return _read(path, resolve, readable or Readable.of(path.parent), (), text)


def _read(path: Path, resolve: Resolve, readable: Readable, seen: tuple[str, ...], text: str | None = None) -> Document:
    document = read_file(path, readable) if text is None else read_text(text, str(path))
    extends = document.node(("extends",))
    if not isinstance(extends, ScalarNode):
        return document
    place = document.place(("extends",))
    seen = (*seen, os.path.realpath(path))
    try:
        parent_path = resolve(extends.value, path.parent)
        _refuse_circle(parent_path, seen, place)
        parent = _read(parent_path, resolve, readable, seen)
    except UserError as error:
        # What has no place of its own, such as a missing file, is wrong where it is named.
        problems = (problem if problem.place else replace(problem, place=place) for problem in error.problems)
        raise UserError(tuple(problems)) from error
    return Document(str(path), merge(parent.root, document.root), {**parent.lines, **document.lines})


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


def merge(parent: Node, child: Node) -> Node:
    """Merge maps by key and the steps of a stage by ``id``; anything else of the child replaces the parent's."""
    return _merge(parent, child, ())


def _merge(parent: Node, child: Node, loc: Loc) -> Node:
    if len(loc) > MAX_DEPTH:  # an alias that holds itself
        return child
    if _is_stage(loc) and type(parent) is not type(child):
        parent, child = _as_map(parent, "steps"), _as_map(child, "steps")
    if len(loc) == 2 and loc[0] == "params" and type(parent) is not type(child):
        # A value given to a parent's parameter is its default: type, enum and help stay.
        parent, child = _as_map(parent, "default"), _as_map(child, "default")
    if isinstance(parent, MappingNode) and isinstance(child, MappingNode):
        return _merge_maps(parent, child, loc)
    holds_steps = _is_stage(loc) or (_is_stage(loc[:-1]) and loc[-1] == "steps")
    if holds_steps and isinstance(parent, SequenceNode) and isinstance(child, SequenceNode):
        return _merge_steps(parent, child, loc)
    return child


def _is_stage(loc: Loc) -> bool:
    return len(loc) == 2 and loc[0] == "stages"


def _as_map(node: Node, key: str) -> Node:
    """The long form of a stage's list of steps, or of a parameter's default: a map with that under ``key``."""
    if isinstance(node, MappingNode) or (key == "steps" and not isinstance(node, SequenceNode)):
        return node
    word = ScalarNode("tag:yaml.org,2002:str", key, node.start_mark, node.start_mark)
    return MappingNode("tag:yaml.org,2002:map", [(word, node)], node.start_mark, node.end_mark)


def _merge_maps(parent: MappingNode, child: MappingNode, loc: Loc) -> MappingNode:
    pairs: list[Pair] = [pair for pair in parent.value if loc or _text(pair[0]) != "extends"]
    index = {_text(key): number for number, (key, _) in enumerate(pairs) if isinstance(key, ScalarNode)}
    new: list[Pair] = []
    for key, value in child.value:
        # A key that the child repeats is added as it is, so that it is found to be a duplicate.
        number = index.pop(_text(key), None) if isinstance(key, ScalarNode) else None
        if number is None:
            new.append((key, value))
        else:
            pairs[number] = (key, _merge(pairs[number][1], value, (*loc, _text(key))))
    for pair in new:
        pairs.insert(_slot(pairs, pair[0]) if loc == ("stages",) else len(pairs), pair)
    return MappingNode(child.tag, pairs, child.start_mark, child.end_mark, child.flow_style)


def _slot(pairs: list[Pair], key: Node) -> int:
    """Where a stage that the parent does not have belongs: before the first of a later kind."""
    if _text(key) not in STAGES:
        return len(pairs)
    later = STAGES[STAGES.index(_text(key)) + 1 :]
    return next((number for number, (other, _) in enumerate(pairs) if _text(other) in later), len(pairs))


def _merge_steps(parent: SequenceNode, child: SequenceNode, loc: Loc) -> SequenceNode:
    steps: list[Node] = list(parent.value)
    index = {_id_of(item): number for number, item in enumerate(steps)}
    for item in child.value:
        number = index.pop(_id_of(item), None) if _id_of(item) else None
        if number is None:
            steps.append(item)
        else:
            steps[number] = _merge(_without_other_action(steps[number], item), item, (*loc, number))
    return SequenceNode(child.tag, steps, child.start_mark, child.end_mark, child.flow_style)


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


def _keys(node: Node) -> dict[str, Node]:
    return {_text(key): value for key, value in node.value} if isinstance(node, MappingNode) else {}


def _text(node: Node | None) -> str:
    """The text of a scalar, '' of anything else."""
    return str(node.value) if isinstance(node, ScalarNode) else ""


def _id_of(node: Node) -> str:
    return _text(_keys(node).get("id"))
