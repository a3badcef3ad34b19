"""Parts of the text of a first workflow: names, commands and lists as YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Starter:
    """A workflow for one kind of project: its text and name, what it measures, and a note for the user."""

    text: str
    name: str
    about: str
    note: str = ""


def fit(name: str) -> str:
    """Return a name that is valid for a workflow file, '' if no character is valid."""
    return _NO_NAME.sub("-", name).strip("-.")[:100]


def quoted(text: str) -> str:
    """Return text as a YAML string in double quotes. Line separators are escaped, since YAML would fold them."""
    text = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def quoted_list(texts: Iterable[str]) -> str:
    """Return texts as a YAML list on one line."""
    return f"[{', '.join(map(quoted, texts))}]"


def comment(text: str) -> str:
    """Return text for a comment: one line of characters that YAML allows."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def is_plain(name: str) -> bool:
    """Return whether a name from a project can be used in a command or an expression without quotes."""
    return bool(_PLAIN.fullmatch(name))
