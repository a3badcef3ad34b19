"""Run the steps of a plan in order, skip blocked steps, and give measured steps the machine to themselves.

``StepStatus`` lists the states in which a step can end, ``StepRun`` holds its outcome, and ``Schedule`` runs the steps.
"""

from __future__ import annotations

import heapq
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from perfflow.model.judging import Code, Flag
from perfflow.model.readings import Reading, Side
from perfflow.plan.plan import Plan, Planned
from perfflow.store.run_facts import NOTHING, StepFindings
from perfflow.tools.adapter import OPTIONAL_ROLES, Role
from perfflow.workflow.expression_text import ExpressionError

UNABLE = 77
"""Exit status of a `setup` step if the machine lacks something that the workflow needs (as in Automake)."""


class StepStatus(StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    CACHED = "cached"


Condition = Callable[[Planned, bool], bool]
"""(step, blocked) -> whether the step's ``if`` lets it run."""


@dataclass
class StepRun:
    """The outcome of one step.

    ``seconds`` is its duration without ``waited``, the seconds for which it waited for the machine.
    """

    planned: Planned
    status: StepStatus
    reason: str = ""
    seconds: float = 0.0
    waited: float = 0.0
    argv: list[str] = field(default_factory=list)
    exit_code: int | None = None
    warnings: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    """Those of the warnings that say how to read the figures."""
    few_samples: bool = False
    """Whether a profiler took too few samples for reliable shares."""
    log: str = ""
    blocked: bool = False
    """Whether it was skipped because an earlier step failed."""
    not_started: bool = False
    """Whether it failed before any of its commands ran."""
    out_of_time: bool = False
    """Whether it was ended, or not started, because the time of the whole command was over."""
    failing: list[str] = field(default_factory=list)
    """The failed command, if it is not ``argv``."""
    failing_side: Side | None = None
    code: Code | None = None
    """What its failure means for a candidate, if that is more than that it failed."""
    flags: set[Flag] = field(default_factory=set)
    """What a reader of the result should know about a candidate that is kept."""
    tail: list[str] = field(default_factory=list)
    """The last lines of the log of a failed step."""
    detail: str = ""
    """The result text of a check."""
    passed_tests: int | None = None
    """How many tests passed in a check of another tree than the user's, None if it prints no such number."""
    outputs: dict[str, str] = field(default_factory=dict)
    identical: bool = False
    """Whether both sides executed the same files."""
    rebuilt: bool = False
    """Whether both sides are builds of their own of a native program, from two trees."""
    readings: dict[Side, list[Reading]] = field(default_factory=dict)
    """The readings of a profile by side."""
    found: StepFindings = NOTHING

    @property
    def blocks(self) -> bool:
        """Whether later steps must not run. A failed profile does not block them: it is not a precondition."""
        if self.status in (StepStatus.FAILED, StepStatus.TIMEOUT):
            return self.planned.role not in OPTIONAL_ROLES and not self.planned.step.continue_on_error
        return self.status is StepStatus.SKIPPED and self.blocked

    @property
    def satisfies(self) -> bool:
        """Whether steps that need this one may run. A failure with ``continue-on-error`` counts as done."""
        allowed = self.planned.step.continue_on_error and self.status in (StepStatus.FAILED, StepStatus.TIMEOUT)
        return self.status in (StepStatus.DONE, StepStatus.CACHED) or allowed


Perform = Callable[[Planned], StepRun]


class _StepThreads:
    """A pool of threads that perform steps, as many as were ever busy at once.

    Threads stay until the end, because a session keeps one spawner process for each thread.
    """

    def __init__(self, perform: Perform) -> None:
        self.busy = 0
        self._perform = perform
        self._threads: list[threading.Thread] = []
        self._todo: queue.SimpleQueue[Planned | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[StepRun | BaseException] = queue.SimpleQueue()

    def start(self, item: Planned) -> None:
        """Start a step in a thread."""
        if self.busy == len(self._threads):
            self._threads.append(threading.Thread(target=self._work))
            self._threads[-1].start()
        self._todo.put(item)
        self.busy += 1

    def ended(self) -> StepRun:
        """Wait for the next step to end and return it. Raises the exception of the step, if any."""
        outcome = self._done.get()
        self.busy -= 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def dismiss(self) -> None:
        """Let all threads finish their current step, and join them."""
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (item := self._todo.get()) is not None:
            try:
                self._done.put(self._perform(item))
            except BaseException as error:  # noqa: BLE001 (raised again in the iterating thread)
                self._done.put(error)


class Schedule:
    """Runs the selected steps of a plan. Only the iterating thread changes the state."""

    def __init__(
        self,
        plan: Plan,
        perform: Perform,
        allows: Condition,
        *,
        selected: Collection[str],
        jobs: int = 1,
        keep_going: bool = False,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._stop = stop
        self._perform, self._allows, self._keep_going, self._jobs = perform, allows, keep_going, jobs
        self._steps = [item for item in plan.steps if item.id in selected]
        self._index = {item.id: number for number, item in enumerate(self._steps)}
        self._waits_for = {item.id: self._before(item) for item in self._steps}
        self._dependents: dict[str, list[str]] = defaultdict(list)
        for name, before in self._waits_for.items():
            for other in before:
                self._dependents[other].append(name)
        self._ready = [self._index[name] for name, before in self._waits_for.items() if not before]
        self._finished: dict[str, StepRun] = {}
        self._first_failure: StepRun | None = None
        self._unable: StepRun | None = None
        """The setup step that exited with UNABLE: no step runs after it, whatever its ``if``."""

    def _before(self, item: Planned) -> set[str]:
        # A profiler without its own command runs that of the step it watches, so it must come after that step's build.
        watched = (item.watches,) if item.watches else ()
        return {name for name in (*item.needs, *item.after, *watched) if name in self._index}

    def __iter__(self) -> Iterator[StepRun]:
        """Yield each step as it ends. An exception of ``perform`` propagates after the running steps have ended."""
        heapq.heapify(self._ready)
        if self._jobs == 1:
            while self._ready:
                item = self._steps[heapq.heappop(self._ready)]
                yield self._finish(self._skipped(item) or self._perform(item))
            return
        yield from self._in_threads()

    def _in_threads(self) -> Iterator[StepRun]:
        threads = _StepThreads(self._perform)
        try:
            while self._ready or threads.busy:
                while self._ready and threads.busy < self._jobs:
                    planned = self._steps[self._ready[0]]
                    if planned.alone and threads.busy:
                        break
                    heapq.heappop(self._ready)
                    skipped = self._skipped(planned)
                    if skipped or planned.alone:
                        yield self._finish(skipped or self._perform(planned))
                    else:
                        threads.start(planned)
                if threads.busy:
                    yield self._finish(threads.ended())
        except BaseException:
            # Stop the children: `dismiss` waits for the threads, which wait for their children.
            self._stop()
            raise
        finally:
            threads.dismiss()

    def _skipped(self, planned: Planned) -> StepRun | None:
        """Return the outcome of a step that must not be performed, else None."""
        if self._unable:
            reason = f"`{self._unable.planned.id}` was skipped"
            return StepRun(planned, StepStatus.SKIPPED, reason, blocked=True)
        blocker = self._blocker(planned)
        try:
            allowed = self._allows(planned, bool(blocker))
        except ExpressionError as error:
            return StepRun(planned, StepStatus.FAILED, f"`if`: {error}", not_started=True)
        if not allowed:
            if blocker:
                return StepRun(planned, StepStatus.SKIPPED, blocker, blocked=True)
            return StepRun(planned, StepStatus.SKIPPED, f"`if: {planned.step.if_}` is false")
        return None

    def _blocker(self, planned: Planned) -> str:
        """Return why a step must not run unless its ``if`` overrides it; '' if nothing blocks it."""
        for name in (*planned.needs, *planned.after):
            run = self._finished.get(name)
            # With `keep_going`, a failed measurement or check blocks only steps that need it by name. Failed work, and
            # steps skipped because of it, block all steps after them, which depend on what was built.
            alone = run is not None and run.status is not StepStatus.SKIPPED and run.planned.role is not Role.WORK
            if self._keep_going and alone and name not in planned.needs:
                continue
            if run and (run.blocks or (name in planned.needs and not run.satisfies)):
                return run.reason if run.blocked else f"`{name}` {_ended(run)}"
        if self._first_failure and not self._keep_going:
            return f"stopped after `{self._first_failure.planned.id}` {_ended(self._first_failure)}"
        return ""

    def _finish(self, run: StepRun) -> StepRun:
        """Record a finished step and queue the steps that waited for it. State changes only here."""
        name = run.planned.id
        self._finished[name] = run
        if run.status is StepStatus.SKIPPED and run.exit_code == UNABLE:
            self._unable = run
        if run.blocks and run.status is not StepStatus.SKIPPED and self._first_failure is None:
            self._first_failure = run
        for other in self._dependents[name]:
            waits_for = self._waits_for[other]
            waits_for.discard(name)
            if not waits_for:
                heapq.heappush(self._ready, self._index[other])
        return run


def _ended(run: StepRun) -> str:
    return {StepStatus.SKIPPED: "was skipped", StepStatus.TIMEOUT: "ran into its time limit"}.get(run.status, "failed")
