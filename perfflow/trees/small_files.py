"""Texts of a project's own files, read while nothing of it may run: bounded, regular files only, none outside of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST = 2**20
"""Bytes of a file that is looked into."""


def text_of(path: Path, within: Path) -> str:
    """The text of a file below ``within``.

    '' of one that is not there, larger than ``LARGEST``, not a regular file, not UTF-8, or reached through a link that
    leads out of ``within``.
    """
    try:
        place = path.resolve()
        if not place.is_relative_to(within.resolve()) or not stat.S_ISREG(place.stat().st_mode):
            return ""
        with open(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:  # noqa: PTH123
            data = stream.read(LARGEST + 1)
        return "" if len(data) > LARGEST else data.decode("utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError):  # RuntimeError: a loop of links, before Python 3.13
        return ""
