"""A plan as text, Mermaid or DOT."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.report.sanitize import fitted, visible, wrapped

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


def lines(steps: Steps, width: int, expected: str = "") -> Iterator[str]:
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


def mermaid(steps: Steps) -> str:
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


def dot(steps: Steps) -> str:
    """Return a Graphviz digraph."""
    ids = {step["id"] for step in steps}
    lines = ["digraph workflow {"]
    lines += [f"  {json.dumps(step['id'])} [label={json.dumps(step['stage'] + ': ' + step['id'])}];" for step in steps]
    edges = [(need, step["id"]) for step in steps for need in step["needs"] if need in ids]
    lines += [f"  {json.dumps(need)} -> {json.dumps(name)};" for need, name in edges]
    return "\n".join([*lines, "}"])
