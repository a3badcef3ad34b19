"""Waiting for the machine, apart from work: told to the user while it lasts, kept as events, and counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from perfflow.flow.moment import now
from perfflow.machine.lock import Queue, machine_alone
from perfflow.plan.plan import Planned

if TYPE_CHECKING:
    from perfflow.flow.workshop import Workshop


class Waits:
    """How long the steps of a run waited for the machine so far, in s. One step at a time waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._began: float | None = None

    def begin(self) -> None:
        """A step waits, or still does."""
        self._began = self._clock() if self._began is None else self._began

    def end(self) -> None:
        """It has the machine, or gave up; nothing where it did not wait."""
        if self._began is not None:
            self.seconds += self._clock() - self._began
            self._began = None

    def stopwatch(self) -> Callable[[], float]:
        """Return what tells the seconds from now on, without those of waiting."""
        began, before = self._clock(), self.seconds
        return lambda: self._clock() - began - (self.seconds - before)


@contextmanager
def machine_for(shop: Workshop, planned: Planned, patience: float) -> Iterator[None]:
    """Let a step have the machine to itself. Raises LockError, also after ``patience`` seconds of waiting for it."""
    last: Queue | None = None

    def waiting(queue: Queue) -> None:
        nonlocal last
        shop.waits.begin()
        if queue != last:
            last = queue
            event = {"event": "waiting", "step": planned.id, "time": now()}
            shop.folder.append(event | {"place": queue.place, "holder": queue.holder})
        shop.progress.waiting(planned, queue)

    with ExitStack() as held:
        try:
            held.enter_context(machine_alone(f"{shop.scene.plan.workflow.name}, step {planned.id}", patience, waiting))
        finally:
            shop.waits.end()
        shop.progress.granted(planned)
        yield
