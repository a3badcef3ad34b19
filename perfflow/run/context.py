"""What an expression of a step can see, and the environment its processes get."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfflow.machine import lock
from perfflow.plan import matrix
from perfflow.plan.plan import Plan, Planned
from perfflow.process.child import MARK
from perfflow.samples.readings import Side
from perfflow.workflow.expressions import ExpressionError, as_text, render

_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "CARGO_MAKEFLAGS")
"""A step that runs make must not inherit the flags and job slots of the make that started perfflow."""


class Unknown(dict[str, Any]):
    """Outputs of a step that has not run: a visible placeholder, for showing what would run."""

    def __init__(self, step_id: str) -> None:
        super().__init__()
        self._step_id = step_id

    def __missing__(self, key: str) -> str:
        return f"<steps.{self._step_id}.outputs.{key}>"


@dataclass
class Scene:
    """What is the same for all steps of a run: the plan, the tree, the outputs so far."""

    plan: Plan
    root: Path
    run_id: str
    seed: int
    folder: Path
    machine: Mapping[str, Any] = field(default_factory=dict)
    git: Mapping[str, Any] = field(default_factory=dict)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    dry: bool = False


def context_of(scene: Scene, planned: Planned, side: Side = Side.BASELINE, ops: int | None = None) -> dict[str, Any]:
    """Return the names an expression of ``planned`` can use, with ``env`` as its processes will see it."""
    candidate = planned.step.candidate if side is Side.CANDIDATE else None
    context: dict[str, Any] = {
        "params": dict(scene.plan.params) | (dict(candidate.params) if candidate else {}),
        "matrix": dict(planned.cell),
        "steps": _step_outputs(scene, planned),
        "run": {"id": scene.run_id, "seed": scene.seed, "folder": str(scene.folder)},
        "machine": dict(scene.machine),
        "git": dict(scene.git),
    }
    if ops is not None:
        context["ops"] = ops
    context["env"] = environment(scene, planned, side, context)
    return context


def environment(scene: Scene, planned: Planned, side: Side, context: Mapping[str, Any]) -> dict[str, str]:
    """The process's environment: the user's, then workflow, defaults, stage, step and candidate; the nearest wins."""
    env = {name: value for name, value in os.environ.items() if name not in _MAKE}
    workflow, step = scene.plan.workflow, planned.step
    layers = [workflow.env, workflow.defaults.env, scene.plan.stage(planned.stage).env, step.env]
    if side is Side.CANDIDATE and step.candidate:
        layers.append(step.candidate.env)
    for layer in layers:
        env |= {name: as_text(render(value, {**context, "env": env})) for name, value in layer.items()}
    outer = os.environ.get(MARK)
    env[MARK] = f"{outer}/{scene.run_id}" if outer else scene.run_id
    return held(env, planned)


def held(env: Mapping[str, str], planned: Planned) -> dict[str, str]:
    """Say in the environment whether the machine is held for a step, so that a perfflow inside it does not wait."""
    inherited = os.environ.get(lock.HELD)
    kept = {name: value for name, value in env.items() if name != lock.HELD}
    holder = env[MARK] if planned.alone else inherited
    return {**kept, lock.HELD: holder} if holder else kept


def search_path(scene: Scene, planned: Planned) -> str | None:
    """PATH of a step's processes, from the root of the tree; None where it depends on what has not run yet."""
    try:
        env = context_of(scene, planned)["env"]
    except ExpressionError:
        return None
    entries = str(env.get("PATH", os.defpath)).split(os.pathsep)
    return os.pathsep.join(str(scene.root / entry) for entry in entries)


def _step_outputs(scene: Scene, planned: Planned) -> dict[str, Any]:
    """Outputs by step id; of a matrix, the cell that agrees with this one, and each cell by its full id."""
    found: dict[str, Any] = {}
    for other in scene.plan.steps:
        known: Any = scene.outputs.get(other.id)
        if known is None:
            if not scene.dry:
                continue
            known = Unknown(other.id)
        entry = {"outputs": known}
        found[other.id] = entry
        if matrix.shared(planned.cell, other.cell):
            found.setdefault(other.step.id, entry)
    return found
