"""Progress of steps that run again and again, each time of another revision, whose name stands behind theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.flow.progress import Progress, Taken
from perfflow.machine.lock import Queue
from perfflow.plan.plan import Planned
from perfflow.run.schedule import StepRun


@dataclass(frozen=True, slots=True)
class Renamed:
    """Tells the progress of steps under names of one revision."""

    outer: Progress
    revision: str

    def _named(self, planned: Planned) -> Planned:
        return replace(planned, id=f"{planned.id} @{self.revision}")

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """Nothing: the run has long begun."""

    def started(self, planned: Planned) -> None:
        """A step starts on this revision."""
        self.outer.started(self._named(planned))

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """It waits for the machine."""
        self.outer.waiting(self._named(planned), queue)

    def granted(self, planned: Planned) -> None:
        """It has the machine."""
        self.outer.granted(self._named(planned))

    def sampled(self, planned: Planned, taken: Taken) -> None:
        """It is between two rounds of its sampling."""
        self.outer.sampled(self._named(planned), taken)

    def ended(self, run: StepRun) -> None:
        """It ended on this revision."""
        self.outer.ended(replace(run, planned=self._named(run.planned)))
