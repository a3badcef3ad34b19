"""Validate JSON of a tool against a model, and report the first problem in one line.

A model declares the keys that are read; other keys are ignored. Nothing is converted: ``"3"`` and ``true`` are not
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import LARGEST
from perfflow.tools import tool_files

Figure = Annotated[float, Field(ge=0, lt=LARGEST)]
Positive = Annotated[float, Field(gt=0, lt=LARGEST)]
Figures = Annotated[list[Figure], Field(fail_fast=True)]
Positives = Annotated[list[Positive], Field(fail_fast=True)]
"""Checking stops at the first invalid item, since there may be a million."""
Whole = Annotated[int, Field(ge=0, lt=int(LARGEST))]
Counted = Annotated[int, Field(gt=0, lt=int(LARGEST))]
Name = Annotated[str, AfterValidator(tool_files.clean_name)]
"""A printable name; see ``tool_files.clean_name``."""


class Json(BaseModel):
    """Base class of the models."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


M = TypeVar("M", bound=Json)
# Keys that name an object in messages, the most specific first.
_NAMES = ("fullname", "full_id", "name", "command", "location", "function", "thread_name")
_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "is not text",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "bool_type": "is neither true nor false",
    "float_type": "is {}, not a number",
    "int_type": "is {}, not a whole number",
    "extra_forbidden": "is not known to perfflow",
    "unknown": "is {}, which perfflow does not know",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def one_of(known: Mapping[str, Any]) -> BeforeValidator:
    """Return a validator that replaces a word, such as a unit, by its entry in ``known``."""

    def look_up(value: object) -> Any:
        if not isinstance(value, str) or value not in known:
            raise PydanticCustomError("unknown", "unknown")
        return known[value]

    return BeforeValidator(look_up)


def read(model: type[M], path: Path, remedy: str = "") -> M:
    """Return a file as a model. Raises ToolOutputError if it is missing, empty, cut, or does not fit the model."""
    return checked(model, tool_files.read_json(path, remedy), path.name)


def checked(model: type[M], content: object, file: str = "") -> M:
    """Return decoded JSON as a model. Raises ToolOutputError with ``file``, the key and the name of its object."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        words = _WORDS.get(first["type"], "is {}, which is not valid").format(tool_files.shown(first["input"]))
        raise ToolOutputError(f"{_place(content, first['loc'], file)} {words}") from error


def _place(content: object, location: Sequence[str | int], file: str) -> str:
    """Return a location such as ``out.json: stats.data[2] of test_x``, relative to the last object with a name."""
    owner, keys = "", ""
    for step in location:
        called = _object_names(content)
        if called and isinstance(called[0], str) and step not in _NAMES:
            owner, keys = f" of {tool_files.clean_name(called[0])[:80]}", ""
        keys += f"[{step}]" if isinstance(step, int) else f".{tool_files.clean_name(step)[:80]}"
        content = _item_of(content, step)
    where = f"{keys.removeprefix('.')}{owner}"
    return ": ".join(filter(None, (file, where))) or "it"


def _item_of(content: object, step: str | int) -> object:
    """Return an item of a list or object, None if it does not exist."""
    if isinstance(content, list):
        return content[step] if isinstance(step, int) and step < len(content) else None
    return content.get(step) if isinstance(content, dict) else None


def _object_names(content: object) -> list[object]:
    """Return the names of a piece of JSON; pyperf has them in the metadata."""
    pieces = (content, content.get("metadata")) if isinstance(content, dict) else ()
    return [piece[key] for piece in pieces if isinstance(piece, dict) for key in _NAMES if key in piece]
