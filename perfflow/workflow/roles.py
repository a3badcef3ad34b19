"""Determine the role of a step from its keys: work, measure, profile or check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from perfflow.model import similar
from perfflow.model.metrics import METRICS, Better, Metric
from perfflow.model.readings import Reading
from perfflow.model.units import Dimension, unit_of
from perfflow.tools import parsed_output, registry
from perfflow.tools.adapter import Adapter, Role
from perfflow.workflow.model import COMMAND, Parse, Stage, Step, Workflow

CANDIDATES_STAGE, MEASURED = "optimize", "baseline"
STAGE_ROLES: Mapping[str, Role] = {
    "setup": Role.WORK,
    "build": Role.WORK,
    MEASURED: Role.MEASURE,
    "profile": Role.PROFILE,
    CANDIDATES_STAGE: Role.CANDIDATE,
    "verify": Role.CHECK,
}
"""Roles of the predefined stages; other stages set ``role``."""
AUTO = "auto"
"""``uses: auto`` chooses the profiler by the metric of the benchmark; there is no adapter of this name."""
BENCHMARK = "benchmark"
"""The group, path or column of a ``parse`` with the names of benchmarks instead of figures."""


def tool_of(step: Step) -> Adapter | None:
    """Return the adapter of a step, or None for ``run`` and ``argv`` that are not timed.

    For an unknown tool it is the one that was probably meant, or None, so that the other mistakes of the step are found
    as well.
    """
    if step.timed:
        return registry.find(COMMAND)
    if step.declared:
        declared: Adapter = step.declared.adapter
        return declared
    return (registry.find(step.uses) or _meant(step.uses)) if step.uses else None


@cache
def _meant(name: str) -> Adapter | None:
    """Return the tool that an unknown one probably means, if it is very similar or in the table of such names."""
    if name == AUTO or registry.trouble(name):
        return None
    return registry.find(similar.tool_meant(name, registry.known(), 0.7))


def is_suite(step: Step) -> bool:
    """Return whether the tool runs a suite, whose program names the benchmarks."""
    tool = tool_of(step)
    return tool is not None and tool.is_suite


def stage_role(workflow: Workflow, name: str) -> Role:
    """Return the role of a stage of a workflow."""
    return role_of_stage(name, workflow.stages.get(name))


def role_of_stage(name: str, stage: Stage | None) -> Role:
    """Return the role of a stage: of a predefined one by its name, else its ``role``, else work."""
    return STAGE_ROLES.get(name) or Role(stage.role if stage and stage.role else Role.WORK)


def role_of(step: Step, stage: str, workflow: Workflow) -> Role:
    """Return the role of a step; in a check stage a plain command is a correctness check, unless it is a service."""
    if stage == CANDIDATES_STAGE:
        return Role.CANDIDATE
    if step.compare and not step.axis:
        return Role.COMPARE
    if step.uses == AUTO:
        return Role.PROFILE
    if step.background:
        return Role.WORK
    tool = tool_of(step)
    if tool:
        return tool.role
    if step.assert_ is not None:
        return Role.CHECK
    if step.parse:
        return Role.MEASURE
    return Role.CHECK if stage_role(workflow, stage) is Role.CHECK else Role.WORK


def names_its_own_benchmarks(step: Step) -> bool:
    """Return whether the names of the benchmarks are in the output, so that they are known only after the step ran."""
    parse: Parse | None = step.declared.source.parse if step.declared else step.parse
    if parse is None:
        return step.benchmark is None and is_suite(step)
    patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
    named = {*(parse.json_ or {}), *(parse.jsonl or {}), *(parse.csv or {})}
    return BENCHMARK in named or any(f"(?P<{BENCHMARK}>" in pattern for pattern in patterns)


def has_machine_alone(step: Step, stage: str, workflow: Workflow) -> bool:
    """Return whether no other step may run at the same time; ``alone`` overrides the default of the role."""
    return step.alone if step.alone is not None else role_of(step, stage, workflow) not in (Role.WORK, Role.CHECK)


def metrics_added_by(step: Step) -> dict[str, Metric]:
    """Return the metrics that a step defines by its ``parse``, or that its tool defines."""
    tool = tool_of(step)
    found = tool.metrics if tool else metrics_of_parse(step.parse) if step.parse else {}
    return {name: metric for name, metric in found.items() if metric != METRICS.get(name)}


def metrics_of_parse(parse: Parse) -> dict[str, Metric]:
    """Return the metrics that a ``parse`` reads; the unit gives the dimension, except of built-in metrics."""
    added = {}
    for name, unit in parse.units.items():
        known = METRICS.get(name)
        dimension = (unit_of(unit) or (Dimension.COUNT, 0))[0]
        metric = known or Metric(name, dimension, _better_of(dimension))
        added[name] = replace(metric, better=parse.better.get(name, metric.better))
    return added


def figures_in(text: str, parse: Parse, seconds: float | None = None) -> tuple[Reading, ...]:
    """Read the figures of ``parse`` from a text; a pattern may take at most ``seconds``. Raises ToolOutputError."""
    if parse.json_:
        return parsed_output.from_json(text, parse.json_, parse.units, parse.samples)
    if parse.jsonl:
        return parsed_output.from_jsonl(text, parse.jsonl, parse.units, parse.samples)
    if parse.csv:
        return parsed_output.from_csv(text, parse.csv, parse.units, parse.decimal, parse.samples)
    patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
    return parsed_output.from_regex(text, patterns, parse.units, parse.decimal, seconds, parse.samples)


def _better_of(dimension: Dimension) -> Better:
    """Return the better direction of a dimension: rates higher, times and sizes lower, plain numbers none."""
    if dimension in (Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS):
        return Better.HIGHER
    return Better.LOWER if dimension in (Dimension.TIME, Dimension.BYTES) else Better.NONE
