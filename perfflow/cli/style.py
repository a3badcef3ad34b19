"""Chooses colour, width and characters of output from flags, environment and the stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from perfflow.report.sanitize import NO_EDGE

ALWAYS, AUTO, NEVER = "always", "auto", "never"
NARROWEST = 20
NO_SIZE = os.terminal_size((80, 24))
"""Assumed size of a terminal that does not report its size."""


@dataclass(frozen=True)
class Style:
    """How to write to one stream. ``width`` is in columns; it is unlimited for logs, which are not wrapped."""

    color: bool
    unicode: bool
    width: int


def style_of(stream: TextIO | None, color: str = AUTO) -> Style:
    """Return the style of a stream.

    Colour depends on the flag, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then on whether the stream is a
    terminal. ``stream`` is None if the shell closed it.
    """
    if stream is None:
        return Style(color=False, unicode=False, width=NO_EDGE)
    terminal = stream.isatty()
    width = max(NARROWEST, _columns(stream)) if terminal else NO_EDGE
    capable = terminal and os.environ.get("TERM") != "dumb"
    return Style(_colored(capable, color), _unicode(stream, terminal), width)


def size_of(stream: TextIO) -> os.terminal_size:
    """Return the current size of the terminal of a stream."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return NO_SIZE
    return found if found.columns > 0 and found.lines > 0 else NO_SIZE


def _columns(stream: TextIO) -> int:
    """Return COLUMNS if it is set, as other programs do, else the width of the terminal."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) > 0 else size_of(stream).columns


def _unicode(stream: TextIO, terminal: bool) -> bool:
    """Return whether the stream can show more than ASCII. The fonts of the Linux console lack the marks."""
    if terminal and os.environ.get("TERM") == "linux":
        return False
    return "utf" in (stream.encoding or "").lower() and not _plain_locale(os.environ, sys.flags.utf8_mode)


def _plain_locale(environ: Mapping[str, str], utf8_mode: int) -> bool:
    """Return whether the user selected the C locale. Python uses UTF-8 in it by default (PEP 540)."""
    told = environ.get("PYTHONUTF8") or environ.get("PYTHONIOENCODING")
    return bool(utf8_mode) and not told and (environ.get("LC_ALL") or environ.get("LANG")) in ("C", "POSIX")


def _colored(terminal: bool, color: str) -> bool:
    if color != AUTO:
        return color == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal
