"""Load the tool files that steps name (``uses: ./tools/mytool.yaml``); each file is read and checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfflow.model.errors import Place, Problem, UserError
from perfflow.workflow.checks import each_step
from perfflow.workflow.declared_tool import DeclaredTool
from perfflow.workflow.load import Draft
from perfflow.workflow.readable import Readable
from perfflow.workflow.tool_file_checks import read_tool

SUFFIXES = (".yaml", ".yml")
FindTool = Callable[[str, str], Path]
"""Converts a value of ``uses`` and the name of its file to a path."""


def is_tool_file(name: str) -> bool:
    """Return whether ``uses`` names a file, including files of packages and repositories, and not a tool."""
    elsewhere = name.startswith(("pkg:", "git+")) or ("@" in name and name.count("/") >= 2)
    return elsewhere or name.endswith(SUFFIXES)


def attach(draft: Draft, find: FindTool) -> None:
    """Load the tool of each step that uses a tool file, and add the problems of the files to the draft."""
    read: dict[tuple[str, str], tuple[DeclaredTool | None, tuple[Problem, ...]]] = {}
    for _, step, loc in each_step(draft):
        if step.uses and is_tool_file(step.uses):
            place = draft.document.place((*loc, "uses"))
            said = (step.uses, place.file)
            if said not in read:
                read[said] = _load(find, *said, draft.readable)
            tool, problems = read[said]
            # Report a problem without a place, such as a missing file, where the file is named.
            draft.add([_placed(problem, place) for problem in problems], [(*loc, "uses")] if tool is None else [])
            step.adopt(tool)


def _load(find: FindTool, text: str, file: str, readable: Readable) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    try:
        path = find(text, file)
    except UserError as error:
        return None, error.problems
    return load(_shown(path), readable)


def _shown(path: Path) -> Path:
    """Return the path relative to the working directory if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _placed(problem: Problem, place: Place) -> Problem:
    return problem if problem.place else replace(problem, place=place)


def load(path: Path, readable: Readable | None = None) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file. Return its tool, or None if there are errors, and its problems.

    readable: folders that may be read; by default the folder of the file, so that a link out of it is refused.
    """
    return read_tool(path, readable or Readable.of(path.parent))
