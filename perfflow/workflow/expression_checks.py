"""Check every ``${{ }}`` of a file: its syntax, the names it uses, and its place in shell text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from perfflow.model.similar import did_you_mean
from perfflow.tools.adapter import Role
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import ROOTS, STATUS_FUNCTIONS, Expression, check_shell, pieces
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage, Step, as_data
from perfflow.workflow.roles import role_of

_BRACES = re.compile(r"(?<![${])\{\{-?\s*(?:params|matrix|steps|ops)\b")
_STAGE_KEYS = ("env", "working-directory", "shell", "timeout", "holdout")


def check_step(draft: Draft, step: Step, loc: Loc) -> None:
    """Check all strings of a step, its ``if``, and the expressions in its shell text."""
    _check_condition(draft, step.if_, (*loc, "if"), step)
    data: dict[str, Any] = as_data(step, by_alias=True)
    _check_texts(draft, {key: value for key, value in data.items() if key not in ("if", "id")}, loc, step)
    uses_shell = bool(step.uses and step.with_.get("shell") is True)
    texts: dict[Loc, object] = {(*loc, "run"): step.run}
    texts[*loc, "with", "command"] = step.with_.get("command") if uses_shell else None
    prepared = step.prepare if isinstance(step.prepare, list) else []
    texts |= {(*loc, "prepare"): step.prepare} | {(*loc, "prepare", n): text for n, text in enumerate(prepared)}
    texts[*loc, "candidate", "command"] = step.candidate.command if step.timed and step.candidate else None
    for place, text in texts.items():
        if isinstance(text, str) and not _is_shell_of_other_kind(step):
            _refuse(draft, place, partial(check_shell, text))


def check_stage(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the strings of a stage's own keys."""
    _check_condition(draft, stage.if_, (*loc, "if"), None)
    data: dict[str, Any] = stage.model_dump(by_alias=True, exclude_unset=True)
    _check_texts(draft, {key: data[key] for key in _STAGE_KEYS if key in data}, loc, None)


def check_header(draft: Draft) -> None:
    """Check the strings that apply to all steps; the default of a parameter cannot be an expression."""
    workflow = draft.workflow
    _check_texts(draft, dict(workflow.env), ("env",), None)
    _check_texts(draft, workflow.defaults.model_dump(by_alias=True, exclude_unset=True), ("defaults",), None)
    thresholds = workflow.thresholds.model_dump(by_alias=True, exclude_none=True)
    _check_texts(draft, thresholds, ("thresholds",), None)
    for name, param in workflow.params.items():
        if any("${{" in text for text, _ in _texts(param.default, ())):
            hint = "write the expression where the parameter is used"
            message = "the default of a parameter cannot contain an expression"
            draft.complain(("params", name, "default"), message, hint, find="${{")


def _is_shell_of_other_kind(step: Step) -> bool:
    """Return whether ``shell`` is not a shell, such as ``python3``."""
    return bool(step.shell) and not re.search(r"sh\b", step.shell or "")


def _refuse(draft: Draft, loc: Loc, attempt: Callable[[], object]) -> None:
    """Report an ExpressionError, unless a problem of this text has been reported before."""
    try:
        attempt()
    except ExpressionError as error:
        if loc not in draft.wrong:
            draft.complain(loc, str(error), error.hint, find=error.near)


def _texts(value: Any, loc: Loc) -> Iterator[tuple[str, Loc]]:
    """Yield every string inside nested data, and its location."""
    if isinstance(value, str):
        yield value, loc
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*loc, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*loc, index))


def _check_texts(draft: Draft, data: Any, loc: Loc, step: Step | None) -> None:
    for text, place in _texts(data, loc):
        if "{{" not in text:
            continue
        braces = _BRACES.search(text)
        if braces:
            draft.complain(place, "`{{ }}` is not an expression here", "write ${{ ... }}", find=braces[0])
        if "${{" in text:
            _check_text(draft, text, place, step)


def _check_text(draft: Draft, text: str, loc: Loc, step: Step | None) -> None:
    found = pieces(text)
    while True:
        try:
            part = next(found, None)
            if part is None:
                return
            if isinstance(part, Expression):
                _check_names(draft, part, step, loc)
        except ExpressionError as error:
            draft.complain(loc, str(error), error.hint, find=error.near)


