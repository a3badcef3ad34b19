"""Check the keys of a step: its action, tool, needs, limits, matrix and parsed figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from perfflow.model.metrics import METRICS, Metric
from perfflow.model.similar import did_you_mean, nearest, tool_meant
from perfflow.model.units import Dimension, UnitError, duration, parse_quantity, parse_requirement, unit_of
from perfflow.tools import registry
from perfflow.tools.adapter import Role
from perfflow.workflow import (
    artifact_checks,
    candidate_checks,
    evidence_checks,
    layout_checks,
    service_checks,
    stage_checks,
)
from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import DOING, MAX_CELLS, OUTPUT_VARIABLE, Param, Parse, Stage, Step
from perfflow.workflow.roles import AUTO, BENCHMARK, CANDIDATES_STAGE, metrics_added_by, role_of, tool_of
from perfflow.workflow.shape import keys_of, read_options

_MOVE = "a stage that measures times `run`; if the step prepares something, move it to the stage `build`"
_STREAMS = ("discard", "pipe")
_CHANGES = ("patch", "ref", "propose", "params")


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check one step, and add all its problems to the draft."""
    for rule in _RULES:
        rule(draft, stage, step, loc)


def check_stage(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the name and the keys of a stage itself."""
    check_duration(draft, stage.timeout, (*loc, "timeout"))
    candidate_checks.check_stage(draft, stage, loc)
    stage_checks.check(draft, stage, loc)


def check_header(draft: Draft) -> None:
    """Check the defaults of the file, and the types of its parameters."""
    check_duration(draft, draft.workflow.defaults.timeout, ("defaults", "timeout"))
    for name, param in draft.workflow.params.items():
        wrong = default_mistake(param)
        if wrong:
            draft.complain(
                ("params", name, "default"),
                f"the default of parameter `{name}` is {param.default!r}, {wrong}",
                "change one of them",
            )


def default_mistake(param: Param) -> str:
    """Return how the default of a parameter contradicts its type or enum, or '' if it does not."""
    value = param.default
    if value is None:
        return ""
    kinds: Mapping[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "list": list}
    # A boolean is an int in Python.
    is_other = isinstance(value, bool) and param.type != "boolean"
    if param.type and (is_other or not isinstance(value, kinds[param.type])):
        return f"but its type is {param.type}"
    return f"but `enum` allows {', '.join(map(str, param.enum))}" if param.enum and value not in param.enum else ""


def check_duration(draft: Draft, text: str | None, loc: Loc) -> None:
    """Report a string that is not a duration, unless it contains an expression."""
    if text is None or "${{" in text:
        return
    try:
        duration(text)
    except UnitError as error:
        draft.complain(loc, str(error), "write a number and a unit: 90s, 10m or 1h 30m")


def _check_action(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Require exactly one of uses, run and argv, except for a comparison and for candidates of the optimize stage."""
    doing = [key for key in DOING if getattr(step, key) is not None]
    for other in doing[1:]:
        message = f"a step cannot have both `{doing[0]}` and `{other}`"
        draft.complain((*loc, other), message, "split it into two steps", key=True)
    other_ways = [step.compare and not step.axis, *(getattr(step, key) for key in _CHANGES)]
    changes = stage == CANDIDATES_STAGE and (step.env or step.matrix)
    # An invalid key may be the one that defines the action.
    if not doing and not any(other_ways) and not changes and not step.with_ and not draft.wrong_keys(loc):
        hint = "add `uses`, `run` or `argv`" if stage != CANDIDATES_STAGE else f"add {candidate_checks.EXAMPLE}"
        draft.complain(loc, f"step `{step.id}` does nothing", hint)
    if step.with_ and not step.uses and "uses" not in draft.wrong_keys(loc):
        own = "write the command without `with`: run: COMMAND"
        hint = own if "command" in step.with_ else "name a tool: `uses: perf`"
        draft.complain((*loc, "with"), "`with` needs `uses`", hint, key=True)
    if step.timed and step.candidate and step.candidate.with_:
        hint = "write the command of the candidate: `candidate: COMMAND`, or `candidate: {command: COMMAND, env: ...}`"
        draft.complain((*loc, "candidate", "with"), "`candidate.with` needs `uses`", hint, key=True)
    if step.timed and OUTPUT_VARIABLE in f"{step.run} {step.argv}":
        draft.complain((*loc, "run" if step.run else "argv"), "a step that is timed has no outputs", _MOVE)
    if step.argv == []:
        draft.complain((*loc, "argv"), "`argv` is empty", "name a program: argv: [./bench, --quick]")
    if step.run is not None and not step.run.strip():
        draft.complain((*loc, "run"), "`run` is empty", "write a command: run: make")


def _check_tool(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    if not step.uses:
        return
    if not step.declared and registry.find(step.uses) is None:
        _check_no_tool(draft, step, loc)
    tool = tool_of(step)
    if tool is None:
        return
    variations = [(step.with_, step.with_, (*loc, "with"))]
    if step.candidate and step.candidate.with_:
        variations.append((step.candidate.with_, step.with_ | step.candidate.with_, (*loc, "candidate", "with")))
    own = set(keys_of(Step)) - set(keys_of(tool.options))
    for written, values, place in variations:
        for key in own & set(written):
            message = f"`{key}` is a key of the step, not of the tool"
            draft.complain((*place, key), message, "move it out of `with`", key=True)
        options = {key: value for key, value in values.items() if key not in own}
        shaped = read_options(draft.document, tool.options, options, place)
        # Values that a candidate inherits from its step are reported for the step.
        shared = {*keys_of(tool.options), *step.with_} - set(written) if values is not written else set()
        for problem, wrong in zip(shaped.problems, shaped.wrong, strict=True):
            # A problem of several keys together has no key.
            if not shared.intersection(wrong[len(place) : len(place) + 1]):
                draft.add([problem], [wrong])


def _check_no_tool(draft: Draft, step: Step, loc: Loc) -> None:
    """Check a step whose ``uses`` has no adapter: ``auto``, or an unknown tool."""
    if step.uses == AUTO:
        if step.with_:
            hint = "name the tool that has these keys, such as `uses: perf`"
            draft.complain((*loc, "with"), f"`uses: {AUTO}` cannot have `with`", hint, key=True)
    elif step.uses and (*loc, "uses") not in draft.wrong:  # problems of a tool file have been reported
        _complain_of_tool(draft, step.uses, (*loc, "uses"))


def _complain_of_tool(draft: Draft, name: str, loc: Loc) -> None:
    reason = registry.trouble(name)
    if reason:
        draft.complain(loc, f"the tool {name!r} cannot be used: {reason}", "repair or uninstall that distribution")
    else:
        known = "`perfflow list` shows all tools; to use your own, write the path of its file: uses: ./tools/NAME.yaml"
        meant = tool_meant(name, registry.known())
        draft.complain(loc, f"unknown tool {name!r}", f"did you mean `{meant}`?" if meant else known)


def _check_needs(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    for index, need in enumerate([step.needs] if isinstance(step.needs, str) else step.needs or []):
        if need.partition("[")[0] not in draft.steps:
            hint = did_you_mean(need, draft.step_names, "steps")
            draft.complain((*loc, "needs", index), f"unknown step `{need}` under `needs`", hint)


def _check_limits(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    check_duration(draft, step.timeout, (*loc, "timeout"))
    check_duration(draft, step.budget, (*loc, "budget"))
    if step.retries and role_of(step, stage, draft.workflow) is Role.MEASURE:
        hint = "remove it: retries until success would bias the result; for more samples, use `runs`"
        hint = _MOVE if step.timed else hint
        draft.complain((*loc, "retries"), "a step that measures cannot have `retries`", hint, key=True)
    if isinstance(step.ops, list) and (len(step.ops) != 2 or not 0 < step.ops[0] < step.ops[1]):
        message = "`ops` must be a number, or two increasing numbers for the slope"
        draft.complain((*loc, "ops"), message, "ops: [1000, 11000]")
    if isinstance(step.ops, int) and step.ops < 1:
        draft.complain((*loc, "ops"), "`ops` must be at least 1", "remove it if one run is one operation")
    if step.metric not in (None, "auto", *METRICS):
        draft.complain((*loc, "metric"), f"unknown metric {step.metric!r}", "write auto, time, cpu or uncontended")


def _check_stdout(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    """Report ``stdout`` on steps that ignore it, and words that are probably misspelt."""
    places = [(step.stdout, (*loc, "stdout"))]
    places += [(step.candidate.stdout, (*loc, "candidate", "stdout"))] if step.candidate else []
    for text, place in places:
        if text is None:
            continue
        wrong = stream_mistake(text)
        tool = tool_of(step)
        if tool is None or not tool.passes_stdout:
            what = f"`{step.uses}`" if step.uses else "a step without a tool"
            hint = "use it with `uses: command` or another tool that runs one program"
            draft.complain(place, f"`stdout` has no effect on {what}", hint, key=True)
        elif wrong:
            draft.complain(place, f"`stdout: {text}` {wrong[0]}", wrong[1])


def stream_mistake(text: str) -> tuple[str, str] | None:
    """Return the message and hint for an invalid ``stdout``, or None if it is valid."""
    near = nearest(text, _STREAMS, 0.6)
    if not text:
        return "is empty", "write discard, pipe or the name of a file"
    if text in _STREAMS or not near:
        return None
    return "is probably misspelt", f"did you mean {near}? write ./{text} if it is a file"


def _check_prepare(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Report ``prepare`` on a step that takes no samples, and empty commands."""
    if step.prepare is None:
        return
    place = (*loc, "prepare")
    texts = [step.prepare] if isinstance(step.prepare, str) else step.prepare
    if role_of(step, stage, draft.workflow) not in (Role.MEASURE, Role.PROFILE) and not draft.wrong_keys(loc):
        hint = "use it on a step that measures; other preparations are steps of the stage `setup` or `build`"
        draft.complain(place, "`prepare` has no effect on a step that takes no samples", hint, key=True)
    elif not texts or not all(text.strip() for text in texts):
        draft.complain(place, "`prepare` is empty", "write a command: prepare: make clean")


def _check_matrix(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    if step.matrix is None:
        return
    axes, cells = step.matrix.axes, 1
    for key, values in axes.items():
        cells *= len(values)
        if not key.isidentifier():
            draft.complain((*loc, "matrix", key), f"invalid name {key!r}", "use letters, digits and _", key=True)
        if not values:
            draft.complain((*loc, "matrix", key), f"matrix key `{key}` has no values", f"{key}: [10, 100]")
        texts = {str(value) for value in values}
        # 1.10 and 1.1 are one number. A boolean equals a number in Python, but not here.
        numbers = {(isinstance(value, bool), value) for value in values}
        if len(texts) < len(values) or len(numbers) < len(values):
            hint = "keep one of them" if len(texts) < len(values) else "keep one of them, or quote them as texts"
            draft.complain((*loc, "matrix", key), f"matrix key `{key}` has a duplicate value", hint)
    if not axes and not step.matrix.include and not draft.wrong_keys((*loc, "matrix")):
        draft.complain((*loc, "matrix"), "the matrix has no keys", "matrix: {size: [10, 100]}")
    if cells > MAX_CELLS:
        message = f"the matrix has {cells} cells, more than {MAX_CELLS}"
        draft.complain((*loc, "matrix"), message, "remove values, or split it into several steps", key=True)
    for index, cell in enumerate(step.matrix.exclude):
        for key in set(cell) - set(axes):
            place = (*loc, "matrix", "exclude", index, key)
            hint = did_you_mean(key, axes, "matrix keys")
            draft.complain(place, f"unknown matrix key `{key}` under `exclude`", hint, key=True)


def check_parse(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    """Check ``parse``, and the metrics that ``assert`` names."""
    parse, place = step.parse, (*loc, "parse")
    if parse is None:
        if step.assert_ is not None and "parse" not in draft.wrong_keys(loc):
            hint = "parse: {regex: '(?P<error>[0-9.]+)', units: {error: '1'}}"
            draft.complain((*loc, "assert"), "`assert` needs `parse`, which reads the figures", hint, key=True)
        return
    if step.uses:
        hint = "remove it: tools read their own figures; to parse the output of a command, use `run` without `uses`"
        draft.complain(place, f"`parse` cannot be combined with `uses: {step.uses}`", hint, key=True)
        return
    if draft.wrong_keys(place):
        return
    _check_paths(draft, parse, place)
    for name, where in _parsed_metrics(draft, parse, place).items():
        if name not in parse.units:
            hint = f"units: {{{name}: ms}}, or '1' for a plain number"
            draft.complain(where, f"`units` has no entry for `{name}`", hint, find=name)
    for name, unit in parse.units.items():
        _check_unit(draft, name, unit, (*place, "units", name))
    for name, text in (step.assert_ or {}).items():
        metric = {**METRICS, **metrics_added_by(step)}.get(name) if name in parse.units else None
        _check_requirement(draft, text, metric, name, (*loc, "assert", name))


def _check_paths(draft: Draft, parse: Parse, place: Loc) -> None:
    if sum(bool(way) for way in (parse.json_, parse.jsonl, parse.regex, parse.csv)) != 1:
        message = "`parse` must have exactly one of json, jsonl, regex and csv"
        draft.complain(place, message, "parse: {json: {time: mean}, units: ...}", key=True)
    for key, paths in (("json", parse.json_), ("jsonl", parse.jsonl), ("csv", parse.csv)):
        for name, path in (paths or {}).items():
            if isinstance(path, list) and (name != BENCHMARK or not path):
                hint = f"write one of them: {name}: {path[0] if path else 'mean'}"
                draft.complain((*place, key, name), "only `benchmark` is made of several paths", hint)


def _check_unit(draft: Draft, name: str, unit: str, loc: Loc) -> None:
    known = unit_of(unit) if unit != "1" else (Dimension.COUNT, 1)
    if known is None:
        draft.complain(loc, f"unknown unit {unit!r}", _unit_hint(unit))
    elif name in METRICS and METRICS[name].dimension is not known[0] and known[0] is not Dimension.COUNT:
        noun = METRICS[name].dimension.noun
        draft.complain(loc, f"`{name}` is a {noun}, but {unit!r} is not a unit of it", "use another name or unit")


def _check_requirement(draft: Draft, text: object, metric: Metric | None, name: str, loc: Loc) -> None:
    if metric is None:
        hint = "add a path, group or column for it under `parse`, and a unit"
        draft.complain(loc, f"unknown metric `{name}` under `assert`: `parse` does not read it", hint, key=True)
        return
    if draft.document.style(loc) in (">", "|"):
        draft.complain(loc, BLOCK_TEXT, BLOCK_HINT)
        return
    try:
        parse_requirement(text, metric.dimension)
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)


BLOCK_TEXT = "`>` starts a block scalar in YAML, so this is not a requirement"
BLOCK_HINT = 'quote it, such as ">2", or write ≥2'


def _unit_hint(unit: str) -> str:
    try:
        parse_quantity(f"1 {unit}")
    except UnitError as error:
        return error.hint
    return "write only the unit, such as ms"


def _parsed_metrics(draft: Draft, parse: Parse, place: Loc) -> dict[str, Loc]:
    """Return the metrics that a ``parse`` reads, each with its location."""
    names: dict[str, Loc] = dict.fromkeys(parse.json_ or {}, (*place, "json"))
    names |= dict.fromkeys(parse.jsonl or {}, (*place, "jsonl"))
    names |= dict.fromkeys(parse.csv or {}, (*place, "csv"))
    patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
    for index, pattern in enumerate(patterns):
        where = (*place, "regex", index)
        try:
            groups = list(re.compile(pattern).groupindex)
        except (re.error, OverflowError, RecursionError) as error:
            position = getattr(error, "pos", None)
            at = f" at character {position + 1}" if position is not None else ""
            draft.complain(where, f"invalid regular expression: {getattr(error, 'msg', error)}{at}", _REGEX_HINT)
            continue
        if not set(groups) - {BENCHMARK}:
            message = "the regular expression has no named group for a metric"
            draft.complain(where, message, "write (?P<time>[0-9.]+)")
        names |= dict.fromkeys(groups, where)
    return {name: where for name, where in names.items() if name != BENCHMARK}


_REGEX_HINT = "use the syntax of Python's re module; write \\( and \\[ for literal brackets"

_RULES: tuple[Callable[[Draft, str, Step, Loc], None], ...] = (
    _check_action,
    _check_tool,
    _check_needs,
    _check_limits,
    _check_stdout,
    _check_prepare,
    _check_matrix,
    check_parse,
    candidate_checks.check,
    evidence_checks.check,
    service_checks.check,
    artifact_checks.check,
    layout_checks.check,
)
