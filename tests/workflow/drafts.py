"""Workflows of a few lines, opened as every command opens them."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.errors import Place
from perfflow.session.opening import Opened, open_workflow
from perfflow.workflow.document import Document
from perfflow.workflow.yaml_text import read_text

BENCH = "stages: {baseline: [{id: bench, uses: command, with: {command: ./bench}}]}\n"


def opened(folder: Path, text: str, *settings: str) -> Opened:
    """Open a workflow of these lines, which need not say `perfflow: 1`."""
    path = folder / "flow.yaml"
    path.write_text(text if text.startswith("perfflow:") else f"perfflow: 1\n{text}")
    return open_workflow(str(path), settings)


def said(found: Opened) -> list[str]:
    """What is wrong, in the file's order, as LINE:COLUMN: message."""
    return [f"{where(problem.place)}{problem.message}" for problem in found.problems]


def where(place: Place | None) -> str:
    """LINE:COLUMN and a blank; nothing where there is no place."""
    return f"{place.line}:{place.column} " if place else ""


def document(text: str) -> Document:
    """Nodes of a YAML text."""
    return read_text(text, "flow.yaml")
