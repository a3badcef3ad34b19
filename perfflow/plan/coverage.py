"""Check that the plan can measure the targets, and apply the lints about methodology.

- ``check`` reports targets that no step can measure, and applies most lints.
- ``check_duplicate_metrics`` reports two steps that measure the same metric of one benchmark: it would be unclear which
  samples count.
- ``check_hierarchy`` has the lints for the optimization hierarchy: cheap techniques with large effects come before
  costlier ones.
- ``requires_of`` renders ``requires`` of a step for each cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.model.metrics import COMPARED_STATISTICS, OF_SIZES, OUTSIDE, TECHNIQUES, THREADS, rank
from perfflow.model.peaks import PEAK_DIMENSIONS, Peaks, key_of
from perfflow.model.similar import did_you_mean
from perfflow.model.targets import Target, crossing_hint, matches, read_key
from perfflow.model.units import UnitError
from perfflow.plan import groups
from perfflow.plan.cells_of_one import scaling_of
from perfflow.plan.follow_up_errors import is_in_doubt
from perfflow.plan.plan import (
    Plan,
    Planned,
    confirmed_by,
    counted_source,
    expected_of,
    may_both_match,
    may_have,
    stands_for_suite,
)
from perfflow.tools import registry
from perfflow.tools.adapter import Role
from perfflow.workflow.checks import each_step
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Requires, Step
from perfflow.workflow.roles import names_its_own_benchmarks

COMPUTE_FIRST = "compute-first"
ORDER = "hierarchy-order"
UNPROFILED = "optimize-without-profile"


ONE_SIDED = "one-sided"
"""Rule of the warning about a target that a run which compares nothing cannot measure; a gate can."""
LINTS = (
    "target",
    "optimize-without-baseline",
    UNPROFILED,
    "optimize-without-correctness",
    COMPUTE_FIRST,
    ORDER,
    "nothing-measured",
    ONE_SIDED,
    "synthetic-only",
    "left-running",
    "output-varies",
)
"""Rules about methodology that ``allow`` of a step can disable, with a reason."""
_WORK_METRICS = {"bytes": "throughput", "elements": "rate", "flops": "flops"}


def metrics_of(item: Planned) -> frozenset[str]:
    """Return the names of the metrics that a step can produce."""
    found = set(item.tool.metrics) if item.tool else set()
    if item.step.parse:
        found |= set(item.step.parse.units)
    if item.step.work:
        found |= {metric for key, metric in _WORK_METRICS.items() if getattr(item.step.work, key) is not None}
    return frozenset(found)


def check(draft: Draft, plan: Plan) -> None:
    """Report targets that no step can measure, and apply the lints."""
    _check_allowed(draft)
    for target in plan.criteria.targets:
        if not _allowed(draft, "target") and not is_in_doubt(draft, target.benchmark):
            _check_target(draft, plan, target)
    _check_optimize(draft)
    _check_something_measured(draft, plan)
    _check_expected(draft, plan)
    check_requirements(draft, plan)
    groups.check_runs_on(draft, plan)
    _check_scenarios(draft, plan)


def _measuring(plan: Plan) -> Iterator[Planned]:
    return (item for item in plan.steps if item.role in (Role.MEASURE, Role.PROFILE))


def _may_yield(item: Planned, plan: Plan, target: Target) -> bool:
    """Return whether a step may measure the target's benchmark; the ids of a suite are known only when it runs."""
    if item.for_targets or names_its_own_benchmarks(item.step) or matches(target.benchmark, item.benchmark):
        return True
    if (source := counted_source(plan.by_id, item)) and stands_for_suite(item.benchmark, source):
        return True
    # In the benchmark name of a step, `*` stands for any id of a suite.
    before, star, after = item.benchmark.partition("*")
    if star and target.benchmark.startswith(before) and target.benchmark.endswith(after):
        return True
    return matches(item.benchmark, target.benchmark) or may_both_match(item.benchmark, target.benchmark)


