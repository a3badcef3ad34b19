"""``uses: ./tools/mytool.yaml``: tool files are read and checked once each, and given to the steps that name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfflow.model.errors import Place, Problem, UserError
from perfflow.workflow.checks import each_step
from perfflow.workflow.load import Draft
from perfflow.workflow.readable import Readable

if TYPE_CHECKING:
    from perfflow.workflow.declared_tool import DeclaredTool

SUFFIXES = (".yaml", ".yml")
FindTool = Callable[[str, str], Path]
"""Turns the text of ``uses``, and the file that says it, into a path."""


def is_tool_file(name: str) -> bool:
    """Whether ``uses`` names a file, also one of a package or of a repository, rather than a tool."""
    elsewhere = name.startswith(("pkg:", "git+")) or ("@" in name and name.count("/") >= 2)
    return elsewhere or name.endswith(SUFFIXES)


def attach(draft: Draft, find: FindTool) -> None:
    """Give each step that uses a tool file its tool; the file's mistakes are added to the draft's."""
    read: dict[tuple[str, str], tuple[DeclaredTool | None, tuple[Problem, ...]]] = {}
    for _, step, loc in each_step(draft):
        if step.uses and is_tool_file(step.uses):
            place = draft.document.place((*loc, "uses"))
            said = (step.uses, place.file)
            if said not in read:
                read[said] = _load(find, *said, draft.readable)
            tool, problems = read[said]
            # What has no place of its own, such as a missing file, is wrong where it is named.
            draft.add([_placed(problem, place) for problem in problems], [(*loc, "uses")] if tool is None else [])
            step.adopt(tool)


def _load(find: FindTool, text: str, file: str, readable: Readable) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    try:
        path = find(text, file)
    except UserError as error:
        return None, error.problems
    return load(_shown(path), readable)


def _shown(path: Path) -> Path:
    """The path as a person here would write it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _placed(problem: Problem, place: Place) -> Problem:
    return problem if problem.place else replace(problem, place=place)


def load(path: Path, readable: Readable | None = None) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file: its tool where nothing is wrong with it, and what is.

    ``readable`` is where it may lie; by default its own folder, so that no link leads out of that.
    """
    # Imported where it is needed: few workflows have tools of their own.
    from perfflow.workflow.tool_file_checks import read_tool

    return read_tool(path, readable or Readable.of(path.parent))
