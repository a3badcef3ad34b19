"""A workflow file -> a Draft: the parts that are valid, and every problem of the others with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.errors import Problem, Severity, UserError
from perfflow.workflow import yaml_hints
from perfflow.workflow.model import Header, Stage, Step, Workflow
from perfflow.workflow.yaml_text import Document, Loc, read_file

MAX_EXTENDS = 10
Resolve = Callable[[str, Path], Path]
"""Turns the text of ``extends`` and the folder of the file that says it into a path."""


@dataclass
class Draft:
    """A workflow made of its valid parts. Usable only when ``problems`` has no error."""

    path: Path
    document: Document
    workflow: Workflow
    steps: dict[str, Loc] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def complain(self, loc: Loc, message: str, hint: str = "", *, key: bool = False, rule: str = "") -> None:
        """Add an error at a value, or at its key."""
        self.problems.append(Problem(message, hint, self.document.place(loc, key=key), rule=rule))

    def warn(self, loc: Loc, message: str, hint: str = "", *, rule: str = "") -> None:
        """Add a warning at a value."""
        place = self.document.place(loc)
        self.problems.append(Problem(message, hint, place, Severity.WARNING, rule))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that stop a run."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)


def load(path: Path, resolve: Resolve) -> Draft:
    """Read and check the shape of one file and what it extends. Raises UserError when nothing can be read."""
    document = _merged(path, resolve, ())
    data = document.data()
    draft = Draft(path, document, Workflow.model_construct(perfflow=1, stages={}))
    draft.problems += document.problems
    stages_data = data.pop("stages", None)
    header = _check(draft, Header, data, ())
    stages = dict(_stages(draft, stages_data))
    fields = dict(header or Header(perfflow=1))
    fields["name"] = fields["name"] or path.stem
    draft.workflow = Workflow.model_construct(**fields, stages=stages)
    return draft


def _merged(path: Path, resolve: Resolve, seen: tuple[Path, ...]) -> Document:
    document = read_file(path)
    extends = document.node(("extends",))
    if not isinstance(extends, ScalarNode):
        return document
    place = document.place(("extends",))
    try:
        parent_path = resolve(extends.value, path.parent).resolve()
    except UserError as error:
        problems = tuple(Problem(problem.message, problem.hint, place) for problem in error.problems)
        raise UserError(problems) from error
    if parent_path in seen or len(seen) >= MAX_EXTENDS:
        chain = " -> ".join(str(item) for item in (*seen, parent_path))
        raise UserError((Problem(f"`extends` comes back to itself: {chain}", "", place),))
    parent = _merged(parent_path, resolve, (*seen, parent_path))
    root = merge(parent.root, document.root)
    return Document(str(path), root, {**parent.lines, **document.lines}, parent.problems + document.problems)


def merge(parent: Node, child: Node) -> Node:
    """Merge maps by key and lists of steps by ``id``; anything else of the child replaces the parent's."""
    if isinstance(parent, MappingNode) and isinstance(child, MappingNode):
        inherited = {key.value: (key, value) for key, value in parent.value if key.value != "extends"}
        for key, value in child.value:
            old = inherited.get(key.value)
            inherited[key.value] = (key, merge(old[1], value) if old else value)
        return MappingNode(child.tag, list(inherited.values()), child.start_mark, child.end_mark, child.flow_style)
    if isinstance(parent, SequenceNode) and isinstance(child, SequenceNode) and _has_ids(parent) and _has_ids(child):
        steps = {_id_of(item): item for item in parent.value}
        for item in child.value:
            key = _id_of(item)
            steps[key] = merge(steps[key], item) if key in steps else item
        return SequenceNode(child.tag, list(steps.values()), child.start_mark, child.end_mark, child.flow_style)
    return child


def _has_ids(node: SequenceNode) -> bool:
    return bool(node.value) and all(_id_of(item) for item in node.value)


def _id_of(node: Node) -> str:
    if not isinstance(node, MappingNode):
        return ""
    return next((str(value.value) for key, value in node.value if key.value == "id"), "")


