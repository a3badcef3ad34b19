"""Remove what perfflow keeps: old runs and comparisons (`perfflow clean`), and the cache (`perfflow cache prune`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from perfflow.store import run_folder
from perfflow.store import run_folder as run_folders
from perfflow.store.run_folder import OldFolder
from perfflow.trees import bundles
from perfflow.trees import slots as tree_folders
from perfflow.trees.slots import Home, Tree

DAY = 86400.0
KINDS = ("runs", "comparisons")
IN_USE = "in use"
"""Reason for keeping what a run or a job uses, which does not count as a failure."""


@dataclass(frozen=True)
class CleanRequest:
    """What to remove: folders of these ``kinds`` not written for ``days``, except the ``keep`` newest runs."""

    kinds: tuple[str, ...] = KINDS
    days: float = 30.0
    keep: int = 10
    dry: bool = False


@dataclass(frozen=True)
class PruneRequest:
    """What to remove of the cache: trees not used for ``days``, and the oldest until ``keep`` bytes are left."""

    keep: float
    days: float = 30.0
    dry: bool = False


@dataclass(frozen=True)
class Removed:
    """One folder that was or would be removed; ``kept`` is the reason why it was not."""

    what: str
    path: Path
    size: int
    kept: str = ""


def clean(root: Path, request: CleanRequest) -> Iterator[Removed]:
    """Remove old folders one by one. Folders in use, baselines and calibrations are kept."""
    run_folder.require_own(root)
    before = time.time() - request.days * DAY
    if "runs" in request.kinds:
        old = [item for item in run_folders.runs(root)[request.keep :] if item.written <= before]
        yield from _each(old, before, dry=request.dry)
        run_folders.drop_dangling_latest(root)
        yield from _each(run_folders.patches(root, {item.path for item in old}), before, dry=request.dry)
    if "comparisons" in request.kinds:
        yield from _each(run_folders.comparisons(user_cache_path("perfflow")), before, dry=request.dry)


def prune(request: PruneRequest) -> Iterator[Removed]:
    """Remove trees with their builds, one by one, of all projects: the cache is one. Trees in use are kept."""
    cache = user_cache_path("perfflow")
    before = time.time() - request.days * DAY
    left: list[tuple[Tree, int]] = []
    for home in tree_folders.homes(cache):
        if home.project is None or not home.project.exists() or home.written <= before:
            yield _home(home, dry=request.dry)
        else:
            left += [(tree, sum(map(run_folders.size_of, tree.folders))) for tree in tree_folders.trees(home)]
    left.sort(key=lambda item: item[0].used)
    total = sum(size for _, size in left)
    for tree, size in left:
        if tree.used <= before or total > request.keep:
            done = _tree(tree, size, dry=request.dry)
            total -= 0 if done.kept else size
            yield done
    yield from _clones(cache, before, dry=request.dry)


def _clones(cache: Path, before: float, *, dry: bool) -> Iterator[Removed]:
    """Remove clones that jobs of a cluster left on this machine. Their projects are not known here."""
    for home, used in bundles.clones(cache):
        if used <= before:
            with bundles.held(home) as free:
                what, size = "clones for jobs of a cluster", run_folders.size_of(home)
                yield _removed(what, home, size, dry=dry) if free else Removed(what, home, size, IN_USE)


def _each(found: list[OldFolder], before: float, *, dry: bool) -> Iterator[Removed]:
    for item in found:
        if item.written <= before:
            yield _removed(item.what, item.path, item.size, dry=dry)


def _home(home: Home, *, dry: bool) -> Removed:
    what = f"trees of {home.project or 'an unknown project'}"
    size = run_folders.size_of(home.path)
    with tree_folders.held(home.path) as free:
        if not free:
            return Removed(what, home.path, size, IN_USE)
        return _removed(what, home.path, size, dry=dry)


def _tree(tree: Tree, size: int, *, dry: bool) -> Removed:
    what = f"a tree of {tree.project}"
    with tree_folders.held(tree.path.parent.parent) as free:
        if not free:
            return Removed(what, tree.path, size, IN_USE)
        try:
            if not dry:
                tree.forget()
                for folder in tree.folders:
                    run_folders.remove(folder)
        except OSError as error:
            return Removed(what, tree.path, size, f"{error.strerror}")
    return Removed(what, tree.path, size)


def _removed(what: str, path: Path, size: int, *, dry: bool) -> Removed:
    try:
        if not dry:
            run_folders.remove(path)
    except OSError as error:
        return Removed(what, path, size, f"{error.strerror}")
    return Removed(what, path, size)
