"""Load a workflow file into a Draft: its valid parts, and the problems of the other parts with their places.

``resolved_lines`` shows a workflow after ``extends`` is resolved: as YAML, with the file and line of each value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from perfflow.model.errors import Problem, Severity
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Document, Loc
from perfflow.workflow.extends import Resolve, read_with_parents
from perfflow.workflow.model import STAGES, Header, Param, Stage, Step, Workflow
from perfflow.workflow.roles import role_of_stage
from perfflow.workflow.shape import MAX_PROBLEMS, read_shape
from perfflow.workflow.yaml_text import Readable

_STAGE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
MOST_STEPS = 5000
"""Most steps of a workflow; the largest known one has 40."""
REPEATED = "#"
"""Separates a repeated step id from its number; ids cannot contain it."""


@dataclass
class Draft:
    """The valid parts of a workflow, and its problems. It can be run only if ``problems`` has no error.

    ``steps`` and ``params`` also contain invalid ones, so that references to them are not reported as unknown.
    ``readable`` limits the files that the workflow may name.
    """

    path: Path
    document: Document
    workflow: Workflow
    readable: Readable
    steps: dict[str, Loc] = field(default_factory=dict)
    params: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)
    wrong: set[Loc] = field(default_factory=set)

    def complain(
        self, loc: Loc, message: str, hint: str = "", *, key: bool = False, rule: str = "", find: str = ""
    ) -> None:
        """Add an error at a value, at its key, or at the text ``find`` inside the value."""
        if self.full:
            self.add([], [loc])
            return
        self.add([Problem(message, hint, self.document.place(loc, key=key, find=find), rule=rule)], [loc])

    def warn(self, loc: Loc, message: str, hint: str = "", *, key: bool = False, rule: str = "") -> None:
        """Add a warning at a value, or at its key."""
        if self.full:
            return
        place = self.document.place(loc, key=key)
        self.problems.append(Problem(message, hint, place, Severity.WARNING, rule))

    def add(self, problems: Iterable[Problem], wrong: Iterable[Loc]) -> None:
        """Add problems, and the locations of invalid values, which later checks must not rely on."""
        self.wrong.update(_in_long_form(loc) for loc in wrong)
        if self.full:
            return
        self.problems.extend(problems)
        if len(self.problems) > MAX_PROBLEMS:
            del self.problems[MAX_PROBLEMS:]
            self.problems.append(Problem(f"only the first {MAX_PROBLEMS} problems are shown", "fix these first"))

    @property
    def full(self) -> bool:
        """Whether there are more problems than are shown, so that further checks are skipped."""
        return len(self.problems) > MAX_PROBLEMS

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that stop a run."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def step_names(self) -> list[str]:
        """Ids of the steps that can be referenced, in the order of the file."""
        return [name for name in self.steps if REPEATED not in name]

    def wrong_keys(self, loc: Loc) -> set[str]:
        """Return the keys directly under ``loc`` that contain a mistake; '' stands for the value at ``loc`` itself."""
        if not self.wrong:
            return set()
        under = (item for item in self.wrong if item[: len(loc)] == loc)
        return {str(item[len(loc)]) if len(item) > len(loc) else "" for item in under}


def _in_long_form(loc: Loc) -> Loc:
    """Convert ``stages.x.0`` of a stage that is a list to ``stages.x.steps.0``."""
    short = len(loc) > 2 and loc[0] == "stages" and isinstance(loc[2], int)
    return (*loc[:2], "steps", *loc[2:]) if short else loc


def load(path: Path, resolve: Resolve, readable: Readable | None = None, text: str | None = None) -> Draft:
    """Read one file and the files it extends, and check their keys and types.

    readable: folders that may be read; by default the folder of the file.
    text: content to use instead of the file's.
    Raises UserError if a file cannot be read or parsed.
    """
    readable = readable or Readable.of(path.parent)
    document = read_with_parents(path, resolve, readable, text)
    data = document.data()
    draft = Draft(path, document, Workflow.model_construct(perfflow=1, stages={}), readable)
    draft.add(document.problems, document.wrong)
    stages_data = data.pop("stages", None)
    header = _shaped(draft, Header, data, ()) or Header(perfflow=1)
    draft.params = tuple(data["params"]) if isinstance(data.get("params"), dict) else ()
    fields = dict(header)
    fields["name"] = fields["name"] or path.stem
    fields["params"] = {name: _settled(draft, name, param) for name, param in fields["params"].items()}
    draft.workflow = Workflow.model_construct(**fields, stages=dict(_stages(draft, stages_data)))
    return draft


def _settled(draft: Draft, name: str, param: Param) -> Param:
    """Return a parameter with a placeholder if its default is missing because it may be invalid."""
    lacks_default = param.default is None and draft.wrong_keys(("params", name))
    return param.model_copy(update={"default": f"<params.{name}>"}) if lacks_default else param


M = TypeVar("M", bound=BaseModel)


def _shaped(draft: Draft, model: type[M], data: Any, loc: Loc) -> M | None:
    shaped = read_shape(draft.document, model, data, loc, draft.wrong)
    if shaped.problems or shaped.wrong:
        draft.add(shaped.problems, shaped.wrong)
    return shaped.model


def _stages(draft: Draft, data: Any) -> Iterator[tuple[str, Stage]]:
    """Check each stage and step separately, so that one mistake does not hide others."""
    example = "stages: {baseline: [{id: run, uses: command, with: {command: ./program}}]}"
    if not isinstance(data, dict) or not data:
        if draft.document.written(("stages",)):
            draft.complain(("stages",), "`stages` must be a map of stages, each a list of steps", example, key=True)
        elif not draft.wrong & {("stages",), *((name,) for name in STAGES)}:
            draft.complain((), "`stages` is missing", example)
        draft.wrong.add(("stages",))
        return
    for name, content in data.items():
        if not _STAGE_NAME.fullmatch(name):
            draft.complain(("stages", name), f"invalid stage name {name!r}", "use letters, digits, _ and -", key=True)
        stage = _stage(draft, name, content)
        if stage:
            yield name, stage


def _stage(draft: Draft, name: str, content: Any) -> Stage | None:
    loc: Loc = ("stages", name)
    data = {"steps": content} if isinstance(content, list) else content
    if not isinstance(data, dict):
        message = f"stage `{name}` must be a list of steps, or a map with `steps`"
        draft.complain(loc, message, "start each step with `- id: ...`", key=data is None)
        return None
    steps_data = data.get("steps", [])
    stage = _shaped(draft, Stage, {key: value for key, value in data.items() if key != "steps"}, loc) or Stage()
    steps = list(_steps(draft, name, steps_data))
    if role_of_stage(name, stage) is Role.MEASURE:
        for step, written in zip(steps, steps_data, strict=False):
            _mark_timed(step, written)
    return Stage.model_construct(**{**dict(stage), "steps": steps})


def _steps(draft: Draft, stage: str, data: Any) -> Iterator[Step]:
    if not isinstance(data, list):
        draft.complain(("stages", stage, "steps"), "`steps` must be a list", "start each step with `- id: ...`")
        return
    for index, content in enumerate(data):
        loc: Loc = ("stages", stage, "steps", index)
        if len(draft.steps) >= MOST_STEPS:
            draft.complain(loc, f"the workflow has more than {MOST_STEPS:,} steps", "split it into several workflows")
        if draft.full or len(draft.steps) >= MOST_STEPS:
            return
        step = _shaped(draft, Step, content, loc) or Step()
        written = content.get("id") if isinstance(content, dict) else None
        name = step.id or str(written or "") or f"{stage}-{index + 1}"
        step_id = _registered(draft, name, loc, given=bool(written))
        yield step if step.id == step_id else step.model_copy(update={"id": step_id})


_NOT_TIMED = frozenset({"uses", "parse", "assert"})
"""Keys of a step of a measuring stage whose ``run`` or ``argv`` is not timed."""


def _mark_timed(step: Step, written: object) -> None:
    """Mark a step of a measuring stage if its ``run`` or ``argv`` is to be timed; a service is not.

    written: the step's data, since keys with mistakes are missing in ``step``.
    """
    does = step.run is not None or step.argv is not None
    compares = bool(step.compare) and not step.axis
    if does and isinstance(written, dict) and not (written.keys() & _NOT_TIMED or step.background or compares):
        step.time()


def _registered(draft: Draft, name: str, loc: Loc, *, given: bool) -> str:
    """Store a step's id and return it; a duplicate is reported, and gets a number so that the step is checked too."""
    if name not in draft.steps:
        draft.steps[name] = loc
        return name
    first, here = (draft.document.place((*at, "id")) for at in (draft.steps[name], loc))
    where = f"line {first.line}" if first.file == here.file else f"{first.file}:{first.line}"
    if not given:
        message, hint = f"the default id of this step, `{name}`, is already used in {where}", "give the step an `id`"
    elif draft.document.child(draft.document.node(draft.steps[name]), "id"):
        message, hint = f"duplicate step id `{name}`, first used in {where}", "choose another id"
    else:
        message = f"`{name}` is the default id of the step in {where}, which has no `id`"
        hint = f"to change that step, give it an `id` in {first.file}; otherwise choose another id"
    draft.complain((*loc, "id"), message, hint)
    name += f"{REPEATED}{len(draft.steps)}"
    draft.steps[name] = loc
    return name


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that are not strings in YAML 1.2, or in YAML 1.1, which other programs use."""
DisplayName = Callable[[str], str]
"""Converts the name of a file to the name that is shown."""


def origins(document: Document, shown: DisplayName) -> dict[str, str]:
    """Return the ``FILE:LINE`` of each value by its path in the data, such as ``stages.baseline.0.run``."""
    return {".".join(map(str, loc)): _origin(document, node, shown) for loc, node in _leaves(document.root, ())}


def resolved_lines(document: Document, shown: DisplayName) -> Iterator[str]:
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
        for child in node.value:
            if isinstance(child, ScalarNode):
                yield from self._value(f"{pad}-", child, pad)
            elif not child.value:
                yield f"{pad}- {'{}' if isinstance(child, MappingNode) else '[]'}{self._comment(child)}"
            else:
                first, *rest = self._inner(child, f"{pad}  ")
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
