"""Check the keys of each step and stage, and the defaults and parameters of a workflow file.

- ``check`` checks a step: its action, tool, needs, limits, matrix and parsed figures.
- ``check_candidate`` checks the optimize stage: each candidate changes the tree in one way, and its patch file exists.
- ``check_stage_keys`` checks the names of stages: a misspelt name is an error, because its steps would get another
  role. In a stage `optimise` a candidate would edit the user's own tree, and in `verfy` a failing command would not be
  a failed check.
- ``check_evidence`` checks the keys ``scaling``, ``scenario``, ``confirms``, ``variants`` and ``compare`` of a step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfflow.model import similar
from perfflow.model.criteria import read_share
from perfflow.model.metrics import METRICS, THREADS, Metric
from perfflow.model.similar import did_you_mean, nearest, tool_meant
from perfflow.model.units import Dimension, UnitError, duration, parse_quantity, parse_requirement, unit_of
from perfflow.tools import registry
from perfflow.tools.adapter import Role
from perfflow.workflow import artifact_checks, layout_checks, service_checks
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN
from perfflow.workflow.load import Draft
from perfflow.workflow.model import DOING, MAX_CELLS, OUTPUT_VARIABLE, STAGES, Matrix, Param, Parse, Scalar, Stage, Step
from perfflow.workflow.roles import (
    AUTO,
    BENCHMARK,
    CANDIDATES_STAGE,
    STAGE_ROLES,
    is_suite,
    metrics_added_by,
    names_its_own_benchmarks,
    role_of,
    tool_of,
)
from perfflow.workflow.shape import keys_of, read_options
from perfflow.workflow.yaml_hints import nearest_file

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
    check_candidates(draft, stage, loc)
    check_stage_keys(draft, stage, loc)


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
        hint = "add `uses`, `run` or `argv`" if stage != CANDIDATES_STAGE else f"add {EXAMPLE}"
        draft.complain(loc, f"step `{step.id}` does nothing", hint)
    if step.with_ and not step.uses and "uses" not in draft.wrong_keys(loc):
        without_tool = "write the command without `with`: run: COMMAND"
        hint = without_tool if "command" in step.with_ else "name a tool: `uses: perf`"
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
    keys_of_step = set(keys_of(Step)) - set(keys_of(tool.options))
    for written, values, place in variations:
        for key in keys_of_step & set(written):
            message = f"`{key}` is a key of the step, not of the tool"
            draft.complain((*place, key), message, "move it out of `with`", key=True)
        options = {key: value for key, value in values.items() if key not in keys_of_step}
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
        draft.complain(
            (*loc, "metric"), f"unknown metric {step.metric!r}", "write auto, time, cpu, uncontended or service_cpu"
        )


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


_WAYS = ("patch", "ref", "run", "argv", "propose")
"""Keys of a candidate that change files; ``env`` and ``params`` may be combined with one of them."""
_SHARES = ("accept", "diminishing")
EXAMPLE = "patch: change.patch, ref: BRANCH, run: COMMAND, propose: PROGRAM, env: {...} or params: {...}"


def check_candidate(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check a step of the optimize stage; steps of other stages are skipped."""
    if stage != CANDIDATES_STAGE:
        return
    if step.uses:
        hint = f"a candidate changes the program; other stages measure it. Write one of {EXAMPLE}"
        draft.complain((*loc, "uses"), "a candidate of the optimize stage cannot have `uses`", hint, key=True)
    ways = [key for key in _WAYS if getattr(step, key) is not None]
    for other in ways[1:]:
        # `run` with `argv` is an error in any stage, and reported by the checks of steps.
        if {ways[0], other} != {"run", "argv"}:
            hint = "split it into two candidates, so that each changes one thing"
            message = f"a candidate cannot have both `{ways[0]}` and `{other}`"
            draft.complain((*loc, other), message, hint, key=True)
    _check_patch(draft, step, (*loc, "patch"))


def _check_patch(draft: Draft, step: Step, loc: Loc) -> None:
    """Report a missing patch file now, before the run spends an hour on earlier stages."""
    if step.patch is None or "${{" in step.patch:
        return
    path = draft.path.parent / step.patch
    if not step.patch.strip() or "\0" in step.patch:
        draft.complain(loc, f"invalid path {step.patch!r}", "name a file: patch: patches/change.patch")
    elif path.is_dir():
        draft.complain(loc, f"the patch {step.patch} is a directory", "name one of its files")
    elif not path.is_file():
        near = nearest_file(path) if draft.readable.holds(path) else None
        default = "write a path relative to the workflow file"
        hint = f"did you mean {Path(step.patch).with_name(near.name)}?" if near else default
        draft.complain(loc, f"the patch {step.patch} does not exist", hint)


