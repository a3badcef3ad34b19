"""Rewrite a workflow file: its old and new text, and the function that writes it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from perfflow.library.pinned import PROJECT
from perfflow.model.errors import UserError
from perfflow.session.open_workflow import Opened
from perfflow.workflow.document import replace_file
from perfflow.workflow.yaml_text import LARGEST


@dataclass(frozen=True)
class Rewritten:
    """A workflow file with its text before and after, and a description of each change."""

    path: Path
    shown: str
    before: str
    after: str
    said: tuple[str, ...]

    def diff(self) -> str:
        """Return the change as a unified diff; '' if nothing changed."""
        lines = (self.before.splitlines(keepends=True), self.after.splitlines(keepends=True))
        return "".join(
            line if line.endswith("\n") else f"{line}\n" for line in unified_diff(*lines, self.shown, self.shown)
        )


def write(found: Rewritten) -> None:
    """Replace the file atomically with the new text, and keep its mode. Raises UserError."""
    before, after = found.before.encode("utf-8"), found.after.encode("utf-8")
    replace_file(found.path, found.shown, before, after, "check its permissions, and try again")


def own_file(opened: Opened) -> tuple[Path, str]:
    """Return the workflow's file, links resolved, and its text. Raises UserError for a file outside the project."""
    if opened.origin != PROJECT:
        raise UserError.of(f"{opened.origin} is outside this project and is not changed")
    real, named = Path(os.path.realpath(opened.path)), Path.cwd() / opened.path
    if real != Path(os.path.normpath(named)) and not real.is_relative_to(opened.root):
        raise UserError.of(f"{opened.path} is a link to {real}, which is outside the project", "name that file itself")
    with real.open("rb") as stream:
        return real, stream.read(LARGEST + 1).decode("utf-8")
