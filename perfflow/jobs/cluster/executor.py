"""The interface of an engine, which places jobs on machines. A job's folder counts more than the engine's reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from perfflow.plan.runs_on import Place


class Phase(StrEnum):
    """The phase of a job, as an engine reports it. ``unknown``: it does not respond or does not list the job."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Status:
    """An engine's report on a job. ``hopeless``: the job will never start, for the ``reason``."""

    phase: Phase
    node: str = ""
    reason: str = ""
    hopeless: bool = False


@dataclass(frozen=True)
class Submission:
    """A job for an engine: its folder, a name, where it may run, and its time limit in minutes."""

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
    """The number of waiting and running jobs of all users on an engine's machines."""

    waiting: int
    running: int


class EngineError(Exception):
    """An engine cannot be used or refuses a job. The text gives the reason."""


class Executor(Protocol):
    """An engine that places jobs."""

    def nodes(self) -> Sequence[Node]:
        """Return the machines. Raises EngineError."""

    def longest(self) -> int | None:
        """Return the largest time limit of a job in minutes; None if there is none. Raises EngineError."""

    def check(self) -> Queue:
        """Check that the engine would accept a job, and return its queue. Raises EngineError."""

    def submit(self, job: Submission) -> str:
        """Queue a job that performs its folder; return the engine's number for it. Raises EngineError."""

    def find(self, name: str) -> str:
        """Return the number of the unfinished job with that name, '' if there is none. Raises EngineError."""

    def poll(self, jobs: Sequence[str]) -> Mapping[str, Status]:
        """Return the status of each job, with one query for all."""

    def cancel(self, jobs: Sequence[str]) -> None:
        """End jobs and all processes that they started. Raises EngineError."""
