"""What one value alone cannot tell: known steps and tools, expressions, units, and the criteria they add up to."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from perfflow.samples.criteria import THRESHOLD_KEYS, Accepted, Criteria, Thresholds, read_share
from perfflow.samples.metrics import METRICS, Metric
from perfflow.samples.targets import Target, parse_target
from perfflow.tools import registry
from perfflow.tools.protocol import Role
from perfflow.units import UNITS, Dimension, UnitError, duration, parse_as, parse_quantity, parse_requirement
from perfflow.workflow import yaml_hints
from perfflow.workflow.expressions import ROOTS, STATUS_FUNCTIONS, Expression, ExpressionError, literals_of, split
from perfflow.workflow.load import Draft, problems_of
from perfflow.workflow.model import Stage, Step
from perfflow.workflow.roles import metrics_added_by, role_of, tool_of
from perfflow.workflow.yaml_text import Loc

_DOING = ("uses", "run", "argv")


def check(draft: Draft) -> Criteria:
    """Add every problem of the draft's valid parts to it, and return the criteria of those that could be read."""
    for stage, step, loc in each_step(draft):
        for rule in _STEP_RULES:
            rule(draft, stage, step, loc)
    for name, stage_model in draft.workflow.stages.items():
        _check_stage(draft, name, stage_model)
    _check_texts(draft, draft.workflow.defaults.timeout, ("defaults", "timeout"), duration)
    metrics = _metrics(draft)
    return Criteria(
        targets=tuple(_targets(draft, metrics)),
        thresholds=_thresholds(draft),
        per_glob=_thresholds_per_glob(draft),
        accepted=tuple(_accepted(draft)),
        metrics=metrics,
        peaks=dict(_peaks(draft, metrics)),
    )


def each_step(draft: Draft) -> Iterator[tuple[str, Step, Loc]]:
    """Yield stage name, step and place of every valid step."""
    for name, stage in draft.workflow.stages.items():
        for step in stage.steps:
            yield name, step, draft.steps[step.id]


def _check_stage(draft: Draft, name: str, stage: Stage) -> None:
    _check_texts(draft, stage.timeout, ("stages", name, "timeout"), duration)
    _check_condition(draft, stage.if_, ("stages", name, "if"))


def _check_texts(draft: Draft, text: str | None, loc: Loc, read: Callable[[str], object]) -> None:
    if text is None or "${{" in text:
        return
    try:
        read(text)
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)


