"""The progress of a run as events, the time that its steps wait, and how its measuring time is divided among them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.deadline import Deadline
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
