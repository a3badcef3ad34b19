"""The text that a user reads before the commands of a pinned item may run: all of its files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from perfflow.jobs.library.pin_references import Pinned
from perfflow.report.sanitize import visible


def lines(done: Pinned, name: str) -> Iterator[str]:
    """Yield the text of each file, or its difference from what was shown before.

    A plan alone would hide expressions that are evaluated differently in a run, variables that name further programs,
    and files that commands start. Raises UserError if a file cannot be read.
    """
    pin, files = done.after[name], done.files(name)
    yield f"{visible(name)}: {visible(pin.path)}, commit {pin.commit[:12]}, sha256 {pin.sha256[:12]}"
    before = done.files_shown_before(name)
    if before is None:
        for path, raw in sorted(files.items()):
            yield f"  {visible(path)}:"
            yield from (f"    {_shown(line)}" for line in _lines(raw))
    else:
        yield from _differences(before, files)


def _differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new:
            yield f"  {visible(path)}: as shown before"
        elif new is None:
            yield f"  {visible(path)}: no longer part of it"
        else:
            yield f"  {visible(path)}: {'new' if old is None else 'changed'}"
            changes = difflib.unified_diff(_lines(old or b""), _lines(new), lineterm="")
            yield from (f"    {_shown(line)}" for line in list(changes)[2:])


def _lines(raw: bytes) -> list[str]:
    r"""Return the lines of a file. Bytes that are not UTF-8 become ``\xff``."""
    return raw.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")


def _shown(line: str) -> str:
    r"""Return a line in which every character can be seen, so that no text can hide in it.

    A carriage return is spelled out too: some languages end a line there, while a terminal would overwrite the line.
    """
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)
