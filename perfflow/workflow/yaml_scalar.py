"""One value as YAML text."""

from __future__ import annotations

import json
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.later import late_pattern
from perfflow.workflow.yaml_text import read_text

_PLAIN = late_pattern(r"[\w./+=-][\w ./+=-]*(?<! )")


def scalar(value: Any, old: str = "") -> str:
    """A value as YAML, in the quotes that ``old`` had; JSON's scalars are YAML's."""
    if not isinstance(value, str):
        return json.dumps(value)
    if old.startswith("'") and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    quoted = json.dumps(value, ensure_ascii=False)
    return quoted if old.startswith('"') or not _is_plain(value) else value


def _is_plain(value: str) -> bool:
    """Whether a text needs no quotes: not a number, not a word with a meaning, no sign of YAML's own."""
    if not _PLAIN.fullmatch(value):
        return False
    try:
        return bool(read_text(f"k: {value}", "").data() == {"k": value})
    except UserError:
        return False
