"""What is kept of a step's files once nothing writes them: long output without its middle, and no secret.

Nothing of this happens while a step runs, so that what is timed writes to a plain file and shares the machine with
nobody.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from perfflow.execute.sampler import STDERR
from perfflow.model.secrets import Secrets, without

KEPT = 16 * 2**20
"""Bytes of output that are kept whole; of more the first and the last half of it."""
PRINTED = ("stdout", "stderr", STDERR, "outputs")
"""Files that hold what programs printed, or put out for later steps, rather than what a tool wrote to be read."""
_AS_THEY_ARE = frozenset({"artifacts"})
"""Folders of what the workflow asks to be kept as it is."""
_CHANGES = (".patch", ".diff")
"""How files end that are applied again to code when a run goes on."""
_SEARCHED = 64 * 2**20
"""Bytes of the longest file of a tool that is searched."""
_OVERLAP = 2**16
"""Bytes that no secret is longer than: a part is judged with so much of what follows."""
_CHUNK = 2**20
_LINE = 128
"""Bytes for half of the line that says what is left out."""
_LOOK = 8192


def keep(folder: Path, secrets: Secrets) -> set[Path]:
    """Cut and mask the files below the folder of a step that has ended; returns those that were changed.

    Patches and artifacts stay as they are, and so do binary files and those of tools of more than 64 MiB. Raises
    OSError.
    """
    of_bytes: Secrets | None = None
    changed = set()
    for path, size in _files(folder):
        # What another user wrote, as with sudo, is not ours to read.
        with contextlib.suppress(PermissionError):
            of_bytes = of_bytes or secrets.as_bytes()
            if _is_changed(path, size, of_bytes):
                changed.add(path)
    return changed


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Regular files that hold something, and their sizes; links are not followed."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = list(found)
        except OSError:
            continue  # another user's, or something that was left running tidies up
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in _AS_THEY_ARE else []
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(_CHANGES):
                with contextlib.suppress(FileNotFoundError):
                    if size := entry.stat(follow_symlinks=False).st_size:
                        yield Path(entry.path), size


def _is_changed(path: Path, size: int, secrets: Secrets) -> bool:
    if path.name in PRINTED and size > KEPT:
        _replace(path, _ends(path, size, secrets))
        return True
    if size > _SEARCHED:
        return False
    with path.open("rb") as stream:
        if path.name not in PRINTED and b"\0" in stream.read(_LOOK):
            return False
        stream.seek(0)
        if not any(spans for _, spans in _parts(stream, secrets)):
            return False
        stream.seek(0)
        _replace(path, (without(text, spans) for text, spans in _parts(stream, secrets)))
    return True


def _ends(path: Path, size: int, secrets: Secrets) -> Iterator[str]:
    """The first and the last part of a long file, and a line between them."""
    half = KEPT // 2 - _LINE
    with path.open("rb") as stream:
        # The end of the first part may be the beginning of a secret, and so on: more is read than is kept.
        first = _text(stream.read(half + _OVERLAP))
        yield _between(first, 0, half, secrets)
        yield f"\n[perfflow left out {size - 2 * half} of {size} bytes here: it keeps the first and the last 8 MiB]\n"
        stream.seek(size - half - _OVERLAP)
        last = _text(stream.read(half + _OVERLAP))
        yield _between(last, _OVERLAP, len(last), secrets)


def _between(text: str, begin: int, end: int, secrets: Secrets) -> str:
    """A part of a text, without what belongs to a secret of the whole."""
    found = ((max(start, begin) - begin, min(after, end) - begin) for start, after in secrets.spans(text))
    return without(text[begin:end], [(start, after) for start, after in found if start < after])


def _parts(stream: BinaryIO, secrets: Secrets) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The file in parts that no secret crosses the border of, with the places of secrets in each."""
    text = ""
    while data := stream.read(_CHUNK):
        text += _text(data)
        end = max(0, len(text) - _OVERLAP)
        end = text.rfind("\n", max(0, end - _OVERLAP), end) + 1 or end
        spans = secrets.spans(text)
        crossing = next((span for span in spans if span[0] < end < span[1]), None)
        if crossing:
            end = crossing[0] or crossing[1]
        yield text[:end], [span for span in spans if span[1] <= end]
        text = text[end:]
    yield text, secrets.spans(text)


def _text(data: bytes) -> str:
    """One letter a byte, so that nothing is lost and no letter is cut."""
    return data.decode("latin-1")


def _replace(path: Path, parts: Iterator[str]) -> None:
    """Write a file anew beside itself: the old one may have another name elsewhere."""
    fresh = path.with_name(f".{path.name}.kept")
    try:
        with fresh.open("wb") as stream:
            stream.writelines(part.encode("latin-1") for part in parts)
        shutil.copymode(path, fresh)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
