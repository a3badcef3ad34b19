"""The workflows that can be run by name, and the tools with their availability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfflow.execute import programs
from perfflow.execute.programs import Inspection
from perfflow.library import packages, search_path
from perfflow.model.errors import UserError
from perfflow.tools import registry
from perfflow.workflow.yaml_text import read_file


def workflows(root: Path) -> list[dict[str, Any]]:
    """Return name, path, description and origin of each workflow. An unreadable file has its error as description."""
    return [
        {"name": path.stem, "path": str(path), "description": _description(path), "origin": search_path.origin(path)}
        for path in search_path.workflows(root)
    ] + [
        {"name": name, "path": str(path), "description": _description(path), "origin": name}
        for name, path in packages.workflows()
    ]


def _description(path: Path) -> str:
    try:
        data = read_file(path, search_path.readable(path)).data()
    except UserError as error:
        return f"(cannot be read: {error.problems[0].message})"
    return str(data.get("description", ""))


def tools(inspection: Inspection) -> list[dict[str, Any]]:
    """Return name, availability, version, origin and a note for each tool. Imports adapters of other distributions."""
    return [_tool(name, inspection) for name in registry.known()]


def _tool(name: str, inspection: Inspection) -> dict[str, Any]:
    origin, tool = registry.origin(name), registry.find(name)
    seen = programs.facts_of(tool, inspection) if tool else programs.ProgramFacts(available=False)
    own = origin == registry.OWN
    if tool is None:
        words = ["cannot be used"]
    elif seen.available:
        words = [*((tool.program.name, seen.version) if own else ()), f"({seen.remark})" if seen.remark else ""]
    else:
        words = [f"missing: {tool.program.install}"]
    note = " ".join(filter(None, (*words, "" if own else f"(from {origin})")))
    return {
        "name": name,
        "available": seen.available,
        "version": seen.version or None,
        "origin": origin,
        "note": note,
    }


def warnings() -> list[str]:
    """Return warnings about adapters of installed distributions that have a taken name or cannot be used."""
    taken = [f"ignored: {item.name} of {item.distribution}: perfflow has that tool" for item in registry.shadowed()]
    broken = [(name, registry.trouble(name)) for name in registry.known()]
    return taken + [f"the tool {name!r} cannot be used: {why}" for name, why in broken if why]
