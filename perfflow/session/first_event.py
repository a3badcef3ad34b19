"""The first event of a run: its workflow, settings, steps, machine and trees."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfflow.execute.context import TreeContext
from perfflow.library.pinned import PROJECT
from perfflow.model.plain_data import to_json
from perfflow.model.version import VERSION
from perfflow.plan.cell_globs import confirmed_by, expected_of
from perfflow.plan.cells_of_one import axis_of, scaling_of
from perfflow.plan.optimize_stage import stage_plan
from perfflow.plan.plan import Plan, Planned
from perfflow.session.clock import now
from perfflow.session.open_workflow import Opened
from perfflow.store.receipts import files as receipt_files
from perfflow.store.record import SCHEMA
from perfflow.store.run_facts import PlannedStep
from perfflow.tools.adapter import Role
from perfflow.trees import project
from perfflow.workflow.model import as_data
from perfflow.workflow.roles import CANDIDATES_STAGE
from perfflow.workflow.written_numbers import as_stored


def opening_event(
    opened: Opened,
    context: TreeContext,
    selected: Collection[str],
    command: Sequence[str],
    budget: float | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Return the first event of a run. ``budget``: seconds for all measuring together."""
    workflow = opened.plan.workflow
    return {
        "event": "run",
        "schema": SCHEMA,
        "run": {
            "id": context.run_id,
            "workflow": workflow.name,
            "component": workflow.component or workflow.name,
            "started": now(),
            "seed": context.seed,
            "file": _shown(opened),
            "params": as_stored(dict(opened.plan.params)),
            "digest": digest(opened),
            "version": VERSION,
            "budget": budget,
            "command": list(command),
            "out": str(out.absolute()) if out else "",
            "data_missing": receipt_files.unmatched(opened.root, workflow.data),
            "template": workflow.report.template,
            **_library(opened),
            **_optimizing_info(opened.plan),
        },
        "machine": dict(context.machine),
        "trees": {"baseline": {**context.git, **_untracked(opened)}, "candidate": None},
        "criteria": opened.plan.criteria.to_json(),
        "data": receipt_files.data_hashes(opened.root, workflow.data),
        "steps": [
            to_json(planned_step(item, opened.plan.params, selected=item.id in selected)) for item in opened.plan.steps
        ],
    }


def digest(opened: Opened) -> str:
    """Return a hash of the workflow and its parameters, which must be the same when a run is resumed."""
    workflow = as_data(opened.plan.workflow)
    tools = {item.step.uses: item.step.declared.digest for item in opened.plan.steps if item.step.declared}
    parts = [workflow, dict(opened.plan.params), *([tools] if tools else [])]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _library(opened: Opened) -> dict[str, Any]:
    """Return the files used from other repositories with their commits; empty if there are none."""
    used = sorted(opened.library.used.items())
    items = [{"reference": name, "commit": pin.commit, "sha256": pin.sha256} for name, pin in used]
    return {"library": items} if items else {}


def _optimizing_info(plan: Plan) -> dict[str, Any]:
    """Return the optimize stage's acceptance rule, guards and ruled-out techniques; empty without such a stage."""
    if CANDIDATES_STAGE not in plan.workflow.stages:
        return {}

    stage = stage_plan(plan)
    if stage is None:
        return {}
    own = stage.own
    return {"accept": stage.goal.accept, "guard": own.guard or [], "ruled_out": dict(own.ruled_out or {})}


def _untracked(opened: Opened) -> dict[str, Any]:
    """Return whether there are untracked files, which candidates start from too; empty without candidates."""
    candidates = any(item.role is Role.CANDIDATE for item in opened.plan.steps)
    return {"untracked": project.has_untracked(opened.root)} if candidates else {}


def planned_step(item: Planned, params: Mapping[str, Any], *, selected: bool) -> PlannedStep:
    """Return a step of the plan as its event stores it."""
    step, candidate = item.step, item.role is Role.CANDIDATE
    return PlannedStep(
        id=item.id,
        stage=item.stage,
        tool=step.tool_name,
        role=item.role.value,
        compare=item.role is Role.COMPARE,
        benchmark=item.benchmark,
        metric=step.metric,
        expect=tuple(expected_of(item, params)),
        allowed=step.continue_on_error,
        selected=selected,
        technique=step.technique or "" if candidate else None,
        why=step.why or "" if candidate else None,
        scaling=scaling_of(item, params),
        axis=axis_of(item, params),
        scenario=step.scenario or "",
        confirms=tuple(confirmed_by(item, params)),
        precision=(step.work.precision if step.work else None) or "",
        in_one_tree=bool(step.candidate or step.variants),
    )


def _shown(opened: Opened) -> str:
    """Return the workflow as `perfflow run` accepts it at the root: a path in the project, its origin, or a full path.

    The temporary file of a comparison of two commands no longer exists, so only its name is returned.
    """
    if opened.origin != PROJECT:
        return opened.origin
    resolved = opened.path.resolve()
    if resolved.is_relative_to(opened.root):
        return str(resolved.relative_to(opened.root))
    return str(resolved) if resolved.is_file() else opened.path.name