def _check_condition(draft: Draft, condition: str | bool | None, loc: Loc, step: Step | None) -> None:
    if not isinstance(condition, str):
        return
    if "${{" in condition:
        hint = "write the expression alone, such as `if: params.full`"
        draft.complain(loc, "`if` must not contain ${{ }}", hint, find="${{")
        return
    try:
        _check_names(draft, Expression(condition), step, loc, is_condition=True)
    except ExpressionError as error:
        draft.complain(loc, str(error).replace("${{ ", "").replace(" }}", ""), error.hint, find=error.near)


def _check_names(
    draft: Draft, expression: Expression, step: Step | None, loc: Loc, *, is_condition: bool = False
) -> None:
    if any(f"params.{name}" in expression.source for name in draft.params if not name.isidentifier()):
        return  # the invalid name of the parameter has been reported
    for root, *rest in dict.fromkeys(expression.names()):
        if root in STATUS_FUNCTIONS and is_condition:
            if f"{root}(" not in expression.source.replace(" ", ""):
                draft.complain(loc, f"`{root}` is a function", f"write {root}()", find=root)
        elif root not in ROOTS:
            hint = did_you_mean(root, ROOTS, "known names")
            if root in draft.params:
                hint = f"did you mean `params.{root}`?"
            draft.complain(loc, f"unknown name `{root}` in an expression", hint, find=_in_source(expression, root))
        elif root == "ops" and step and step.ops is None and "ops" not in draft.wrong_keys(draft.steps[step.id]):
            message = "the expression uses `ops`, but the step has no key `ops`"
            draft.complain(loc, message, "ops: 1000", find=_in_source(expression, root))
        elif misplaced := _misplaced(draft, root, step, loc):
            draft.complain(loc, *misplaced, find=_in_source(expression, root))
        elif rest:
            _check_member(draft, expression, (root, *rest), step, loc)


def _misplaced(draft: Draft, root: str, step: Step | None, loc: Loc) -> tuple[str, str] | None:
    """Return the message and the hint for a name that this place cannot use, None if it can."""
    if root == "layout" and step and role_of(step, str(loc[1]), draft.workflow) is not Role.WORK:
        hint = "use it in a step that builds; it is the number of the code layout to build"
        return "`layout.seed` in a step that does not build", hint
    if root == "holdout" and root not in loc:
        return "`holdout.file` outside of `holdout`", "use it in `holdout: {run: ...}` of the optimize stage"
    return None


def _check_member(draft: Draft, expression: Expression, path: tuple[str, ...], step: Step | None, loc: Loc) -> None:
    root, name = path[0], path[1]
    names = _members(draft, root, step)
    if names is None:
        return
    find = _in_source(expression, f"{root}.{name}")
    if root == "matrix" and not names:
        hint = "matrix: {size: [10, 100]}"
        draft.complain(loc, f"undefined `matrix.{name}`: the step has no matrix", hint, find=find)
    elif name.partition("[")[0] not in names and name not in _MAP_METHODS:
        near = did_you_mean(name, names, "known names").replace("did you mean `", f"did you mean `{root}.")
        draft.complain(loc, f"undefined `{root}.{name}`", near, find=find)
    elif root == "steps" and len(path) > 2 and path[2] != "outputs":
        hint = f"write `steps.{name}.outputs.NAME`"
        draft.complain(loc, f"unknown `{path[2]}` of a step: a step has only `outputs`", hint, find=find)


_MAP_METHODS = ("get", "keys", "values", "items")


def _members(draft: Draft, root: str, step: Step | None) -> list[str] | None:
    """Return the names below ``root``, or None if they are known only when the step runs."""
    if root == "params":
        return None if ("params",) in draft.wrong else list(draft.params)
    if root == "steps":
        return None if ("stages",) in draft.wrong else draft.step_names
    if root in ("layout", "pair"):
        return ["seed"]
    if root == "holdout":
        return ["file"]
    if root != "matrix":
        return None
    if step is None or "matrix" in draft.wrong_keys(draft.steps[step.id]):
        return None
    return [*step.matrix.axes, *(key for cell in step.matrix.include for key in cell)] if step.matrix else []


def _in_source(expression: Expression, text: str) -> str:
    """Return ``text`` if the expression contains it literally, else the whole expression, to find it in the file."""
    return text if text in expression.source else expression.source.strip()
