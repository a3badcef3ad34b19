"""Taking a foreign JSON object apart: each piece is of the type asked for, or there is a reason of one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.tools.result_set import label


def part(content: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the object under ``key``, empty if there is none. Raises ToolOutputError if it is something else."""
    found = content.get(key)
    if found is not None and not isinstance(found, dict):
        raise ToolOutputError(f"{key} is no object")
    return cast(Mapping[str, object], found or {})


def parts(content: Mapping[str, object], key: str) -> Sequence[Mapping[str, object]]:
    """Return the list of objects under ``key``. Raises ToolOutputError if it is missing or something else."""
    found = values(content, key)
    if not all(isinstance(each, dict) for each in found):
        raise ToolOutputError(f"{key} holds something that is no object")
    return cast(Sequence[Mapping[str, object]], found)


def values(content: Mapping[str, object], key: str) -> Sequence[object]:
    """Return the list under ``key``. Raises ToolOutputError if it is missing or something else."""
    found = content.get(key)
    if not isinstance(found, list):
        raise ToolOutputError(f"{key} is {'missing' if found is None else 'no list'}")
    return found


def word(content: Mapping[str, object], *keys: str) -> str:
    """Return the text under the first of the keys that has one. Raises ToolOutputError if none has."""
    for key in keys:
        found = content.get(key)
        if isinstance(found, str) and found.strip():
            return found
    raise ToolOutputError(f"a benchmark has no {keys[0]}")


def facts(**given: object) -> dict[str, str]:
    """Return those of the facts that are there, as text."""
    there = {key: str(value) for key, value in given.items() if isinstance(value, str | int | float) and value != ""}
    return {key: label(value) for key, value in there.items()}