def _stages(draft: Draft, data: Any) -> Iterator[tuple[str, Stage]]:
    """Check stage by stage and step by step, so that one mistake hides no other."""
    if not isinstance(data, dict) or not data:
        if "stages" in [key.value for key, _ in draft.document.root.value]:
            draft.complain(
                ("stages",), "`stages` is a map of stages, each a list of steps", "stages: {baseline: [...]}"
            )
        else:
            draft.complain((), "`stages` is missing", "stages: {baseline: [{id: run, uses: command, ...}]}")
        return
    for name, content in data.items():
        loc: Loc = ("stages", name)
        if not isinstance(name, str) or not name.isidentifier():
            draft.complain(loc, f"{name!r} is not a stage name", "use letters, digits and _", key=True)
            continue
        stage_data = {"steps": content} if isinstance(content, list) else content
        if not isinstance(stage_data, dict):
            draft.complain(loc, f"stage `{name}` is a list of steps, or a map with `steps`", "- {id: ..., run: ...}")
            continue
        steps_data = stage_data.pop("steps", [])
        stage = _check(draft, Stage, stage_data, loc)
        steps = list(_steps(draft, name, steps_data))
        fields = dict(stage or Stage())
        fields["steps"] = steps
        yield name, Stage.model_construct(**fields)


def _steps(draft: Draft, stage: str, data: Any) -> Iterator[Step]:
    if not isinstance(data, list):
        draft.complain(("stages", stage, "steps"), "`steps` is a list", "start each step with `- id: ...`")
        return
    for index, content in enumerate(data):
        loc: Loc = ("stages", stage, "steps", index)
        step = _check(draft, Step, content, loc)
        fallback = str(content.get("id", "")) if isinstance(content, dict) else ""
        name = (step.id if step else fallback) or f"{stage}-{index + 1}"
        if name in draft.steps:
            line = draft.document.place(draft.steps[name]).line
            draft.complain(
                (*loc, "id"), f"duplicate step id `{name}`, first used in line {line}", "ids are unique in a file"
            )
        else:
            draft.steps[name] = loc
        if step:
            yield step.model_copy(update={"id": name})


M = TypeVar("M", bound=BaseModel)


def _check(draft: Draft, model: type[M], data: Any, loc: Loc) -> M | None:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        draft.problems += problems_of(draft.document, model, error.errors(), loc)
        return None


def problems_of(document: Document, model: type[BaseModel], errors: Iterable[ErrorDetails], base: Loc) -> list[Problem]:
    """Turn pydantic's errors into problems with a place; ``base`` is where the validated data stands."""
    found: dict[Any, Problem] = {}
    for error in errors:
        loc = (*base, *error["loc"])
        problem = _problem(document, model, error, base, loc)
        # A union reports one error per member; the first is about the type that comes first in the format.
        found.setdefault(problem.place, problem)
    return list(found.values())


def _problem(document: Document, model: type[BaseModel], error: ErrorDetails, base: Loc, loc: Loc) -> Problem:
    key = str(loc[-1]) if loc else ""
    if error["type"] == "extra_forbidden":
        known = _keys(model, loc[len(base) : -1])
        if error["input"] is None and getattr(document.node(loc[:-1]), "flow_style", False):
            hint = "a text with a comma inside { } must be quoted"
        else:
            hint = yaml_hints.for_unknown_key(key, known)
        return Problem(f"unknown key `{key}`", hint, document.place(loc, key=True))
    if error["type"] == "missing":
        hint = "the first line of a workflow is `perfflow: 1`" if loc == ("perfflow",) else ""
        return Problem(f"`{key}` is missing", hint, document.place(loc))
    name = next((part for part in reversed(_written(document, loc)) if isinstance(part, str)), "value")
    shown = repr(error["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    message = error["msg"].replace("Input should", "should").replace("Value error, ", "")
    return Problem(f"`{name}` {message[0].lower() + message[1:]}, not {shown}", _type_hint(error), document.place(loc))


def _type_hint(error: ErrorDetails) -> str:
    if error["type"] == "string_type" and isinstance(error["input"], int | float):
        return f'quote it: "{error["input"]}"'
    if error["type"] in ("dict_type", "model_type", "model_attributes_type"):
        return "write `key: value` lines below it"
    if error["type"] == "list_type":
        return "write a list: [a, b], or lines that start with `-`"
    return ""


def _written(document: Document, loc: Loc) -> Loc:
    """The part of ``loc`` that stands in the text; the rest names members of a union."""
    root = document.root
    for length in range(len(loc), 0, -1):
        if (
            document.node(loc[:length]) is not document.node(loc[: length - 1])
            and document.node(loc[:length]) is not root
        ):
            return loc[:length]
    return loc


def _keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys a map at ``loc`` inside ``model`` may have."""
    current = model
    for part in loc:
        by_key = {field.alias or name: field for name, field in current.model_fields.items()}
        if isinstance(part, str) and part in by_key:
            current = next(_models(by_key[part].annotation), current)
    return [field.alias or name for name, field in current.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
