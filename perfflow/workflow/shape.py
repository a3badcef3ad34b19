"""Data and a model -> the model's valid part, and a problem with a place for each mistake.

pydantic reports every member of a union and names types in its own words; here each mistake becomes one problem in
the words of the format, and what is left out because of it is remembered, so that it causes no second complaint.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from perfflow.model.errors import Problem
from perfflow.model.later import dataclass
from perfflow.workflow import yaml_hints
from perfflow.workflow.document import Document, Loc
from perfflow.workflow.model import DOING, STAGES, Header, Workflow

MAX_PROBLEMS = 100
"""Problems of one file that are worked out and shown; nobody reads more, and each costs a search for near names."""
_MAX_REPAIRS = 20

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Shaped(Generic[M]):
    """What could be read. ``wrong`` holds the places of what was left out; of an unknown key, what it stands for."""

    model: M | None
    problems: tuple[Problem, ...] = ()
    wrong: tuple[Loc, ...] = ()


def read_shape(document: Document, model: type[M], data: Any, base: Loc, wrong: Collection[Loc] = ()) -> Shaped[M]:
    """Validate ``data``, which stands at ``base``; wrong parts are reported and left out.

    A value at one of the places in ``wrong`` is already complained of, and only left out.
    """
    try:
        return Shaped(model.model_validate(data))
    except ValidationError as error:
        mistakes = [item for item in _mistakes(error, data) if (*base, *item.loc) not in wrong]
    return _shaped(document, model, mistakes, base, _repaired(model, data))


def read_options(document: Document, model: type[M], data: Any, base: Loc) -> Shaped[M]:
    """Validate the keys of a tool; a value that is still to be rendered is not judged yet."""
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
    """One mistake: ``loc`` from where the data starts, and pydantic's errors about it (several for a union)."""

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
    """Join the errors of a union's members, and drop a missing key that an unknown one stands for."""
    errors = list(islice(error.errors(include_url=False), MAX_PROBLEMS * 4))
    unknown = [item["loc"] for item in errors if item["type"] == "extra_forbidden"]
    stand_ins = {
        (*loc[:-1], yaml_hints.meant_by(str(loc[-1]), [str(item["loc"][-1])]))
        for loc in unknown
        for item in errors
        if item["type"] == "missing"
    }
    kept = [(item["loc"], item) for item in errors if not (item["type"] == "missing" and item["loc"] in stand_ins)]
    yield from islice(_joined(kept, data, ()), MAX_PROBLEMS)


Located = tuple[tuple[str | int, ...], ErrorDetails]


def _joined(errors: Sequence[Located], data: Any, base: Loc) -> Iterator[_Mistake]:
    """Walk down the data; a step that it does not have names the member of a union."""
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
    """The error of a union's member; one with a pattern stands for an expression, also where it is given no text."""
    if member == "constrained-str" and error["type"] == "string_type":
        return {**error, "type": "string_pattern_mismatch"}
    return error


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, dict):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _best_member(members: list[list[_Mistake]], base: Loc) -> Iterator[_Mistake]:
    """The member of a union that got furthest was meant; where none did, the mistake is about all of them."""
    deep = [found for found in members if any(len(mistake.loc) > len(base) for mistake in found)]
    constrained = [found for found in members if found[0].kind not in _KINDS]
    best = next(iter(deep or constrained), None)
    if best:
        yield from best
    else:
        yield _Mistake(base, tuple(error for found in members for mistake in found for error in mistake.errors))


def _meant(model: type[BaseModel], mistake: _Mistake) -> Loc:
    """Where a mistake stands, an unknown key being taken for the one it was probably meant to be."""
    if mistake.kind != "extra_forbidden":
        return mistake.loc
    key = str(mistake.loc[-1])
    return (*mistake.loc[:-1], yaml_hints.meant_by(key, keys_of(model, mistake.loc[:-1])) or key)


_REQUIRED: Mapping[str, Mapping[str, Any]] = {"Header": {"perfflow": 1}}
"""What stands in for a value without which there is no model."""


def _repaired(model: type[M], data: Any) -> M | None:
    """Leave out what is wrong until the rest is valid; None where nothing valid remains."""
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
    """The part of ``loc`` through maps: of a list all is left out, since positions in it must stay what they are."""
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
        return Problem(f"{key!r} is not a name", "use letters, digits and _", document.place(loc, key=True))
    if mistake.kind == "extra_forbidden":
        hint = _unknown_key_hint(document, model, mistake, loc)
        return Problem(f"unknown key `{key}`", hint, document.place(loc, key=True))
    if mistake.kind == "missing":
        hint = "the first line of a workflow is `perfflow: 1`" if loc == ("perfflow",) else ""
        return Problem(f"`{key}` is missing", hint, document.place(loc[:-1], key=True))
    if mistake.kind == "value_error":
        # What keys say together, in the words of the adapter.
        return Problem(str(mistake.errors[0]["ctx"]["error"]), "", document.place(loc, key=True))
    return Problem(f"{_subject(loc)} {_predicate(mistake)}", _value_hint(mistake, loc), document.place(loc))


