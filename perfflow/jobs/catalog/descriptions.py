"""Describe a workflow or a tool without running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perfflow.execute import programs
from perfflow.jobs.catalog.preview import preview
from perfflow.library import search_path
from perfflow.library.pinned import Library, is_elsewhere
from perfflow.model.errors import Problem, Severity, UserError
from perfflow.model.similar import TOOLS, nearest, tool_meant
from perfflow.plan.parameters import MISSING
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter
from perfflow.trees import project
from perfflow.workflow import tool_definitions
from perfflow.workflow.document import Document
from perfflow.workflow.model import Param

WORKFLOW, TOOL = "workflow", "tool"


def kind_of_name(name: str, *, tool: bool) -> str:
    """Return whether a name is a workflow's or a tool's. Raises UserError if it is neither or both."""
    known = registry.known()
    here = Path.cwd()
    root = project.root_of(here) or here
    if is_elsewhere(name):
        return TOOL if _says_tool(path_of(name)) else WORKFLOW
    if tool or (tool_definitions.is_tool_file(name) and _says_tool(Path(name))):
        return TOOL
    named = {path.stem for path in search_path.workflows(root)}
    if name in known and name in named:
        raise UserError.of(f"{name!r} is a workflow and a tool", f"use --tool, or name the file: workflows/{name}.yaml")
    if name in known:
        return TOOL
    if (
        name in named
        or name.startswith(search_path.LIB)
        or Path(name).suffix in search_path.SUFFIXES
        or Path(name).is_file()
    ):
        return WORKFLOW
    near = TOOLS.get(name.lower()) or nearest(name, [*sorted(named), *known])
    hint = f"did you mean {near!r}?" if near else "`perfflow list` shows all names"
    raise UserError.of(f"no workflow and no tool called {name!r}", hint)


def _says_tool(path: Path) -> bool:
    """Return whether a file defines a tool, by a line of its text, since the file may contain errors."""
    try:
        text = search_path.readable(path).bytes_of(path).decode()
    except (OSError, ValueError, UserError):
        return False
    return any(line.startswith("perfflow-tool:") for line in text.splitlines())


def path_of(name: str) -> Path:
    """Return the file of a workflow or a tool. Raises UserError if there is none."""
    here = Path.cwd()
    return Library(project.root_of(here) or here).find(name)


def workflow(name: str) -> dict[str, Any]:
    """Return a workflow after ``extends``, as data. Raises UserError for its errors, but not for missing parameters."""
    opened = open_workflow(name)
    problems = [_lenient(problem) for problem in opened.problems]
    errors = tuple(problem for problem in problems if problem.severity is Severity.ERROR)
    if errors:
        raise UserError(errors)
    flow = opened.plan.workflow
    return {
        "kind": WORKFLOW,
        "name": flow.name,
        "origin": opened.origin,
        "path": str(opened.path),
        "extends": flow.extends,
        "description": flow.description,
        "params": [_param(key, param) for key, param in flow.params.items()],
        "targets": {
            benchmark: {key: _requirement(text) for key, text in required.items()}
            for benchmark, required in flow.targets.items()
        },
        "steps": preview(opened, frozenset(item.id for item in opened.plan.steps)),
        "tools": list(_tools(opened)),
    }


def merged(name: str) -> tuple[Document, dict[str, Any], Callable[[str], str]]:
    """Return a workflow after ``extends``: its nodes, its data, and a function that returns the name of a file.

    Raises UserError for its errors, but not for missing parameters.
    """
    opened = open_workflow(name)
    errors = [item for item in opened.problems if item.severity is Severity.ERROR and item.rule != MISSING]
    if errors:
        raise UserError(tuple(errors))
    data = opened.draft.document.data()
    data.pop("extends", None)
    return opened.draft.document, data, opened.library.named


def _lenient(problem: Problem) -> Problem:
    return replace(problem, severity=Severity.WARNING) if problem.rule == MISSING else problem


def _param(name: str, param: Param) -> dict[str, Any]:
    return {
        "name": name,
        "type": param.kind,
        "required": param.default is None,
        "default": param.default,
        "enum": param.enum,
        "help": param.help,
    }


def _requirement(text: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in text.items()) if isinstance(text, dict) else str(text)


def _tools(opened: Opened) -> Iterator[dict[str, Any]]:
    """Yield each tool once, in the order of the steps, with the availability of its program."""
    used = {item.step.tool_name: item.tool for item in opened.plan.steps if item.tool}
    for name, adapter in used.items():
        yield {"name": name, **_program(adapter, opened.root)}


def _program(adapter: Adapter, place: Path) -> dict[str, Any]:
    """Return the program of a tool. Its version is only queried if it is not from the project around ``place``."""
    seen = programs.facts_of(adapter, programs.Inspection(project.around(place)))
    return {
        "program": adapter.program.name,
        "available": seen.available,
        "version": seen.version or None,
        "remark": seen.remark,
        "install": adapter.program.install,
    }


def tool(name: str) -> dict[str, Any]:
    """Return a tool's role, keys, metrics and program, as data. Raises UserError if it cannot be used."""
    adapter, origin, about = _adapter(name)
    return {
        "kind": TOOL,
        "name": adapter.name,
        "origin": origin,
        "description": about,
        "role": adapter.role.value,
        "deterministic": adapter.deterministic,
        "metrics": sorted(adapter.metrics),
        **_program(adapter, Path.cwd()),
        "step": ["stdout"] if adapter.passes_stdout else [],
        "with": list(_options(adapter.options)),
    }


def _adapter(name: str) -> tuple[Adapter, str, str]:
    """Return an adapter, its origin, and one sentence about it."""
    if tool_definitions.is_tool_file(name):
        path = path_of(name) if is_elsewhere(name) else Path(name)
        declared, problems = tool_definitions.load(path, search_path.readable(path))
        if declared is None:
            raise UserError(problems)
        return declared.adapter, name, declared.source.description
    adapter = registry.find(name)
    if adapter is None:
        reason = registry.trouble(name)
        if reason:
            raise UserError.of(f"the tool {name!r} cannot be used: {reason}", "repair or uninstall that distribution")
        near = tool_meant(name, registry.known())
        hint = f"did you mean {near!r}?" if near else f"tools: {', '.join(registry.known())}"
        raise UserError.of(f"no tool called {name!r}", hint)
    return adapter, registry.origin(name), registry.about(adapter)


def _options(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the keys of ``with`` from the model's JSON Schema."""
    schema = model.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type(field),
            "required": name in schema.get("required", []),
            "default": field.get("default"),
            "help": field.get("description", ""),
        }


_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list"}


def _type(field: dict[str, Any]) -> str:
    """Return a type in words, such as ``text or list``, with bounds or choices if there are any."""
    if "enum" in field:
        return f"one of {', '.join(map(str, field['enum']))}"
    members = [item for item in field.get("anyOf", [field]) if item.get("type") != "null"]
    words = " or ".join(_TYPES.get(_first_type(item), "value") for item in members)
    bounds = [f"{sign} {field[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in field]
    return f"{words} {', '.join(bounds)}".strip()


def _first_type(field: dict[str, Any]) -> str:
    """Return the type in a JSON Schema; of a text that may be written as a number, ``string``."""
    kind = field.get("type")
    return str(kind[0] if isinstance(kind, list) else kind)
