"""Each tree's own code is what runs: seen to in runs that are not timed, once for each side and benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from perfflow.flow.workshop import Workshop
from perfflow.plan.plan import Planned
from perfflow.run.invoke import Invoked
from perfflow.run.prepare import Ready
from perfflow.run.schedule import StepRun
from perfflow.samples.readings import Side
from perfflow.tools.adapter import Role
from perfflow.tools.python_command import starts_python

SAME_CODE = "both sides run the same code, byte for byte: what differs between them is noise, or comes from their data"


class OwnCode:
    """Watches the first run of each side and benchmark of a step, and remembers which files of the tree it ran."""

    def __init__(self, shop: Workshop, run: StepRun) -> None:
        self._shop, self._run = shop, run
        self._watched: set[tuple[Side, int | None, str]] = set()
        self._files: dict[Side, dict[str, str]] = {}

    def start(self, prepared: Ready) -> Invoked:
        """Run a prepared call that is not timed. Raises Failure, also where code of another tree ran."""
        key = (prepared.side, prepared.ops, prepared.call.only if prepared.call else "")
        if key in self._watched:
            return self._shop.start(prepared, self._run)
        self._watched.add(key)
        start = partial(self._shop.start, run=self._run)
        invoked, files = _watched(prepared, self._run, start)
        self._files.setdefault(prepared.side, {}).update(files)
        return invoked

    def look_beside(self, prepared: Ready) -> None:
        """Run the command of a tool that is not warmed up, without the tool, if it starts Python. Raises Failure."""
        call = prepared.call
        if prepared.slot and call and not call.shell_text and starts_python(call.command):
            self.start(replace(prepared, argv=call.command, tool=None, call=None))

    def same(self) -> bool | None:
        """Whether both sides ran the same Python files of their trees; None where that was not seen of both."""
        found = [self._files.get(side) for side in Side]
        return found[0] == found[1] if all(found) else None


Start = Callable[[Ready], Invoked]


def run_check(prepared: Ready, run: StepRun, start: Start) -> Invoked:
    """Run a prepared call of a step that is not timed: a check in a slot is one of the code there. Raises Failure."""
    if prepared.planned.role is not Role.CHECK:
        return start(prepared)
    return _watched(prepared, run, start)[0]


def are_set_alike(shop: Workshop, planned: Planned) -> bool:
    """Whether the sides of a step are two trees that differ in nothing but their code."""
    one, other = (shop.scene_of(side) for side in Side)
    return bool(shop.scenes) and one.settings == other.settings and not planned.step.candidate


def _watched(prepared: Ready, run: StepRun, start: Start) -> tuple[Invoked, dict[str, str]]:
    """Also the Python files of the tree that ran, with their hashes; none outside of slots."""
    slot = prepared.slot
    if slot is None:
        return start(prepared), {}
    # Imported where it is needed: most runs need no trees.
    from perfflow.run.loaded import UNSEEN, require_own, watched

    with watched(prepared, slot) as (changed, loaded):
        invoked = start(changed)
    require_own(loaded, slot)
    command = prepared.call.command if prepared.call else prepared.argv
    if not loaded.seen and starts_python(command) and UNSEEN not in run.warnings:
        run.warnings.append(UNSEEN)
    return invoked, loaded.own
