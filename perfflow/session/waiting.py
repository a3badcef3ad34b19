"""Wait for the machine, show the wait to the user, and store it as events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from perfflow.machine.lock import LockQueue, machine_alone
from perfflow.plan.plan import Planned
from perfflow.session.session import RunSession, now


@contextmanager
def machine_for(session: RunSession, planned: Planned) -> Iterator[None]:
    """Give a step the machine alone. Raises LockError, also after the lock timeout of the session."""
    last: LockQueue | None = None

    def waiting(queue: LockQueue) -> None:
        nonlocal last
        session.waits.begin()
        if queue != last:
            last = queue
            event = {"event": "waiting", "step": planned.id, "time": now()}
            session.folder.append(event | {"place": queue.place, "holder": queue.holder})
        session.progress.waiting(planned, queue)

    with ExitStack() as held:
        try:
            who = f"{session.context.plan.workflow.name}, step {planned.id}"
            held.enter_context(machine_alone(who, session.lock_timeout, waiting))
        finally:
            session.waits.end()
        session.progress.granted(planned)
        yield
