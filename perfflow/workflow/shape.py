"""Validate data against a pydantic model: return the valid part, and one problem with its place for each mistake.

pydantic reports every member of a union and uses Python's names of types. This module turns each mistake into one
problem in YAML terms. It also records the parts that were left out, so that later checks do not report them again.

``schema`` generates the JSON Schema of workflow files from the models and the options of the tools. Editors use it to
complete the names of tools and their keys under ``with``, and to show descriptions. It does not check the values of
these keys, since any of them may be an expression or come from a candidate; ``perfflow validate`` does.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from perfflow.model import similar
from perfflow.model.criteria import THRESHOLD_KEYS
from perfflow.model.errors import Problem
from perfflow.tools import registry
from perfflow.workflow import yaml_hints
from perfflow.workflow.document import Document, Loc
from perfflow.workflow.model import DOING, STAGES, Header, Step, Workflow, WorkflowPart
from perfflow.workflow.yaml_text import flow

MAX_PROBLEMS = 100
"""Most problems of one file that are shown; each one costs a search for similar names."""
_MAX_REPAIRS = 20

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Shaped(Generic[M]):
    """The result of ``read_shape``.

    ``wrong`` has the places of the values that were left out. An unknown key counts as the key that was probably meant.
    """

    model: M | None
    problems: tuple[Problem, ...] = ()
    wrong: tuple[Loc, ...] = ()


def read_shape(document: Document, model: type[M], data: Any, base: Loc, wrong: Collection[Loc] = ()) -> Shaped[M]:
    """Validate ``data``, which is located at ``base``; report invalid parts and leave them out.

    A value whose place is in ``wrong`` has been reported before, so it is only left out.
    """
    try:
        return Shaped(model.model_validate(data))
    except ValidationError as error:
        mistakes = [item for item in _mistakes(error, data) if (*base, *item.loc) not in wrong]
    return _shaped(document, model, mistakes, base, _repaired(model, data))


def read_options(document: Document, model: type[M], data: Any, base: Loc) -> Shaped[M]:
    """Validate the options of a tool; values with an expression are skipped until they are rendered."""
    try:
        return Shaped(model.model_validate(data))
    except ValidationError as error:
        found = list(_mistakes(error, data))
    mistakes = [item for item in found if item.kind in _ABOUT_KEYS or "${{" not in str(item.value)]
    return _shaped(document, model, mistakes, base, None)


def _shaped(
    document: Document, model: type[M], mistakes: Sequence[_Mistake], base: Loc, repaired: M | None
) -> Shaped[M]:
    problems = tuple(_problem(document, model, mistake, base) for mistake in mistakes)
    return Shaped(repaired, problems, tuple((*base, *_meant(model, mistake)) for mistake in mistakes))


_ABOUT_KEYS = ("missing", "extra_forbidden")


@dataclass(frozen=True)
class _Mistake:
    """One mistake: its ``loc`` in the data, and pydantic's errors about it (several for a union)."""

    loc: Loc
    errors: tuple[ErrorDetails, ...]
    about_key: bool = False

    @property
    def kind(self) -> str:
        return self.errors[0]["type"]

    @property
    def value(self) -> Any:
        return self.errors[0]["input"]


def _mistakes(error: ValidationError, data: Any) -> Iterator[_Mistake]:
    """Join the errors of a union's members, and drop the error about a missing key that was only misspelt."""
    errors = list(islice(error.errors(include_url=False), MAX_PROBLEMS * 4))
    unknown = [item["loc"] for item in errors if item["type"] == "extra_forbidden"]
    stand_ins = {
        (*loc[:-1], similar.key_meant(str(loc[-1]), [str(item["loc"][-1])]))
        for loc in unknown
        for item in errors
        if item["type"] == "missing"
    }
    kept = [(item["loc"], item) for item in errors if not (item["type"] == "missing" and item["loc"] in stand_ins)]
    yield from islice(_joined(kept, data, ()), MAX_PROBLEMS)


Located = tuple[tuple[str | int, ...], ErrorDetails]


