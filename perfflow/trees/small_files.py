"""Read text files of an untrusted project: only regular files of limited size inside the project."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST = 2**20
"""Largest size (bytes) of a file that is read."""


def text_of(path: Path, within: Path) -> str:
    """Return the text of a file below ``within``.

    '' for a file that does not exist, is larger than ``LARGEST``, not regular, not UTF-8, or reached through a link
    that leads out of ``within``.
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
