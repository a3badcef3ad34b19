"""The calls of one profiler on one benchmark: one a side, or of a sampling one as many as its shares need.

The sides take turns, so that what the machine does meanwhile falls on both. Short programs are run several times within
one recording. A profiler that counts runs two numbers of a benchmark's iterations, where it can be made to run so many
by no clock: their difference has nothing of what comes before and after. Source of the numbers: a share of 5% of 2000
samples is known to half a percentage point.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.prepare import Ready, operations, ready
from perfflow.execute.schedule import StepRun
from perfflow.model.errors import ToolOutputError
from perfflow.model.later import dataclass
from perfflow.model.readings import Cost, Parsed, Side, Usage
from perfflow.plan.plan import Planned, has_command
from perfflow.session.attribution.function_costs import FunctionCosts
from perfflow.session.attribution.profiled import Choice, Subject, step_of
from perfflow.session.attribution.profiled_builds import ProfiledBuilds
from perfflow.session.evidence import Evidence, flatness
from perfflow.session.session import RunSession
from perfflow.store.folder import file_name
from perfflow.store.run_facts import Found
from perfflow.tools.adapter import Adapter, Call, Invocation, Profiler, Way

SAMPLES = 2000
"""Samples wanted of each side."""
PATIENCE = 20.0
"""Seconds of the program's own time for each side, within which they are taken."""
CALLS = 6
"""Calls of each side, where there is time: how they differ says what the samples' noise alone does not."""
TRACED = 10
"""Calls of a tracing profiler, whose times have no noise that can be reckoned."""
_FREQUENCIES = ((0.5, 4999), (10.0, 997), (math.inf, 197))
"""Samples per second by the program's seconds: odd ones, which fall in step with nothing."""
_OF_A_SUITE = 0.2
"""Seconds of a suite's process at least, when it runs one benchmark briefly."""
_MOST_RUNS = 200
"""Runs of the program in one recording, whose text must be read."""
_REPEATED = 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" || exit; n=$((n - 1)); done'
_REPEATING = ("/bin/sh", "-c", _REPEATED, "sh")


@dataclass(frozen=True)
class Effort:
    """How a benchmark is profiled: so many calls of a side, each with so many runs of the program, at a frequency."""

    calls: int
    runs: int
    frequency: int


_UNKNOWN = Profiler(way=Way.SAMPLED_TIME)
"""What holds of an adapter that does not say how it comes by its figures."""


def effort_for(tool: Adapter, seconds: float, frequency: int | None = None) -> Effort:
    """What a program of so many seconds needs under a profiler; ``frequency`` is the workflow's own, if it says one."""
    chosen = frequency or next(rate for limit, rate in _FREQUENCIES if seconds <= limit)
    profiler = tool.profiler or _UNKNOWN
    if profiler.way is Way.CALLS:
        return Effort(max(1, min(TRACED, int(PATIENCE / max(seconds, 1e-3)))), 1, chosen)
    calls = max(1, min(CALLS, int(PATIENCE / max(seconds, 1e-3))))
    wanted = SAMPLES / calls / max(seconds * chosen, 1e-9)
    affordable = PATIENCE / calls / max(seconds, 1e-3)
    return Effort(calls, max(1, math.ceil(min(wanted, affordable))) if profiler.repeats else 1, chosen)


def _difference(few: Parsed, many: Parsed) -> Iterator[Cost]:
    """What functions cost in the iterations that the second has more."""
    less: dict[tuple[str, str, str], float] = {}
    for cost in few.costs:
        key = (cost.metric, cost.function, cost.file)
        less[key] = less.get(key, 0.0) + cost.count
    for cost in many.costs:
        left = cost.count - less.pop((cost.metric, cost.function, cost.file), 0.0)
        if left > 0:
            yield replace(cost, count=left)


