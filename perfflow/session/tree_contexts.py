"""Contexts of the trees that steps run in: the user's own, and slots with their own root and outputs."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection
from dataclasses import replace

from perfflow.execute.context import Settings, TreeContext
from perfflow.machine.facts import facts
from perfflow.plan.layouts import draws_layouts
from perfflow.session.open_workflow import Opened
from perfflow.store.run_folder import RunFolder
from perfflow.trees import project
from perfflow.trees.environment import environment
from perfflow.trees.repository import State
from perfflow.trees.slots import Slot


def users_tree(opened: Opened, folder: RunFolder, seed: int | None, *, typed: bool = False) -> TreeContext:
    """Return the context of the user's own tree, with a random seed if none is given. Events mask its secrets."""
    drawn = secrets.randbelow(2**31) if seed is None else seed
    machine, git = facts(), project.describe(opened.root)
    context = TreeContext(
        opened.plan, opened.root, folder.id, drawn, folder.path, machine=machine, git=git, typed=typed
    )
    folder.secrets = context.secrets
    return context


def context_in(context: TreeContext, slot: Slot, settings: Settings) -> TreeContext:
    """Return the context of a step in a slot: its root, its own outputs, and the settings, which take precedence.

    The outputs of the setup stage are valid in all trees, because it runs once.
    """
    setup = {item.id for item in context.plan.steps if item.stage == "setup"}
    outputs = {name: dict(found) for name, found in context.outputs.items() if name in setup}
    inherited = dict(context.inherited)
    for name, value in environment(slot, inherited).items():
        if value is None:
            inherited.pop(name, None)
        else:
            inherited[name] = value
    layouts = slot.layouts if draws_layouts(context.plan, in_trees=True) else None
    return replace(
        context, root=slot.path, outputs=outputs, inherited=inherited, settings=settings, slot=slot, layouts=layouts
    )


def shown_in(
    slot: Slot, state: State, context: TreeContext, settings: Settings, building: Collection[str]
) -> TreeContext:
    """Check out a state of the code in a slot, remove builds made with other settings, and return its context."""
    slot.switch(state.tree, state.commit)
    inside = context_in(context, slot, settings)
    slot.forget_builds_unless(built_with(inside, building))
    return inside


def built_with(context: TreeContext, steps: Collection[str]) -> str:
    """Return a hash of the known inputs of a build except the code: settings, parameters, environment and steps."""
    workflow = context.plan.workflow
    own = [context.plan.by_id[name] for name in steps]
    parts = [
        dict(context.settings.env),
        context.layouts is not None,
        {**context.plan.params, **context.settings.params},
        dict(workflow.env),
        dict(workflow.defaults.env),
        [dict(context.plan.stage(item.stage).env) for item in own],
        [item.step.model_dump(mode="json") for item in own],
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
