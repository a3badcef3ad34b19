"""The variables of a step's expressions, the environment of its processes, and the secrets of a run.

Secrets are in variables and parameters whose names mark them, and in variables that the workflow reads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from perfflow.execute.child import MARK
from perfflow.execute.sandbox import Sandbox
from perfflow.machine import lock
from perfflow.model.errors import UserError
from perfflow.model.readings import Side
from perfflow.model.secrets import Secrets, is_harmless, is_secret, secrets_in
from perfflow.plan.plan import Cell, Plan, Planned, shared_cells
from perfflow.tools.adapter import Role
from perfflow.trees.git import Git
from perfflow.trees.python_layout import python_path
from perfflow.trees.slots import Slot
from perfflow.workflow.expression_text import ExpressionError, as_text
from perfflow.workflow.expressions import Expression, pieces, render
from perfflow.workflow.layout_checks import SEED_VARIABLE, uses_seed
from perfflow.workflow.model import as_data

_MAKE_VARIABLES = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "CARGO_MAKEFLAGS")
"""Variables not passed on: a step's make must not inherit flags and job slots of the make that started perfflow."""

PORT_VARIABLE = "PERFFLOW_PORT"
"""Variable with a free TCP port, in the environment of a background step."""


class Unknown(dict[str, Any]):
    """Placeholders for the outputs of a step that has not run, for dry runs."""

    def __init__(self, step_id: str) -> None:
        super().__init__()
        self._step_id = step_id

    def __missing__(self, key: str) -> str:
        return f"<steps.{self._step_id}.outputs.{key}>"


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _MAKE_VARIABLES}


def looking() -> dict[str, str]:
    """Return the inherited environment for showing a workflow: values that may be secret are ``<env.NAME>``.

    A workflow can cut a value into parts, which nothing recognizes afterwards.
    """
    known = _inherited().items()
    return {n: value if is_harmless(n) and not is_secret(n) else f"<env.{n}>" for n, value in known}


@dataclass(frozen=True)
class Settings:
    """Environment and parameters that a candidate changes besides the code, for building and measuring."""

    env: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    def on_top(self, other: Settings) -> Settings:
        """Return ``other`` with these settings on top."""
        return Settings({**other.env, **self.env}, {**other.params, **self.params})


@dataclass
class TreeContext:
    """The state that all steps of a run in one tree share: the plan, the tree, the outputs so far."""

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
    """The environment that perfflow was started in, without make's variables. Stored because decoding it is slow."""
    settings: Settings = Settings()
    """Settings of this tree. They override those of the workflow."""
    slot: Slot | None = None
    """The slot that holds ``root``; None for the user's own tree."""
    other: Path | None = None
    """The root of the tree with which a gate compares this one."""
    sandbox: Sandbox | None = None
    """What the processes of this tree see, if it has code of strangers; None if they see everything."""
    layouts: Path | None = None
    """A folder for code layouts of executables built in this tree; None if none are drawn."""
    layout_seed: int = 0
    """The seed of the code layout that is built; 0 is the program as built."""
    pair_seed: int | None = None
    """A number that both processes of a pair get, and no other pair; None outside of pairs."""

    holdout: str = ""
    """The copy of an input that a candidate cannot know, for the process that reads it."""
    planted: Mapping[str, str] = field(default_factory=dict)
    """Variables with which measured processes become slower on purpose, for a self-test of a gate."""
    typed: bool = False
    """Whether the workflow comes from the command line, so that its texts may hold values the shell inserted."""

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets that no file of the run may contain."""
        return secrets_of(self.plan, self.inherited, None if self.dry else self.root, typed=self.typed)

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The variables of expressions that are the same in every step."""
        return {
            "params": {**self.plan.params, **self.settings.params},
            "run": {"id": self.run_id, "seed": self.seed, "folder": str(self.folder)},
            "machine": dict(self.machine),
            "git": dict(self.git),
            "layout": {"seed": self.layout_seed},
            "pair": {"seed": self.seed if self.pair_seed is None else self.pair_seed},
            "holdout": {"file": self.holdout},
        }


