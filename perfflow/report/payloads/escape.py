"""Files that may be printed to a log or posted, without anything in them that a service or a reader acts on.

GitHub Actions obeys a line that starts with ``::`` and anything after ``##[``, wherever it is printed; perfflow finds
its own comment, and its log of hops, by HTML comments: none of the two may come from a name.
"""

from __future__ import annotations

import re

from perfflow.model.later import late_pattern
from perfflow.report.sanitize import visible

_COMMAND = late_pattern(r"^(\s*):(?=:)", re.MULTILINE)


def inert(text: str) -> str:
    """A text in Markdown or plain lines without workflow commands and HTML comments."""
    return _COMMAND.sub(r"\1: ", text.replace("##[", "## [")).replace("<!--", "<! --").replace("-->", "-- >")


def inert_json(text: str) -> str:
    """JSON of the same meaning without a workflow command in it; ``##[`` can only stand inside a string."""
    return text.replace("##[", "##\\u005b")


def clipped(text: str, most: int) -> str:
    """One visible line of at most ``most`` UTF-16 units and bytes, with dots where it is cut at its end."""
    text = visible(text)
    if fits(text, most):
        return text
    letters = text[:most]
    while not fits(letters + "…", most):
        letters = letters[:-1] if len(letters) < 64 else letters[: -max(1, len(letters) // 64)]
    return letters + "…"


def fits(text: str, most: int) -> bool:
    """Whether a text is within a limit, however a service counts: in bytes, which are never fewer than letters."""
    return len(text.encode("utf-8", "surrogatepass")) <= most
