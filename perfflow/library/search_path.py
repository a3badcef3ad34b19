"""Find the file of a workflow by name: in ``workflows/`` of the project, in perfflow's library, or in a package.

``find`` looks in the project first, then in the library. ``find_in_packages`` finds workflows of installed packages:
``pkg:NAME/PATH``, where NAME is an entry point of the group ``perfflow.workflows``. The value of the entry point is the
Python package with the files, such as ``acme_perf.workflows``. It is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from perfflow.library.references import SUFFIXES, require_path
from perfflow.model.errors import UserError
from perfflow.model.similar import nearest
from perfflow.trees import repository
from perfflow.workflow.yaml_text import Readable

SHIPPED = Path(__file__).parent
FOLDER = "workflows"
WORKFLOW_SUFFIXES = (".yaml", ".yml")
LIB = "lib:"


def find(name: str, root: Path) -> Path:
    """Return the file of a workflow given by path, by name, or as lib:NAME. Raises UserError with a similar name."""
    if name.startswith(LIB):
        return resolve(name, root)
    path = Path(name)
    if path.suffix in WORKFLOW_SUFFIXES or path.is_file() or os.sep in name:
        return path
    for folder in (root / FOLDER, SHIPPED):
        for suffix in WORKFLOW_SUFFIXES:
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
    yield from project_workflows(root)
    yield from _in(SHIPPED)


def project_workflows(root: Path) -> list[Path]:
    """Return the files of the project's own workflows, in the order of their names."""
    return _in(root / FOLDER)


def _in(folder: Path) -> list[Path]:
    return sorted(item for suffix in WORKFLOW_SUFFIXES for item in folder.glob(f"*{suffix}") if item.is_file())


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
    around = repository.project_around(Path.cwd())
    if around and folder.is_relative_to(around):
        return Readable.of(around, SHIPPED)
    top = None if folder.is_relative_to(SHIPPED) else repository.root_of(folder)
    return Readable.of(*([top] if top else [folder, *([around] if around else [])]), SHIPPED)


def origin(path: Path) -> str:
    """Return the origin of a workflow: ``project``, or ``lib:NAME`` if it ships with perfflow."""
    return f"{LIB}{path.stem}" if path.parent == SHIPPED else "project"


GROUP = "perfflow.workflows"
PKG = "pkg:"


def find_in_packages(text: str) -> tuple[Path, Path]:
    """Return the folder of a package's workflows, and the file that ``pkg:NAME/PATH`` names. Raises UserError."""
    name, _, path = text.removeprefix(PKG).partition("/")
    require_path(path, text)
    offers = dict(provided())
    if name not in offers:
        known = ", ".join(f"{PKG}{other}/..." for other in sorted(offers)) or "none"
        raise UserError.of(f"no installed package provides workflows called {name!r}", f"installed here: {known}")
    for folder in folders(offers[name]):
        for suffix in SUFFIXES:
            if (folder / (path + suffix)).is_file():
                return folder, folder / (path + suffix)
    inside = sorted(item.stem for folder in folders(offers[name]) for item in folder.glob("*.y*ml"))
    hint = (
        f"it has: {', '.join(inside)}"
        if inside
        else f"its entry point names {offers[name]}, which has no workflow files"
    )
    raise UserError.of(f"{text}: the package has no such workflow", hint)


def workflows_of_packages() -> Iterator[tuple[str, Path]]:
    """Yield ``pkg:NAME/WORKFLOW`` and the file of each workflow in installed packages."""
    for name, module in provided():
        for folder in folders(module):
            for path in sorted(folder.glob("*.yaml")):
                yield f"{PKG}{name}/{path.stem}", path


def provided() -> Iterator[tuple[str, str]]:
    """Yield the name of each entry point, and the Python package with its workflows."""
    for entry in sorted(entry_points(group=GROUP), key=lambda item: (item.name, item.value)):
        yield entry.name, entry.value


def folders(module: str) -> list[Path]:
    """Return the folders of a package. Only its top is looked up, since looking up a subpackage imports its parents."""
    top, *parts = module.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return []
    places = list(spec.submodule_search_locations or ()) if spec else []
    return [folder for place in places if (folder := Path(place, *parts)).is_dir()]