def _subject(loc: Loc) -> str:
    """``the text `x` `` in words: a value by its key, an item by its list's."""
    if len(loc) == 4 and loc[0] == "stages" and isinstance(loc[-1], int):
        return "a step"
    name = next((part for part in reversed(loc) if isinstance(part, str)), "the file")
    return f"an item of `{name}`" if loc and isinstance(loc[-1], int) else f"`{name}`"


_KINDS = {
    "string_type": "a text",
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
"""pydantic's names of type errors, in a reader's words; in a union a pattern stands for an expression."""
_LIMITS = {
    "greater_than": ("is above", "gt"),
    "greater_than_equal": ("is at least", "ge"),
    "less_than": ("is below", "lt"),
    "less_than_equal": ("is at most", "le"),
    "string_too_long": ("is a text no longer than", "max_length"),
}


def _predicate(mistake: _Mistake) -> str:
    """What the value has to be, and what it is."""
    first = mistake.errors[0]
    context = first.get("ctx", {})
    shown = repr(mistake.value)
    shown = f"not {shown if len(shown) <= 60 else shown[:57] + '...'}"
    if mistake.value is None:
        shown = "but it is empty"
    if mistake.kind in _LIMITS:
        words, name = _LIMITS[mistake.kind]
        return f"{words} {context[name]}, {shown}"
    if mistake.kind in ("literal_error", "enum"):
        expected = str(context["expected"])
        return f"is {'one of ' if ' or ' in expected else ''}{expected.replace(' or ', ', ')}, {shown}"
    if mistake.kind == "string_pattern_mismatch" and len(mistake.errors) == 1:
        return f"holds a character that it cannot, {shown.removeprefix('not ')}"
    kinds = dict.fromkeys(_KINDS.get(error["type"], error["msg"]) for error in mistake.errors)
    *others, last = kinds
    return f"is {', '.join(others)}{' or ' if others else ''}{last}, {shown}"


def _value_hint(mistake: _Mistake, loc: Loc) -> str:
    value = mistake.value
    kinds = {error["type"] for error in mistake.errors}
    if loc == ("perfflow",):
        return "this version of perfflow reads format version 1"
    if mistake.kind == "string_pattern_mismatch" and len(mistake.errors) == 1:
        return "use letters, digits, `_`, `.` and `-`, such as run-1"
    if _subject(loc) == "a step":
        return f"write `- run: {value}`" if isinstance(value, str) else "start each step with `- id: ...`"
    if loc[-1:] == ("shell",) and isinstance(value, bool):
        return "`run` always uses a shell: remove the key, or name another one, such as `shell: sh -e`"
    if loc[-1:] == ("candidates",) and isinstance(value, str | dict):
        return "did you mean `candidate`?"
    if "string_type" in kinds and isinstance(value, bool | int | float):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    if isinstance(value, str) and (kinds & {"int_type", "float_type"}) and _is_number(value):
        return f"remove the quotes: {value}"
    if "bool_type" in kinds and str(value).lower() in _SAID:
        return f"write {_SAID[str(value).lower()]}"
    if mistake.kind in ("literal_error", "enum"):
        return _nearest_choice(mistake)
    return _container_hint(kinds) if len(mistake.errors) == 1 else ""


_SAID = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
"""Words that were booleans in YAML 1.1."""


def _container_hint(kinds: set[str]) -> str:
    if "list_type" in kinds:
        return "write a list: [a, b], or lines that start with `-`"
    return "write `key: value` lines below it" if kinds & {"dict_type", "model_type", "model_attributes_type"} else ""


def _nearest_choice(mistake: _Mistake) -> str:
    expected = str(mistake.errors[0].get("ctx", {}).get("expected", ""))
    choices = [choice.strip(" '") for choice in expected.replace(" or ", ",").split(",")]
    near = yaml_hints.nearest(str(mistake.value), choices)
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
        return "a text with a comma inside { } must be quoted"
    inner = mistake.loc[:-1]
    elsewhere = "" if inner else _ELSEWHERE.get(model.__name__, {}).get(key, "")
    return elsewhere or yaml_hints.for_unknown_key(key, keys_of(model, inner))


_STEP_HINT = "a stage is a list of steps: start each with `- `"
_STAGE_HINT = "stages stand under `stages:`"
_WITH_HINT = "a tool's keys stand under `with`; without a tool, use `run` or `argv`"
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "Header": dict.fromkeys(STAGES, _STAGE_HINT),
    "Stage": dict.fromkeys((*DOING, "id", "with", "needs", "benchmark"), _STEP_HINT),
    "Step": dict.fromkeys(("command", "expected", "relative", "absolute", "frequency", "rate", "event"), _WITH_HINT),
}
"""Keys that stand in another place of the file."""


def keys_of(model: type[BaseModel], loc: Loc = ()) -> list[str]:
    """The keys a map at ``loc`` inside ``model`` may have."""
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
