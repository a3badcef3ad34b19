"""The format of the JSON files of a run: one key per line, and one line per item of a list or map.

An item on one line reads like a row of a table and is one line of a diff. json also writes it ten times faster than
indented text, which it produces in Python code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def json_lines(parts: Iterable[tuple[str, Any]], plain: Callable[[Any], Any] = lambda value: value) -> Iterator[str]:
    """Yield the text of an object in parts, because several copies of the whole may need too much memory.

    ``plain`` converts an item to JSON data. A number that is not finite is written as null.
    """
    opening = "{\n"
    for name, value in parts:
        yield f"{opening} {_compact(name)}: "
        if value and isinstance(value, list):
            yield from _rows("[", (_compact(plain(item)) for item in value), "]")
        else:
            data = plain(value)
            if data and isinstance(data, dict):
                yield from _rows("{", _items(data), "}")
            else:
                yield _compact(data)
        opening = ",\n"
    yield "\n}\n"


def _rows(opening: str, rows: Iterable[str], closing: str) -> Iterator[str]:
    before = f"{opening}\n  "
    for row in rows:
        yield before + row
        before = ",\n  "
    yield f"\n {closing}"


def _items(data: dict[Any, Any]) -> Iterable[str]:
    if all(type(value) is str for value in data.values()):
        # One call for all texts, such as the hashes of a receipt, takes a fraction of the time of one for each.
        return [_lines(data)[1:-1]]
    return (f"{_compact(key)}: {_compact(item)}" for key, item in data.items())


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_lines = json.JSONEncoder(ensure_ascii=False, separators=(",\n  ", ": ")).encode


def _compact(data: Any) -> str:
    try:
        return _encoded(data)
    except ValueError:  # a number that is not finite; checking for one first would take longer than writing
        return _encoded(_nulled(data))


def _nulled(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _nulled(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_nulled(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
