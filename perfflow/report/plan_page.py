"""A plan as text, Mermaid or DOT."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.report.plain import visible

_LONGEST = 140
Steps = Sequence[Mapping[str, Any]]


def text(steps: Steps) -> str:
    """One block a stage, one line a step, its commands below; what has the machine alone is marked."""
    return "\n".join(_text_lines(steps))


def _text_lines(steps: Steps) -> Iterator[str]:
    stage = ""
    for number, step in enumerate(steps, 1):
        if step["stage"] != stage:
            stage = step["stage"]
            yield f"{stage}:"
        lane = "  [alone]" if step["alone"] else ""
        yield f"  {number:>3}. {visible(step['id'])}  ({step['tool']}){lane}"
        for side, argv in step["argv"].items():
            command = visible(shlex.join(argv))
            shown = command if len(command) <= _LONGEST else command[: _LONGEST - 1] + "…"
            yield f"       {side + ': ' if len(step['argv']) > 1 else ''}{shown}"
        if step["missing"]:
            yield f"       missing: {visible(step['missing'])}"


def mermaid(steps: Steps) -> str:
    """A Mermaid flowchart; labels are quoted, since ids may hold anything."""
    numbers = {step["id"]: f"s{number}" for number, step in enumerate(steps)}
    lines = ["flowchart TD"]
    for step in steps:
        label = visible(step["id"]).replace('"', "#quot;")
        lines.append(f'  {numbers[step["id"]]}["{step["stage"]}: {label}"]')
    lines += [
        f"  {numbers[need]} --> {numbers[step['id']]}" for step in steps for need in step["needs"] if need in numbers
    ]
    return "\n".join(lines)


def dot(steps: Steps) -> str:
    """A Graphviz digraph."""
    ids = {step["id"] for step in steps}
    lines = ["digraph workflow {"]
    lines += [f"  {json.dumps(step['id'])} [label={json.dumps(step['stage'] + ': ' + step['id'])}];" for step in steps]
    edges = [(need, step["id"]) for step in steps for need in step["needs"] if need in ids]
    lines += [f"  {json.dumps(need)} -> {json.dumps(name)};" for need, name in edges]
    return "\n".join([*lines, "}"])