def _joined(errors: Sequence[Located], data: Any, base: Loc) -> Iterator[_Mistake]:
    """Walk down the data; a part of an error's location that is not in the data names a member of a union."""
    by_part: dict[str | int, list[Located]] = {}
    members: dict[str | int, list[Located]] = {}
    for loc, error in errors:
        if not loc or (len(loc) == 1 and error["type"] in _ABOUT_KEYS):
            yield _Mistake((*base, *loc), (error,))
        elif loc[0] == "[key]":
            yield _Mistake(base, (error,), about_key=True)
        else:
            here = by_part if _has(data, loc[0]) else members
            here.setdefault(loc[0], []).append((loc[1:], error if here is by_part else _as_member(loc[0], error)))
    for part, inner in by_part.items():
        yield from _joined(inner, data[part], (*base, part))
    if members:
        yield from _best_member([list(_joined(inner, data, base)) for inner in members.values()], base)


def _as_member(member: str | int, error: ErrorDetails) -> ErrorDetails:
    """Return the error of a union's member; a member with a pattern expects an expression, whatever the value is."""
    if member == "constrained-str" and error["type"] == "string_type":
        return {**error, "type": "string_pattern_mismatch"}
    return error


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, dict):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _best_member(members: list[list[_Mistake]], base: Loc) -> Iterator[_Mistake]:
    """Yield the mistakes of the union member whose validation got furthest, else one mistake about all members."""
    deep = [found for found in members if any(len(mistake.loc) > len(base) for mistake in found)]
    constrained = [found for found in members if found[0].kind not in _KINDS]
    best = next(iter(deep or constrained), None)
    if best:
        yield from best
    else:
        yield _Mistake(base, tuple(error for found in members for mistake in found for error in mistake.errors))


def _meant(model: type[BaseModel], mistake: _Mistake) -> Loc:
    """Return the place of a mistake; an unknown key is replaced by the key that was probably meant."""
    if mistake.kind != "extra_forbidden":
        return mistake.loc
    key = str(mistake.loc[-1])
    return (*mistake.loc[:-1], similar.key_meant(key, keys_of(model, mistake.loc[:-1])) or key)


_REQUIRED: Mapping[str, Mapping[str, Any]] = {"Header": {"perfflow": 1}}
"""Values that replace missing required keys, so that the rest of the model can be used."""


def _repaired(model: type[M], data: Any) -> M | None:
    """Remove invalid values until the rest is valid; return None if nothing valid remains."""
    rest = copy.deepcopy(data)
    for _ in range(_MAX_REPAIRS):
        if isinstance(rest, dict):
            rest = {**_REQUIRED.get(model.__name__, {}), **rest}
        try:
            return model.model_validate(rest)
        except ValidationError as error:
            locs = [item["loc"][:-1] if item["type"] == "missing" else item["loc"] for item in error.errors()]
        paths = {_writable(rest, loc) for loc in locs}
        if () in paths:
            return None
        for path in paths:
            _leave_out(rest, path)
    return None


def _writable(data: Any, loc: Sequence[str | int]) -> tuple[str, ...]:
    """Return the part of ``loc`` that leads through maps; a list is removed as a whole, so that indices stay valid."""
    found: list[str] = []
    for part in loc:
        if not isinstance(data, dict) or part not in data:
            break
        found.append(str(part))
        data = data[part]
    return tuple(found)


def _leave_out(data: Any, path: Sequence[str]) -> None:
    for part in path[:-1]:
        data = data.get(part, {})
    data.pop(path[-1], None)


def _problem(document: Document, model: type[BaseModel], mistake: _Mistake, base: Loc) -> Problem:
    loc = (*base, *mistake.loc)
    key = str(loc[-1]) if loc else ""
    if mistake.about_key:
        return Problem(f"invalid name {key!r}", "use letters, digits and _", document.place(loc, key=True))
    if mistake.kind == "extra_forbidden":
        hint = _unknown_key_hint(document, model, mistake, loc)
        return Problem(f"unknown key `{key}`", hint, document.place(loc, key=True))
    if mistake.kind == "missing":
        hint = "start the file with `perfflow: 1`" if loc == ("perfflow",) else ""
        return Problem(f"`{key}` is missing", hint, document.place(loc[:-1], key=True))
    if mistake.kind == "value_error":
        # A rule about several keys; the message comes from the adapter.
        return Problem(str(mistake.errors[0]["ctx"]["error"]), "", document.place(loc, key=True))
    return Problem(f"{_subject(loc)} {_predicate(mistake)}", _value_hint(mistake, loc), document.place(loc))


