"""Checks that involve several values: known steps and tools, expressions, units; and the criteria of the verdict.

- ``check`` runs the checks of a loaded file.
- ``check_command`` checks the commands of tools that run without a shell, with the values of a run: every quote
  is closed, and shell syntax is quoted.
- ``check_worktree`` checks ``worktree: {share: [...]}`` as far as the file alone allows: build folders must not be
  shared.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import Metric
from perfflow.tools.adapter import Adapter
from perfflow.trees.slots import is_build_folder
from perfflow.workflow import criteria_checks, expression_checks, shell_text, step_checks
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import Expression, masked, needs_shell, pieces, render_words
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step
from perfflow.workflow.roles import metrics_added_by, tool_of


def check(draft: Draft, params: Mapping[str, Any]) -> Criteria:
    """Check the valid parts of the draft, add the problems to it, and return the criteria that could be read."""
    for stage, step, loc in each_step(draft):
        if draft.full:
            break
        step_checks.check(draft, stage, step, loc)
        expression_checks.check_step(draft, step, loc)
    for name, stage_model in draft.workflow.stages.items():
        step_checks.check_stage(draft, stage_model, ("stages", name))
        expression_checks.check_stage(draft, stage_model, ("stages", name))
    expression_checks.check_header(draft)
    step_checks.check_header(draft)
    check_worktree(draft)
    return criteria_checks.read(draft, _metrics(draft), params)


def each_step(draft: Draft) -> Iterator[tuple[str, Step, Loc]]:
    """Yield the stage name, the step and the location of every step, including invalid ones."""
    for name, stage in draft.workflow.stages.items():
        for step in stage.steps:
            yield name, step, draft.steps[step.id]


def _metrics(draft: Draft) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for _, step, loc in each_step(draft):
        for name, metric in metrics_added_by(step).items():
            other = found.setdefault(name, metric)
            if other.dimension is not metric.dimension:
                message = f"`{name}` is a {metric.dimension.noun} here, but a {other.dimension.noun} in another step"
                draft.complain((*loc, "parse", "units", name), message, "rename one of the two metrics")
    return found


_PARAMETER = re.compile(r"\s*params\.([A-Za-z_]\w*)\s*")


def check_command(draft: Draft, params: Mapping[str, Any]) -> None:
    """Check every command of a tool that runs without a shell; ``params`` has the values that a run would use."""
    for _, step, loc in each_step(draft):
        if draft.full:
            return
        _check_shell(draft, step, loc)
        # A literal command is the same on both sides, so check it once; a parameter may differ between them.
        seen: set[Loc] = set()
        for text, place, values in _commands(step, loc):
            if place not in draft.wrong and (place not in seen or _parameter(text)):
                seen.add(place)
                _check(draft, text, place, {**params, **values}, step)


def _check_shell(draft: Draft, step: Step, loc: Loc) -> None:
    """Report ``shell: true`` with a tool that cannot run a shell command."""
    sides = [
        (step.with_, (*loc, "with")),
        (step.candidate.with_ if step.candidate else {}, (*loc, "candidate", "with")),
    ]
    for values, place in sides:
        if values.get("shell") is True and not _takes_shell(tool_of(step)):
            message = f"`{step.uses}` adds arguments to the program, so it cannot run a shell command"
            draft.complain((*place, "shell"), message, "remove `shell: true`, and write the program and its arguments")


def _commands(step: Step, loc: Loc) -> Iterator[tuple[str, Loc, Mapping[str, Any]]]:
    """Yield the text of each command, its location, and the parameters that only its side has."""
    if step.timed:
        yield from _timed(step, loc)
    if not step.uses:
        return
    shell = step.with_.get("shell", False)
    command = step.with_.get("command")
    if shell is False and isinstance(command, str):
        yield command, (*loc, "with", "command"), {}
    other = step.candidate
    if other is None or other.with_.get("shell", shell) is not False:
        return
    for text, place in (
        (other.command, (*loc, "candidate", "command")),
        (other.with_.get("command"), (*loc, "candidate", "with", "command")),
    ):
        if isinstance(text, str):
            yield text, place, other.params
    # A candidate without a command of its own runs the command of the step.
    if isinstance(command, str) and other.command is None and "command" not in other.with_ and (other.params or shell):
        yield command, (*loc, "with", "command"), other.params


def _timed(step: Step, loc: Loc) -> Iterator[tuple[str, Loc, Mapping[str, Any]]]:
    """Yield the texts of a timed ``run`` step that need no shell."""
    other = step.candidate
    texts: list[tuple[object, Loc, Mapping[str, Any]]] = [(step.run, (*loc, "run"), {})]
    if other:
        texts.append((other.command, (*loc, "candidate", "command"), other.params))
        texts += [(step.run, (*loc, "run"), other.params)] if other.command is None and other.params else []
    for text, place, values in texts:
        with contextlib.suppress(ExpressionError):  # reported by expression_checks
            if isinstance(text, str) and not needs_shell(text):
                yield text, place, values


def _check(draft: Draft, text: str, loc: Loc, params: Mapping[str, Any], step: Step) -> None:
    try:
        name, shown = _parameter(text), masked(text)
    except ExpressionError:
        return  # reported by expression_checks
    value = params.get(name)
    if isinstance(value, str):
        _check_value(draft, value, name, loc, step)
        return
    syntax = shell_text.first_word(shown)
    if syntax and syntax.is_pattern:
        draft.warn(loc, syntax.message, syntax.hint(takes_shell=_takes_shell(tool_of(step))))
    elif syntax:
        find = _findable(draft, loc, text[syntax.offset :], syntax.text)
        draft.complain(loc, syntax.message, syntax.hint(takes_shell=_takes_shell(tool_of(step))), find=find)
    elif "${{" not in text:
        try:
            render_words(text, {})
        except ExpressionError as error:
            draft.complain(loc, str(error), error.hint, find=error.near)


def _parameter(text: str) -> str:
    """Return the name of the parameter if the command is exactly one parameter, else ''."""
    parts = list(pieces(text.strip()))
    found = _PARAMETER.fullmatch(parts[0].source) if len(parts) == 1 and isinstance(parts[0], Expression) else None
    return found[1] if found else ""


def _check_value(draft: Draft, value: str, name: str, loc: Loc, step: Step) -> None:
    """Check the value of a parameter that is used as a command; it is split into words like a literal command."""
    found = shell_text.first_word(value)
    if found and not found.is_pattern:
        message = f"`params.{name}` is {value.strip()!r}: {found.message}"
        hint = found.hint(takes_shell=_takes_shell(tool_of(step)))
        if step.timed:
            hint = shell_text.BASH_READS_RAW
        draft.complain(loc, message, hint)


def _takes_shell(tool: Adapter | None) -> bool:
    """Return whether a tool accepts ``shell: true``; tools that add flags or run the program in Python do not."""
    if tool is None:
        return True
    return "shell" in tool.options.model_fields and not tool.python and not tool.is_suite


def _findable(draft: Draft, loc: Loc, rest: str, syntax: str) -> str:
    """Return the text to search in the file for an operator: with the text after it, to skip quoted occurrences."""
    line = rest.split("\n", 1)[0].rstrip()
    start = draft.document.place(loc)
    for text in (line, re.split(r"[\"'\\]", line, maxsplit=1)[0].rstrip()):
        if text and draft.document.place(loc, find=text) != start:
            return text
    return syntax


def check_worktree(draft: Draft) -> None:
    """Report build folders: both sides would build into the same folder and run the program that was built last."""
    for index, path in enumerate(draft.workflow.worktree.share):
        if is_build_folder(path):
            message = f"`{path}` is a build folder: if it is shared, both sides run the same program"
            hint = "remove it from the list, and build in each tree by steps of the `build` stage"
            draft.complain(("worktree", "share", index), message, hint)
