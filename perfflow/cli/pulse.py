"""A thread that wakes up from time to time while untimed steps run, and that does not exist while a step is timed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from perfflow.plan.plan import Planned
from perfflow.tools.adapter import Role


def is_timed(planned: Planned) -> bool:
    """Return whether a wake-up of perfflow or of the terminal could disturb the measurement of this step."""
    return planned.alone or planned.role in (Role.MEASURE, Role.PROFILE)


class Pulse:
    """Calls ``beat`` repeatedly. ``beat`` returns the seconds until its next call.

    The methods wait for ``beat`` to return, so their callers must not hold a lock that ``beat`` takes.
    """

    def __init__(self, beat: Callable[[], float]) -> None:
        self._beat = beat
        self._running: dict[str, Planned] = {}
        self._gate = threading.Lock()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def started(self, planned: Planned) -> None:
        """Register a step that starts. If it is timed, the thread has ended when this returns."""
        with self._gate:
            self._running[planned.id] = planned
            self._settle()

    def ended(self, planned: Planned) -> None:
        """Remove a step that ended."""
        with self._gate:
            self._running.pop(planned.id, None)
            self._settle()

    def close(self) -> None:
        """End the thread for good."""
        with self._gate:
            self._running.clear()
            self._settle()

    def _settle(self) -> None:
        wanted = bool(self._running) and not any(map(is_timed, self._running.values()))
        if wanted and self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._go_on, args=(self._over,), name="progress", daemon=True)
            self._thread.start()
        elif not wanted and self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None

    def _go_on(self, over: threading.Event) -> None:
        while not over.wait(self._beat()):
            pass
