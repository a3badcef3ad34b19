"""Read a tool file and check its keys."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from perfflow.model.errors import Problem, UserError
from perfflow.model.similar import did_you_mean
from perfflow.tools import registry
from perfflow.tools.adapter import CommandOptions
from perfflow.workflow import step_checks
from perfflow.workflow.declared_tool import NAMES, ONLY, STDERR, STDOUT, WITH, DeclaredTool, ToolFile, texts_of
from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import Expression, split
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Step, Workflow
from perfflow.workflow.readable import Readable
from perfflow.workflow.shape import read_shape
from perfflow.workflow.yaml_text import read_file

_TAKEN = {"shell", *CommandOptions.model_fields}


def read_tool(path: Path, readable: Readable) -> tuple[DeclaredTool | None, tuple[Problem, ...]]:
    """Read one tool file inside ``readable``. Return its tool, or None if there are errors, and its problems."""
    try:
        document = read_file(path, readable)
        data = document.data()
    except UserError as error:
        return None, error.problems
    draft = Draft(path, document, Workflow.model_construct(perfflow=1, stages={}), readable)
    draft.add(document.problems, document.wrong)
    shaped = read_shape(document, ToolFile, data, (), draft.wrong)
    draft.add(shaped.problems, shaped.wrong)
    source = shaped.model
    if source is not None:
        name = source.name or path.stem
        _check(draft, source, name)
    if source is None or draft.errors:
        return None, tuple(draft.problems)
    digest = hashlib.sha256("\n".join(document.lines[document.file]).encode()).hexdigest()
    return DeclaredTool(source, name, digest), tuple(draft.problems)


def _check(draft: Draft, source: ToolFile, name: str) -> None:
    if name in registry.MODULES:
        draft.complain(("name",), f"`{name}` is the name of a built-in tool", "choose another `name`")
    if not source.argv and not draft.wrong_keys(("argv",)) and "argv" not in draft.wrong_keys(()):
        draft.complain(("argv",), "`argv` is empty", 'name the program: argv: [wc, -c, "${{ with.file }}"]')
    if source.program and not source.install and "install" not in draft.wrong_keys(()):
        hint = "install: apt-get install " + source.program
        draft.complain(("program",), "`program` needs `install`, the command that installs it", hint, key=True)
    if source.version and not source.program:
        draft.complain(("version",), "`version` needs `program`", "add `program`, whose version is asked for", key=True)
    _check_options(draft, source)
    _check_outputs(draft, source)
    _check_role(draft, source)
    for loc, text in texts_of(source):
        _check_text(draft, source, loc, text)
    for key in ("finished", "failed"):
        _check_pattern(draft, key, getattr(source, key))
    pseudo = Step.model_construct(parse=source.parse, assert_=source.assert_)
    step_checks.check_parse(draft, "", pseudo, ())


def _check_options(draft: Draft, source: ToolFile) -> None:
    for name, param in source.with_.items():
        loc = ("with", name)
        if name in _TAKEN:
            hint = "write ${{ command }} in `argv`; the keys `command` and `shell` are then added automatically"
            draft.complain(loc, f"`{name}` is a reserved key of `with`", hint, key=True)
        wrong = step_checks.default_mistake(param)
        if wrong:
            message = f"the default of `{name}` is {param.default!r}, {wrong}"
            draft.complain((*loc, "default"), message, "change one of them")


def _check_outputs(draft: Draft, source: ToolFile) -> None:
    for index, name in enumerate(source.outputs):
        if name in (STDOUT, STDERR):
            draft.complain(("outputs", index), f"`{name}` is always kept", "remove it; `parse` reads stdout by default")
    named = {("parse", "file"): source.parse.file if source.parse else "", ("stacks",): source.stacks}
    for loc, name in named.items():
        if name and name not in (*source.outputs, *((STDERR,) if loc[0] == "parse" else ())):
            hint = did_you_mean(name, source.outputs) or f"outputs: [{name}]"
            draft.complain(loc, f"`{name}` is not one of the `outputs`", hint)


def _check_role(draft: Draft, source: ToolFile) -> None:
    if draft.wrong & {("role",), ("parse",), ("assert",), ("outputs",)}:
        return
    if source.role == "measure" and source.parse is None:
        hint = "parse: {regex: 'took (?P<time>[0-9.]+) ms', units: {time: ms}}"
        draft.complain(("role",), "a tool that measures needs `parse`, which reads its figures", hint)
    if source.role == "profile" and not source.outputs:
        message = "a tool that profiles needs `outputs`, the profiles that it writes"
        draft.complain(("role",), message, "outputs: [cpu.prof]")
    if source.role == "check" and source.parse and not source.assert_:
        hint = "add the required value of each metric: assert: {METRIC: 0}"
        draft.complain(("parse",), "a check with `parse` needs `assert`", hint, key=True)
    if source.role != "check" and source.assert_:
        draft.complain(("assert",), "`assert` needs the role check", "role: check", key=True)
    if source.role != "measure" and source.suite:
        draft.complain(("suite",), "`suite` needs the role measure", "role: measure", key=True)


def _check_text(draft: Draft, source: ToolFile, loc: tuple[str | int, ...], text: str) -> None:
    """Report an expression that does not parse, or uses an unknown name."""
    try:
        paths = [path for part in split(text) if isinstance(part, Expression) for path in part.names()]
    except ExpressionError as error:
        draft.complain(loc, str(error), error.hint, find=error.near or OPEN)
        return
    for path in paths:
        if path[0] not in NAMES:
            hint = did_you_mean(path[0], NAMES, "known names")
            draft.complain(loc, f"unknown name `{path[0]}`", hint, find=path[0])
        elif path[0] == ONLY and loc[:2] != ("suite", "only"):
            message = "`only` is defined only in `suite: {only: ...}`"
            draft.complain(loc, message, "move the expression there", find=ONLY)
        elif path[0] == WITH and (len(path) < 2 or path[1] not in source.with_):
            wanted = path[1] if len(path) > 1 else ""
            hint = did_you_mean(wanted, source.with_, "keys of `with`")
            draft.complain(loc, f"`with` has no key `{wanted}`", hint, find=wanted or WITH)


def _check_pattern(draft: Draft, key: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        draft.complain((key,), f"invalid regular expression: {error}", "use the syntax of Python's re module")
