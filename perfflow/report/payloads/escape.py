"""Escaping of files that may be printed to a log or posted, so that no service acts on their content.

GitHub Actions runs commands in lines that start with ``::``, and after ``##[``, in any output. perfflow finds its own
comment and its log of hops by HTML comments. Neither may come from a name.
"""

from __future__ import annotations

import re

from perfflow.report.sanitize import visible

_COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def inert(text: str) -> str:
    """Return a text in Markdown or plain lines without workflow commands and HTML comments."""
    return _COMMAND.sub(r"\1: ", text.replace("##[", "## [")).replace("<!--", "<! --").replace("-->", "-- >")


def inert_json(text: str) -> str:
    """Return equivalent JSON without workflow commands; ``##[`` can only occur inside a string."""
    return text.replace("##[", "##\\u005b")


def clipped(text: str, most: int) -> str:
    """Return one visible line of at most ``most`` UTF-16 units and bytes; a cut line ends with dots."""
    text = visible(text)
    if fits(text, most):
        return text
    letters = text[:most]
    while not fits(letters + "…", most):
        letters = letters[:-1] if len(letters) < 64 else letters[: -max(1, len(letters) // 64)]
    return letters + "…"


def fits(text: str, most: int) -> bool:
    """Return whether a text is within a limit in bytes, which are never fewer than characters in any count."""
    return len(text.encode("utf-8", "surrogatepass")) <= most