def _subject(loc: Loc) -> str:
    """Return the name of a value for a message: its key, or for an item the key of its list."""
    if len(loc) == 4 and loc[0] == "stages" and isinstance(loc[-1], int):
        return "a step"
    name = next((part for part in reversed(loc) if isinstance(part, str)), "the file")
    return f"an item of `{name}`" if loc and isinstance(loc[-1], int) else f"`{name}`"


_KINDS = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "string_pattern_mismatch": "a ${{ }} expression",
}
"""pydantic's names of type errors in YAML terms; in a union, a pattern stands for an expression."""
_LIMITS = {
    "greater_than": ("must be above", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be below", "lt"),
    "less_than_equal": ("must be at most", "le"),
    "string_too_long": ("must have at most", "max_length"),
}


def _predicate(mistake: _Mistake) -> str:
    """Return the second half of a message: the expected value and the actual one."""
    first = mistake.errors[0]
    context = first.get("ctx", {})
    shown = repr(mistake.value)
    shown = f"not {shown if len(shown) <= 60 else shown[:57] + '...'}"
    if mistake.value is None:
        shown = "but it is empty"
    if mistake.kind in _LIMITS:
        words, name = _LIMITS[mistake.kind]
        unit = " characters" if name == "max_length" else ""
        return f"{words} {context[name]}{unit}, {shown}"
    if mistake.kind in ("literal_error", "enum"):
        expected = str(context["expected"])
        return f"must be {'one of ' if ' or ' in expected else ''}{expected.replace(' or ', ', ')}, {shown}"
    if mistake.kind == "string_pattern_mismatch" and len(mistake.errors) == 1:
        return f"contains a character that is not allowed: {shown.removeprefix('not ')}"
    kinds = dict.fromkeys(_KINDS.get(error["type"], error["msg"]) for error in mistake.errors)
    *others, last = kinds
    return f"must be {', '.join(others)}{' or ' if others else ''}{last}, {shown}"


def _value_hint(mistake: _Mistake, loc: Loc) -> str:
    value = mistake.value
    kinds = {error["type"] for error in mistake.errors}
    if loc == ("perfflow",):
        return "write `perfflow: 1`, the format version that this version of perfflow reads"
    if mistake.kind == "string_pattern_mismatch" and len(mistake.errors) == 1:
        return "use letters, digits, `_`, `.` and `-`, such as run-1"
    if _subject(loc) == "a step":
        return f"write `- run: {value}`" if isinstance(value, str) else "start each step with `- id: ...`"
    if loc[-1:] == ("shell",) and isinstance(value, bool):
        return "`run` always uses a shell: remove the key, or name another shell, such as `shell: sh -e`"
    if loc[-1:] == ("candidates",) and isinstance(value, str | dict):
        return "did you mean `candidate`?"
    if "string_type" in kinds and isinstance(value, bool | int | float):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    if isinstance(value, str) and (kinds & {"int_type", "float_type"}) and _is_number(value):
        return f"remove the quotes: {value}"
    if "bool_type" in kinds and str(value).lower() in _YAML_1_1_BOOLEANS:
        return f"write {_YAML_1_1_BOOLEANS[str(value).lower()]}"
    if mistake.kind in ("literal_error", "enum"):
        return _nearest_choice(mistake)
    return _container_hint(kinds) if len(mistake.errors) == 1 else ""


_YAML_1_1_BOOLEANS = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
"""Words that were booleans in YAML 1.1."""


def _container_hint(kinds: set[str]) -> str:
    if "list_type" in kinds:
        return "write a list: [a, b], or lines that start with `-`"
    return "write lines of the form `key: value` below it" if kinds & _MAP_TYPES else ""


_MAP_TYPES = {"dict_type", "model_type", "model_attributes_type"}


def _nearest_choice(mistake: _Mistake) -> str:
    expected = str(mistake.errors[0].get("ctx", {}).get("expected", ""))
    choices = [choice.strip(" '") for choice in expected.replace(" or ", ",").split(",")]
    near = similar.nearest(str(mistake.value), choices)
    return f"did you mean {near!r}?" if near else ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unknown_key_hint(document: Document, model: type[BaseModel], mistake: _Mistake, loc: Loc) -> str:
    key = str(loc[-1])
    if mistake.value is None and getattr(document.node(loc[:-1]), "flow_style", False):
        return "quote strings that contain a comma inside { }"
    inner = mistake.loc[:-1]
    elsewhere = ""
    if model is Header:
        place = (*inner, key)
        elsewhere = _thresholds_hint(place, mistake.value) or _stages_hint(place, mistake.value)
    elif model is Step and not inner:
        uses = document.child(document.node(loc[:-1]), "uses")
        elsewhere = _tool_hint(str(uses.value) if uses else "", key, mistake.value)
    if not inner:
        elsewhere = elsewhere or _ELSEWHERE.get(model.__name__, {}).get(key, "")
    return elsewhere or yaml_hints.for_unknown_key(key, keys_of(model, inner))


def _thresholds_hint(loc: Loc, value: Any) -> str:
    """Return the hint for a key that is written elsewhere under ``thresholds``, or '' for another key."""
    if loc in (("memory-thresholds",), ("thresholds", "memory-thresholds")):
        return f"write `thresholds: {{memory: {flow(value)}}}`"
    if len(loc) == 1:
        meant = similar.KEYS.get(str(loc[0]), loc[0])
        return f"write `thresholds: {{{meant}: {flow(value)}}}`" if meant in THRESHOLD_KEYS else ""
    if loc[:-1] not in (("thresholds",), ("thresholds", "memory")):
        return ""
    if value in ("off", False):
        return f"to measure {loc[-1]!r} without judging it, write at top level: `ignore: [{flow(loc[-1])}]`"
    return f"write `thresholds: {{for: {{{flow(loc[-1])}: {flow(value)}}}}}`" if isinstance(value, dict) else ""


def _stages_hint(loc: Loc, value: Any) -> str:
    """Return the hint for what belongs into a step, or another word for a stage, at top level; '' for other keys."""
    key = str(loc[0]).lower()
    if len(loc) > 1:
        return ""
    if stage := similar.STAGES.get(key):
        return f"write the steps that measure under `stages: {{{stage}: [...]}}`"
    action = key if key in DOING else similar.KEYS.get(key, "")
    if action in DOING:
        return f"write `stages: {{baseline: [{{{_action(key, action, value)}}}]}}`"
    tool = similar.TOOLS.get(key) or (key if registry.find(key) else "")
    return f"write `stages: {{baseline: [{{uses: {tool}}}]}}`" if tool else ""


def _tool_hint(uses: str, key: str, value: Any) -> str:
    """Return the hint for a key of a step that is an option of its tool, or names a tool; '' for other keys."""
    word = similar.KEYS.get(key.lower(), "")
    tool = registry.find(similar.TOOLS.get(uses, uses))
    if tool:
        options = keys_of(tool.options)
        meant = "command" if word == "run" and "command" in options else similar.key_meant(key, options)
        return f"write `with: {{{meant}: {flow(value)}}}`" if word == "run" or similar.is_habit(key, meant) else ""
    if word in DOING:
        return f"write `{_action(key, word, value)}`"
    named = "" if uses else similar.TOOLS.get(key.lower()) or (key if registry.find(key) else "")
    named_tool = registry.find(named)
    has_bench = named_tool is not None and "bench" in keys_of(named_tool.options)
    option = f" and `with: {{bench: {flow(value)}}}`" if has_bench and isinstance(value, str) else ""
    return f"write `uses: {named}`{option}" if named else ""


def _action(key: str, meant: str, value: Any) -> str:
    """Return what a step does instead of ``key``, with its value if that is short; a list may be several commands."""
    if isinstance(value, list):
        return f"argv: {flow(value)}" if key in ("command", "cmd") else meant
    text = flow(value) if isinstance(value, str) and "\n" not in value else ""
    return f"{meant}: {text}" if 0 < len(text) <= _LONGEST_SHOWN else meant


_LONGEST_SHOWN = 80


_STEP_HINT = "a stage is a list of steps: start each step with `- `"
_STAGE_HINT = "write stages under `stages:`"
_WITH_HINT = "write the options of a tool under `with`; without a tool, use `run` or `argv`"
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "Header": dict.fromkeys(STAGES, _STAGE_HINT),
    "Stage": dict.fromkeys((*DOING, "id", "with", "needs", "benchmark"), _STEP_HINT),
    "Step": dict.fromkeys(("expected", "relative", "absolute", "frequency", "rate", "event"), _WITH_HINT),
}
"""Keys that belong in another place of the file."""


