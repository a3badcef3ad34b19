"""Workflows of installed packages: ``pkg:NAME/PATH``, where NAME is an entry point of the group ``perfflow.workflows``.

The value of the entry point is the Python package with the files, such as ``acme_perf.workflows``. It is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from perfflow.library.references import SUFFIXES, require_path
from perfflow.model.errors import UserError

GROUP = "perfflow.workflows"
PKG = "pkg:"


def find(text: str) -> tuple[Path, Path]:
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


def workflows() -> Iterator[tuple[str, Path]]:
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
