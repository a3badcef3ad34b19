"""The output of ``perfflow show`` for a workflow and for a tool."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.report import plan_page
from perfflow.report.columns import described
from perfflow.report.sanitize import visible, wrapped

Facts = Mapping[str, Any]


def workflow(facts: Facts, width: int) -> Iterator[str]:
    """Yield name, command, parameters, targets, steps and tools of a workflow, in lines of ``width`` columns."""
    library = facts["origin"] != "project"
    whose = "ships with perfflow" if facts["origin"].startswith("lib:") else f"from {facts['origin']}"
    yield from wrapped(
        f"{visible(facts['name'])}  (workflow, {visible(whose) if library else 'from this project'})", width
    )
    yield from _line(facts["description"], width)
    yield from _line(f"file: {facts['path']}", width)
    if facts["extends"]:
        parents = facts["extends"]
        yield from _line(f"extends: {parents if isinstance(parents, str) else ', '.join(parents)}", width)
    name = facts["origin"] if library else facts["path"]
    words = [word for param in facts["params"] if param["required"] for word in ("--set", f"{param['name']}=...")]
    yield from _line(f"run it: {shlex.join(['perfflow', 'run', name, *words])}", width)
    yield from _table("parameters", facts["params"], width)
    if facts["targets"]:
        yield "targets:"
        rows = [(who, f"{key}: {text}") for who, of in facts["targets"].items() for key, text in of.items()]
        yield from described(rows, width)
    yield "steps:"
    yield from (f"  {line}" for line in plan_page.lines(facts["steps"], width - 2))
    if facts["tools"]:
        yield "tools:"
        yield from described([(item["name"], _installed(item)) for item in facts["tools"]], width)


_ROLES = {
    "measure": "measures",
    "profile": "profiles",
    "machine": "measures the peak performance of the machine",
    "check": "checks correctness",
    "work": "runs commands",
}


def tool(facts: Facts, width: int) -> Iterator[str]:
    """Yield purpose, program, metrics and keys of a tool, in lines of ``width`` columns."""
    yield from wrapped(f"{visible(facts['name'])}  (tool, from {visible(facts['origin'])})", width)
    yield from _line(facts["description"], width)
    always = ", with the same result every time" if facts["deterministic"] else ""
    yield from _line(f"role: {_ROLES[facts['role']]}{always}", width)
    yield from _line(f"program: {_installed(facts)}", width)
    if facts["metrics"]:
        yield from _line(f"metrics: {', '.join(facts['metrics'])}", width)
    if facts["step"]:
        yield from _line(f"keys of the step: {', '.join(facts['step'])}", width)
    yield from _table("with", facts["with"], width)


def _line(text: str, width: int) -> list[str]:
    return wrapped(f"  {visible(text)}", width, "    ") if text else []


def _installed(item: Facts) -> str:
    if not item["program"]:
        return "none needed"
    if item["available"]:
        remark = f"({item['remark']})" if item["remark"] else ""
        return visible(" ".join(filter(None, (item["program"], item["version"], remark))))
    return visible(f"{item['program']} is missing: {item['install']}")


def _table(title: str, items: Sequence[Facts], width: int) -> Iterator[str]:
    if items:
        yield f"{title}:"
        yield from described([(item["name"], _value(item)) for item in items], width)


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
