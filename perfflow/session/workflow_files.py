"""The files that make up a workflow: its own, those that it extends, and its tool files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perfflow.library import search_path
from perfflow.library.pinned import Library
from perfflow.library.references import LOCK
from perfflow.model.errors import UserError
from perfflow.workflow.checks import each_step
from perfflow.workflow.load import load
from perfflow.workflow.tool_definitions import is_tool_file


def of_project(root: Path, names: tuple[str, ...]) -> dict[Path, list[Path]]:
    """Return the project's workflows, or the named ones, with the other files of each; relative to ``root``.

    Raises UserError for an unknown name, and if there is no workflow.
    """
    own = [path for path in search_path.workflows(root) if path.parent == root / search_path.FOLDER]
    if names:
        own = [_of_project(search_path.find(name, root), own) for name in names]
    if not own:
        raise UserError.of("no workflow found", "keep workflows in ./workflows; `perfflow init` writes a first one")
    return {path.relative_to(root): sorted(set(_others(path, root))) for path in own}


def _of_project(path: Path, own: list[Path]) -> Path:
    if path.absolute() not in own:
        raise UserError.of(
            f"{path} is not one of the project's workflows", "keep it in ./workflows, or extend it there"
        )
    return path.absolute()


def _others(path: Path, root: Path) -> Iterator[Path]:
    """Yield the files besides the workflow's own; none if it cannot be read, which its run will report."""
    try:
        library = Library(root)
        draft = load(path, library.resolve, library.readable(path))
        places = [(step.uses, draft.document.place((*loc, "uses")).file) for _, step, loc in each_step(draft)]
        used = {library.tool(name, file) for name, file in places if name and is_tool_file(name)}
    except UserError:
        return
    pinned = [root / LOCK] if library.used else []
    for other in [*(Path(name) for name in draft.document.lines), *sorted(used), *pinned]:
        real = other.resolve()
        if real != path.resolve() and real.is_relative_to(root) and real.is_file():
            yield real.relative_to(root)
