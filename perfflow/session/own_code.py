"""Check that each side runs the code of its own tree, in runs that are not timed, once per side and benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from perfflow.execute.invoke import Invoked
from perfflow.execute.loaded_code import UNSEEN, recording_modules, require_own
from perfflow.execute.prepare import Ready
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Side
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession
from perfflow.tools.adapter import Role
from perfflow.tools.python_command import starts_python

SAME_CODE = "both sides run identical code (byte for byte): any difference is noise, or comes from their data"


class OwnCode:
    """Records which files of its tree the first run of each side and benchmark of a step loads, and checks them."""

    def __init__(self, session: RunSession, run: StepRun) -> None:
        self._session, self._run = session, run
        self._checked: set[tuple[Side, int | None, tuple[str, ...]]] = set()
        self._files: dict[Side, dict[str, str]] = {}

    @contextmanager
    def checked(self, prepared: Ready) -> Iterator[Ready]:
        """Yield the call, which is not timed, with its modules recorded. Raises Failure if code of another tree ran."""
        key = (prepared.side, prepared.ops, prepared.call.chosen if prepared.call else ())
        if key in self._checked:
            yield prepared
            return
        with checking_code(prepared, self._run) as (changed, files):
            yield changed
        # Only now: a run that timed out with a reader of its output is repeated, and was not checked.
        self._checked.add(key)
        self._files.setdefault(prepared.side, {}).update(files)

    def check_untimed(self, prepared: Ready) -> None:
        """Run the command of a tool without warm-up once without the tool, if it starts Python. Raises Failure."""
        call = prepared.call
        if prepared.slot and call and not call.shell_text and starts_python(call.command):
            with self.checked(replace(prepared, argv=call.command, tool=None, call=None)) as changed:
                self._session.start(changed, self._run)

    def same(self) -> bool | None:
        """Return whether both sides loaded the same Python files of their trees; None if not known for both."""
        found = [self._files.get(side) for side in Side]
        return found[0] == found[1] if all(found) else None


def run_check(prepared: Ready, run: StepRun, start: Callable[[Ready], Invoked]) -> Invoked:
    """Run a call that is not timed; a check in a slot must run the code of that slot. Raises Failure."""
    if prepared.planned.role is not Role.CHECK:
        return start(prepared)
    with checking_code(prepared, run) as (changed, _):
        return start(changed)


def differ_in_code_only(session: RunSession, planned: Planned) -> bool:
    """Return whether the sides of a step are two trees that differ only in their code."""
    one, other = (session.tree_context_of(side) for side in Side)
    return bool(session.contexts) and one.settings == other.settings and not planned.step.candidate


@contextmanager
def checking_code(prepared: Ready, run: StepRun) -> Iterator[tuple[Ready, dict[str, str]]]:
    """Yield a call that is not timed with its modules recorded, and the hashes of the Python files that it loaded.

    The hashes are filled in at the end, and only inside slots. Raises Failure if code of another tree ran.
    """
    slot, files = prepared.slot, dict[str, str]()
    if slot is None:
        yield prepared, files
        return

    with recording_modules(prepared, slot) as (changed, loaded):
        yield changed, files
    require_own(loaded, slot)
    command = prepared.call.command if prepared.call else prepared.argv
    if not loaded.seen and starts_python(command) and UNSEEN not in run.warnings:
        run.warnings.append(UNSEEN)
    files |= loaded.own