class ProfilerCalls:
    """Profiles one benchmark and keeps what is evidence of it."""

    def __init__(
        self,
        session: RunSession,
        planned: Planned,
        subject: Subject,
        choice: Choice,
        run: StepRun,
        builds: ProfiledBuilds,
    ) -> None:
        self._session, self._run, self._subject, self._tool = session, run, subject, choice.tool
        self._step = step_of(planned, subject, choice.tool)
        self._declared, self._builds = planned, builds
        self._profiler = choice.tool.profiler or _UNKNOWN
        counts = operations(session.context, subject.source)
        self.costs = FunctionCosts(session, subject.benchmark, choice.tool, counts[-1] if counts else None, choice.note)
        self.evidence = Evidence(session, self._step, subject.benchmark)
        # Where one step profiles several benchmarks, each has a folder; so has a tool that stands in for another one,
        # since it may have had a turn of its own.
        name = f"{subject.benchmark} {choice.tool.name}" + (f" {subject.metric}" if choice.note else "")
        self._folder = session.folder.step(planned.id) / file_name(name)

    def profile(self, seconds: float) -> None:
        """Profile every side of a program that takes so many ``seconds``. Raises Failure and PreparationError."""
        sides = self._session.sides_of(self._subject.source)
        if self._profiler.way is Way.COUNTS and self._count(sides, seconds):
            return
        # What a suite measures is one iteration; its process goes on until it has enough of them.
        seconds = max(seconds, _OF_A_SUITE) if self._subject.only else seconds
        options = self._declared.step.with_
        own = next((int(options[key]) for key in ("frequency", "rate") if str(options.get(key, "")).isdecimal()), None)
        # A counting profiler says the same every time, and of one program, or of two that differ as a whole, nothing is
        # told function by function.
        many = not self._tool.deterministic and bool(self._session.contexts)
        effort = effort_for(self._tool, seconds, own) if many else Effort(1, 1, own or 0)
        taken: dict[Side, list[str]] = {side: [] for side in sides}
        last: dict[Side, tuple[Ready, Parsed]] = {}
        number, ends = 0, time.monotonic() + PATIENCE * len(sides)
        while number < effort.calls or (many and self._wants_more(sides) and time.monotonic() < ends):
            for side in sides if number % 2 == 0 else sides[::-1]:
                prepared, _ = self._prepared(side, effort)
                invoked = invoke.run(self._session.spawner(), prepared, self._folder / side.value)
                self.costs.add(prepared, invoked.parsed)
                last[side] = (prepared, invoked.parsed)
                recording = self._folder / side.value / self._profiler.recording
                if effort.calls > 1 and recording.is_file():
                    taken[side].append(recording.read_text(encoding="utf-8", errors="replace"))
            number += 1
            effort = replace(effort, runs=self._runs(sides, effort, number))
        for side, (prepared, parsed) in last.items():
            self._keep(prepared, self._together(prepared, parsed, taken[side]), sides)

    def _count(self, sides: Sequence[Side], seconds: float) -> bool:
        """Count what an iteration costs; False where the sides are not known to run equally many."""
        numbers = self._iteration_counts(sides, seconds)
        if not numbers:
            return False
        last: dict[Side, tuple[Ready, Parsed]] = {}
        found: dict[Side, tuple[Parsed, str]] = {}
        for side in sides:
            taken, iterated = [], []
            for number in numbers:
                prepared, call = self._prepared(side, Effort(1, 1, 0), number)
                taken.append(invoke.run(self._session.spawner(), prepared, self._folder / side.value).parsed)
                iterated.append(self._source_tool.iterated(call) if call else "")
            last[side] = (prepared, taken[-1])
            found[side] = (replace(taken[-1], costs=tuple(_difference(*taken))), " ".join(iterated))
        if len({pattern for _, pattern in found.values()}) > 1:
            self._say(
                "the sides read the clock differently often, so what is counted may be of fewer iterations on one"
            )
            return False
        self.costs.ops = numbers[-1] - numbers[0]
        self._say(f"counted over {self.costs.ops:,} iterations, those of {numbers[-1]:,} less {numbers[0]:,}")
        for side, (prepared, parsed) in last.items():
            self.costs.add(prepared, found[side][0])
            # What is said of the sums of a whole process does not hold of a difference.
            self._keep(prepared, replace(parsed, warnings=()), sides)
        return True

    def _iteration_counts(self, sides: Sequence[Side], seconds: float) -> tuple[int, ...]:
        """Two numbers of iterations that every side can be made to run; () where one cannot."""
        found = {self._numbers(side, seconds) for side in sides}
        return found.pop() if len(found) == 1 else ()

    def _numbers(self, side: Side, seconds: float) -> tuple[int, ...]:
        call = self._suite_call(side, self._folder / side.value)
        return self._source_tool.iteration_counts(call, seconds) if call else ()

    def _say(self, text: str) -> None:
        self._run.warnings.append(f"{self._subject.benchmark}: {text}")

    @property
    def _source_tool(self) -> Adapter:
        return self._subject.source.tool or self._tool

    @property
    def _is_sampling(self) -> bool:
        """Whether what functions cost are numbers of samples."""
        return self._profiler.way is Way.SAMPLES

    def _wants_more(self, sides: Sequence[Side]) -> bool:
        """Whether a side has too few samples, as where the program had to wait for a core while it was timed."""
        return self._is_sampling and min(self.costs.samples(side) for side in sides) < SAMPLES

    def _runs(self, sides: Sequence[Side], effort: Effort, done: int) -> int:
        """Runs of the program in each of the calls to come, by how many samples those so far gave."""
        if not self._profiler.repeats or not self._wants_more(sides):
            return effort.runs
        have = min(self.costs.samples(side) for side in sides)
        missing = (SAMPLES - have) / max(1, effort.calls - done)
        return max(1, min(_MOST_RUNS, math.ceil(effort.runs * missing / max(1.0, have / done))))

    def _prepared(self, side: Side, effort: Effort, iterations: int = 0) -> tuple[Ready, Call | None]:
        """What the profiler runs of a side, and the suite's call in it."""
        folder = self._folder / side.value
        folder.mkdir(parents=True, exist_ok=True)
        with_ = dict(self._declared.step.with_)
        fields = self._tool.options.model_fields
        for key in ("frequency", "rate"):
            if key in fields and effort.frequency:
                with_.setdefault(key, min(effort.frequency, 1000 if key == "rate" else effort.frequency))
        step = self._step.step.model_copy(update={"with_": with_, "uses": self._tool.name})
        prepared = ready(self._session.tree_context_of(side), replace(self._step, step=step), side, folder)
        suite = self._suite_call(side, folder, iterations)
        alone = self._alone(side, folder, suite)
        command = alone.argv if alone else prepared.argv
        if alone:
            prepared = replace(prepared, env={**prepared.env, **alone.env}, cwd=prepared.cwd / alone.cwd)
        if effort.runs > 1:
            command = (*_REPEATING, str(effort.runs), *command)
        call = replace(prepared.call, command=tuple(command)) if prepared.call else None
        prepared = replace(prepared, call=call, argv=tuple(command))
        if not self._run.argv:
            self._run.argv = list(prepared.shown)
        self._run.log = str((folder / "stderr").relative_to(self._session.folder.path))
        return prepared, suite

    def _suite_call(self, side: Side, folder: Path, iterations: int = 0) -> Call | None:
        """The call that runs the benchmark alone, or a suite as a whole where it cannot; None where a command is run.

        Raises Failure where it was not built.
        """
        source = self._subject.source
        built = bool(source.tool and source.tool.is_built_first)
        if has_command(source.step) or not (self._subject.only or built):
            return None
        call = ready(self._session.tree_context_of(side), source, side, folder, only=self._subject.only).call
        kept = self._builds.place(source, side) if built else None
        return replace(call, kept=kept, iterations=iterations) if call else None

    def _alone(self, side: Side, folder: Path, call: Call | None) -> Invocation | None:
        """How a suite runs the benchmark, as it was built for that; None for a step that says its command."""
        if call is None:
            return None
        source = self._subject.source
        prepared = replace(
            ready(self._session.tree_context_of(side), source, side, folder, only=self._subject.only), call=call
        )
        try:
            first = prepared.invocations()[0]
        except ToolOutputError as error:
            raise invoke.Failure(str(error)) from error
        return replace(first, env={**prepared.env, **first.env}, cwd=str(prepared.cwd / first.cwd))

    def _together(self, prepared: Ready, parsed: Parsed, texts: Sequence[str]) -> Parsed:
        """What all recordings of a side say; where they cannot be joined, the last call stands for them."""
        if len(texts) < 2 or prepared.tool is None or prepared.call is None:
            return parsed
        whole = prepared.call.folder / self._profiler.recording
        whole.write_text("\n".join(texts), encoding="utf-8")
        return prepared.tool.parse(prepared.call, Usage(0.0))

    def _keep(self, prepared: Ready, parsed: Parsed, sides: Sequence[Side]) -> None:
        self.evidence.add(prepared, parsed)
        said = [*parsed.warnings, *flatness(parsed)]
        if self._is_sampling and len(sides) == 2:
            said.append(f"{self.costs.samples(prepared.side):,.0f} samples")
        self._run.warnings += [f"{self._subject.benchmark}, {prepared.side.value}: {text}" for text in said]

    def found(self) -> Found:
        """What is stored of the step: profiles, hotspots, and what functions cost on both sides."""
        return replace(self.evidence.found(), costs=self.costs.both_sides())
