"""Collects the files of a reference: the named file, and the files of the same repository that it uses."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perfflow.library import lock_file, packages, references, search_path
from perfflow.library.references import ENTRY, Reference
from perfflow.library.store import sums
from perfflow.model.errors import Problem, UserError
from perfflow.model.similar import nearest_of
from perfflow.workflow.document import Document
from perfflow.workflow.extends import named
from perfflow.workflow.readable import LARGEST
from perfflow.workflow.tool_definitions import is_tool_file
from perfflow.workflow.yaml_text import read_text

MOST_FILES = 200
MOST_BYTES = 8 * 2**20
Read = Callable[[str], bytes]
"""Returns the bytes of a file of the repository."""


@dataclass(frozen=True)
class Item:
    """All files of an item by path. ``path``: the named file. ``others``: references in the files."""

    path: str
    files: Mapping[str, bytes]
    others: tuple[str, ...]


def entry_of(reference: Reference, paths: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the file that a reference names, and all files that belong to it: for a folder, its files.

    ``paths``: all paths of the repository. Raises UserError if the file does not exist.
    """
    inside = [path for path in paths if path.startswith(f"{reference.path}/")]
    if entry := reference.entry(paths):
        return entry, inside if entry in inside else [entry]
    names = inside or nearest_of(reference.path, [path for path in paths if _is_yaml(path)], 3, 0.3)
    hint = f"a folder needs a {ENTRY}; " * bool(inside) + (f"it has: {', '.join(names[:5])}" if names else "")
    raise UserError.of(f"{reference.url} has no file {reference.path!r} at {reference.revision}", hint)


def collected(reference: Reference, path: str, further: list[str], read: Read) -> Item:
    """Read a file, the files that it extends, its tool files, and the ``further`` files that belong to it.

    Raises UserError if a file is not YAML or leads out of the repository, or if the item is too large.
    """
    files: dict[str, bytes] = {}
    others: list[str] = []
    left = [path]
    while left:
        name = left.pop()
        if name not in files:
            _add(files, name, read)
            if _is_yaml(name):
                document = read_text(_text(files[name], f"{reference}, {name}"), _shown(reference, name))
                found, elsewhere = _mentions(document, name)
                left += found
                others += elsewhere
    for name in further:
        if name not in files:
            _add(files, name, read)
    return Item(path, files, tuple(dict.fromkeys(others)))


def _add(files: dict[str, bytes], name: str, read: Read) -> None:
    files[name] = read(name)
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        hint = "name a file of the folder, or remove files that no workflow needs"
        raise UserError.of(f"the item has more than {MOST_FILES} files, or {MOST_BYTES:,} bytes", hint)


def _shown(reference: Reference, name: str) -> str:
    return f"git+{reference.url}@{reference.revision}#{name}"


def _text(raw: bytes, said: str) -> str:
    if len(raw) > LARGEST:
        raise UserError.of(f"{said} is larger than 1 MiB", "check that this is a workflow file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError.of(f"{said} is not UTF-8 text", "check that this is a workflow file") from error


def _is_yaml(path: str) -> bool:
    return path.endswith(search_path.SUFFIXES)


def _mentions(document: Document, name: str) -> tuple[list[str], list[str]]:
    """Return the paths in the repository and the references in a file. Raises UserError with the place."""
    inside, elsewhere = [], []
    uses = [(text, loc, "") for text, loc in _used(document)]
    for text, place, folder in [*((text, place, posixpath.dirname(name)) for text, place in named(document)), *uses]:
        if references.names_one(text):
            elsewhere.append(text)
        elif text.startswith((packages.PKG, search_path.LIB)):
            continue
        else:
            path = posixpath.normpath(posixpath.join(folder, text))
            if path.startswith(("/", "../")) or path == "..":
                hint = "name a file of the same repository, or a file of another as git+URL@REV#PATH"
                raise UserError((Problem(f"{text} leads out of the repository", hint, place),))
            inside.append(path)
    return inside, elsewhere


def references_in(document: Document) -> Iterator[str]:
    """Yield each reference into git in a file, as written in ``perfflow.lock``."""
    for text, _ in (*named(document), *_used(document)):
        if references.names_one(text):
            yield str(references.read(text))


def _used(document: Document) -> Iterator[tuple[str, Any]]:
    """Yield the tool files of the steps, as written, and their places."""
    data = document.data()
    stages = data.get("stages")
    for stage, content in stages.items() if isinstance(stages, dict) else ():
        steps = content.get("steps") if isinstance(content, dict) else content
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            uses = step.get("uses") if isinstance(step, dict) else None
            if isinstance(uses, str) and is_tool_file(uses):
                yield uses, document.place(("stages", stage, "steps", index, "uses"))


def is_tool(raw: bytes) -> bool:
    """Return whether a file defines a tool, judged by one line of its text."""
    return any(line.startswith(b"perfflow-tool:") for line in raw.splitlines())


def pin_of(commit: str, kind: str, item: Item) -> lock_file.Pin:
    """Return the pin of a fetched item."""
    files = sums(item.files)
    data = {"commit": commit, "kind": kind, "path": item.path, "sha256": lock_file.digest(files), "files": files}
    return lock_file.Pin.model_validate(data)
