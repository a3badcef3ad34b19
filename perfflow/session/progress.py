"""Progress listeners of a run.

The time that the steps of a run waited for the machine.

The time that all steps of a run may measure, and the part of it that a step may use.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from perfflow.execute.deadline import Deadline
from perfflow.execute.schedule import StepRun
from perfflow.machine.lock import LockQueue
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:  # noqa: ARG002 (the protocol's name)
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

    def waiting(self, planned: Planned, queue: LockQueue) -> None:
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


class Waits:
    """Seconds that the steps of a run waited for the machine so far. Only one step at a time waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._began: float | None = None

    def begin(self) -> None:
        """Note that a step waits; repeated calls change nothing."""
        self._began = self._clock() if self._began is None else self._began

    def end(self) -> None:
        """Note that the step has the machine or gave up."""
        if self._began is not None:
            self.seconds += self._clock() - self._began
            self._began = None

    def stopwatch(self) -> Callable[[], float]:
        """Return a function that gives the seconds since this call, without those of waiting."""
        began, before = self._clock(), self.seconds
        return lambda: self._clock() - began - (self.seconds - before)


KEPT = 0.1
"""Share of the time of a command that measuring leaves: for checks that follow, and for profiles of what failed."""


class TotalBudget:
    """The measuring time of a run: what builds, tests and other steps have left of the time of the whole command.

    A step gets a share of the remaining time in proportion to its benchmarks. A later step counts as one benchmark if
    the number of its benchmarks is unknown. Later steps share the time that a step leaves unused.
    """

    def __init__(
        self,
        deadline: Deadline | None = None,
        steps: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        kept: float = 0.0,
        *,
        whole: bool = False,
    ) -> None:
        """``kept``: seconds that measuring leaves to other steps. ``whole``: see the attribute."""
        self._deadline, self._kept, self._clock = deadline or Deadline(), kept, clock
        self._to_come = set(steps)
        self._guard = threading.Lock()
        self.whole = whole and math.isfinite(self._deadline.seconds)
        """Whether benchmarks without a budget of their own are measured as long as their share of it lasts."""

    def passed(self, step_id: str) -> None:
        """Stop reserving time for a step that ended, whether it measured or not."""
        with self._guard:
            self._to_come.discard(step_id)

    def ends(self, step_id: str, benchmarks: int, known: Mapping[str, int] | None = None) -> float:
        """Return the clock time at which a measuring step must end. ``known``: numbers of benchmarks of other steps."""
        self.passed(step_id)
        with self._guard:
            part = benchmarks / (benchmarks + sum((known or {}).get(name, 1) for name in self._to_come))
            seconds = max(0.0, self._deadline.left - self._kept) * part
        return self._clock() + seconds
