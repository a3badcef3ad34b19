"""A process that goes on while others run: started, asked whether it still runs, and stopped with all it started."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfflow.execute.child import ChildExit, Ended, Spawner, StartError

MOST_PRINTED = 2**30
"""Bytes after which a process that prints to a file is ended."""


class Service:
    """One process with a spawner of its own, which ends it should perfflow itself be killed.

    It is started when the object is made. ``pid`` is 0 until it runs, and where it could not be started.
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

        # A daemon: where perfflow ends by a defect, nobody waits for a process that does not end by itself.
        self._thread = threading.Thread(target=attend, daemon=True)
        self._thread.start()

    def _started(self, pid: int) -> None:
        self.pid = pid

    def wait(self, seconds: float) -> bool:
        """Wait for its end, at most so long; whether it is over."""
        return self._over.wait(seconds)

    @property
    def is_over(self) -> bool:
        """Whether it runs no longer, for whatever reason."""
        return self._over.is_set()

    @property
    def was_stopped(self) -> bool:
        """Whether it is over because it was asked to stop."""
        return self.is_over and (
            self._asked_to_stop or (self._finished is not None and self._finished.ended is Ended.STOPPED)
        )

    @property
    def exit_code(self) -> int | None:
        """Its status, minus the signal's number where one killed it; None while it runs and where it never did."""
        return self._finished.status if self._finished else None

    @property
    def death(self) -> str:
        """How it ended without being asked to, as in "exited with 1"; '' where it did not."""
        if not self.is_over or self.was_stopped:
            return ""
        if self._finished is None:
            return f"was lost: {self._trouble}"
        if self._finished.ended is Ended.FLOODED:
            return f"printed more than {MOST_PRINTED >> 20} MiB and was ended"
        status = self._finished.status
        return f"was killed by signal {-status}" if status < 0 else f"exited with {status}"

    def stop(self) -> None:
        """End it and all it started: INT, TERM and KILL to its group, then whatever left that; waits for the end.

        ^C while it takes its time ends it at once.
        """
        self._asked_to_stop = self._asked_to_stop or not self.is_over
        try:
            self._spawner.stop()
            self._over.wait()
        except KeyboardInterrupt:
            pass
        # Also what it left behind where it had ended by itself: the spawner ends its descendants with itself.
        self._spawner.close()
        self._thread.join()
