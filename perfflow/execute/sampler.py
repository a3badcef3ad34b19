"""Run a sampler beside the command it watches: start it before, and stop it by SIGINT after the command."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from perfflow.execute.child import Spawner, ending
from perfflow.execute.service import Service
from perfflow.tools.adapter import Invocation

STDERR = "sampler.stderr"
_POLL_INTERVAL, _EARLY_EXIT = 0.01, 0.1
_STOPPED = frozenset({0, -signal.SIGINT, 128 + signal.SIGINT})
"""Exit statuses of an interrupted sampler: most write their file and exit with 0, others die from the signal."""


class Sampler:
    """One sampler with its own spawner, which ends it if perfflow itself is killed.

    SIGINT is sent first, because SIGTERM makes programs such as iostat lose the end of their file.
    """

    def __init__(self, invocation: Invocation, env: Mapping[str, str], cwd: Path, folder: Path) -> None:
        """Start the sampler. Its output goes to ``folder``."""
        self._invocation, self._output = invocation, folder / invocation.stdout
        self._output.unlink(missing_ok=True)
        self._service = Service(
            Spawner(),
            invocation.argv,
            env={**env, **invocation.env},
            cwd=cwd,
            stdout=self._output,
            stderr=folder / STDERR,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until_begun(self) -> bool:
        """Wait for the first output, at most as long as the invocation allows, and return whether it still runs."""
        for _ in range(max(1, round(self._invocation.beside / _POLL_INTERVAL))):
            if self._service.wait(_POLL_INTERVAL) or (self._output.exists() and self._output.stat().st_size):
                break
        # Its first output may be an error message, after which it exits.
        return not self._service.wait(_EARLY_EXIT)

    def stop(self) -> None:
        """Interrupt it, wait for its file, and end its remaining processes. Does nothing if called again."""
        self._service.stop()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that killed it; None if it never ran."""
        return self._service.exit_code

    @property
    def trouble(self) -> str:
        """What went wrong after it ended: it ended by itself, failed, or could not run. '' if nothing did."""
        name = Path(self._invocation.argv[0]).name
        if self._service.unexpected_end:
            return f"{name} {self._service.unexpected_end} before the command that it watches had ended"
        status = self._service.exit_code
        if status is None:
            return f"{name} did not start"
        return "" if status in _STOPPED else f"{name} {ending(status)} when perfflow interrupted it"
