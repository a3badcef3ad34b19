"""Migrate workflows of earlier versions to the current keys: one rule for each deprecated or removed feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from perfflow.jobs.start.rewritten_file import Rewritten, own_file
from perfflow.model.errors import Severity, UserError
from perfflow.model.targets import matches, read_key, target_of
from perfflow.model.units import UnitError
from perfflow.plan import duplicate_metrics
from perfflow.plan.coverage import metrics_of
from perfflow.plan.parameters import MISSING
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.tools.shell import same_output
from perfflow.workflow.criteria_checks import instead_of_equality
from perfflow.workflow.rewriting import Change, Put, Wrap, rewritten

LEAST = "0.5%"
"""Replaces a threshold of 0%, which no result can be proven to meet."""
_ROLELESS = "is a stage of your own without a `role`"
"""Part of the warning about a stage without a role."""


def migrated(name: str) -> Rewritten:
    """Read a workflow and return it with the current keys. Nothing is written.

    Raises UserError for a file that ships with perfflow or is outside the project, for a file that cannot be read, and
    for errors that no rule corrects.
    """
    opened = open_workflow(name)
    path, text = own_file(opened)
    after, said = rewritten(text, str(opened.path), [partial(rule, opened) for rule in RULES])
    again = open_workflow(name, text=after.removeprefix("\ufeff")) if after != text else opened
    wrong = tuple(item for item in again.problems if item.severity is Severity.ERROR and item.rule != MISSING)
    if wrong:
        raise UserError(wrong)
    return Rewritten(path, str(opened.path), text, after, tuple(said))


# -- the rules: each takes the workflow and the file's data, and yields the changes to write


def _own_steps(data: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Yield the steps in the file itself, each with its location."""
    stages = data.get("stages")
    for name, stage in stages.items() if isinstance(stages, dict) else ():
        short = isinstance(stage, list)
        steps = stage if short else stage.get("steps") if isinstance(stage, dict) else None
        for index, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict):
                yield ("stages", name, index) if short else ("stages", name, "steps", index), step


def tolerance(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """Replace `tolerance` of same-output, which set both `relative` and `absolute`."""
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
    """Add the metric to accepted regressions, which used to apply to all metrics."""
    items = data.get("accepted")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(item, dict) or "metric" in item or "benchmark" not in item:
            continue
        metric = _metric_of(str(item["benchmark"]), opened)
        if metric:
            said = f"the accepted regression of `{item['benchmark']}` is now for its `{metric}`"
            yield Put(("accepted", index), {"metric": metric}, said)


def _metric_of(glob: str, opened: Opened) -> str:
    """Return the metric by which the benchmarks of a glob are judged; '' if the workflow does not determine it."""
    own = [item for item in opened.plan.steps if item.benchmark and matches(glob, item.benchmark)]
    found = {metric for item in own or opened.plan.steps for metric in metrics_of(item)}
    return "time" if "time" in found else found.pop() if len(found) == 1 else ""


def stage_role(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """Add `role: work` to custom stages without a role, which perfflow treats as work with a warning."""
    warned = {item.message.split("`")[1] for item in opened.problems if _ROLELESS in item.message}
    stages = data.get("stages")
    for name, stage in stages.items() if isinstance(stages, dict) else ():
        said = f"the stage `{name}` now has `role: work`"
        if name not in warned or not stage:
            continue
        if isinstance(stage, list):
            yield Wrap(("stages", name), {"role": "work"}, said)
        elif isinstance(stage, dict) and "role" not in stage:
            yield Put(("stages", name), {"role": "work"}, said, after=0)


def exact_value(opened: Opened, data: dict[str, Any]) -> Iterator[Change]:
    """Replace targets that require exactly one value, which are never met, with bounds."""
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
    """Replace thresholds of 0%, which can never be proven to hold."""
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
    """Give a second step that measures the same metric of a benchmark its own name. Its samples used to be dropped."""
    taken = {item.benchmark for item in opened.plan.steps}
    again = {item.step.id: item.benchmark for item, _, _ in duplicate_metrics.found(opened.plan)}
    for loc, step in _own_steps(data):
        name = str(step.get("id"))
        old = again.get(name)
        if old is None or str(step.get("benchmark", name)) != old:
            continue
        new = name if name not in taken else f"{name}-again"
        said = f"the step `{name}` now measures `{new}`, since another step measures `{old}`"
        yield Put(loc, {"benchmark": new}, said, "benchmark" if "benchmark" in step else "")


RULES: tuple[Callable[[Opened, dict[str, Any]], Iterable[Change]], ...] = (
    tolerance,
    accepted_metric,
    stage_role,
    exact_value,
    zero_threshold,
    measured_twice,
)
