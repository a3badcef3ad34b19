"""Cases in text files, each after a line ``=== NAME``. What stands before the first one belongs to all of them.

A line that begins with two spaces continues the line before it, and ``# TEXT`` is a comment.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path


def read(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each case and its lines, a continued one as one text."""
    common, *parts = re.split(r"^=== (.+)$", path.read_text(), flags=re.MULTILINE)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        lines = [line for text in (common, body) for line in re.split(r"\n+(?=\S)", text.strip("\n"))]
        yield name, [line for line in lines if line and not line.startswith("# ")]


def write(folder: Path, text: str) -> None:
    """Write the file of a line ``@ PATH``: the lines below it. PATH ends with ``!`` if the file is a program."""
    name, _, content = text.partition("\n")
    path = folder / name.removesuffix("!")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(content).rstrip("\n") + "\n")
    path.chmod(0o755 if name.endswith("!") else 0o644)
