"""Write one value as YAML."""

from __future__ import annotations

import json
import re
from typing import Any

from perfflow.model.errors import UserError
from perfflow.workflow.written_numbers import WrittenFloat, WrittenInt
from perfflow.workflow.yaml_text import read_text

_PLAIN = re.compile(r"[\w./+=-][\w ./+=%-]*(?<! )")


def scalar(value: Any, old: str = "") -> str:
    """Return a value as YAML, in the same quotes as ``old``; other scalars are written as JSON, which is valid YAML."""
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.text
    if not isinstance(value, str):
        return json.dumps(value)
    if old.startswith("'") and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    quoted = json.dumps(value, ensure_ascii=False)
    return quoted if old.startswith('"') or not _is_plain(value) else value


def flow(value: Any) -> str:
    """Return nested data as YAML in one line, such as ``{action: 5%, for: {"core/**": {concern: 2%}}}``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else scalar(value)


def _is_plain(value: str) -> bool:
    """Return whether a string needs no quotes: it is no number, no reserved word, and has no YAML syntax."""
    if not _PLAIN.fullmatch(value):
        return False
    try:
        return bool(read_text(f"k: {value}", "").data() == {"k": value})
    except UserError:
        return False
