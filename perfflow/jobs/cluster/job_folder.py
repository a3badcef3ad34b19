"""The folder of one job: its work, its worker, and how it ended. These files count, not the engine's reports.

After a crash, an engine may run a job twice, lose it, or forget how it ended. So a worker first claims the folder,
which only one can, and touches the claim while it works. The result is written atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from perfflow.model.plain_data import from_json, to_json
from perfflow.plan.groups import Benchmarks
from perfflow.store.run_folder import write_text

_Kind = TypeVar("_Kind", "Worker", "Ended")
WORK, CLAIM, ENDED, CANCEL, LOG, STDOUT = "work.json", "claim", "ended.json", "cancel", "log", "stdout"
KEPT = "kept.bundle"
"""The git bundle with the branch of accepted candidates."""
RUN, BUILD = "run", "build"
"""The folder of the job's run, and the folder of the build that it shares with other jobs."""
HERE = "{run}"
"""Placeholder for the job's run folder in the words of a command."""
TAKEN = 75
"""Exit status of an agent whose job folder is already claimed (sysexits' EX_TEMPFAIL)."""
BEAT = 2.0
"""Seconds between two touches of a claim."""


@dataclass(frozen=True)
class Work:
    """The work of a job: some steps of a run, in a clone of the code.

    ``root`` is the project that submitted it. ``source`` is the repository or bundle with the code, and ``states`` are
    its commits by name. ``settings`` are those of ``--set``, ``chosen`` those of ``--benchmark``. ``compared_steps`` is
    that of ``jobs.run.run.RunPart``. Times in s.
    """

    root: str
    workflow: str
    digest: str
    source: str
    states: Mapping[str, str]
    settings: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    compared_steps: int = 1
    seed: int = 0
    share: tuple[str, ...] = ()
    scratch: str = ""
    labels: tuple[str, ...] = ()
    gpus: int = 0
    keep_going: bool = False
    budget: float | None = None
    lock_timeout: float = 1800.0
    version: str = ""
    command: tuple[str, ...] = ()
    """Words of a command that is run instead of the steps."""


@dataclass(frozen=True)
class Worker:
    """The process that claimed a job: the engine's name of its machine, its id, and the engine's number of the job."""

    node: str
    pid: int
    job: str = ""


@dataclass(frozen=True)
class Ended:
    """How a job ended. ``stopped``: the engine ended it, such as at its time limit; ``cancelled``: perfflow did.

    ``status`` is the exit status of the measuring process; ``machine`` are facts about its machine.
    """

    state: Literal["done", "stopped", "cancelled"]
    worker: Worker
    status: int | None = None
    seconds: float = 0.0
    reason: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)


class JobFolder:
    """The files of one attempt to measure a group."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run(self) -> Path:
        """The folder of the job's run."""
        return self.path / RUN

    def write(self, work: Work) -> None:
        """Write the work, readable only for the user, since settings may contain secrets. Raises OSError."""
        self.path.mkdir(0o700, parents=True, exist_ok=True)
        (self.path / WORK).touch(0o600)
        (self.path / WORK).write_text(json.dumps(to_json(work)), encoding="utf-8")

    def work(self) -> Work:
        """Return the work. Raises OSError and ValueError."""
        return from_json(Work, json.loads((self.path / WORK).read_text(encoding="utf-8")))

    def claim(self, worker: Worker) -> bool:
        """Claim the job; return False if it was claimed before. Raises OSError."""
        try:
            number = os.open(self.path / CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(to_json(worker)))
        return True

    def beat(self) -> None:
        """Touch the claim to show that the job is still running. Raises OSError."""
        os.utime(self.path / CLAIM)

    def last_beat(self) -> float | None:
        """Return when the claim was last touched, by the file system's clock; None if the job is not claimed."""
        try:
            return (self.path / CLAIM).stat().st_mtime
        except OSError:
            return None

    def worker(self) -> Worker | None:
        """Return who claimed the job; None if nobody has, or while the claim is being written."""
        return self._read(CLAIM, Worker)

    def end(self, ended: Ended) -> None:
        """Store how the job ended, atomically. Raises OSError."""
        write_text(self.path / ENDED, json.dumps(to_json(ended)))

    def ended(self) -> Ended | None:
        """Return how the job ended; None if that is not stored (yet)."""
        return self._read(ENDED, Ended)

    def cancel(self) -> None:
        """Ask the worker to stop. Raises OSError."""
        (self.path / CANCEL).touch()

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was asked to stop."""
        return (self.path / CANCEL).exists()

    def _read(self, name: str, kind: type[_Kind]) -> _Kind | None:
        try:
            return from_json(kind, json.loads((self.path / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            return None
