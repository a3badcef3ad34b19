"""What a run would do, step by step, without doing any of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.flow.attribution.profiled import profiles_several
from perfflow.flow.candidate_preview import changes
from perfflow.flow.opening import Opened
from perfflow.plan.plan import Planned
from perfflow.run import programs
from perfflow.run.context import PORT_VARIABLE, Scene, search_path
from perfflow.run.prepare import PreparationError, missing_program, operations, ready, sides_of
from perfflow.tools.protocol import Role
from perfflow.trees import project


def preview(opened: Opened, selected: Collection[str]) -> list[dict[str, Any]]:
    """Return id, stage, tool, order, lane, commands of each side, and what is missing, for every selected step.

    A candidate has no tool: it has a ``technique``, and under ``changes`` what it would change.
    """
    git = project.describe(opened.root)
    scene = Scene(opened.plan, opened.root, "<run>", 0, Path("<run>"), git=git, dry=True)
    return [_step(scene, item, opened.path) for item in opened.plan.steps if item.id in selected]


def _step(scene: Scene, item: Planned, workflow: Path) -> dict[str, Any]:
    path = search_path(replace(scene, dry=False), item)
    return {
        "id": item.id,
        "stage": item.stage,
        "tool": item.step.uses or "run",
        "role": item.role.value,
        "benchmark": item.benchmark,
        "needs": sorted({*item.needs, *item.after, *([item.watches] if item.watches else [])}),
        "alone": item.alone,
        "background": _ready_when(item),
        "argv": {side.value: _argv(scene, item, side) for side in sides_of(scene, item)} if _has_argv(item) else {},
        # Where a step before it says where programs are, nobody knows before that has run.
        "missing": "" if path is None else programs.unmet(item.step.requires, path) or missing_program(item, path),
        **(_candidate(scene, item, workflow) if item.role is Role.CANDIDATE else {}),
    }


def _ready_when(item: Planned) -> str | None:
    """When a service counts as started, as it is written; None for other steps."""
    if not item.step.background:
        return None
    given = item.step.ready.model_dump(exclude_none=True) if item.step.ready else {}
    return ", ".join(f"{key} {value}" for key, value in given.items())


def _has_argv(item: Planned) -> bool:
    """Whether the step is a command; a candidate may be a patch or settings, a comparison repeats other steps."""
    # What a profiling step runs that chooses its tool, or is about several benchmarks, is known when they are measured.
    if item.role is Role.PROFILE and profiles_several(item):
        return False
    return bool(item.step.uses or item.step.run or item.step.argv)


def _candidate(scene: Scene, item: Planned, workflow: Path) -> dict[str, Any]:
    changed = list(changes(scene, item, workflow))
    return {"technique": item.step.technique, "hotspot": item.step.hotspot, "changes": changed}


def _argv(scene: Scene, item: Planned, side: Any) -> list[str]:
    if item.step.background:
        scene = replace(scene, inherited={**scene.inherited, PORT_VARIABLE: "<free port>"})
    try:
        ops = next(iter(operations(scene, item)), None)
        return list(ready(scene, item, side, Path("<folder>"), ops).shown)
    except (PreparationError, ToolOutputError) as error:
        return [f"<{error}>"]