class StepOutputs(Mapping[str, Any]):
    """``steps`` in an expression: outputs by step id, looked up on access.

    The bare id of a matrix step is its first cell that agrees with the cell of the expression. A full id is one cell.
    """

    def __init__(self, context: TreeContext, cell: Cell) -> None:
        self._context, self._cell = context, cell

    def __getitem__(self, name: str) -> dict[str, Any]:
        plan = self._context.plan
        whole = plan.by_id.get(name)
        for other in (whole,) if whole else plan.cells_of(name):
            known = self._known(other)
            if known is not None and (whole or shared_cells(self._cell, other.cell)):
                return {"outputs": known}
        raise KeyError(name)

    def _known(self, other: Planned) -> dict[str, Any] | None:
        found = self._context.outputs.get(other.id)
        return Unknown(other.id) if found is None and self._context.dry else found

    def __iter__(self) -> Iterator[str]:
        known = [other for other in self._context.plan.steps if self._known(other) is not None]
        agreeing = (other.step.id for other in known if shared_cells(self._cell, other.cell))
        return iter(dict.fromkeys((*(other.id for other in known), *agreeing)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def compares_cells(context: TreeContext) -> bool:
    """Return whether ``compare: KEY`` compares the cells of a step: two trees are compared cell by cell."""
    return context.slot is None


def variables_of(
    context: TreeContext, planned: Planned, side: Side | None = None, ops: int | None = None
) -> dict[str, Any]:
    """Return the variables of an expression of ``planned``, with the ``env`` of its processes.

    ``side``: that of a process; None for what the step has once, such as its condition.
    """
    candidate = planned.step.candidate if side is Side.CANDIDATE else None
    against = planned.against if side is Side.BASELINE and compares_cells(context) else None
    cell = planned.cell if against is None else against
    variables = {**context.variables, "matrix": dict(cell), "steps": StepOutputs(context, cell)}
    if candidate:
        variables["params"] = {**variables["params"], **candidate.params}
    if ops is not None:
        variables["ops"] = ops
    variables["env"] = environment(context, planned, side, variables)
    return variables


def environment(
    context: TreeContext, planned: Planned, side: Side | None, variables: Mapping[str, Any]
) -> dict[str, str]:
    """Return a process's environment; later layers win: user, workflow, defaults, stage, step, candidate, settings."""
    env = dict(context.inherited)
    workflow, step = context.plan.workflow, planned.step
    if step.background:
        # The port is known only when the service starts, but a gate or a dry run renders its command before.
        env.setdefault(PORT_VARIABLE, "<free port>")
    layers = [workflow.env, workflow.defaults.env, context.plan.stage(planned.stage).env, step.env]
    if side is Side.CANDIDATE and step.candidate:
        layers.append(step.candidate.env)
    for layer in (*layers, context.settings.env):
        if not layer:
            continue
        env |= {name: as_text(render(value, {**variables, "env": env})) for name, value in layer.items()}
    if context.slot:
        # The tree comes first even if a layer set PYTHONPATH.
        env["PYTHONPATH"] = python_path(context.slot, env.get("PYTHONPATH", ""))
    if context.planted and side is Side.CANDIDATE and planned.role is Role.MEASURE:
        is_suite = planned.tool is not None and planned.tool.is_suite
        env |= {**context.planted, "PERFFLOW_PLANTED_AT": "clock" if is_suite else "end"}
    if uses_seed(step):
        env[SEED_VARIABLE] = str(context.layout_seed)
    outer = context.inherited.get(MARK)
    env[MARK] = f"{outer}/{context.run_id}" if outer else context.run_id
    note_lock(env, context, planned)
    return env


def note_lock(env: dict[str, str], context: TreeContext, planned: Planned) -> None:
    """Note in the environment whether the step holds the machine, so that a perfflow inside it does not wait for it."""
    holder = str(os.getpid()) if planned.alone else context.inherited.get(lock.HELD)
    if holder:
        env[lock.HELD] = holder
    else:
        env.pop(lock.HELD, None)


def search_path(context: TreeContext, planned: Planned) -> str | None:
    """Return PATH of a step's processes, absolute; None if it depends on a step that has not run."""
    try:
        env = variables_of(context, planned)["env"]
    except ExpressionError:
        return None
    entries = str(env.get("PATH", os.defpath)).split(os.pathsep)
    # Joining each entry would take longer than everything else in the plan of a step.
    return os.pathsep.join(entry if entry.startswith(os.sep) else str(context.root / entry) for entry in entries)


def secrets_of(plan: Plan, inherited: Mapping[str, str], repository: Path | None, *, typed: bool) -> Secrets:
    """Return the secrets that no file of a run may contain, if perfflow was started with the variables ``inherited``.

    repository: used to check whether a text is a revision; None if no process may be started.
    typed: whether the workflow comes from the command line, whose texts are not public like those of a file.
    """
    texts = list(_texts(as_data(plan.workflow, by_alias=True)))
    conditions = [step.if_ for step in (item.step for item in plan.steps) if isinstance(step.if_, str)]
    names = set(_variables([*texts, *("${{" + text + "}}" for text in conditions)]))
    read = {name: value for name, value in inherited.items() if name in names or "" in names}
    written = "" if typed else "\n".join(texts)

    def is_revision(text: str) -> bool:
        return repository is not None and _is_object(repository, text)

    return secrets_in(inherited, plan.params, read=read, written=written, is_revision=is_revision)


def _is_object(repository: Path, name: str) -> bool:
    if not (repository / ".git").exists():
        return False

    try:
        # Do not let a partial clone fetch missing objects for this check.
        git = Git(repository).with_variables(GIT_NO_LAZY_FETCH="1")
        return git.attempt("cat-file", "-e", name).status == 0
    except UserError:
        return False


def _texts(data: Any) -> dict[str, None]:
    """Return every text in plain data, including keys, once each and in no particular order."""
    texts: dict[str, None] = {}
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts[value] = None
        elif isinstance(value, dict):
            texts.update(dict.fromkeys(map(str, value)))
            waiting += filter(None, value.values())
        elif isinstance(value, list):
            waiting += filter(None, value)
    return texts


def _variables(texts: list[str]) -> Iterator[str]:
    """Yield the names of variables that expressions read; '' for a computed name, which may be any variable."""
    for text in texts:
        if "${{" not in text or "env" not in text:
            continue
        with contextlib.suppress(ExpressionError):
            for part in pieces(text):
                if isinstance(part, Expression):
                    yield from (path[1] if len(path) > 1 else "" for path in part.names() if path[0] == "env")
