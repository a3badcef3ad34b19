"""Texts before and after a change, written as diffs."""

from __future__ import annotations

from pathlib import Path


def changes(path: Path) -> dict[str, tuple[str, str, str]]:
    """Return the cases of a file: NAME -> the text before a change, that after it, and what is expected.

    A case is a line ``=== NAME => EXPECTED``, and a diff with the whole text.
    """
    found = {}
    for part in path.read_text().split("\n=== ")[1:]:
        head, *lines = part.rstrip("\n").split("\n")
        case, _, expected = head.partition(" => ")
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[:1] in ("", " ", sign)) for sign in "-+")
        found[case] = (before, after, expected)
    return found
