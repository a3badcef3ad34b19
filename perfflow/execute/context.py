"""What an expression of a step can see, and the environment its processes get."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfflow.execute.child import MARK
from perfflow.execute.secrets_of_plan import secrets_of
from perfflow.machine import lock
from perfflow.model.lazy import dataclass
from perfflow.model.readings import Side
from perfflow.model.secrets import Secrets
from perfflow.plan import matrix
from perfflow.plan.plan import Plan, Planned
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import render
from perfflow.workflow.layout_checks import SEED_VARIABLE, uses_seed

if TYPE_CHECKING:
    from perfflow.trees.slots import Slot

_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "CARGO_MAKEFLAGS")
"""A step that runs make must not inherit the flags and job slots of the make that started perfflow."""

PORT_VARIABLE = "PERFFLOW_PORT"
"""A free TCP port, in the environment of a background step."""


class Unknown(dict[str, Any]):
    """Outputs of a step that has not run: a visible placeholder, for showing what would run."""

    def __init__(self, step_id: str) -> None:
        super().__init__()
        self._step_id = step_id

    def __missing__(self, key: str) -> str:
        return f"<steps.{self._step_id}.outputs.{key}>"


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _MAKE}


@dataclass(frozen=True)
class Settings:
    """What a candidate changes beside the code: environment and parameters, for building and for measuring."""

    env: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    def on_top(self, other: Settings) -> Settings:
        """These settings where they say something, else those of ``other``."""
        return Settings({**other.env, **self.env}, {**other.params, **self.params})


@dataclass
class TreeContext:
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
    inherited: Mapping[str, str] = field(default_factory=_inherited)
    """The environment that perfflow was started in, as steps may see it; decoding it takes a while."""
    settings: Settings = Settings()
    """What holds in this tree, over all that the workflow says."""
    slot: Slot | None = None
    """Where ``root`` is, unless it is the user's own tree."""
    layouts: Path | None = None
    """A folder for code layouts of what is built in this tree, where some may be drawn."""
    layout_seed: int = 0
    """The number of the code layout that is built; 0 is the program as it is."""

    typed: bool = False
    """Whether the workflow itself was typed, so that its texts hold what a shell put there."""

    @cached_property
    def secrets(self) -> Secrets:
        """What no file of the run may repeat."""
        return secrets_of(self.plan, self.inherited, None if self.dry else self.root, typed=self.typed)


class StepOutputs(Mapping[str, Any]):
    """``steps`` of an expression: outputs by step id, looked up when they are asked for.

    The id of a matrix step stands for its first cell that agrees with the one that asks; each cell has its full id.
    """

    def __init__(self, context: TreeContext, planned: Planned) -> None:
        self._context, self._planned = context, planned

    def __getitem__(self, name: str) -> dict[str, Any]:
        plan = self._context.plan
        whole = plan.by_id.get(name)
        for other in (whole,) if whole else plan.cells_of(name):
            known = self._known(other)
            if known is not None and (whole or matrix.shared(self._planned.cell, other.cell)):
                return {"outputs": known}
        raise KeyError(name)

    def _known(self, other: Planned) -> dict[str, Any] | None:
        found = self._context.outputs.get(other.id)
        return Unknown(other.id) if found is None and self._context.dry else found

    def __iter__(self) -> Iterator[str]:
        known = [other for other in self._context.plan.steps if self._known(other) is not None]
        agreeing = (other.step.id for other in known if matrix.shared(self._planned.cell, other.cell))
        return iter(dict.fromkeys((*(other.id for other in known), *agreeing)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def variables_of(
    context: TreeContext, planned: Planned, side: Side = Side.BASELINE, ops: int | None = None
) -> dict[str, Any]:
    """Return the names an expression of ``planned`` can use, with ``env`` as its processes will see it."""
    candidate = planned.step.candidate if side is Side.CANDIDATE else None
    variables: dict[str, Any] = {
        "params": {**context.plan.params, **context.settings.params, **(candidate.params if candidate else {})},
        "matrix": dict(planned.cell),
        "steps": StepOutputs(context, planned),
        "run": {"id": context.run_id, "seed": context.seed, "folder": str(context.folder)},
        "machine": dict(context.machine),
        "git": dict(context.git),
        "layout": {"seed": context.layout_seed},
    }
    if ops is not None:
        variables["ops"] = ops
    variables["env"] = environment(context, planned, side, variables)
    return variables


def environment(context: TreeContext, planned: Planned, side: Side, variables: Mapping[str, Any]) -> dict[str, str]:
    """The process's environment: the user's, then workflow, defaults, stage, step and candidate; the nearest wins."""
    env = dict(context.inherited)
    workflow, step = context.plan.workflow, planned.step
    layers = [workflow.env, workflow.defaults.env, context.plan.stage(planned.stage).env, step.env]
    if side is Side.CANDIDATE and step.candidate:
        layers.append(step.candidate.env)
    for layer in (*layers, context.settings.env):
        if not layer:
            continue
        env |= {name: as_text(render(value, {**variables, "env": env})) for name, value in layer.items()}
    if context.slot:
        # Imported where it is needed: most runs need no trees.
        from perfflow.trees.environment import python_path

        # Whatever a layer made of it, the tree comes first.
        env["PYTHONPATH"] = python_path(context.slot, env.get("PYTHONPATH", ""))
    if uses_seed(step):
        env[SEED_VARIABLE] = str(context.layout_seed)
    outer = context.inherited.get(MARK)
    env[MARK] = f"{outer}/{context.run_id}" if outer else context.run_id
    return held(env, planned)


def held(env: Mapping[str, str], planned: Planned) -> dict[str, str]:
    """Say in the environment whether the machine is held for a step, so that a perfflow inside it does not wait."""
    inherited = os.environ.get(lock.HELD)
    kept = dict(env)
    kept.pop(lock.HELD, None)
    holder = env[MARK] if planned.alone else inherited
    if holder:
        kept[lock.HELD] = holder
    return kept


def search_path(context: TreeContext, planned: Planned) -> str | None:
    """PATH of a step's processes, from the root of the tree; None where it depends on what has not run yet."""
    try:
        env = variables_of(context, planned)["env"]
    except ExpressionError:
        return None
    entries = str(env.get("PATH", os.defpath)).split(os.pathsep)
    # Joining each entry would take longer than everything else in the plan of a step.
    return os.pathsep.join(entry if entry.startswith(os.sep) else str(context.root / entry) for entry in entries)
