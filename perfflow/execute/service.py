"""A background process: start it, check whether it still runs, and stop it with its descendants."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfflow.execute.child import ChildExit, Ended, Spawner, StartError, ending

MOST_PRINTED = 2**30
"""A process that prints more than this number of bytes to a file is ended."""


class Service:
    """One background process with its own spawner, which ends it if perfflow itself is killed.

    The constructor starts it. ``pid`` is 0 until it runs, and stays 0 if it could not be started.
    """

    def __init__(
        self,
        spawner: Spawner,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Path,
        stderr: Path,
    ) -> None:
        self.pid = 0
        self._spawner = spawner
        self._asked_to_stop = False
        self._finished: ChildExit | None = None
        self._trouble = ""
        self._over = threading.Event()

        def attend() -> None:
            try:
                self._finished = spawner.run(
                    argv,
                    env=env,
                    cwd=cwd,
                    stdout=stdout,
                    stderr=stderr,
                    account=False,
                    started=self._started,
                    limits={stdout: MOST_PRINTED, stderr: MOST_PRINTED},
                )
            except StartError as error:
                self._trouble = str(error)
            except KeyboardInterrupt:
                self._asked_to_stop = True
            finally:
                self._over.set()

        # A daemon thread: if perfflow crashes, it must not wait for a process that never ends.
        self._thread = threading.Thread(target=attend, daemon=True)
        self._thread.start()

    def _started(self, pid: int) -> None:
        self.pid = pid

    def wait(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for its end and return whether it ended."""
        return self._over.wait(seconds)

    @property
    def is_over(self) -> bool:
        """Whether it no longer runs, for any reason."""
        return self._over.is_set()

    @property
    def was_stopped(self) -> bool:
        """Whether it ended because it was asked to stop."""
        ended = self._finished.ended if self._finished else None
        # One that printed too much may be asked to stop after its end, which its thread does not know yet.
        return self.is_over and ended is not Ended.FLOODED and (self._asked_to_stop or ended is Ended.STOPPED)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that killed it; None while it runs and if it never started."""
        return self._finished.status if self._finished else None

    @property
    def unexpected_end(self) -> str:
        """How it ended without a request, such as "exited with 1"; '' if it did not."""
        if not self.is_over or self.was_stopped:
            return ""
        if self._finished is None:
            return f"failed ({self._trouble})"
        if self._finished.ended is Ended.FLOODED:
            return f"printed more than {MOST_PRINTED >> 20} MiB and was ended"
        return ending(self._finished.status)

    def stop(self) -> None:
        """End it and its descendants, and wait for the end: INT, TERM and KILL to its group, then KILL to the rest.

        ^C during the wait ends it at once. Raises KeyboardInterrupt then.
        """
        self._asked_to_stop = self._asked_to_stop or not self.is_over
        try:
            self._spawner.stop()
            self._over.wait()
        finally:
            # This also ends processes that it left running when it ended by itself: a spawner kills its descendants.
            self._spawner.close()
            self._thread.join()
