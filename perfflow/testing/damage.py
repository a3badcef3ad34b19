"""Random damage to files: to their bytes, and to their nodes if they are JSON."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from random import Random
from typing import Any

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_NUMBERS = [b"0", b"-1", b"-0.0", b"1e999", b"1e-320", b"NaN", b"Infinity", b"9" * 30, b"1" * 5000, b"1.5", b"", b"x"]
_BRACKETS = [b"{" * 50, b"[" * 3000, b";" * 50, b"(" * 50]
_PIECES = [*_BRACKETS, b"\\ud800", b"\x1b[31m", b"A" * 9000, b"\x00", b"\n", b"\xff\xfe", b'"', b"-2"]
_ODD = [None, True, False, 0, -1, 10**30, 1e300, 1e-320, float("nan"), float("inf"), "", "x", "\ud800", "b" * 900]
_NESTED: list[Any] = [[], {}, [[]], [{}], [None], [-1], {"a": 1}, {"value": 1, "unit": "second"}]


def damage(content: bytes, random: Random) -> bytes:
    """Return the content with one to three kinds of damage."""
    for _ in range(random.randint(1, 3)):
        content = random.choice(_ACCIDENTS)(content, random)
    return content


def flip(content: bytes, random: Random) -> bytes:
    """Replace one byte."""
    at = random.randint(0, max(0, len(content) - 1))
    return content[:at] + bytes([random.randint(0, 255)]) + content[at + 1 :]


def cut(content: bytes, random: Random) -> bytes:
    """Remove the end."""
    return content[: random.randint(0, len(content))]


def without_line(content: bytes, random: Random) -> bytes:
    """Remove one line."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    return b"".join(lines[:at] + lines[at + 1 :])


def double_line(content: bytes, random: Random) -> bytes:
    """Repeat one line so that it occurs two to four times."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    return b"".join(lines[:at] + lines[at : at + 1] * random.randint(2, 4) + lines[at + 1 :])


def renumber(content: bytes, random: Random) -> bytes:
    """Replace one number by another, or by something else."""
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = random.choice(found)
    return content[: match.start()] + random.choice(_NUMBERS) + content[match.end() :]


def splice(content: bytes, random: Random) -> bytes:
    """Insert a few bytes."""
    at = random.randint(0, len(content))
    piece = random.choice(_PIECES) if random.randint(0, 1) else random.randbytes(random.randint(0, 8))
    return content[:at] + piece + content[at:]


def edit(content: bytes, random: Random) -> bytes:
    """Replace, remove or repeat one node of the JSON, or of one line if the content is JSON lines."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, max(0, len(lines) - 1))
    for before, text, after in ((b"", content, b""), (b"".join(lines[:at]), b"".join(lines[at : at + 1]), b"\n")):
        try:
            root = {"": json.loads(text)}
        except (ValueError, RecursionError):
            continue
        _edit_node(root, random)
        return before + json.dumps(root.get("")).encode() + after + (b"".join(lines[at + 1 :]) if after else b"")
    return content


def _edit_node(root: dict[str, Any], random: Random) -> None:
    parent: Any = root
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and random.randint(0, 5):
        parent = parent[key]
        key = random.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    if random.randint(0, 3):
        # Copied, because a later damage may change the inserted value.
        parent[key] = deepcopy(random.choice([*_ODD, *_NESTED]))
    elif isinstance(parent, list):
        parent.append(parent[key])
    else:
        del parent[key]


_ACCIDENTS = (flip, cut, without_line, double_line, renumber, splice, edit)