def _check_action(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Exactly one of uses, run and argv, except for a comparison and for optimize's own ways to change a tree."""
    doing = [key for key in _DOING if getattr(step, key) is not None]
    if len(doing) > 1:
        draft.complain((*loc, doing[1]), f"`{doing[0]}` and `{doing[1]}` in one step", "make it two steps", key=True)
    other_ways = (step.compare, step.patch, step.ref, step.propose, step.params)
    if not doing and not any(other_ways) and not (stage == "optimize" and (step.env or step.matrix)):
        draft.complain(loc, f"step `{step.id}` does nothing", "add `uses`, `run` or `argv`")
    if step.with_ and not step.uses:
        draft.complain((*loc, "with"), "`with` goes with `uses`", "", key=True)
    if step.argv == []:
        draft.complain((*loc, "argv"), "`argv` is empty", "name a program: argv: [./bench, --quick]")


def _check_tool(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    if not step.uses:
        return
    tool = tool_of(step)
    if tool is None:
        near = difflib.get_close_matches(step.uses, registry.MODULES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"tools: {', '.join(registry.MODULES)}"
        draft.complain((*loc, "uses"), f"unknown tool {step.uses!r}", hint)
        return
    variations = [(step.with_, (*loc, "with"))]
    if step.candidate and step.candidate.with_:
        variations.append((step.candidate.with_, (*loc, "candidate", "with")))
    for values, place in variations:
        try:
            tool.OPTIONS.model_validate(values)
        except ValidationError as error:
            kept = [
                item
                for item in error.errors()
                if not ("${{" in str(item["input"]) and item["type"] != "extra_forbidden")
            ]
            draft.problems += problems_of(draft.document, tool.OPTIONS, kept, place)


def _check_needs(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    needs = [step.needs] if isinstance(step.needs, str) else step.needs or []
    for index, need in enumerate(needs):
        name = need.partition("[")[0]
        if name not in draft.steps:
            near = difflib.get_close_matches(name, draft.steps, n=1, cutoff=0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"steps: {', '.join(list(draft.steps)[:12])}"
            draft.complain((*loc, "needs", index), f"`needs` names the unknown step `{need}`", hint)


def _check_limits(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    _check_texts(draft, step.timeout, (*loc, "timeout"), duration)
    _check_texts(draft, step.budget, (*loc, "budget"), duration)
    if step.retries and role_of(step, stage) is Role.MEASURE:
        hint = "retrying until green is how noise wins; use `runs` for more samples"
        draft.complain((*loc, "retries"), "`retries` on a step that measures", hint, key=True)
    if isinstance(step.ops, list) and (len(step.ops) != 2 or not 0 < step.ops[0] < step.ops[1]):
        draft.complain((*loc, "ops"), "`ops` is a number, or two rising numbers for the slope", "ops: [1000, 11000]")
    if isinstance(step.ops, int) and step.ops < 1:
        draft.complain((*loc, "ops"), "`ops` is at least 1")
    if step.metric not in (None, "auto", *METRICS):
        draft.complain((*loc, "metric"), f"unknown metric {step.metric!r}", "write auto, time, cpu or uncontended")


def _check_matrix(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    if step.matrix is None:
        return
    for key, values in step.matrix.axes.items():
        if not key.isidentifier():
            draft.complain((*loc, "matrix", key), f"{key!r} is not a name", "use letters, digits and _", key=True)
        if not values:
            draft.complain((*loc, "matrix", key), f"matrix key `{key}` has no values")
    if not step.matrix.axes and not step.matrix.include:
        draft.complain((*loc, "matrix"), "the matrix has no keys", "matrix: {size: [10, 100]}")


def _check_parse(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    if step.assert_ is not None and step.parse is None:
        draft.complain((*loc, "assert"), "`assert` needs `parse`, which says where the figure is", "", key=True)
    if step.parse is None:
        return
    place = (*loc, "parse")
    ways = [way for way in (step.parse.json_, step.parse.regex, step.parse.csv) if way]
    if len(ways) != 1:
        draft.complain(place, "`parse` has one of json, regex and csv")
    found = _parsed_metrics(draft, step, place)
    for name in sorted(found - set(step.parse.units)):
        draft.complain(place, f"`units` has no entry for `{name}`", f"units: {{{name}: ms}}; a plain number is '1'")
    for name, unit in step.parse.units.items():
        known = UNITS.get(unit) if unit != "1" else (Dimension.COUNT, 1)
        if known is None:
            draft.complain((*place, "units", name), f"unknown unit {unit!r}", _unit_hint(unit))
        elif name in METRICS and METRICS[name].dimension is not known[0] and known[0] is not Dimension.COUNT:
            noun = METRICS[name].dimension.noun
            draft.complain(
                (*place, "units", name), f"`{name}` is a {noun}, but {unit!r} is not", "use another name or unit"
            )
    for name, text in (step.assert_ or {}).items():
        metric = {**METRICS, **metrics_added_by(step)}.get(name)
        _check_requirement(draft, text, metric, name, (*loc, "assert", name))


def _check_requirement(draft: Draft, text: object, metric: Metric | None, name: str, loc: Loc) -> None:
    if metric is None:
        draft.complain(loc, f"`assert` names `{name}`, which `parse` does not read", "", key=True)
        return
    try:
        parse_requirement(text, metric.dimension)
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)


def _unit_hint(unit: str) -> str:
    try:
        parse_quantity(f"1 {unit}")
    except UnitError as error:
        return error.hint
    return "write the unit alone, such as ms"


def _parsed_metrics(draft: Draft, step: Step, place: Loc) -> set[str]:
    if step.parse is None:
        return set()
    names = {*(step.parse.json_ or {}), *(step.parse.csv or {})}
    patterns = [step.parse.regex] if isinstance(step.parse.regex, str) else step.parse.regex or []
    for pattern in patterns:
        try:
            groups = set(re.compile(pattern).groupindex)
        except re.error as error:
            draft.complain((*place, "regex"), f"the pattern does not compile: {error}")
            continue
        if not groups - {"benchmark"}:
            draft.complain((*place, "regex"), "the pattern has no named group", "write (?P<time>[0-9.]+)")
        names |= groups
    return names - {"benchmark"}


def _check_condition(draft: Draft, condition: str | bool | None, loc: Loc) -> None:
    if not isinstance(condition, str):
        return
    if "${{" in condition:
        draft.complain(loc, "`if` is one expression without ${{ }}", "write `if: params.full` as it is")
        return
    try:
        _check_names(draft, Expression(condition), None, loc)
    except ExpressionError as error:
        draft.complain(loc, str(error).removeprefix("${{ ").replace(" }}:", ":"))


def _check_expressions(draft: Draft, _stage: str, step: Step, loc: Loc) -> None:
    _check_condition(draft, step.if_, (*loc, "if"))
    data: dict[str, Any] = step.model_dump(by_alias=True, exclude_defaults=True, exclude={"if_"})
    for key, value in data.items():
        for text in literals_of(value):
            place = (*loc, key) if isinstance(value, str) else _place_of(draft, (*loc, key), value, text)
            try:
                for part in split(text):
                    if isinstance(part, Expression):
                        _check_names(draft, part, step, place)
            except ExpressionError as error:
                draft.complain(place, str(error))


def _place_of(draft: Draft, loc: Loc, value: Any, text: str) -> Loc:
    """Find where inside nested data a text stands."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if item == text:
            return (*loc, key)
        if text in literals_of(item):
            return _place_of(draft, (*loc, key), item, text)
    return loc


def _check_names(draft: Draft, expression: Expression, step: Step | None, loc: Loc) -> None:
    for root, *rest in expression.names():
        if root not in ROOTS and root not in STATUS_FUNCTIONS:
            near = difflib.get_close_matches(root, ROOTS, n=1, cutoff=0.6)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(ROOTS)}"
            draft.complain(loc, f"unknown name `{root}` in an expression", hint)
        elif rest:
            _check_member(draft, root, rest[0], step, loc)


def _check_member(draft: Draft, root: str, name: str, step: Step | None, loc: Loc) -> None:
    known: dict[str, list[str]] = {
        "params": list(draft.workflow.params or {}),
        "steps": [*draft.steps],
    }
    if step and step.matrix:
        known["matrix"] = [*step.matrix.axes, *(key for cell in step.matrix.include for key in cell)]
    elif root == "matrix":
        draft.complain(loc, f"`matrix.{name}`, but the step has no matrix")
        return
    names = known.get(root)
    if names is None or name.partition("[")[0] in names:
        return
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean `{root}.{near[0]}`?" if near else f"known: {', '.join(names) or 'none'}"
    draft.complain(loc, f"undefined `{root}.{name}`", hint)


_STEP_RULES = (
    _check_action,
    _check_tool,
    _check_needs,
    _check_limits,
    _check_matrix,
    _check_parse,
    _check_expressions,
)


def _metrics(draft: Draft) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for _, step, loc in each_step(draft):
        for name, metric in metrics_added_by(step).items():
            other = found.setdefault(name, metric)
            if other.dimension is not metric.dimension:
                message = f"`{name}` is a {metric.dimension.noun} here, but a {other.dimension.noun} in another step"
                draft.complain((*loc, "parse", "units", name), message, "give one of them another name")
    return found


def _targets(draft: Draft, metrics: dict[str, Metric]) -> Iterator[Target]:
    for benchmark, requirements in draft.workflow.targets.items():
        for key, text in requirements.items():
            loc: Loc = ("targets", benchmark, key)
            if draft.document.style(loc) in (">", "|"):
                draft.complain(loc, "`>` opens a block text in YAML, so this is empty", 'quote it, such as ">2"')
                continue
            try:
                target = parse_target(benchmark, key, text, metrics)
            except UnitError as error:
                draft.complain(loc, str(error), error.hint)
                continue
            yield target


def _thresholds(draft: Draft) -> Thresholds:
    plain = {key: value for key, value in draft.workflow.thresholds.items() if isinstance(value, str)}
    read = {}
    for key, text in plain.items():
        if key not in THRESHOLD_KEYS:
            hint = yaml_hints.for_unknown_key(key, list(THRESHOLD_KEYS))
            draft.complain(("thresholds", key), f"unknown threshold `{key}`", hint, key=True)
            continue
        share = _share(draft, text, ("thresholds", key))
        if share is not None:
            read[key] = share
    thresholds = Thresholds(**read)
    if thresholds.concern > thresholds.action:
        draft.complain(("thresholds",), "`concern` is above `action`", "concern: 5%, action: 10%")
    return thresholds


def _thresholds_per_glob(draft: Draft) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for glob, values in draft.workflow.thresholds.items():
        for key, text in values.items() if isinstance(values, dict) else ():
            if key not in THRESHOLD_KEYS:
                hint = yaml_hints.for_unknown_key(key, list(THRESHOLD_KEYS))
                draft.complain(("thresholds", glob, key), f"unknown threshold `{key}`", hint, key=True)
                continue
            share = _share(draft, text, ("thresholds", glob, key))
            if share is not None:
                found.setdefault(glob, {})[key] = share
    return found


def _accepted(draft: Draft) -> Iterator[Accepted]:
    for index, item in enumerate(draft.workflow.accepted):
        share = _share(draft, item.change, ("accepted", index, "change"))
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", item.until):
            draft.complain(("accepted", index, "until"), f"{item.until!r} is not a date", "write YYYY-MM-DD")
        if share is not None:
            yield Accepted(item.benchmark, share, item.why, item.until)


def _peaks(draft: Draft, metrics: dict[str, Metric]) -> Iterator[tuple[str, float]]:
    """What ``of peak`` refers to: metric -> value in base units."""
    for name, text in draft.workflow.peaks.items():
        metric = {**METRICS, **metrics}.get(name)
        if metric is None:
            draft.complain(
                ("peaks", name), f"`peaks` names the unknown metric `{name}`", "bandwidth: 45 GiB/s", key=True
            )
            continue
        try:
            yield name, parse_as(text, metric.dimension).value
        except UnitError as error:
            draft.complain(("peaks", name), str(error), error.hint)


def _share(draft: Draft, text: str, loc: Loc) -> float | None:
    try:
        return read_share(text)
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)
        return None
