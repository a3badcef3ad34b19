"""Whether the plan can measure what the targets ask for, and the lints of the method."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.plan.plan import Plan, Planned
from perfflow.samples.metrics import TIMES
from perfflow.samples.targets import Target, matches
from perfflow.tools import registry
from perfflow.tools.protocol import Role
from perfflow.workflow.load import Draft
from perfflow.workflow.yaml_text import Loc

TECHNIQUES = ("algorithm", "data-structure", "io", "memory", "concurrency", "vectorization", "compute", "caching")
"""The optimization hierarchy: what is cheapest and moves most comes first."""
_WORK_METRICS = {"bytes": "throughput", "elements": "rate", "flops": "flops"}
_MEMORY = {"rss", "heap_peak", "alloc", "allocs", "gpu_memory_peak"}


def metrics_of(item: Planned) -> frozenset[str]:
    """Names of the metrics a step can yield."""
    found = set(item.tool.METRICS) if item.tool else set()
    if item.step.parse:
        found |= set(item.step.parse.units)
    if item.step.work:
        found |= {metric for key, metric in _WORK_METRICS.items() if getattr(item.step.work, key) is not None}
    return frozenset(found)


def check(draft: Draft, plan: Plan) -> None:
    """Add targets that nothing can measure, and the lints, to the draft's problems."""
    for target in plan.criteria.targets:
        _check_target(draft, plan, target)
    _check_optimize(draft)
    _check_memory(draft, plan)


def _measuring(plan: Plan) -> Iterator[Planned]:
    return (item for item in plan.steps if item.role in (Role.MEASURE, Role.PROFILE))


def _may_yield(item: Planned, target: Target) -> bool:
    """Whether a step's numbers may belong to the target's benchmark; a suite's own ids are only known when it runs."""
    names_its_own = item.step.parse is not None and "benchmark" in _parse_text(item)
    return names_its_own or matches(target.benchmark, item.benchmark) or matches(item.benchmark, target.benchmark)


def _parse_text(item: Planned) -> str:
    parse = item.step.parse
    return str((parse.json_, parse.regex, parse.csv)) if parse else ""


def _check_target(draft: Draft, plan: Plan, target: Target) -> None:
    loc = _place_of(draft, target)
    sources = [item for item in _measuring(plan) if _may_yield(item, target)]
    name = target.metric.name
    able = [item for item in sources if name in metrics_of(item)]
    if not sources:
        known = sorted({item.benchmark for item in _measuring(plan)})
        hint = f"benchmarks: {', '.join(known[:12])}" if known else "add a step that measures"
        draft.complain(loc, f"no step measures `{target.benchmark}`", hint, rule="target")
    elif not able:
        tools = [tool for tool in registry.MODULES if (found := registry.find(tool)) and name in found.METRICS]
        hint = f"tools that do: {', '.join(tools)}" if tools else "use `run` with `parse` to read it from a program"
        draft.complain(loc, f"nothing measures `{name}` of `{target.benchmark}`", hint, rule="target")
    elif target.requirement.per_op and not any(item.step.ops for item in able):
        hint = "say how many operations one run does: `ops: 1000`"
        draft.complain(
            loc, f"`{target.requirement.text}` is per operation, but no step says `ops`", hint, rule="target"
        )
    elif target.requirement.of_peak and name not in plan.criteria.peaks:
        hint = f"say it at top level: peaks: {{{name}: 45 GiB/s}}"
        draft.complain(loc, f"no peak is known for `{name}`", hint, rule="target")


def _place_of(draft: Draft, target: Target) -> Loc:
    keys = draft.workflow.targets.get(target.benchmark, {})
    wanted = {f"{target.metric.name} {target.statistic}", target.metric.name, target.statistic}
    return ("targets", target.benchmark, next((key for key in keys if key in wanted), ""))


def _allowed(draft: Draft, lint: str) -> bool:
    return any(lint in step.allow for stage in draft.workflow.stages.values() for step in stage.steps)


def _check_optimize(draft: Draft) -> None:
    stages = draft.workflow.stages
    optimize = stages.get("optimize")
    if optimize is None:
        return
    loc: Loc = ("stages", "optimize")
    for needed in ("baseline", "profile"):
        if not (needed in stages and stages[needed].steps) and not _allowed(draft, f"optimize-without-{needed}"):
            message = f"an optimize stage without a {needed} stage"
            hint = "measure, profile, then change" if needed == "profile" else "nothing to compare with"
            draft.complain(loc, message, f"{hint}: add a {needed} stage", key=True, rule=f"optimize-without-{needed}")
    correctness = [step for step in stages["verify"].steps if not step.compare] if "verify" in stages else []
    if not correctness and not _allowed(draft, "optimize-without-correctness"):
        hint = "add a verify step that fails when the program is wrong, such as its tests"
        draft.complain(
            loc, "an optimize stage without a correctness step", hint, key=True, rule="optimize-without-correctness"
        )
    _check_hierarchy(draft)


def _check_hierarchy(draft: Draft) -> None:
    optimize = draft.workflow.stages["optimize"]
    tried = {step.technique for step in optimize.steps} | set(optimize.ruled_out or {})
    for step in optimize.steps:
        loc = draft.steps[step.id]
        if step.technique not in (*TECHNIQUES, "configuration"):
            hint = f"one of {', '.join(TECHNIQUES)}, or configuration"
            draft.complain((*loc, "technique"), f"`technique` is {step.technique!r}", hint)
        cheaper = TECHNIQUES[: TECHNIQUES.index("compute")]
        missing = [technique for technique in cheaper if technique not in tried]
        if step.technique == "compute" and missing and "compute-first" not in step.allow:
            hint = f"try them, or say why not under `ruled-out`: {', '.join(missing)}"
            draft.complain((*loc, "technique"), "`compute` before cheaper techniques", hint, rule="compute-first")


def _check_memory(draft: Draft, plan: Plan) -> None:
    timed = [target for target in plan.criteria.targets if target.metric.name in TIMES]
    measured = {metric for item in _measuring(plan) for metric in metrics_of(item)}
    if timed and not measured & _MEMORY and not _allowed(draft, "no-memory-metric"):
        hint = "add massif, or the command tool, which reads max RSS"
        draft.warn(("targets",), "time is measured and memory is not", hint, rule="no-memory-metric")
