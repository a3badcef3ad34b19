"""What places jobs on machines: the interface of an engine. Its answers are hints, a job's folder is the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from perfflow.model.later import dataclass
from perfflow.plan.runs_on import Place


class Phase(StrEnum):
    """Where a job stands, as an engine says. ``unknown``: it cannot be asked, or says nothing of the job."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Status:
    """What an engine says of a job. ``hopeless``: it will never start, for the ``reason``."""

    phase: Phase
    node: str = ""
    reason: str = ""
    hopeless: bool = False


@dataclass(frozen=True)
class Submission:
    """A job as an engine gets it: its folder, a name, where it may run, and its limit in minutes."""

    folder: Path
    name: str
    place: Place
    minutes: int


@dataclass(frozen=True)
class Node:
    """A machine of an engine: its labels, its GPUs in the engine's words, and its state."""

    name: str
    labels: tuple[str, ...]
    gpus: str
    state: str
    usable: bool


@dataclass(frozen=True)
class Queue:
    """How many jobs, of whomever, wait for an engine's machines, and how many run."""

    waiting: int
    running: int


class EngineError(Exception):
    """An engine cannot be used or refuses a job; the text says why."""


class Executor(Protocol):
    """An engine that places jobs."""

    def nodes(self) -> Sequence[Node]:
        """Its machines. Raises EngineError."""

    def longest(self) -> int | None:
        """The longest time limit of a job, in minutes; None where there is none. Raises EngineError."""

    def check(self) -> Queue:
        """See whether it would take a job, and how busy it is. Raises EngineError."""

    def submit(self, job: Submission) -> str:
        """Queue a job that performs its folder; returns the engine's number for it. Raises EngineError."""

    def find(self, name: str) -> str:
        """The number of a job of that name that has not ended, '' where there is none. Raises EngineError."""

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        """Where jobs stand, by one question for all."""

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs and all that they started. Raises EngineError."""