def _check_target(draft: Draft, plan: Plan, target: Target) -> None:
    loc = _place_of(draft, plan, target)
    sources = [item for item in _measuring(plan) if _may_yield(item, plan, target) or _is_size_of(item, plan, target)]
    name = target.metric.name
    able = [item for item in sources if name in metrics_of(item)]
    if not able and all(names_its_own_benchmarks(item.step) for item in sources):
        # A suite with the name of the target has benchmarks with other names.
        known = sorted({item.benchmark for item in _measuring(plan)} - {target.benchmark})
        hint = did_you_mean(target.benchmark, known, "benchmarks") if known else "add a step that measures it"
        hint = crossing_hint(target.benchmark, known) or hint
        draft.complain(loc[:-1], f"no step measures `{target.benchmark}`", hint, key=True, rule="target")
    elif not able:
        hint = _how_to_measure(name)
        message = f"no step measures `{name}` of `{target.benchmark}`"
        draft.complain(loc, message, hint, key=True, rule="target")
    elif target.requirement.per_op and not any(_is_per_operation(item, plan) for item in able):
        message = f"`{target.requirement.text}` is per operation, but no step has `ops`"
        draft.complain(loc, message, "add the number of operations of one run: `ops: 1000`", rule="target")
    elif target.requirement.of_peak and not any(_has_peak(draft, plan, item, name) for item in able):
        draft.complain(loc, f"no peak is known for `{name}`", _how_to_know_the_peak(target, able), rule="target")
    elif target.statistic in COMPARED_STATISTICS and not _is_compared(plan, able):
        if not _allowed(draft, ONE_SIDED):
            message = f"`{target.statistic}` of `{target.benchmark}` needs two sides, but the workflow has only one"
            hint = "add `candidate`, `variants` or `compare` to the step; `perfflow gate` compares two revisions"
            draft.warn(loc, message, hint, key=True, rule=ONE_SIDED)
    elif target.statistic in OF_SIZES and not any(
        item.step.scaling and (item.step.scaling in THREADS) == (target.statistic == "efficiency") for item in able
    ):
        key, hint = "with the numbers of threads", "matrix: {threads: [1, 2, 4]}, scaling: threads"
        if target.statistic == "growth":
            key, hint = "over which growth is fitted", "matrix: {size: [10, 100, 1000]}, scaling: size"
        message = f"a target on {target.statistic} needs `scaling`, the matrix key {key}"
        draft.complain(loc, message, hint, key=True, rule="target")
    elif target.statistic in OF_SIZES:
        _check_growth(draft, plan, target, able, loc)


def _is_compared(plan: Plan, able: list[Planned]) -> bool:
    """Return whether one of the steps compares two sides, or candidates of the workflow are compared with its code."""
    if any(item.role in (Role.CANDIDATE, Role.COMPARE) for item in plan.steps):
        return True
    return any(item.in_one_tree or item.against for item in able)


def _is_per_operation(item: Planned, plan: Plan) -> bool:
    """Return whether a step's figures are those of one operation: with ``ops``, and of each benchmark of a suite."""
    suite = (item.tool and item.tool.is_suite) or counted_source(plan.by_id, item)
    return bool(item.step.ops or suite)


def _is_size_of(item: Planned, plan: Plan, target: Target) -> bool:
    """Return whether a cell is one size of the benchmark whose growth or efficiency the target limits."""
    about = scaling_of(item, plan.params) if target.statistic in OF_SIZES else None
    return about is not None and matches(target.benchmark, about.of)


def _check_growth(draft: Draft, plan: Plan, target: Target, able: list[Planned], loc: Loc) -> None:
    """Report a target on the growth or efficiency of a single size; these belong to the benchmark of all sizes."""
    found = [about.of for item in able if (about := scaling_of(item, plan.params))]
    if found and not any("*" in name or matches(target.benchmark, name) for name in found):
        what = "growth is fitted" if target.statistic == "growth" else "efficiency is compared"
        message = f"`{target.benchmark}` is a single size, but {what} over all sizes"
        draft.complain(loc[:-1], message, f"write `{found[0]}`", key=True, rule="target")


