"""What can be run by name here, and which tools are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.library import shelf
from perfflow.run import programs
from perfflow.tools import registry
from perfflow.workflow.yaml_text import read_file


def workflows(root: Path) -> list[dict[str, Any]]:
    """Name, path and description of each workflow; a file that cannot be read says so in its description."""
    return [{"name": path.stem, "path": str(path), "description": _description(path)} for path in shelf.workflows(root)]


def _description(path: Path) -> str:
    try:
        data = read_file(path).data()
    except UserError as error:
        return f"(cannot be read: {error.problems[0].message})"
    return str(data.get("description", ""))


def tools() -> list[dict[str, Any]]:
    """Name, availability, version and a note with the install command of each tool."""
    found = []
    for name in registry.MODULES:
        tool = registry.find(name)
        version = programs.version_of(tool) if tool else None
        available = version is not None
        note = (
            f"{tool.PROGRAM if tool else name} {version}".strip()
            if available
            else f"missing: {tool.INSTALL if tool else ''}"
        )
        found.append({"name": name, "available": available, "version": version or None, "note": note})
    return found
