"""Files of git-lfs: commits contain a pointer, and the content is in a separate store."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from perfflow.trees.repository import Repository, common, writing

_POINTER = re.compile(
    rb"^version https://git-lfs.github.com/spec/.*^oid sha256:([0-9a-f]{64})$", re.MULTILINE | re.DOTALL
)
_LONGEST = 1024
"""A pointer file is shorter than this (bytes), by the specification of the format."""


def keep(repository: Repository, objects: bytes) -> None:
    """Copy the content of pointers among ``objects`` (ids, one per line) to the user's store if it is missing there."""
    if not repository.large_files.is_dir():
        return
    for oid in sorted(_pointed_at(repository, objects)):
        place = Path("objects", oid[:2], oid[2:4], oid)
        source, target = repository.large_files / place, common(repository.git_folder) / "lfs" / place
        if not source.is_file() or target.exists():
            continue
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            half = target.with_name(f"{oid}.perfflow")
            shutil.copyfile(source, half)
            half.replace(target)


def _pointed_at(repository: Repository, objects: bytes) -> set[str]:
    git = repository.git()
    facts = git.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", input=objects).decode()
    described = [line.split(" ") for line in facts.splitlines()]
    small = [name for name, kind, size in described if kind == "blob" and int(size) < _LONGEST]
    found = (_POINTER.match(git.run("cat-file", "blob", name)) for name in small)
    return {pointer[1].decode() for pointer in found if pointer}
