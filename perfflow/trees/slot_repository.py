"""A git repository for the programs that run in a slot.

Builds ask git for a version, and editing programs need its diff. This repository has the user's commits and tags only.
Programs may commit, stash or make branches without changing the user's repository, and there is no remote to push to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from perfflow.trees import sharing
from perfflow.trees.repository import Repository, common
from perfflow.trees.snapshots import copy_index


def make(repository: Repository, slot: Path, index: Path, commit: str | None) -> None:
    """Make the repository again: HEAD is ``commit`` (None: no commit yet), the index is a copy of the slot's."""
    folder = slot.with_suffix(".git")
    sharing.remove(folder)
    for inner in ("objects/info", "refs"):
        (folder / inner).mkdir(parents=True)
    borrowed = [repository.objects, *repository.borrowed]
    (folder / "objects" / "info" / "alternates").write_text(
        "".join(f"{path}\n" for path in borrowed if "\n" not in str(path)), errors="surrogateescape"
    )
    (folder / "packed-refs").write_bytes(_tags(repository))
    (folder / "config").write_text(_config(repository))
    shallow = common(repository.git_folder) / "shallow"
    if shallow.is_file():
        shutil.copyfile(shallow, folder / "shallow")
    (folder / "HEAD").write_text(f"{commit}\n" if commit else "ref: refs/heads/main\n")
    copy_index(index, folder / "index")
    (slot / ".git").write_text(f"gitdir: ../{folder.name}\n")


def _tags(repository: Repository) -> bytes:
    """Return the user's tags in the format of packed references."""
    return repository.git().run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")


def _config(repository: Repository) -> str:
    kind = repository.git().line("rev-parse", "--show-object-format")
    version, extension = (0, "") if kind == "sha1" else (1, f"[extensions]\n\tobjectFormat = {kind}\n")
    return f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n{extension}"
