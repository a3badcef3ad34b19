"""One child process: start it in its own session, limit it, stop it with all it started, and say what it used."""

from __future__ import annotations

import marshal
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from perfflow.errors import UserError
from perfflow.process import attendant
from perfflow.samples.readings import Usage

MARK = "PERFFLOW_MARK"
"""Environment variable that all descendants inherit; by it, those that left the session are found again."""
GRACE = 5.0
"""Seconds between INT, TERM and KILL, so that profilers can write their file."""


_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); import attendant; attendant.main()"


class Ended(StrEnum):
    """Why a child is no longer running."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Finished:
    """A child that ended. ``status`` is its exit code, or minus the number of the signal that killed it."""

    status: int
    ended: Ended
    usage: Usage


class StartError(Exception):
    """The program could not be started: not found, not executable, or a file for its output could not be opened."""


def find_program(name: str, path: str, cwd: Path) -> str | None:
    """Absolute path of an executable: relative to ``cwd`` when it has a slash, else looked up on ``path``."""
    return shutil.which(str(cwd / name) if os.sep in name else name, path=path)


class Attendant:
    """A client of one attendant process, for one thread at a time; ``stop`` may be called from any thread."""

    def __init__(self) -> None:
        if not hasattr(os, "pidfd_open"):
            raise UserError.of("running workflows needs Linux 5.4 or later", "validate, compare and report work here")
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, str(Path(attendant.__file__).parent)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdout: Path | None = None,
        stderr: Path | None = None,
        timeout: float | None = None,
        grace: float = GRACE,
    ) -> Finished:
        """Run ``argv`` to its end and return its status and resource usage. ``env`` must hold MARK.

        Raises StartError when it cannot be started. On KeyboardInterrupt the child and all it started are stopped
        before the exception goes on.
        """
        program = find_program(argv[0], env.get("PATH", os.defpath), cwd)
        if program is None:
            raise StartError(f"{argv[0]}: not found or not executable")
        request = {
            "program": program,
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(cwd),
            "stdin": "",
            "stdout": str(stdout or ""),
            "stderr": str(stderr or ""),
            "timeout": timeout,
            "grace": grace,
            "mark": f"{MARK}={env[MARK]}",
        }
        self._send(request)
        try:
            answer = self._receive()
        except KeyboardInterrupt:
            self.stop()
            self._receive()
            raise
        return _finished(argv, answer)

    def stop(self) -> None:
        """Ask the attendant to stop the running child; without one it does nothing."""
        self._send(b"stop")

    def close(self) -> None:
        """End the attendant, and with it whatever it still runs."""
        self._socket.close()
        self._process.wait()

    def _send(self, message: dict[str, Any] | bytes) -> None:
        body = marshal.dumps(message)
        with self._lock:
            self._socket.sendall(len(body).to_bytes(attendant.HEADER, "big") + body)

    def _receive(self) -> dict[str, Any]:
        header = self._exactly(attendant.HEADER)
        answer = marshal.loads(self._exactly(int.from_bytes(header, "big")))  # noqa: S302 (our own child's socket)
        if not isinstance(answer, dict):
            raise TypeError("the attendant's answer is not a dict")
        return answer

    def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise StartError("the process that starts and watches children ended unexpectedly (was it killed?)")
            parts += part
        return parts


def _finished(argv: Sequence[str], answer: Mapping[str, Any]) -> Finished:
    if "error" in answer:
        about = str(answer["path"] or argv[0])
        raise StartError(f"cannot start {argv[0]}: {answer['text']}" + (f": {about}" if about != argv[0] else ""))
    figures = {name: answer[name] for name in Usage.__slots__ if name in answer}
    return Finished(answer["status"], Ended(answer["ended"]), Usage(**figures))
