"""The brief of a route: what regressed, by which thresholds, where, and the commands that reproduce it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perfflow.model.criteria import Criteria
from perfflow.model.metrics import statistic_dimension
from perfflow.model.readings import Side
from perfflow.model.result import Attribution, Benchmark, Brief, TargetResult
from perfflow.model.targets import matches
from perfflow.model.tree_facts import tree_of
from perfflow.model.units import format_quantity, format_threshold, format_together
from perfflow.verdict.attribution import loss_share_text
from perfflow.verdict.findings import Findings
from perfflow.verdict.gating import thresholds_for, two_trees
from perfflow.verdict.row_text import judged

_SHORT = 12


_MOST_HOTSPOTS = 5


def brief_of(findings: Findings) -> Brief:
    """Return the brief of a run. Lists without findings are empty."""
    regressed = findings.regressed()
    undecided = [*findings.undecided(), *(row for row in findings.rows if row.decision == "removed")]
    rows = [*regressed, *undecided]
    missed = [target for target in findings.targets if target.status in ("not met", "unproven", "not measured")]
    return Brief(
        regressed=[_told(row, findings.criteria) for row in regressed],
        undecided=[_told(row, findings.criteria) for row in undecided],
        thresholds=[
            *dict.fromkeys(_thresholds(row, findings) for row in rows if row.decision != "removed"),
            *(target_text(target, findings.criteria) for target in missed),
        ],
        hotspots=[_hotspot(item, findings.criteria) for item in findings.blamed[:_MOST_HOTSPOTS]],
        commands=list(dict.fromkeys(_commands(findings, rows, missed))),
    )


def _told(row: Benchmark, criteria: Criteria) -> str:
    what = "no longer measured" if row.decision == "removed" else judged(row, criteria)
    return f"{row.name} {row.metric}: {what}"


def _thresholds(row: Benchmark, found: Findings) -> str:
    own = found.criteria.thresholds_of(row.name, row.metric)
    _, accepted = thresholds_for(found.record, found.criteria, (row.name, row.metric), row.gates_by)
    name = row.name if own == found.criteria.thresholds_of(row.name) else f"{row.name} {row.metric}"
    limits = {"concern": own.concern, "action": own.action, "floor": own.floor}
    text = ", ".join(f"{limit} {format_threshold(share)}" for limit, share in limits.items())
    return "; ".join([f"{name}: {text}", *accepted])


def target_text(target: TargetResult, criteria: Criteria) -> str:
    """Return a target with its requirement, its status and the measured value: ``a time p50 <1ms not met: 2.00 ms``."""
    figure = f"{target.metric} {target.statistic}".removesuffix(" value")
    measured = ""
    if target.measured is not None:
        dimension = statistic_dimension(criteria.metric(target.metric), target.statistic)
        measured = f": {format_quantity(target.measured, dimension)}"
    return f"{target.benchmark} {figure} {target.requirement} {target.status}{measured}"


def _hotspot(attribution: Attribution, criteria: Criteria) -> str:
    place = (
        f" ({attribution.file}:{attribution.line})"
        if attribution.file and attribution.line
        else f" ({attribution.file})"
        if attribution.file
        else ""
    )
    parts = []
    if attribution.share is not None:
        parts.append(
            f"{loss_share_text(attribution.share)} of the regression of {attribution.benchmark} {attribution.metric}"
        )
    if attribution.baseline is not None and attribution.candidate is not None:
        dimension = criteria.metric(attribution.metric).dimension
        if attribution.unit == dimension.base_unit:
            parts.append(" → ".join(format_together([attribution.baseline, attribution.candidate], dimension)))
    for commit in attribution.commits[:1]:
        by = f" by {commit.author}" if commit.author else ""
        parts.append(f"last touched in {commit.revision[:_SHORT]}{by}: {commit.subject}")
    parts += [attribution.note] if attribution.note else []
    return f"{attribution.function}{place}" + (f": {'; '.join(parts)}" if parts else "")


def _commands(findings: Findings, rows: list[Benchmark], missed: list[TargetResult]) -> Iterator[str]:
    """Yield shell commands, for the root of the project, that measure again, profile, and find the commit.

    They select the building steps as well. A comparison of stored results or of two commands is repeated as typed.
    """
    run, two = findings.record.run, two_trees(findings.record)
    if run.command and not two:
        yield shlex.join(run.command)
        return
    if not run.file:
        return
    params = [*settings_of(run.params)]
    params += [word for glob in run.chosen for word in ("--benchmark", glob)]
    measured = {(row.name, row.metric): row.step for row in findings.rows}
    steps = [row.step for row in rows] + [measured.get((item.benchmark, item.metric), "") for item in missed]
    base, head = (tree_of(findings.record.trees, side) for side in Side)
    if two:
        at = [f"--overlay={path}" for path in base.overlay]
        at += [] if head.kind == "working tree" else ["--head", str(head.revision)]
        selected = _only(findings, dict.fromkeys(filter(None, steps)))
        yield shlex.join(["perfflow", "gate", run.file, "--base", str(base.revision), *at, *params, *selected])
    else:
        yield shlex.join(["perfflow", "run", run.file, *params, *_only(findings, dict.fromkeys(filter(None, steps)))])
    profilers = _profilers(findings, {row.name for row in rows})
    if profilers:
        yield shlex.join(["perfflow", "run", run.file, *params, *_only(findings, profilers)])
    if two and not head.dirty:
        ends = ["--good", str(base.revision), "--bad", str(head.revision)]
        for step in dict.fromkeys(row.step for row in findings.regressed()):
            yield shlex.join(["perfflow", "bisect", run.file, *ends, *params, "--only", step])


def _only(found: Findings, steps: Iterable[str]) -> list[str]:
    """Return the options that select steps and the steps that build for them; none for no steps."""
    names = list(steps)
    builds = [step_id for step_id, _ in found.record.ended_steps() if found.record.planned[step_id].role == "work"]
    return [word for name in [*(builds if names else []), *names] for word in ("--only", name)]


def _profilers(found: Findings, names: set[str]) -> list[str]:
    """Return the steps of the workflow that profiled the benchmarks of the brief."""
    planned = found.record.planned
    return [
        step_id
        for step_id, step in found.record.ended_steps()
        if planned[step_id].role == "profile"
        and not planned[step_id].automatic
        and step.status in ("done", "cached")
        and any(matches(planned[step_id].benchmark or "**", name) for name in names)
    ]


def settings_of(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that set parameters to these values."""
    for name, value in params.items():
        yield from ("--set", f"{name}={_setting(value)}")


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(_setting, value)) if isinstance(value, list) else str(value)
