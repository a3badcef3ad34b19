"""``perfflow.lock``: for every reference into git the commit it stands for, and the sha256 of each file."""

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
# What references to workflows in git stand for. Written by `perfflow library`; commit this file.
# To drop an item: perfflow library remove REFERENCE
"""
_MEND = "take it from git again, or remove it and pin anew: perfflow library add REFERENCE"
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Pin(WorkflowPart):
    """What one reference stands for."""

    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
    kind: Literal["tag", "branch", "commit"] = Field(description="what the revision is")
    path: str = Field(description="the file that is named, from the top of the repository")
    sha256: Sha256 = Field(description="of the lines `SHA256  PATH` of all files, sorted")
    vendored: bool = Field(default=False, description="whether the project holds a copy")
    files: dict[str, Sha256] = Field(description="path -> sha256, of that file and of what it refers to beside it")


class _LockFile(WorkflowPart):
    perfflow_lock: Literal[1]
    items: dict[str, Pin] = Field(default_factory=dict)


Lock = Mapping[str, Pin]
"""Reference -> pin."""


def digest(files: Mapping[str, str]) -> str:
    """The sha256 of several files: of what ``sha256sum`` prints for them, in the order of their paths."""
    return hashlib.sha256("".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()).hexdigest()


def read(root: Path) -> Lock:
    """The lock of a project, empty where it has none. Raises UserError where it is damaged or too new."""
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
        message = f"{path} is of version {version}, and this perfflow knows {VERSION}"
        raise UserError.of(message, "update perfflow")
    shaped = read_shape(document, _LockFile, data, ())
    problems = [*document.problems, *shaped.problems]
    if not problems and shaped.model:
        problems = list(_wrong(document, shaped.model))
    if problems or not shaped.model:
        raise UserError((*problems, Problem(f"{path} is damaged", _MEND)))
    return shaped.model.items


def _wrong(document: Document, lock: _LockFile) -> Iterator[Problem]:
    """What the shape alone does not tell: names that lead elsewhere, sums that do not add up."""
    for name, pin in lock.items.items():
        place = document.place(("items", name), key=True)
        try:
            written = str(references.read(name))
            for path in (pin.path, *pin.files):
                references.require_path(path, name)
        except UserError as error:
            yield Problem(error.problems[0].message, error.problems[0].hint, place)
            continue
        if written != name:
            yield Problem(f"{name} is written as {written}", "", place)
        if pin.path not in pin.files:
            yield Problem(f"{name}: its file {pin.path} is not among `files`", "", place)
        if digest(pin.files) != pin.sha256:
            yield Problem(f"{name}: `sha256` does not fit the sums under `files`", "", place)


def write(root: Path, lock: Lock) -> None:
    """Write a project's lock, whole or not at all; without an item there is none. Raises UserError."""
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
    """The text of a lock: sorted, so that two branches that add items differ in few lines."""
    lines = [f"{_KEY}: {VERSION}", "items:"]
    for name, pin in sorted(lock.items()):
        lines += [f"  {_quoted(name)}:", f"    commit: {_quoted(pin.commit)}", f"    kind: {pin.kind}"]
        lines += [f"    path: {_quoted(pin.path)}", f"    sha256: {_quoted(pin.sha256)}"]
        lines += ["    vendored: true"] if pin.vendored else []
        lines += ["    files:", *(f"      {_quoted(path)}: {_quoted(sha)}" for path, sha in sorted(pin.files.items()))]
    return _HEAD + "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    # Digits alone would be a number in YAML.
    return json.dumps(value, ensure_ascii=False)
