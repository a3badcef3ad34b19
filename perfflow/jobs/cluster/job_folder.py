"""The folder of one job: what it is to do, who does it, and how it ended. The files are the truth, not the engine.

An engine runs a job again, loses it or forgets how it ended when something dies. So whoever performs a job claims its
folder first, which only one can, and touches the claim while it works; what came of it is written in one piece.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, TypeVar

from perfflow.model.later import dataclass
from perfflow.model.plain_data import from_json, to_json
from perfflow.plan.groups import Benchmarks
from perfflow.store.folder import write_text

_Kind = TypeVar("_Kind", "Worker", "Ended")
WORK, CLAIM, ENDED, CANCEL, LOG, STDOUT = "work.json", "claim", "ended.json", "cancel", "log", "stdout"
KEPT = "kept.bundle"
"""The branch of what was kept of the candidates."""
RUN, BUILD = "run", "build"
"""Folders of what the job measured, and of what it built for others, too."""
HERE = "{run}"
"""Stands for the job's folder for a run in the words of a command."""
TAKEN = 75
"""Exit status of what finds a job's folder claimed (sysexits' EX_TEMPFAIL)."""
BEAT = 2.0
"""Seconds between two touches of a claim."""


@dataclass(frozen=True)
class Work:
    """What a job does: some steps of a run, in a clone of the code.

    ``root`` is the project where it was submitted, ``source`` what its code is read from, ``states`` commits in it by
    name. ``settings`` are those of ``--set``. ``comparing``: see ``jobs.run.run.Part``. Times are in s.
    """

    root: str
    workflow: str
    digest: str
    source: str
    states: Mapping[str, str]
    settings: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    parts: Mapping[str, Benchmarks] = field(default_factory=dict)
    comparing: int = 1
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
    """Words of a command that is performed in place of the steps."""


@dataclass(frozen=True)
class Worker:
    """Who claimed a job: a machine by the engine's name for it, a process, and the engine's own number of the job."""

    node: str
    pid: int
    job: str = ""


@dataclass(frozen=True)
class Ended:
    """How a job ended. ``stopped``: the engine ended it, by its time limit or otherwise; ``cancelled``: we did.

    ``status`` is the exit status of what performed it, ``machine`` what is known of where that was.
    """

    state: Literal["done", "stopped", "cancelled"]
    worker: Worker
    status: int | None = None
    seconds: float = 0.0
    reason: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)


class JobFolder:
    """The files of one attempt at a group."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run(self) -> Path:
        """The folder of the run that the job makes."""
        return self.path / RUN

    def write(self, work: Work) -> None:
        """Say what is to be done, to the user alone: settings may hold secrets. Raises OSError."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / WORK).touch(0o600)
        (self.path / WORK).write_text(json.dumps(to_json(work)), encoding="utf-8")

    def work(self) -> Work:
        """What is to be done. Raises OSError and ValueError."""
        return from_json(Work, json.loads((self.path / WORK).read_text(encoding="utf-8")))

    def claim(self, worker: Worker) -> bool:
        """Take the job; whether nobody else had. Raises OSError."""
        try:
            number = os.open(self.path / CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(to_json(worker)))
        return True

    def beat(self) -> None:
        """Show that the job is still performed. Raises OSError."""
        os.utime(self.path / CLAIM)

    def last_beat(self) -> float | None:
        """When the claim was last touched, by the clock of the file system; None where nobody has the job."""
        try:
            return (self.path / CLAIM).stat().st_mtime
        except OSError:
            return None

    def worker(self) -> Worker | None:
        """Who has the job; None while nobody has, or it is just being written."""
        return self._read(CLAIM, Worker)

    def end(self, ended: Ended) -> None:
        """Say how it ended, in one piece. Raises OSError."""
        write_text(self.path / ENDED, json.dumps(to_json(ended)))

    def ended(self) -> Ended | None:
        """How it ended; None where it did not, as far as is known."""
        return self._read(ENDED, Ended)

    def cancel(self) -> None:
        """Ask whoever performs it to stop. Raises OSError."""
        (self.path / CANCEL).touch()

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked to stop it."""
        return (self.path / CANCEL).exists()

    def _read(self, name: str, kind: type[_Kind]) -> _Kind | None:
        try:
            return from_json(kind, json.loads((self.path / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            return None
