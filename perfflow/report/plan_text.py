"""A plan as text, Mermaid or DOT, and the output of ``perfflow show`` for a workflow and for a tool."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.report.sanitize import fitted, visible, wrapped
from perfflow.report.tables import described

MOST_LINES = 6
"""Lines of one command on a terminal; elsewhere all lines are shown."""
_INDENT = " " * 7
_FURTHER = " " * 4
_OUTCOMES: Mapping[str, str] = {
    "runs": "runs",
    "left out": "left out by its `if`",
    "skipped": "skipped",
    "fails": "fails (allowed)",
    "nothing is run": "missing, so nothing is run",
}
"""Text for each outcome of a preview, in the order of the output."""
Steps = Sequence[Mapping[str, Any]]


def plan_lines(steps: Steps, width: int, expected: str = "") -> Iterator[str]:
    """Yield one block per stage and one line per step, with its commands below. Steps that need the machine are marked.

    ``expected`` is the expected time of all steps. No line is wider than ``width`` columns.
    """
    stage = ""
    for number, step in enumerate(steps, 1):
        if step["stage"] != stage:
            stage = step["stage"]
            yield from wrapped(f"{visible(stage)}:", width)
        lane = "  [alone]" if step["alone"] else "  [background]" if step["background"] is not None else ""
        yield from wrapped(f"  {number:>3}. {visible(step['id'])}  ({visible(_kind(step))}){lane}", width, _INDENT)
        if step["background"]:
            yield from _block(f"{_INDENT}ready: {visible(step['background'])}", width)
        for text in step.get("changes", ()):
            yield from _block(f"{_INDENT}{visible(text)}", width)
        if step.get("hotspot"):
            yield from _block(f"{_INDENT}works on: {visible(step['hotspot'])}", width)
        for text in _prepared(step):
            yield from _block(f"{_INDENT}{visible(text)}", width)
        for side, argv in step["argv"].items():
            yield from _block(
                f"{_INDENT}{side + ': ' if len(step['argv']) > 1 else ''}{visible(shlex.join(argv))}", width
            )
        if step["condition"]:
            state = " (false)" if step["outcome"] == "left out" else ""
            yield from wrapped(f"{_INDENT}if: {visible(step['condition'])}{state}", width, _INDENT)
        if step["missing"]:
            yield from wrapped(f"{_INDENT}missing: {visible(step['missing'])}", width, _INDENT)
        yield from _time(step, width)
    yield from wrapped(f"total time: {visible(expected)}", width, _FURTHER) if expected else ()
    yield from _here(steps, width)


def _prepared(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands before every sample, once if both sides have the same."""
    sides = step.get("prepare", {})
    differ = len({*map(tuple, sides.values())}) > 1
    for side, texts in [*sides.items()][: None if differ else 1]:
        for text in texts:
            yield f"{f'{side}, ' if differ else ''}before every sample: {text}"


def _here(steps: Steps, width: int) -> Iterator[str]:
    """Yield which steps run on this machine and which do not, and why, if something is missing."""
    if not any(step["lacks"] for step in steps):
        return
    yield "on this machine:"
    without: dict[str, list[str]] = {}
    for step in steps:
        for reason in step["lacks"] if step["outcome"] != "left out" else ():
            without.setdefault(reason, []).append(step["id"])
    for outcome, text in _OUTCOMES.items():
        if ids := [step["id"] for step in steps if step["outcome"] == outcome]:
            yield from wrapped(f"  {text}: {visible(', '.join(ids))} ({len(ids)} of {len(steps)})", width, _FURTHER)
    for reason, ids in without.items():
        steps_without = "1 step" if len(ids) == 1 else f"{len(ids)} steps"
        yield from wrapped(f"  reason for {steps_without}: {visible(reason)}", width, _FURTHER)


def _time(step: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the expected time of a step, if it is known."""
    if step.get("expected"):
        yield from wrapped(f"{_INDENT}time: {step['expected']['text']}", width, _INDENT)


def _kind(step: Mapping[str, Any]) -> str:
    """Return the tool of a step, or the technique of a candidate."""
    if step["role"] == "compare":
        return "kept changes against the baseline"
    return str(step.get("technique") or step["tool"])


def _block(text: str, width: int) -> Iterator[str]:
    """Yield the wrapped text, at most `MOST_LINES` lines of it."""
    shown = wrapped(text, width, _INDENT)
    yield from shown[:MOST_LINES]
    if len(shown) > MOST_LINES:
        yield fitted(f"{_INDENT}… {len(shown) - MOST_LINES} more lines", width)


def plan_mermaid(steps: Steps) -> str:
    """Return a Mermaid flowchart; labels are quoted, since ids may hold any character."""
    numbers = {step["id"]: f"s{number}" for number, step in enumerate(steps)}
    lines = ["flowchart TD"]
    for step in steps:
        label = visible(step["id"]).replace('"', "#quot;")
        lines.append(f'  {numbers[step["id"]]}["{step["stage"]}: {label}"]')
    lines += [
        f"  {numbers[need]} --> {numbers[step['id']]}" for step in steps for need in step["needs"] if need in numbers
    ]
    return "\n".join(lines)


def plan_dot(steps: Steps) -> str:
    """Return a Graphviz digraph."""
    ids = {step["id"] for step in steps}
    lines = ["digraph workflow {"]
    lines += [f"  {json.dumps(step['id'])} [label={json.dumps(step['stage'] + ': ' + step['id'])}];" for step in steps]
    edges = [(need, step["id"]) for step in steps for need in step["needs"] if need in ids]
    lines += [f"  {json.dumps(need)} -> {json.dumps(name)};" for need, name in edges]
    return "\n".join([*lines, "}"])


Facts = Mapping[str, Any]


def show_workflow(facts: Facts, width: int) -> Iterator[str]:
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
    yield from (f"  {line}" for line in plan_lines(facts["steps"], width - 2))
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


def show_tool(facts: Facts, width: int) -> Iterator[str]:
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
