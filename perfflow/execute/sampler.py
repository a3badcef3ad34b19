"""A sampler beside what it watches: begun before it, stopped by SIGINT after it, and never left behind."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from perfflow.execute.child import Spawner
from perfflow.execute.service import Service
from perfflow.tools.adapter import Invocation

STDERR = "sampler.stderr"
_LOOK, _SETTLED = 0.01, 0.1
_STOPPED = frozenset({0, -signal.SIGINT, 128 + signal.SIGINT})
"""Exit statuses of a sampler that was interrupted: most write their file and end well, others die of the signal."""


class Sampler:
    """One sampler, below a spawner of its own, which ends it should perfflow itself be killed.

    SIGINT comes first, since SIGTERM makes programs such as iostat lose the end of their file.
    """

    def __init__(self, invocation: Invocation, env: Mapping[str, str], cwd: Path, folder: Path) -> None:
        """Start it. ``folder`` receives its output."""
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
        """Wait for its first output, as long as the invocation allows; whether it still runs."""
        for _ in range(max(1, round(self._invocation.beside / _LOOK))):
            if self._service.wait(_LOOK) or (self._output.exists() and self._output.stat().st_size):
                break
        # What it wrote may be why it ends at once.
        return not self._service.wait(_SETTLED)

    def stop(self) -> None:
        """Interrupt it, wait for its file, and end what is left of it; a second time does nothing."""
        self._service.stop()

    @property
    def exit_code(self) -> int | None:
        """Its exit status, minus the signal's number where one ended it; None where it never ran."""
        return self._service.exit_code

    @property
    def trouble(self) -> str:
        """What went wrong with it, once it is over: it ended by itself, failed, or was lost. '' where nothing did."""
        name = Path(self._invocation.argv[0]).name
        if self._service.death:
            return f"{name} {self._service.death} before the command that it watches had ended"
        status = self._service.exit_code
        if status is None:
            return f"{name} did not begin"
        how = f"was killed by signal {-status}" if status < 0 else f"exited with {status}"
        return "" if status in _STOPPED else f"{name} {how} when it was to end"
