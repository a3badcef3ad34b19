"""Find accepted regressions that are already in the base's copy of the workflow. They are merged, so they are spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from perfflow.library import search_path
from perfflow.library.pinned import Library
from perfflow.model.criteria import read_share
from perfflow.model.errors import UserError
from perfflow.model.units import UnitError
from perfflow.session.open_workflow import Opened
from perfflow.trees.repository import Repository, State
from perfflow.workflow.load import load
from perfflow.workflow.readable import Readable


class Entry(NamedTuple):
    """The identity of an entry under ``accepted``."""

    benchmark: str
    metric: str
    change: float
    why: str
    until: str


def without_spent(opened: Opened, repository: Repository, base: State) -> tuple[Opened, list[str]]:
    """Return the workflow with its merged entries marked as spent, and warnings.

    For a workflow outside the repository this is not known, so its entries count until their dates.
    """
    accepted = opened.plan.criteria.accepted
    if not accepted:
        return opened, []
    path = opened.path.resolve()
    if not path.is_relative_to(repository.root):
        text = "the workflow is not in the repository, so perfflow cannot tell which accepted regressions are merged"
        return opened, [f"{text}: each counts until its date"]
    library = Library(opened.root)
    merged = set(_entries(repository, base, path.relative_to(repository.root), library))
    marked = tuple(
        replace(item, spent=Entry(item.benchmark, item.metric, item.change, item.why, item.until) in merged)
        for item in accepted
    )
    criteria = replace(opened.plan.criteria, accepted=marked)
    return replace(opened, plan=replace(opened.plan, criteria=criteria)), []


def _entries(repository: Repository, base: State, name: Path, library: Library) -> Iterator[Entry]:
    """Yield the entries of the base's copy of a workflow and of the files it extends; none if it cannot be read.

    Files from another repository are read in head's version.
    """
    with repository.scratch() as folder:
        top = folder.resolve()

        def shown(path: Path) -> Path:
            """Write the base's copy of a file below ``top``, and return its path."""
            inside = Path(*path.resolve().relative_to(top).parts)
            done = repository.git().attempt("cat-file", "blob", f"{base.commit}:{inside.as_posix()}")
            if done.status == 0:
                path.resolve().parent.mkdir(parents=True, exist_ok=True)
                path.resolve().write_bytes(done.stdout)
            return path

        def resolve(text: str, where: Path) -> Path:
            found = library.resolve(text, where)
            return shown(found) if found.resolve().is_relative_to(top) else found

        try:
            readable = library.reading(Readable.of(top, search_path.SHIPPED))
            written = load(shown(top / name), resolve, readable).workflow.accepted
        except UserError:
            return
        for item in written:
            try:
                share = read_share(item.change)
            except UnitError:
                continue
            yield Entry(item.benchmark, item.metric or "", share, item.why, item.until)