def keys_of(model: type[BaseModel], loc: Loc = ()) -> list[str]:
    """Return the keys that a map at ``loc`` inside ``model`` may have."""
    current: type[BaseModel] = Workflow if model is Header else model
    for part in loc:
        by_key: Mapping[Any, Any] = {field.alias or name: field for name, field in current.model_fields.items()}
        if part in by_key:
            current = next(_models(by_key[part].annotation), current)
    return [field.alias or name for name, field in current.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    arguments: Iterable[Any] = get_args(annotation)
    for argument in arguments:
        yield from _models(argument)


_REMOVED = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "null"}}
"""`ID: null` removes an inherited step."""
_SHORT_FORMS: dict[str, list[dict[str, Any]]] = {
    "Param": [{"type": ["string", "number", "boolean", "array"]}],
    "Candidate": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number"]}}],
    "RunsOn": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "Stage": [{"type": "array", "items": {"$ref": "#/$defs/Step"}}, {"type": "null"}],
    "Step": [_REMOVED],
}


def schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) with the short forms that the models accept before validation."""
    parts = [WorkflowPart]
    for part in parts:
        # Old versions of pydantic cannot serialize a default whose model was not built yet.
        part.model_rebuild()
        parts += part.__subclasses__()
    generated = Workflow.model_json_schema(by_alias=True, mode="validation")
    _add_tools(generated["$defs"])
    for name, forms in _SHORT_FORMS.items():
        full = generated["$defs"][name]
        generated["$defs"][name] = {"anyOf": [full, *forms], "description": full.pop("description", "")}
    _forbid_other_names(generated)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "workflow.schema.json",
        "title": "perfflow workflow",
        **{key: value for key, value in generated.items() if key != "title"},
    }


def _add_tools(parts: dict[str, Any]) -> None:
    """Add perfflow's own tools with their keys; other names stay allowed, for tool files and plugins."""
    adapters = [adapter for adapter in map(registry.find, registry.MODULES) if adapter]
    step = parts["Step"]
    names = [{"const": adapter.name, "description": registry.about(adapter)} for adapter in adapters]
    step["properties"]["uses"]["anyOf"] = [*names, *step["properties"]["uses"]["anyOf"]]
    chosen = []
    for adapter in adapters:
        keys = {name: _key(value) for name, value in adapter.options.model_json_schema()["properties"].items()}
        parts[f"with-{adapter.name}"] = {"type": "object", "properties": keys}
        uses = {"properties": {"uses": {"const": adapter.name}}, "required": ["uses"]}
        chosen.append({"if": uses, "then": {"properties": {"with": {"$ref": f"#/$defs/with-{adapter.name}"}}}})
    step["allOf"] = chosen


def _key(value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one key of a tool: its description, its default, and its values as examples if few."""
    shown = {name: value[name] for name in ("description", "default") if name in value}
    return shown | ({"examples": value["enum"]} if "enum" in value else {})


def _forbid_other_names(node: Any) -> None:
    """Forbid other keys in maps whose keys must match a pattern; pydantic allows them."""
    if isinstance(node, dict):
        if "patternProperties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            _forbid_other_names(value)
    elif isinstance(node, list):
        for value in node:
            _forbid_other_names(value)


def schema_text() -> str:
    """Return the contents of ``schemas/workflow.schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