def _has_peak(draft: Draft, plan: Plan, item: Planned, metric: str) -> bool:
    """Return whether the peak of a metric is set (even if invalid), or may be found when the workflow runs.

    Programs on a GPU are compared with the published peaks of that GPU, whose name its tool may know. Steps that
    measure the peaks of the machine apply to programs on the CPU only, and peaks of a GPU to programs on the GPU only.
    """
    precision = (item.step.work.precision or "") if item.step.work else ""
    wrong = any(loc[:1] == ("peaks",) for loc in draft.wrong)
    finds = metric in (*PEAK_DIMENSIONS, "throughput") and _may_find_peaks(plan, item)
    return wrong or finds or Peaks(plan.criteria.peaks).of(metric, precision) is not None


def _may_find_peaks(plan: Plan, item: Planned) -> bool:
    if item.tool and item.tool.gpu:
        return True
    return any(other.tool and other.tool.finds_peaks and not other.tool.gpu for other in plan.steps)


def _how_to_know_the_peak(target: Target, able: list[Planned]) -> str:
    precisions = {item.step.work.precision for item in able if item.step.work and item.step.work.precision}
    name = target.metric.name
    key = key_of(name, min(precisions)) if precisions and name == "flops" else name
    example = {"flops": "100 GFLOP/s", "bandwidth": "45 GiB/s", "throughput": "45 GiB/s"}.get(name, "1")
    measured = ", or measure it with a step `uses: stream`" if name in (*PEAK_DIMENSIONS, "throughput") else ""
    return f"set it at top level: peaks: {{{key}: {example}}}{measured}"


def _how_to_measure(metric: str) -> str:
    tools = [tool for tool in registry.MODULES if (found := registry.find(tool)) and metric in found.metrics]
    for key, yielded in _WORK_METRICS.items():
        if yielded == metric:
            return f"add the work of one run to the step: `work: {{{key}: 1000000}}`"
    return (
        f"tools that measure it: {', '.join(tools)}"
        if tools
        else "use `run` with `parse` to read it from the output of a program"
    )


def _place_of(draft: Draft, plan: Plan, target: Target) -> Loc:
    wanted = (target.metric, target.statistic)
    for key in draft.workflow.targets.get(target.benchmark, {}):
        try:
            figure = read_key(key, plan.criteria.metrics)
        except UnitError:
            continue
        if (figure.metric, figure.statistic) == wanted or (figure.metric is target.metric and not figure.given):
            return ("targets", target.benchmark, key)
    return ("targets", target.benchmark, "")


def _check_allowed(draft: Draft) -> None:
    for _, step, loc in each_step(draft):
        for lint in step.allow:
            if lint not in LINTS:
                hint = did_you_mean(lint, LINTS, "rules")
                draft.complain((*loc, "allow", lint), f"unknown rule `{lint}` under `allow`", hint, key=True)


def _allowed(draft: Draft, lint: str) -> bool:
    return any(lint in step.allow for stage in draft.workflow.stages.values() for step in stage.steps)


def _check_optimize(draft: Draft) -> None:
    stages = draft.workflow.stages
    if "optimize" not in stages:
        return
    missing = [] if "baseline" in stages and stages["baseline"].steps else ["baseline"]
    if "verify" not in stages or all(step.compare or step.background for step in stages["verify"].steps):
        missing.append("verify")
    for name in missing:
        message, hint, lint = _MISSING[name]
        if not draft.wrong_keys(("stages", name)) and ("stages",) not in draft.wrong and not _allowed(draft, lint):
            draft.complain(("stages", "optimize"), message, hint, key=True, rule=lint)
    unexplained = [step.id for step in stages["optimize"].steps if not step.why]
    profiled = "profile" in stages and (stages["profile"].steps or draft.wrong_keys(("stages", "profile")))
    if unexplained and not profiled and not _allowed(draft, UNPROFILED):
        message = f"nothing shows why the candidate `{unexplained[0]}` could be faster"
        hint = "add a `profile` stage, which finds the hotspots to optimize, or give the candidate a reason (`why`)"
        draft.warn(("stages", "optimize"), message, hint, key=True, rule=UNPROFILED)
    check_hierarchy(draft, compute_allowed=_allowed(draft, COMPUTE_FIRST))


