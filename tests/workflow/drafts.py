"""Helpers that open short workflows in the same way as the commands."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.errors import SourcePosition
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.workflow.document import Document
from perfflow.workflow.yaml_text import read_text

FILES = Path(__file__).with_name("files")
BENCH = "stages: {baseline: [{id: bench, uses: command, with: {command: ./bench}}]}\n"


def opened(folder: Path, text: str, *settings: str) -> Opened:
    """Open a workflow with these lines; `perfflow: 1` is added if it is missing."""
    path = folder / "flow.yaml"
    path.write_text(text if text.startswith("perfflow:") else f"perfflow: 1\n{text}")
    return open_workflow(str(path), settings)


def said(found: Opened) -> list[str]:
    """Return the problems in the order of the file, as LINE:COLUMN and the message."""
    return [f"{where(problem.place)}{problem.message}" for problem in found.problems]


def where(place: SourcePosition | None) -> str:
    """Return LINE:COLUMN and a space, or '' without a place."""
    return f"{place.line}:{place.column} " if place else ""


def table(name: str) -> list[tuple[str, str]]:
    """Return the rows ``TEXT => TEXT`` of a file."""
    rows = [line.rpartition(" =>") for line in (FILES / name).read_text().splitlines()]
    return [(left, right.removeprefix(" ")) for left, arrow, right in rows if arrow]


def document(text: str) -> Document:
    """Return the nodes of a YAML text."""
    return read_text(text, "flow.yaml")
