"""Finds the file of a workflow by name: first in ``workflows/`` of the project, then in perfflow's library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.trees import project
from perfflow.workflow.readable import Readable

SHIPPED = Path(__file__).parent
FOLDER = "workflows"
SUFFIXES = (".yaml", ".yml")
LIB = "lib:"


def find(name: str, root: Path) -> Path:
    """Return the file of a workflow given by path, by name, or as lib:NAME. Raises UserError with a similar name."""
    if name.startswith(LIB):
        return resolve(name, root)
    path = Path(name)
    if path.suffix in SUFFIXES or path.is_file() or os.sep in name:
        return path
    for folder in (root / FOLDER, SHIPPED):
        for suffix in SUFFIXES:
            if (folder / (name + suffix)).is_file():
                return folder / (name + suffix)
    if path.is_dir():  # a workflow of that name comes first, since a folder cannot be run
        return path
    known = sorted({item.stem for item in workflows(root)})
    near = nearest(name, known)
    hint = f"did you mean {near!r}?" if near else f"workflows: {', '.join(known) or 'none'}; or give a path"
    raise UserError.of(f"no workflow called {name!r}", hint)


def workflows(root: Path) -> Iterator[Path]:
    """Yield the files of all workflows that ``find`` finds by name, the project's own first."""
    for folder in (root / FOLDER, SHIPPED):
        yield from sorted(item for suffix in SUFFIXES for item in folder.glob(f"*{suffix}") if item.is_file())


def resolve(text: str, folder: Path) -> Path:
    """Return the file that ``extends`` names: ``lib:NAME``, or a path relative to ``folder``."""
    if not text.startswith(LIB):
        return folder / text
    name = text.removeprefix(LIB)
    # Compare with existing files instead of opening one: the name may be invalid for a file.
    known = {item.stem: item for item in sorted(SHIPPED.glob("*.yaml"))}
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean lib:{near}?" if near else f"library: {', '.join(known) or 'empty'}"
        raise UserError.of(f"the library has no {name!r}", hint)
    return known[name]


def readable(path: Path) -> Readable:
    """Return what may be read for a workflow or a tool file: its project and the library.

    Outside a project: its folder, and the project around the current folder.
    """
    folder = Path(os.path.abspath(path.parent))  # noqa: PTH100 (the named folder, with links unresolved)
    around = project.around(Path.cwd())
    if around and folder.is_relative_to(around):
        return Readable.of(around, SHIPPED)
    top = None if folder.is_relative_to(SHIPPED) else project.root_of(folder)
    return Readable.of(*([top] if top else [folder, *([around] if around else [])]), SHIPPED)


def origin(path: Path) -> str:
    """Return the origin of a workflow: ``project``, or ``lib:NAME`` if it ships with perfflow."""
    return f"{LIB}{path.stem}" if path.parent == SHIPPED else "project"
