"""Progress listeners of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import Queue
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import SamplingProgress


class Progress(Protocol):
    """Receives the progress of a run.

    ``started`` and ``ended`` may be called from several threads at once. The step that calls one of these times nothing
    meanwhile, so a listener may draw during the call without disturbing a measurement.
    """

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """A run begins. ``folder``: where its files will be."""

    def started(self, planned: Planned) -> None:
        """A step starts."""

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """A step waits for the machine. Called again when its place in the queue changes, and every 10 s."""

    def granted(self, planned: Planned) -> None:
        """A step that needs the machine alone has got it."""

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """A step is between two rounds of its sampling."""

    def ended(self, run: StepRun) -> None:
        """A step ended."""

    def noted(self, text: str) -> None:
        """A sentence for the user: a warning before anything is measured, or news of steps on other machines."""


class NoProgress:
    """Ignores all progress; base class of listeners that handle only some of it."""

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """A run begins."""

    def started(self, planned: Planned) -> None:
        """A step starts."""

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """A step waits for the machine."""

    def granted(self, planned: Planned) -> None:
        """A step has the machine."""

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """A step is between two rounds of its sampling."""

    def ended(self, run: StepRun) -> None:
        """A step ended."""

    def noted(self, text: str) -> None:
        """A sentence for the user."""


@dataclass(frozen=True)
class Nested(NoProgress):
    """Reports the progress of a candidate's inner steps as that of the candidate."""

    outer: Progress
    candidate: Planned

    def waiting(self, planned: Planned, queue: Queue) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate waits for the machine."""
        self.outer.waiting(self.candidate, queue)

    def granted(self, planned: Planned) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate has the machine."""
        self.outer.granted(self.candidate)

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:  # noqa: ARG002 (the protocol's name)
        """The candidate is between two rounds of its sampling."""
        self.outer.sampled(self.candidate, taken)


@dataclass(frozen=True)
class Renamed(NoProgress):
    """Reports the progress of steps with a revision added to their names."""

    outer: Progress
    revision: str

    def _named(self, planned: Planned) -> Planned:
        return replace(planned, id=f"{planned.id} @{self.revision}")

    def started(self, planned: Planned) -> None:
        """A step starts on this revision."""
        self.outer.started(self._named(planned))

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """It waits for the machine."""
        self.outer.waiting(self._named(planned), queue)

    def granted(self, planned: Planned) -> None:
        """It has the machine."""
        self.outer.granted(self._named(planned))

    def sampled(self, planned: Planned, taken: SamplingProgress) -> None:
        """It is between two rounds of its sampling."""
        self.outer.sampled(self._named(planned), taken)

    def ended(self, run: StepRun) -> None:
        """It ended on this revision."""
        self.outer.ended(replace(run, planned=self._named(run.planned)))
