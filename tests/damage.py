"""Accidents that happen to files: of their bytes, and of their content where it is JSON."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_NUMBERS = [b"0", b"-1", b"-0.0", b"1e999", b"1e-320", b"NaN", b"Infinity", b"9" * 30, b"1" * 5000, b"1.5", b"", b"x"]
_PIECES = [
    b"{" * 50,
    b"[" * 3000,
    b";" * 50,
    b"(" * 50,
    b"\\ud800",
    b"\x1b[31m",
    b"A" * 9000,
    b"\x00",
    b"\n",
    b"\xff\xfe",
    b'"',
    b"-2",
]
_ODD = [None, True, False, 0, -1, 10**30, 1e300, 1e-320, float("nan"), float("inf"), "", "x", "\ud800", "b" * 900]
_NESTED: list[Any] = [[], {}, [[]], [{}], [None], [-1], {"a": 1}, {"value": 1, "unit": "second"}]
# Copied, since what is drawn may be edited again.
_VALUES = st.sampled_from([*_ODD, *_NESTED]).map(deepcopy)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return the content after one to three accidents."""
    for _ in range(draw(st.integers(1, 3))):
        accident = draw(st.sampled_from([_flipped, _cut, _without_line, _doubled_line, _renumbered, _spliced, _edited]))
        content = accident(draw, content)
    return content


def _flipped(draw: st.DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, max(0, len(content) - 1)))
    return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]


def _cut(draw: st.DrawFn, content: bytes) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _without_line(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines)))
    return b"".join(lines[:at] + lines[at + 1 :])


def _doubled_line(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines)))
    return b"".join(lines[:at] + lines[at : at + 1] * draw(st.integers(2, 4)) + lines[at + 1 :])


def _renumbered(draw: st.DrawFn, content: bytes) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = draw(st.sampled_from(found))
    return content[: match.start()] + draw(st.sampled_from(_NUMBERS)) + content[match.end() :]


def _spliced(draw: st.DrawFn, content: bytes) -> bytes:
    at = draw(st.integers(0, len(content)))
    return content[:at] + draw(st.binary(max_size=8) | st.sampled_from(_PIECES)) + content[at:]


def _edited(draw: st.DrawFn, content: bytes) -> bytes:
    """Replace, remove or repeat one node of the JSON; of a stream of events, of one of its lines."""
    lines = content.splitlines(keepends=True)
    at = draw(st.integers(0, max(0, len(lines) - 1)))
    for before, text, after in ((b"", content, b""), (b"".join(lines[:at]), b"".join(lines[at : at + 1]), b"\n")):
        try:
            root = {"": json.loads(text)}
        except (ValueError, RecursionError):
            continue
        _edit(draw, root)
        return before + json.dumps(root.get("")).encode() + after + (b"".join(lines[at + 1 :]) if after else b"")
    return content


def _edit(draw: st.DrawFn, root: dict[str, Any]) -> None:
    parent: Any = root
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and draw(st.integers(0, 5)):
        parent = parent[key]
        key = draw(st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent))))
    if draw(st.integers(0, 3)):
        parent[key] = draw(_VALUES)
    elif isinstance(parent, list):
        parent.append(parent[key])
    else:
        del parent[key]