_MISSING = {
    "baseline": (
        "the optimize stage needs a baseline stage",
        "add a `baseline` stage that measures, to compare candidates with",
        "optimize-without-baseline",
    ),
    "verify": (
        "the optimize stage needs a correctness step",
        "add a step to `verify` that fails if the program is wrong, such as its tests",
        "optimize-without-correctness",
    ),
}


def _check_something_measured(draft: Draft, plan: Plan) -> None:
    """Warn of a workflow without a step that measures, whose runs have no verdict to give."""
    measuring = (Role.MEASURE, Role.PROFILE, Role.MACHINE)
    if draft.errors or any(item.role in measuring for item in plan.steps) or _allowed(draft, "nothing-measured"):
        return
    hint = "write the program to time into the stage `baseline`, or into a stage with `role: measure`: "
    hint += "baseline: [{id: NAME, run: COMMAND}]"
    message = "no step measures anything, so `perfflow run` ends with exit status 3"
    draft.warn(("stages",), message, hint, key=True, rule="nothing-measured")


def _check_scenarios(draft: Draft, plan: Plan) -> None:
    """Report benchmarks under ``confirms`` that no step measures, and synthetic benchmarks that nothing confirms."""
    measuring = [item for item in _measuring(plan) if item.role is Role.MEASURE]
    confirmed: list[str] = []
    for confirming in measuring:
        step, loc = confirming.step, draft.steps[confirming.step.id]
        globs = _globs(draft, "confirms", confirming, plan)
        confirmed += globs
        others = [item for item in measuring if item.step is not step]
        for glob in globs:
            if not any(may_have(item, glob) for item in others) and not is_in_doubt(draft, glob):
                known = sorted({item.benchmark for item in others})
                hint = did_you_mean(glob, known, "benchmarks") if known else "add a step that measures it"
                draft.complain((*loc, "confirms"), f"no other step measures `{glob}`", hint, find=glob)
    for item in {id(item.step): item for item in measuring if item.step.scenario == "synthetic"}.values():
        if _allowed(draft, "synthetic-only") or any(may_have(item, glob) for glob in confirmed):
            continue
        message = f"no realistic benchmark confirms the synthetic benchmark of `{item.step.id}`"
        hint = "add a step with `scenario: realistic` that lists it under `confirms`"
        draft.warn((*draft.steps[item.step.id], "scenario"), message, hint, key=True, rule="synthetic-only")


def _check_expected(draft: Draft, plan: Plan) -> None:
    for item in plan.steps:
        _globs(draft, "expect", item, plan)


def _globs(draft: Draft, key: str, item: Planned, plan: Plan) -> list[str]:
    """Return the globs under a key of a cell; in case of an error report it once and return none."""
    loc = (*draft.steps[item.step.id], key)
    try:
        return (confirmed_by if key == "confirms" else expected_of)(item, plan.params)
    except ExpressionError as error:
        if not any(place[: len(loc)] == loc for place in draft.wrong):
            hint = error.hint or f"`{key}` can use only `params` and `matrix`"
            draft.complain(loc, str(error), hint, find=error.near)
        return []


_HINT = "remove one of them, or give it another `benchmark`"


def check_duplicate_metrics(draft: Draft, plan: Plan) -> None:
    """Report each step that is sure to measure the same metric of a benchmark as an earlier step."""
    for item, other, metric in found(plan):
        text = f"steps `{other.id}` and `{item.id}` both measure `{metric}` of `{item.benchmark}`"
        draft.complain(draft.steps[item.step.id], text, _HINT)


def found(plan: Plan) -> Iterator[tuple[Planned, Planned, str]]:
    """Yield each such step, the earlier step, and the metric."""
    seen: dict[tuple[str, str], Planned] = {}
    for item in plan.steps:
        for metric in sorted(_certain_metrics(item, plan), key=lambda name: (name != "time", name)):
            other = seen.setdefault((item.benchmark, metric), item)
            if other is item or not _both_yield(other, item, metric):
                continue
            yield item, other, metric
            break


def _certain_metrics(item: Planned, plan: Plan) -> frozenset[str]:
    """Return the metrics that a step is sure to measure; none if it may be skipped or its benchmark is unknown."""
    unsure = item.step.if_ is not None or item.step.requires is not None or plan.stage(item.stage).if_ is not None
    if item.role is not Role.MEASURE or unsure or not item.benchmark or "*" in item.benchmark:
        return frozenset()
    return metrics_of(item)


