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
    """Name, availability, version, origin and a note of each tool. Adapters of other distributions are imported."""
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
    tool = registry.find(name)
    version = programs.version_of(tool) if tool else None
    note = "cannot be used" if tool is None else f"missing: {tool.INSTALL}" if version is None else ""
    return {
        "name": name,
        "available": version is not None,
        "version": version or None,
        "origin": origin,
        "note": f"{note} (from {origin})".strip(),
    }


def warnings() -> list[str]:
    """What installed distributions provide in vain, in words: names of perfflow's own, adapters that cannot be used."""
    taken = [f"ignored: {item.name} of {item.distribution}: perfflow has that tool" for item in registry.shadowed()]
    broken = [(name, registry.trouble(name)) for name in registry.known()]
    return taken + [f"the tool {name!r} cannot be used: {why}" for name, why in broken if why]
