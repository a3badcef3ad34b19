"""What ``perfflow show`` prints of a workflow and of a tool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.report import plan_page
from perfflow.report.plain import padded, visible

Facts = Mapping[str, Any]


def workflow(facts: Facts) -> str:
    """Name, how to run it, parameters, targets, steps and tools."""
    return "\n".join(_workflow_lines(facts))


def _workflow_lines(facts: Facts) -> Iterator[str]:
    library = facts["origin"] != "project"
    yield f"{visible(facts['name'])}  (workflow, {'ships with perfflow' if library else 'of this project'})"
    yield from _said(facts["description"])
    yield f"  file: {visible(facts['path'])}"
    if facts["extends"]:
        yield f"  extends: {visible(facts['extends'])}"
    name = facts["origin"] if library else facts["path"]
    words = [word for param in facts["params"] if param["required"] for word in ("--set", f"{param['name']}=...")]
    yield f"  run it: {visible(shlex.join(['perfflow', 'run', name, *words]))}"
    yield from _table("parameters", facts["params"])
    if facts["targets"]:
        yield "targets:"
        rows = [(who, f"{key}: {text}") for who, of in facts["targets"].items() for key, text in of.items()]
        yield from _columns(rows)
    yield "steps:"
    yield from (f"  {line}" for line in plan_page.text(facts["steps"]).splitlines())
    if facts["tools"]:
        yield "tools:"
        yield from _columns([(item["name"], _installed(item)) for item in facts["tools"]])


def tool(facts: Facts) -> str:
    """What it is used for, its program, metrics and keys."""
    return "\n".join(_tool_lines(facts))


_ROLES = {"measure": "measures", "profile": "profiles", "check": "checks", "work": "works"}


def _tool_lines(facts: Facts) -> Iterator[str]:
    yield f"{visible(facts['name'])}  (tool, from {visible(facts['origin'])})"
    yield from _said(facts["description"])
    always = ", the same digits every time" if facts["deterministic"] else ""
    yield f"  it {_ROLES[facts['role']]}{always}"
    yield f"  program: {_installed(facts)}"
    if facts["metrics"]:
        yield f"  metrics: {visible(', '.join(facts['metrics']))}"
    yield from _table("with", facts["with"])


def _said(text: str) -> Iterator[str]:
    if text:
        yield f"  {visible(text)}"


def _installed(item: Facts) -> str:
    if not item["program"]:
        return "none of its own"
    if item["available"]:
        return visible(f"{item['program']} {item['version'] or ''}").strip()
    return visible(f"{item['program']} is missing: {item['install']}")


def _table(title: str, items: Sequence[Facts]) -> Iterator[str]:
    if items:
        yield f"{title}:"
        yield from _columns([(item["name"], _value(item)) for item in items])


def _value(item: Facts) -> str:
    given = "required" if item["required"] else f"default {_shown(item['default'])}" if _has_default(item) else ""
    choices = f"one of {', '.join(map(_shown, item['enum']))}" if item.get("enum") else ""
    return "; ".join(part for part in (item["type"], choices, given, item["help"]) if part)


def _has_default(item: Facts) -> bool:
    return item["default"] is not None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if value == "" or isinstance(value, list) else str(value)


def _columns(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(visible(name)) for name, _ in rows)
    yield from (f"  {padded(visible(name), width)}  {visible(text)}" for name, text in rows)