def _both_yield(one: Planned, other: Planned, metric: str) -> bool:
    """Return whether both steps produce the metric: tools may omit metrics, except time and those of ``parse``."""
    return metric == "time" or (one.tool is other.tool) or not (one.tool and other.tool)


_KNOWN = (*TECHNIQUES, OUTSIDE)


def check_hierarchy(draft: Draft, *, compute_allowed: bool) -> None:
    """Report unknown techniques, ``compute`` before cheaper techniques, and candidates out of order."""
    optimize = draft.workflow.stages["optimize"]
    ruled_out = optimize.ruled_out or {}
    for name in ruled_out:
        if name not in _KNOWN:
            place = ("stages", "optimize", "ruled-out", name)
            draft.complain(place, f"unknown technique `{name}`", did_you_mean(name, _KNOWN, "techniques"), key=True)
    tried = {step.technique for step in optimize.steps} | set(ruled_out)
    missing = [name for name in TECHNIQUES[: TECHNIQUES.index("compute")] if name not in tried]
    for step in optimize.steps:
        _check_technique(draft, step)
        if step.technique == "compute" and missing and not compute_allowed:
            hint = f"add candidates for {', '.join(missing)}, or list them under `ruled-out` with the reason"
            loc = (*draft.steps[step.id], "technique")
            draft.complain(loc, "`compute` comes before cheaper techniques", hint, rule=COMPUTE_FIRST)
    _check_order(draft, [step for step in optimize.steps if step.technique in TECHNIQUES])


def _check_technique(draft: Draft, step: Step) -> None:
    loc = draft.steps[step.id]
    if step.technique is None:
        if not draft.wrong_keys(loc):
            hint = f"add `technique`: one of {', '.join(_KNOWN)}"
            draft.complain(loc, f"the candidate `{step.id}` has no `technique`", hint)
    elif step.technique not in _KNOWN:
        hint = did_you_mean(step.technique, _KNOWN, "techniques")
        draft.complain((*loc, "technique"), f"unknown technique {step.technique!r}", hint)


def _check_order(draft: Draft, steps: Sequence[Step]) -> None:
    """Warn about each candidate after one with a costlier technique; ``configuration`` may be anywhere."""
    for number, step in enumerate(steps):
        costliest = max(steps[: number + 1], key=lambda item: rank(str(item.technique)))
        if rank(str(costliest.technique)) > rank(str(step.technique)) and ORDER not in step.allow:
            _warn_of_order(draft, step, costliest)


def _warn_of_order(draft: Draft, step: Step, costlier: Step) -> None:
    message = f"`{step.id}` ({step.technique}) comes after `{costlier.id}` ({costlier.technique}), a costlier technique"
    hint = f"move it before that candidate, or give a reason: `allow: {{{ORDER}: ...}}`"
    draft.warn((*draft.steps[step.id], "technique"), message, hint, rule=ORDER)


def requires_of(item: Planned, params: Mapping[str, Any]) -> Requires | None:
    """Return the requirements of a cell; strings that render to '' are dropped.

    Raises ExpressionError: only ``params`` and ``matrix`` are known before the run.
    """
    requires = item.step.requires
    if requires is None:
        return None
    context = {"params": params, "matrix": item.cell}

    def rendered(value: list[str] | str | None) -> list[str]:
        texts = [value] if isinstance(value, str) else value or []
        return [text for text in (str(render(text, context)).strip() for text in texts) if text]

    return requires.model_copy(update={"tool": rendered(requires.tool), "label": rendered(requires.label)})


def check_requirements(draft: Draft, plan: Plan) -> None:
    """Report requirements that cannot be rendered before the run."""
    for item in plan.steps:
        loc = (*draft.steps[item.step.id], "requires")
        try:
            requires_of(item, plan.params)
        except ExpressionError as error:
            if not any(place[: len(loc)] == loc for place in draft.wrong):
                hint = error.hint or "`requires` can use only `params` and `matrix`"
                draft.complain(loc, str(error), hint, find=error.near)
