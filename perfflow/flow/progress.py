"""Who is told what happens while a run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perfflow.machine.lock import Queue
from perfflow.plan.plan import Planned
from perfflow.run.schedule import StepRun


@dataclass(frozen=True, slots=True)
class Taken:
    """How much has been sampled of one benchmark: ``count`` of ``unit``, which is ``pair`` or ``run``.

    ``turn``: the how manyth it is of how many benchmarks of the step that have a turn in this round. With a ``count``
    of 0 the round is one of warming up.
    """

    benchmark: str
    count: int
    unit: str
    turn: tuple[int, int] = (1, 1)


class Progress(Protocol):
    """Who is told what happens; what it does with that is its own business.

    ``started`` and ``ended`` may come from several threads at once. Nothing timed runs while one of these is called by
    the step it is about, so this is where drawing is free.
    """

    def began(self, folder: Path, steps: Sequence[Planned]) -> None:
        """A run begins: where its files will be, and the steps it goes through."""

    def started(self, planned: Planned) -> None:
        """A step starts."""

    def waiting(self, planned: Planned, queue: Queue) -> None:
        """A step waits for the machine: where it stands now. Comes again when that changes, and every 10 s."""

    def granted(self, planned: Planned) -> None:
        """A step that takes the machine to itself has it."""

    def sampled(self, planned: Planned, taken: Taken) -> None:
        """A step is between two rounds of its sampling."""

    def ended(self, run: StepRun) -> None:
        """A step ended."""