def check_candidates(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the keys of the optimize stage itself."""
    if stage.holdout and "holdout.file" not in stage.holdout.run:
        hint = "run: ./program ${{ holdout.file }}"
        draft.complain((*loc, "holdout", "run"), "the command does not read `${{ holdout.file }}`", hint)
    for key in _SHARES:
        text = getattr(stage, key)
        if text is None:
            continue
        try:
            read_share(text)
        except UnitError as error:
            hint = error.hint if "%" in error.hint else f"write a percentage: {key}: 5%"
            draft.complain((*loc, key), str(error), hint)


_OF_CANDIDATES = ("technique", "patch", "ref", "propose", "params")
"""Keys of a step that make it a candidate; ``why`` and ``hotspot`` are harmless elsewhere."""
_OF_OPTIMIZE = (
    "objective",
    "guard",
    "accept",
    "diminishing",
    "attempts",
    "forbid",
    "allow",
    "max_diff",
    "check",
    "ruled_out",
    "isolate",
    "protect",
    "holdout",
)
_LONG = 8
"""Fewest letters of a name for which two wrong letters still count as misspelt."""


def check_stage_keys(draft: Draft, stage: Stage, loc: Loc) -> None:
    """Check the name and role of a stage, and report candidates outside the optimize stage."""
    name = str(loc[1])
    meant = "" if stage.role else similar.STAGES.get(name.lower(), "")
    near = near_stage(name) or meant
    known = STAGE_ROLES.get(name)
    if near:
        hint = f"write `{near}`, or choose a name that differs more and add a `role`"
        if meant:
            role = STAGE_ROLES[meant]
            hint = f"write `{near}`, or keep the name and add its role: {name}: {{role: {role}, steps: [...]}}"
        draft.complain(loc, f"unknown stage `{name}`; did you mean `{near}`?", hint, key=True)
    elif known is not None and stage.role not in (None, known):
        hint = "remove `role`, or rename the stage"
        draft.complain((*loc, "role"), f"the stage `{name}` has the role {known}, not {stage.role}", hint)
    elif known is None and stage.role is None and not draft.wrong_keys(loc) & {"", "role"}:
        hint = f"{name}: {{role: work, steps: [...]}}; other roles are measure, profile and check"
        draft.warn(loc, f"`{name}` is a stage of your own without a `role`, so its role is work", hint, key=True)
    if name != CANDIDATES_STAGE and not near:
        _refuse_candidates(draft, name, stage, loc)


def near_stage(name: str) -> str:
    """Return the predefined stage that a name misspells, or '' for a predefined or clearly different name.

    A name with a digit or another word is intended: `build2`, `build-base`, `rebuild`, `prefill`.
    """
    if name in STAGES:
        return ""
    plain = name.lower()
    squeezed = plain.replace("-", "").replace("_", "")
    if squeezed in STAGES:
        return squeezed
    return next((known for known in STAGES if plain.isalpha() and _is_near(plain, known)), "")


def _is_near(name: str, known: str) -> bool:
    allowed = 2 if len(known) >= _LONG and name[0] == known[0] else 1
    return abs(len(name) - len(known)) <= allowed and _mistypings(name, known) <= allowed


def _mistypings(one: str, other: str) -> int:
    """Return the edit distance of two words: missing, extra, wrong or swapped letters (Damerau-Levenshtein)."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, above = above, row
    return above[-1]


def _refuse_candidates(draft: Draft, name: str, stage: Stage, loc: Loc) -> None:
    """Report candidates outside the optimize stage: they would change the user's tree, and nothing would revert it."""
    hint = f"move it to the stage `{CANDIDATES_STAGE}`, which tries each candidate in a separate tree"
    for key in _OF_OPTIMIZE:
        if getattr(stage, key) is not None:
            written = key.replace("_", "-")
            message = f"`{written}` is not allowed in the stage `{name}`"
            draft.complain((*loc, written), message, hint, key=True)
    for step in stage.steps:
        for key in _candidate_keys(step):
            message = f"`{key}` is not allowed in the stage `{name}`"
            draft.complain((*draft.steps[step.id], key), message, hint, key=True)


def _candidate_keys(step: Step) -> list[str]:
    return [key for key in _OF_CANDIDATES if getattr(step, key) is not None]


LEAST_SIZES, LEAST_THREADS = 3, 2
"""Fewest sizes from which growth can be fitted, and fewest numbers of threads for an efficiency."""
_COMPARED = "matrix: {cc: [gcc, clang]}, compare: cc"
_EXAMPLE = "matrix: {size: [100, 1000, 10000]}, scaling: size"


def check_evidence(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check ``scaling``, ``scenario``, ``confirms``, ``variants`` and ``compare`` of one step."""
    yields = role_of(step, stage, draft.workflow) in (Role.MEASURE, Role.PROFILE)
    # A step with a mistake may measure once the mistake is fixed.
    if not yields and not draft.wrong_keys(loc):
        for key in ("scaling", "scenario", "confirms", "variants"):
            if getattr(step, key) is not None:
                hint = "use it with a tool that measures, or with `run` and `parse`"
                draft.complain((*loc, key), f"`{key}` on a step that does not measure", hint, key=True)
        if step.axis:
            hint = "`compare: KEY` compares the cells of a `matrix` of a step that measures"
            draft.complain((*loc, "compare"), "`compare` on a step that does not measure", hint, key=True)
        return
    _check_scaling(draft, step, loc)
    _check_confirms(draft, step, loc)
    _check_variants(draft, step, loc)
    _check_compare(draft, step, loc)


def _check_compare(draft: Draft, step: Step, loc: Loc) -> None:
    key, place = step.axis, (*loc, "compare")
    if not key or draft.wrong_keys((*loc, "matrix")):
        return
    if step.matrix is None:
        if "matrix" not in draft.wrong_keys(loc):
            draft.complain(place, "`compare` needs a `matrix` with the key", _COMPARED, key=True)
    elif not (values := _values(step.matrix, key)):
        hint = did_you_mean(key, step.matrix.axes, "matrix keys")
        draft.complain(place, f"`compare`: the matrix has no key `{key}`", hint, find=key)
    elif len(values) == 1 and not (isinstance(values[0], str) and OPEN in values[0]):
        draft.complain(place, f"`compare`: matrix key `{key}` has one value only", "add a second value", find=key)
    for other in ("candidate", "variants"):
        if getattr(step, other) is not None:
            hint = "split it into two steps, one for each comparison"
            draft.complain(place, f"a step cannot have both `compare` and `{other}`", hint, key=True)
    if step.scaling == key:
        hint = "sizes are not compared with each other: compare another key"
        draft.complain(place, f"`compare` and `scaling` of the same matrix key `{key}`", hint, key=True)


def _check_scaling(draft: Draft, step: Step, loc: Loc) -> None:
    key = step.scaling
    if key is None or draft.wrong_keys((*loc, "matrix")):
        return
    place = (*loc, "scaling")
    if step.matrix is None:
        if "matrix" not in draft.wrong_keys(loc):
            draft.complain(place, "`scaling` needs a `matrix` with the sizes", _EXAMPLE, key=True)
        return
    values = _values(step.matrix, key)
    if not values:
        hint = did_you_mean(key, step.matrix.axes, "matrix keys")
        draft.complain(place, f"`scaling`: the matrix has no key `{key}`", hint, find=key)
        return
    odd = [value for value in values if not _is_size(value)]
    for value in odd[:1]:
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        draft.complain(place, f"{shown} under matrix key `{key}` is not a size", "write numbers above 0", find=key)
    sizes = {float(value) for value in values if _is_size(value)}
    least = LEAST_THREADS if key in THREADS else LEAST_SIZES
    if not odd and len(sizes) < least:
        message = f"`scaling` over `{key}` has {len(sizes)} sizes, but needs at least {least}"
        draft.complain(place, message, "add sizes; the largest should be at least 10 times the smallest", find=key)


def _values(matrix: Matrix, key: str) -> list[Scalar]:
    """Return all values that cells have under a key."""
    return [*matrix.axes.get(key, []), *(cell[key] for cell in matrix.include if key in cell)]


def _is_size(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _check_confirms(draft: Draft, step: Step, loc: Loc) -> None:
    if step.confirms is not None and step.scenario != "realistic" and "scenario" not in draft.wrong_keys(loc):
        hint = "add `scenario: realistic` to this step; `confirms` names synthetic benchmarks"
        draft.complain((*loc, "confirms"), "`confirms` needs `scenario: realistic`", hint, key=True)


def _check_variants(draft: Draft, step: Step, loc: Loc) -> None:
    variants, place = step.variants, (*loc, "variants")
    if variants is None:
        return
    for key in ("baseline", "candidate"):
        text = getattr(variants, key)
        if text.count("*") != 1:
            hint = 'write one `*` in place of the name of the benchmark: "*/scalar"'
            draft.complain((*place, key), f"{text!r} under `variants` must contain exactly one `*`", hint)
    if variants.baseline == variants.candidate:
        draft.complain((*place, "candidate"), "`variants` compares a benchmark with itself", "name two variants")
    if step.candidate is not None:
        hint = "split it into two steps, one for each comparison"
        draft.complain(place, "a step cannot have both `variants` and `candidate`", hint, key=True)
    several = names_its_own_benchmarks(step) or (is_suite(step) and "*" in (step.benchmark or "*"))
    if not several and not draft.wrong_keys(loc):
        hint = "variants are benchmarks of a suite; to compare two commands, use `candidate`"
        draft.complain(place, "`variants` on a step that measures one benchmark", hint, key=True)


_RULES: tuple[Callable[[Draft, str, Step, Loc], None], ...] = (
    _check_action,
    _check_tool,
    _check_needs,
    _check_limits,
    _check_stdout,
    _check_prepare,
    _check_matrix,
    check_parse,
    check_candidate,
    check_evidence,
    service_checks.check,
    artifact_checks.check,
    layout_checks.check,
)
