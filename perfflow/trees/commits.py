"""Make commits of trees with plumbing commands: no hook runs, nothing is signed, and no branch moves.

Commits stay in the private store. Only ``branch`` writes to the user's repository, and only what a new branch needs.
Commits contain a pointer for each file of git-lfs; its content is in a separate store, so ``keep`` copies it there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from perfflow.model.errors import Exit, UserError
from perfflow.trees import submodules
from perfflow.trees.git import Git
from perfflow.trees.repository import CodeState, Repository, common, writing

FALLBACK_NAME, FALLBACK_EMAIL = "perfflow", "perfflow@localhost"
PREFIX = "perfflow/"
"""Prefix of the branches that perfflow makes."""
_LOOSE = 100
"""Most objects that are written to the user's repository as single files; more become a pack (git's own limit)."""


def commit(repository: Repository, tree: str, parent: CodeState, message: str) -> CodeState:
    """Return a commit of ``tree``, as a slot shows it, on top of ``parent``; it is in no branch yet.

    Raises UserError if the change affects a submodule.
    """
    own = submodules.linked(repository, tree, parent.commit, parent.tree) if repository.submodules else tree
    return CodeState(write(repository, own, [parent.commit], message), tree)


def write(repository: Repository, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit object with the user's identity, or perfflow's own if none is configured; return its id."""
    git = repository.git()
    above = [word for parent in parents for word in ("-p", parent)]
    text = message.rstrip("\n").encode("utf-8", "replace") + b"\n"
    argv = ["commit-tree", "--no-gpg-sign", *above, "-F", "-", tree]
    return _with_identity(git).run(*argv, input=text, what="write a commit").decode().strip()


def _with_identity(git: Git) -> Git:
    """Return git with the configured identity, or perfflow's own instead of one that git would guess from the host."""
    missing: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        strict = Git(git.folder, git.variables, {**git.settings, "user.useConfigOnly": "true"})
        if strict.attempt("var", f"GIT_{role}_IDENT").status:
            missing |= {f"GIT_{role}_NAME": FALLBACK_NAME, f"GIT_{role}_EMAIL": FALLBACK_EMAIL}
    return git.with_variables(**missing)


def branch(repository: Repository, name: str, commit: str) -> None:
    """Make the branch ``perfflow/...`` at ``commit``, and copy the objects that it needs to the user's repository.

    An existing branch never moves: it is accepted at the same commit. Raises UserError if it is at another commit, and
    for a name that git refuses.
    """
    full = f"refs/heads/{name}"
    inside = repository.git()
    if not name.startswith(PREFIX) or inside.attempt("check-ref-format", full).status:
        raise UserError.of(f"{name!r} is not a name for a branch of perfflow", f"use a name that begins with {PREFIX}")
    there = inside.attempt("rev-parse", "--verify", "--quiet", full)
    if there.status == 0:
        if there.stdout.decode().strip() == commit:
            return
        hint = f"git branch -m {name} OTHER, or git branch -D {name}"
        raise UserError.of(f"the branch {name} already exists at another commit", hint, Exit.UNMEASURED)
    outside = _outside(repository)
    what = f"keep the commit of {name}"
    new = inside.run("rev-list", "--objects", "--no-object-names", commit, "--not", "--all", what=what)
    keep(repository, new)
    pack = inside.run("pack-objects", "--local", "--stdout", "-q", input=new, what=what)
    count = int.from_bytes(pack[8:12], "big")
    if count:
        into = ("unpack-objects", "-q") if count <= _LOOSE else ("index-pack", "--stdin", "--fix-thin")
        outside.run(*into, input=pack, what=what)
    # The last argument requires that the branch does not exist, so a branch that the user makes meanwhile never moves.
    message = f"perfflow: made {name}"
    outside.run("update-ref", "-m", message, full, commit, "0" * len(commit), what=f"make the branch {name}")


def _outside(repository: Repository) -> Git:
    """Return git that writes to the user's own object store."""
    mine = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
    inside = repository.git()
    kept = {key: value for key, value in inside.variables.items() if key not in mine}
    return Git(inside.folder, kept, inside.settings)


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
