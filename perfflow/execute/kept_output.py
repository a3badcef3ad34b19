"""Trim and mask the files of a finished step: remove the middle of long output, and mask secrets.

This never happens while a step runs, so that a timed command writes to a plain file and has the machine to itself.
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
"""Bytes of output to keep. Of longer output, half of this is kept from each end."""
PRINTED = ("stdout", "stderr", STDERR, "outputs", "prepare.stdout", "prepare.stderr")
"""Files with the printed output of programs, or with outputs for later steps; all others are files of a tool."""
_UNCHANGED_FOLDERS = frozenset({"artifacts"})
"""Folders that the workflow asks to keep unchanged."""
_PATCH_SUFFIXES = (".patch", ".diff")
"""Suffixes of files that a resumed run applies to code again."""
_MOST_SEARCHED = 64 * 2**20
"""Size limit, in bytes, of a tool's file that is searched for secrets."""
_OVERLAP = 2**16
"""Upper bound of the length of a secret, in bytes: each part is searched together with this much of the next."""
_CHUNK = 2**20
_NOTE_SIZE = 128
"""Bytes reserved in each half for the line that replaces the middle."""
_BINARY_PROBE = 8192


def trim_and_mask(folder: Path, secrets: Secrets) -> set[Path]:
    """Trim and mask the files in the folder of a finished step, and return the changed ones.

    Patches, artifacts, binary files and tools' files of more than 64 MiB stay unchanged. Raises OSError.
    """
    of_bytes: Secrets | None = None
    changed = set()
    for path, size in _files(folder):
        # A file that another user wrote, as with sudo, may not be readable.
        with contextlib.suppress(PermissionError):
            of_bytes = of_bytes or secrets.as_bytes()
            if _is_changed(path, size, of_bytes):
                changed.add(path)
    return changed


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the regular, non-empty files and their sizes in bytes, without following links."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = list(found)
        except OSError:
            continue  # another user's, or just removed by a process left running
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in _UNCHANGED_FOLDERS else []
            elif not entry.name.endswith(_PATCH_SUFFIXES) and (size := _size(entry)):
                yield Path(entry.path), size


def _size(entry: os.DirEntry[str]) -> int:
    """Return the size of a regular file in bytes, 0 for anything else and for a file that is gone."""
    try:
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except FileNotFoundError:
        return 0


def _is_changed(path: Path, size: int, secrets: Secrets) -> bool:
    if path.name in PRINTED and size > KEPT:
        _replace(path, _ends(path, size, secrets))
        return True
    if size > _MOST_SEARCHED:
        return False
    with path.open("rb") as stream:
        if path.name not in PRINTED and b"\0" in stream.read(_BINARY_PROBE):
            return False
        stream.seek(0)
        if not any(spans for _, spans in _parts(stream, secrets)):
            return False
        stream.seek(0)
        _replace(path, (without(text, spans) for text, spans in _parts(stream, secrets)))
    return True


def _ends(path: Path, size: int, secrets: Secrets) -> Iterator[str]:
    """Yield the first part, a line about the removed middle, and the last part of a long file."""
    half = KEPT // 2 - _NOTE_SIZE
    with path.open("rb") as stream:
        # A secret may cross the border of a part, so more is read than is kept.
        first = _text(stream.read(half + _OVERLAP))
        yield _between(first, 0, half, secrets)
        yield f"\n[perfflow left out {size - 2 * half} of {size} bytes here: it keeps the first and the last 8 MiB]\n"
        stream.seek(size - half - _OVERLAP)
        last = _text(stream.read(half + _OVERLAP))
        yield _between(last, _OVERLAP, len(last), secrets)


def _between(text: str, begin: int, end: int, secrets: Secrets) -> str:
    """Return a part of a text with the secrets, or pieces of secrets, in it masked."""
    found = ((max(start, begin) - begin, min(after, end) - begin) for start, after in secrets.spans(text))
    return without(text[begin:end], [(start, after) for start, after in found if start < after])


def _parts(stream: BinaryIO, secrets: Secrets) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the file in parts, split where no secret is, with the (start, end) of the secrets in each."""
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
    """Decode one character per byte, so that no byte is lost and no character is split."""
    return data.decode("latin-1")


def _replace(path: Path, parts: Iterator[str]) -> None:
    """Replace a file instead of writing into it: the old file may have another hard link elsewhere."""
    fresh = path.with_name(f".{path.name}.kept")
    try:
        with fresh.open("wb") as stream:
            stream.writelines(part.encode("latin-1") for part in parts)
        shutil.copymode(path, fresh)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
