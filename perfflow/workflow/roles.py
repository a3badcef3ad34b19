"""What a step is for, read from its keys: work, measuring, profiling or checking."""

from __future__ import annotations

from perfflow.samples.metrics import METRICS, Better, Metric
from perfflow.samples.readings import Reading
from perfflow.tools import parsed_output, registry
from perfflow.tools.protocol import Role, Tool, is_suite
from perfflow.units import UNITS, Dimension
from perfflow.workflow.model import Parse, Step

CORRECTNESS_STAGE = "verify"
CANDIDATES_STAGE = "optimize"
AUTO = "auto"
"""After `uses:`, the profiler that follows the metric of what it profiles: no adapter, but a choice among them."""
BENCHMARK = "benchmark"
"""The group, path or column of a ``parse`` that holds benchmarks' names instead of figures."""


def tool_of(step: Step) -> Tool | None:
    """The adapter a step uses, None for ``run``, ``argv`` and unknown names."""
    declared: Tool | None = step.declared
    return declared or (registry.find(step.uses) if step.uses else None)


def role_of(step: Step, stage: str) -> Role:
    """The role of a step; in the verify stage a plain command is a correctness check, unless it is a service."""
    if stage == CANDIDATES_STAGE:
        return Role.CANDIDATE
    if step.compare:
        return Role.COMPARE
    if step.uses == AUTO:
        return Role.PROFILE
    if step.background:
        return Role.WORK
    tool = tool_of(step)
    if tool:
        return tool.ROLE
    if step.assert_ is not None:
        return Role.CHECK
    if step.parse:
        return Role.MEASURE
    return Role.CHECK if stage == CORRECTNESS_STAGE else Role.WORK


def names_its_own_benchmarks(step: Step) -> bool:
    """Whether the benchmarks' names are in the output, so that they are only known when the step has run."""
    parse: Parse | None = step.declared.source.parse if step.declared else step.parse
    if parse is None:
        return step.benchmark is None and is_suite(tool_of(step))
    patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
    named = {*(parse.json_ or {}), *(parse.csv or {})}
    return BENCHMARK in named or any(f"(?P<{BENCHMARK}>" in pattern for pattern in patterns)


def has_machine_alone(step: Step, stage: str) -> bool:
    """Whether nothing else may run beside the step; ``alone`` overrides."""
    return step.alone if step.alone is not None else role_of(step, stage) not in (Role.WORK, Role.CHECK)


def metrics_added_by(step: Step) -> dict[str, Metric]:
    """The metrics a step introduces by its ``parse``, or by that of its tool file."""
    parse: Parse | None = step.declared.source.parse if step.declared else step.parse
    return metrics_of_parse(parse) if parse else {}


def metrics_of_parse(parse: Parse) -> dict[str, Metric]:
    """The metrics a ``parse`` introduces, with the dimension of their unit; built-in names keep their own."""
    added = {}
    for name, unit in parse.units.items():
        known = METRICS.get(name)
        dimension = known.dimension if known else UNITS.get(unit, (Dimension.COUNT, 0))[0]
        default = known.better if known else _better_of(dimension)
        added[name] = Metric(name, dimension, parse.better.get(name, default), bool(known and known.exact))
    return {name: metric for name, metric in added.items() if metric != METRICS.get(name)}


def figures_in(text: str, parse: Parse) -> tuple[Reading, ...]:
    """Read what ``parse`` asks for from a text. Raises ToolOutputError."""
    if parse.json_:
        return parsed_output.from_json(text, parse.json_, parse.units)
    if parse.csv:
        return parsed_output.from_csv(text, parse.csv, parse.units)
    patterns = [parse.regex] if isinstance(parse.regex, str) else parse.regex or []
    return parsed_output.from_regex(text, patterns, parse.units)


def _better_of(dimension: Dimension) -> Better:
    """Rates are better higher, times and sizes lower; of a plain number nothing is known."""
    if dimension in (Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS):
        return Better.HIGHER
    return Better.LOWER if dimension in (Dimension.TIME, Dimension.BYTES) else Better.NONE
