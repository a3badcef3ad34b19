"""Workflows of earlier versions -> today's keys: one rule for each thing that is deprecated or no longer allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from perfflow.jobs.start.rewritten_file import Rewritten, own_file
from perfflow.model.errors import Severity, UserError
from perfflow.model.targets import matches, read_key, target_of
from perfflow.model.units import UnitError
from perfflow.plan import doubles
from perfflow.plan.coverage import metrics_of
from perfflow.plan.parameters import MISSING
from perfflow.session.opening import Opened, open_workflow
from perfflow.tools.shell import same_output
from perfflow.workflow.criteria_checks import instead_of_equality
from perfflow.workflow.rewriting import Change, Put, Wrap, rewritten

LEAST = "0.5%"
"""In place of a threshold of 0%, which nothing can be proven to keep."""
_ROLELESS = "is a stage of your own without a `role`"
"""In the warning about a stage whose name says nothing of its steps."""


def migrated(name: str) -> Rewritten:
    """Read a workflow and say what it would be in today's words; nothing is written.

    Raises UserError for a file that ships with perfflow or lies outside the project, for one that cannot be read, and
    for mistakes that no rule mends.
    """
    opened = open_workflow(name)
    path, text = own_file(opened)
    after, said = rewritten(text, str(opened.path), [partial(rule, opened) for rule in RULES])
    again = open_workflow(name, text=after.removeprefix("\ufeff")) if after != text else opened
    wrong = tuple(item for item in again.problems if item.severity is Severity.ERROR and item.rule != MISSING)
    if wrong:
        raise UserError(wrong)
    return Rewritten(path, str(opened.path), text, after, tuple(said))


# -- the rules: from a file's data, and the workflow that it is part of, to what is to be written instead


def _own_steps(data: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """The steps that the file itself writes, each with its place."""
    stages = data.get("stages")
    for name, stage in stages.items() if isinstance(stages, dict) else ():
        short = isinstance(stage, list)
        steps = stage if short else stage.get("steps") if isinstance(stage, dict) else None
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict):
                yield ("stages", name, index) if short else ("stages", name, "steps", index), step


def tolerance(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """`tolerance` of same-output set two things at once, which have names of their own now."""
    uses = {item.step.id: item.step.uses for item in opened.plan.steps}
    said = "`tolerance` is now `relative` and `absolute`"
    for loc, step in _own_steps(data):
        if (step.get("uses") or uses.get(str(step.get("id")))) != same_output.ADAPTER.name:
            continue
        for place in (("with",), ("candidate", "with")):
            found: Any = step
            for key in place:
                found = found.get(key) if isinstance(found, dict) else None
            if isinstance(found, dict) and "tolerance" in found and not {"relative", "absolute"} & set(found):
                value = found["tolerance"]
                yield Put((*loc, *place), {"relative": value, "absolute": value}, said, "tolerance")


def accepted_metric(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """An accepted regression is one of a metric; it used to be one of them all."""
    items = data.get("accepted")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, dict) or "metric" in item or "benchmark" not in item:
            continue
        metric = _metric_of(str(item["benchmark"]), opened)
        if metric:
            said = f"what is accepted of `{item['benchmark']}` is its `{metric}`"
            yield Put(("accepted", index), {"metric": metric}, said)


def _metric_of(glob: str, opened: Opened) -> str:
    """The metric by which what a glob names is judged, as far as the workflow tells; '' where it does not."""
    own = [item for item in opened.plan.steps if item.benchmark and matches(glob, item.benchmark)]
    found = {metric for item in own or opened.plan.steps for metric in metrics_of(item)}
    return "time" if "time" in found else found.pop() if len(found) == 1 else ""


def stage_role(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """A stage of one's own says what its steps are for; without a word they are taken for work, with a warning."""
    warned = {item.message.split("`")[1] for item in opened.problems if _ROLELESS in item.message}
    stages = data.get("stages")
    for name, stage in stages.items() if isinstance(stages, dict) else ():
        said = f"the stage `{name}` is for work"
        if name not in warned or not stage:
            continue
        if isinstance(stage, list):
            yield Wrap(("stages", name), {"role": "work"}, said)
        elif isinstance(stage, dict) and "role" not in stage:
            yield Put(("stages", name), {"role": "work"}, said, after=0)


def exact_value(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """A target that asks for exactly one time is never met; a bound was meant."""
    targets = data.get("targets")
    for benchmark, required in targets.items() if isinstance(targets, dict) else ():
        for key, text in required.items() if isinstance(required, dict) else ():
            try:
                target = target_of(benchmark, read_key(key, opened.plan.criteria.metrics), text)
            except UnitError:
                continue
            instead = instead_of_equality(target)
            if instead:
                said = f"the target `{benchmark} {key}: {text}` is now `{instead}`"
                yield Put(("targets", benchmark), {key: instead}, said, key)


def zero_threshold(_opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """A threshold of 0% can never be proven to hold."""
    thresholds = data.get("thresholds")
    if not isinstance(thresholds, dict):
        return
    places: list[tuple[tuple[str, ...], dict[str, Any]]] = [(("thresholds",), thresholds)]
    places += [(("thresholds", glob), own) for glob, own in thresholds.items() if isinstance(own, dict)]
    for loc, values in places:
        for key in ("concern", "action"):
            if str(values.get(key, "")).strip().rstrip("%").strip() in ("0", "0.0"):
                # `action` must not be below `concern`, whose default is higher.
                also = {"concern": LEAST} if "concern" not in values else {}
                yield Put(loc, {**also, key: LEAST}, f"`{key}: 0%` is now {LEAST}", key)


def measured_twice(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """What a second step measures of the same metric of one benchmark was dropped; it gets a name of its own."""
    taken = {item.benchmark for item in opened.plan.steps}
    again = {item.step.id: item.benchmark for item, _, _ in doubles.found(opened.plan)}
    for loc, step in _own_steps(data):
        name = str(step.get("id"))
        old = again.get(name)
        if old is None or str(step.get("benchmark", name)) != old:
            continue
        new = name if name not in taken else f"{name}-again"
        said = f"the step `{name}` measures `{new}`, since another one measures `{old}`"
        yield Put(loc, {"benchmark": new}, said, "benchmark" if "benchmark" in step else "")


RULES: tuple[Callable[[Opened, dict[str, Any]], Iterable[Change]], ...] = (
    tolerance,
    accepted_metric,
    stage_role,
    exact_value,
    zero_threshold,
    measured_twice,
)
