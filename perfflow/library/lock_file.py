"""``perfflow.lock``: records the commit of every reference into git, and the sha256 of each file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from perfflow.library import references
from perfflow.model.errors import Problem, UserError
from perfflow.workflow.document import Document
from perfflow.workflow.model import WorkflowPart
from perfflow.workflow.shape import read_shape
from perfflow.workflow.yaml_text import read_file

NAME = references.LOCK
VERSION = 1
_KEY = "perfflow-lock"
_HEAD = """\
# Pinned workflows from git. Written by `perfflow library`; commit this file.
# To remove an item: perfflow library remove REFERENCE
"""
_MEND = "restore it from git, or delete it and pin again: perfflow library add REFERENCE"
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Pin(WorkflowPart):
    """The pinned commit and files of one reference."""

    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    kind: Literal["tag", "branch", "commit"] = Field(description="kind of the revision")
    path: str = Field(description="the named file, from the top of the repository")
    sha256: Sha256 = Field(description="of the lines `SHA256  PATH` of all files, sorted")
    vendored: bool = Field(default=False, description="whether the project has a copy")
    files: dict[str, Sha256] = Field(description="path -> sha256, of the named file and the files that it uses")


class _LockFile(WorkflowPart):
    perfflow_lock: Literal[1]
    items: dict[str, Pin] = Field(default_factory=dict)


Lock = Mapping[str, Pin]
"""Pins by reference."""


def digest(files: Mapping[str, str]) -> str:
    """Return the sha256 of several files: of the lines that ``sha256sum`` prints, sorted by path."""
    return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()


def read(root: Path) -> Lock:
    """Return the lock of a project, empty if there is none. Raises UserError if it is damaged or too new."""
    path = root / NAME
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        document = read_file(path)
        data = document.data()
    except UserError as error:
        raise UserError((*error.problems, Problem(f"{path} is damaged", _MEND))) from error
    version = data.get(_KEY)
    if isinstance(version, int) and version > VERSION:
        message = f"{path} has version {version}, but this perfflow supports version {VERSION}"
        raise UserError.of(message, "update perfflow")
    shaped = read_shape(document, _LockFile, data, ())
    problems = [*document.problems, *shaped.problems]
    if not problems and shaped.model:
        problems = list(_wrong(document, shaped.model))
    if problems or not shaped.model:
        raise UserError((*problems, Problem(f"{path} is damaged", _MEND)))
    return shaped.model.items


def _wrong(document: Document, lock: _LockFile) -> Iterator[Problem]:
    """Yield problems that the schema does not detect: invalid names and paths, and wrong checksums."""
    for name, pin in lock.items.items():
        place = document.place(("items", name), key=True)
        try:
            reference = references.read(name)
            written = str(reference)
            for path in (pin.path, *pin.files):
                references.require_path(path, name)
        except UserError as error:
            yield Problem(error.problems[0].message, error.problems[0].hint, place)
            continue
        if written != name:
            yield Problem(f"{name} must be written as {written}", "", place)
        if pin.path not in pin.files:
            yield Problem(f"{name}: its file {pin.path} is not among `files`", "", place)
        elif pin.path != reference.entry(pin.files):
            # Another file of the item may run commands that nobody expects from the reference.
            yield Problem(f"{name}: `path` is {pin.path}, which is not the file that the reference names", "", place)
        if digest(pin.files) != pin.sha256:
            yield Problem(f"{name}: `sha256` does not match the checksums in `files`", "", place)


def write(root: Path, lock: Lock) -> None:
    """Write a project's lock atomically, or delete it if it has no item. Raises UserError."""
    path = root / NAME
    fresh = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        if not lock:
            path.unlink(missing_ok=True)
            return
        fresh.write_text(text_of(lock), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise UserError.of(f"{path} cannot be written: {error.strerror}", "check the permissions") from error
    finally:
        fresh.unlink(missing_ok=True)


def text_of(lock: Lock) -> str:
    """Return the text of a lock. It is sorted, so that two branches that add items differ in few lines."""
    lines = [f"{_KEY}: {VERSION}", "items:"]
    for name, pin in sorted(lock.items()):
        lines += [f"  {_quoted(name)}:", f"    commit: {_quoted(pin.commit)}", f"    kind: {pin.kind}"]
        lines += [f"    path: {_quoted(pin.path)}", f"    sha256: {_quoted(pin.sha256)}"]
        lines += ["    vendored: true"] if pin.vendored else []
        lines += ["    files:", *(f"      {_quoted(path)}: {_quoted(sha)}" for path, sha in sorted(pin.files.items()))]
    return _HEAD + "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    # Quoted, because digits alone would be a number in YAML.
    return json.dumps(value, ensure_ascii=False)
