"""The progress of a run as events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import LockQueue
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SamplingProgress


@dataclass(frozen=True)
class Began:
    """A run begins. ``folder``: where its files will be."""

    folder: Path
    steps: Sequence[Planned]


@dataclass(frozen=True)
class Started:
    """A step starts."""

    planned: Planned


@dataclass(frozen=True)
class Waiting:
    """A step waits for the machine. Told again when its place in the queue changes, and every 10 s."""

    planned: Planned
    queue: LockQueue


@dataclass(frozen=True)
class Granted:
    """A step that needs the machine alone has got it."""

    planned: Planned


@dataclass(frozen=True)
class Sampled:
    """A step is between two rounds of its sampling."""

    planned: Planned
    taken: SamplingProgress


@dataclass(frozen=True)
class StepEnded:
    """A step ended."""

    run: StepRun


@dataclass(frozen=True)
class Noted:
    """A sentence for the user: a warning before anything is measured, or news of steps on other machines."""

    text: str


ProgressEvent = Began | Started | Waiting | Granted | Sampled | StepEnded | Noted
Progress = Callable[[ProgressEvent], None]
"""Receives the progress of a run, from several threads at once.

The step that tells it times nothing meanwhile, so a listener may draw during the call without disturbing a measurement.
"""


def unheard(_event: ProgressEvent) -> None:
    """Ignore all progress."""


def of_candidate(outer: Progress, candidate: Planned) -> Progress:
    """Return a listener for the inner steps of a candidate, which reports their progress as the candidate's."""

    def tell(event: ProgressEvent) -> None:
        if isinstance(event, Waiting | Granted | Sampled):
            outer(replace(event, planned=candidate))

    return tell


def on_revision(outer: Progress, revision: str) -> Progress:
    """Return a listener that reports the progress of steps with a revision added to their names."""

    def named(planned: Planned) -> Planned:
        return replace(planned, id=f"{planned.id} @{revision}")

    def tell(event: ProgressEvent) -> None:
        if isinstance(event, StepEnded):
            outer(StepEnded(replace(event.run, planned=named(event.run.planned))))
        elif isinstance(event, Started | Waiting | Granted | Sampled):
            outer(replace(event, planned=named(event.planned)))

    return tell
