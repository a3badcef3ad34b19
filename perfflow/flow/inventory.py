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
    """Name, path, description and origin of each workflow; of a file that cannot be read, why."""
    return [
        {"name": path.stem, "path": str(path), "description": _description(path), "origin": shelf.origin(path)}
        for path in shelf.workflows(root)
    ]


def _description(path: Path) -> str:
    try:
        data = read_file(path).data()
    except UserError as error:
        return f"(cannot be read: {error.problems[0].message})"
    return str(data.get("description", ""))


def tools() -> list[dict[str, Any]]:
    """Name, availability, version, origin and a note of each tool; those of other distributions are not imported."""
    return [_own(name) if name in registry.MODULES else _provided(name) for name in registry.known()]


def _own(name: str) -> dict[str, Any]:
    tool = registry.find(name)
    version = programs.version_of(tool) if tool else None
    available = version is not None
    note = (
        f"{tool.PROGRAM if tool else name} {version}".strip()
        if available
        else f"missing: {tool.INSTALL if tool else ''}"
    )
    return {"name": name, "available": available, "version": version or None, "origin": registry.OWN, "note": note}


def _provided(name: str) -> dict[str, Any]:
    origin = registry.origin(name)
    return {"name": name, "available": True, "version": None, "origin": origin, "note": f"(from {origin})"}


def ignored() -> list[str]:
    """Adapters of distributions that bear a name of perfflow's own, in words."""
    return [f"{item.name} of {item.distribution}: perfflow has a tool of that name" for item in registry.shadowed()]
