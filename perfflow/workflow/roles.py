"""What a step is for, read from its keys: work, measuring, profiling or checking."""

from __future__ import annotations

from perfflow.samples.metrics import METRICS, Better, Metric
from perfflow.tools import registry
from perfflow.tools.protocol import Role, Tool
from perfflow.units import UNITS, Dimension
from perfflow.workflow.model import Step

CORRECTNESS_STAGE = "verify"
BENCHMARK = "benchmark"
"""The group, path or column of a ``parse`` that holds benchmarks' names instead of figures."""


def tool_of(step: Step) -> Tool | None:
    """The adapter a step uses, None for ``run``, ``argv`` and unknown names."""
    return registry.find(step.uses) if step.uses else None


def role_of(step: Step, stage: str) -> Role:
    """The role of a step; in the verify stage a plain command is a correctness check."""
    tool = tool_of(step)
    if tool:
        return tool.ROLE
    if step.assert_ is not None:
        return Role.CHECK
    if step.parse:
        return Role.MEASURE
    return Role.CHECK if stage == CORRECTNESS_STAGE and not step.compare else Role.WORK


def names_its_own_benchmarks(step: Step) -> bool:
    """Whether the benchmarks' names are in the output, so that they are only known when the step has run."""
    if step.parse is None:
        return False
    patterns = [step.parse.regex] if isinstance(step.parse.regex, str) else step.parse.regex or []
    named = {*(step.parse.json_ or {}), *(step.parse.csv or {})}
    return BENCHMARK in named or any(f"(?P<{BENCHMARK}>" in pattern for pattern in patterns)


def has_machine_alone(step: Step, stage: str) -> bool:
    """Whether nothing else may run beside the step; ``alone`` overrides."""
    return step.alone if step.alone is not None else role_of(step, stage) in (Role.MEASURE, Role.PROFILE)


def metrics_added_by(step: Step) -> dict[str, Metric]:
    """The metrics a ``parse`` introduces, with the dimension of their unit; built-in names keep their own."""
    if not step.parse:
        return {}
    added = {}
    for name, unit in step.parse.units.items():
        known = METRICS.get(name)
        dimension = known.dimension if known else UNITS.get(unit, (Dimension.COUNT, 0))[0]
        default = known.better if known else _better_of(dimension)
        added[name] = Metric(name, dimension, step.parse.better.get(name, default), bool(known and known.exact))
    return {name: metric for name, metric in added.items() if metric != METRICS.get(name)}


def _better_of(dimension: Dimension) -> Better:
    """Rates are better higher, times and sizes lower; of a plain number nothing is known."""
    if dimension in (Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS):
        return Better.HIGHER
    return Better.LOWER if dimension in (Dimension.TIME, Dimension.BYTES) else Better.NONE
