"""Measuring steps: fresh processes of both sides in pairs of random order. Each round is stored at once as an event.

- ``Bench`` runs one measuring step.
- ``Paces`` keeps the durations of the benchmarks of a step, by which short processes of a suite set their number of
  samples.
- ``StepSuite`` has the names that a step gives to the benchmarks of its tool.
- ``benchmarks_of`` is for ``variants``: two benchmarks of one suite as the two sides of a comparison, measured in
  pairs. If the suite can run chosen benchmarks, each side of a pair is a separate process, in random order; one process
  measures its variants together where the tool can. Otherwise one process gives both sides of a pair in the suite's own
  order, with a warning (``FromOneProcess``).
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from threading import get_ident
from time import monotonic
from typing import Any

from perfflow.execute import invoke
from perfflow.execute.context import variables_of
from perfflow.execute.invoke import Failure, Invoked, OutOfTimeFailure, Written, allowed_to_run, is_binary, written
from perfflow.execute.prepare import (
    PreparationError,
    ReadyProcess,
    first_count,
    of_several,
    operations,
    ready,
    rendered,
    whole,
)
from perfflow.execute.schedule import StepRun
from perfflow.execute.turns import Turns
from perfflow.machine.noise import NoiseClass, as_json, describe
from perfflow.model.errors import ToolOutputError
from perfflow.model.judging import Code, Flag
from perfflow.model.readings import ONE_THREAD, Design, Reading, Side
from perfflow.model.secrets import masked
from perfflow.model.units import duration
from perfflow.plan.groups import Benchmarks
from perfflow.plan.plan import Planned, layouts_asked, uses_pair_seed
from perfflow.sampling.pairs import (
    BenchmarkToSample,
    LostError,
    PairScheduler,
    Request,
    SamplingProgress,
    SideBySide,
    Take,
    TimeUpError,
)
from perfflow.sampling.sampling import StepSampling
from perfflow.sampling.stop_rule import BUDGET, StopRule
from perfflow.session import outside_clock
from perfflow.session.brief_runs import BriefRuns
from perfflow.session.code_layouts.sources import DrawnLayouts
from perfflow.session.counted_suite import NotFixedError, counted_suite
from perfflow.session.evidence import StepEvidence, per_operation, with_service_cpu, with_work
from perfflow.session.known_names import NothingChosenError, SuiteIds, benchmark_name, has_unknown_names, named
from perfflow.session.list_benchmarks import learn
from perfflow.session.missing_side import missing_side
from perfflow.session.own_code import OwnCode, UnreadOutput, runs_python, with_random_state
from perfflow.session.progress import Sampled
from perfflow.session.session import RunSession
from perfflow.session.suite_clock import SuiteClock
from perfflow.session.timed_outputs import VARIES, TimedOutputs
from perfflow.store.record import reading_from_json
from perfflow.tools.adapter import Effort, Pace, pace_of
from perfflow.tools.parsed_output import PatternTimeoutError, time_left
from perfflow.tools.regular_files import TooLargeError, read
from perfflow.workflow.layout_checks import OFF
from perfflow.workflow.model import Parse, Variants
from perfflow.workflow.roles import figures_in

WARMUP = 1
WAITED_FOR_OTHER = 1.5
"""Elapsed time without core waits, as a multiple of CPU time, from which a benchmark that only computes when it runs
alone has waited for the process of the other side, perhaps for a lock."""
STOPPED = "perfflow was stopped (^Z) during a sample, so the sample was repeated"
MOST_PARSED = 64 * 2**20
"""Most bytes of output, or of a file, that ``parse`` reads."""
_LONGEST_OBSERVED = 5.0
"""Seconds: a program that takes longer is not run once more to see whether its processes take turns."""
OVER_LAYOUTS = 0.3
"""Share of the time that is kept to measure what seems changed over code layouts."""
FEWEST_OUTPUTS = 44
"""Outputs of a candidate to compare before it is kept: one that is wrong in a tenth of its runs passes 1% of times."""
LONGEST_CHECK = 20.0
"""Seconds for further runs whose output is compared."""
_BEYOND_PAIRS = 1 << 20
"""Number of the first of these runs, beyond those of pairs."""
HOSTILE_FACTOR = 2
"""Factor of the default budget on a hostile machine."""


class Bench:
    """One measuring step: its benchmarks, and the processes that measure them on request."""

    def __init__(self, session: RunSession, planned: Planned, run: StepRun) -> None:
        self.session, self.planned, self.run = session, planned, run
        self.context = variables_of(session.context, planned)
        self.counted = counted_suite(session, planned, run)
        """The suite whose benchmarks the step counts, if its tool does not run a command of its own."""
        self._source = self.counted.source if self.counted else planned
        self.missing = missing_side(session, self._source)
        self.failures: dict[str, Failure] = {}
        """Failures by benchmark of a suite, for those that could not be measured to the end."""
        self._told_left = False
        self.out_of_time = False
        """Whether a process was ended, or not started, because the time of the whole command was over."""
        sides = session.sides_of(planned)
        self.able = tuple(side for side in sides if side is not self.missing)
        """The sides whose tree contains the program that this step measures."""
        self.sides = sides
        if self.counted:
            self.counted.build(self.able)
        else:
            session.build_first(planned, run, self.able)
        self.deterministic = bool(planned.tool and planned.tool.deterministic)
        # A deterministic tool needs no warm-up: its counts do not depend on caches, and it is slow.
        least = 0 if self.deterministic else WARMUP
        self._warmup = _count("warmup", planned.step.warmup, self.context, least, least=0)
        self.warnings: dict[str, None] = {}
        self.evidence = StepEvidence(session, planned)
        self.unread = UnreadOutput()
        self._clock = SuiteClock(session)
        watched = session.differ and planned.tool and planned.tool.passes_stdout and VARIES not in planned.step.allow
        self._outputs = TimedOutputs(planned, run, session.differ) if session.differ and watched else None
        if session.differ and not watched and not (planned.tool and planned.tool.is_suite):
            run.flags.add(Flag.OUTPUT_UNCHECKED)
        self._draws_seed = uses_pair_seed(session.context.plan, planned)
        self._singles: dict[Side, dict[int, int]] = {}
        self._times_itself = bool(session.differ and planned.tool and planned.tool.is_suite)
        self.brief_runs = BriefRuns()
        self.shell_starts: list[float] = []
        """Seconds that bash took to start, of each timed process that it ran."""
        self._parse = planned.step.parse if planned.tool is None else None
        self.drawn: DrawnLayouts | None = None
        """Code layouts that replace the built executables, while layouts are measured."""
        self._prepared: dict[tuple[Side, int | None, tuple[str, ...], Pace | None], ReadyProcess] = {}
        self.paces = Paces()
        self._turns: dict[Side, float | None] = {}
        """For each side with threads or children, the share of the time in which one of them could run, if known."""
        self._elsewhere = 0
        """Number of benchmarks of the suite that other machines measure."""
        if not self.deterministic and session.check_noise():
            run.warnings += hostility(session)
        self.budget = self._budget_seconds()
        self.start_over(session.context.seed)

    def _budget_seconds(self) -> float:
        """Return the budget (s) of one benchmark.

        Without one in the workflow, it is what the step has of the time of a gate, else BUDGET, or more on a hostile
        machine.
        """
        if self.planned.step.budget:
            return duration(str(rendered(self.planned.step.budget, self.context)))
        if self.session.budget.whole:
            return math.inf
        hostile = self.session.noise is not None and self.session.noise.kind is NoiseClass.HOSTILE
        return BUDGET * HOSTILE_FACTOR if hostile else BUDGET

    def start_over(self, seed: int) -> None:
        """Start a separate comparison with another random order and no readings."""
        self._own_code = OwnCode(self.session, self.run)
        criteria, goal = self.session.context.plan.criteria, self.session.goal
        stop_rule = StopRule(
            criteria,
            self.planned,
            self.budget,
            lambda: self.identical,
            goal=goal,
            repeats=self.deterministic,
            trees=self.session.tree_facts,
        )
        self.sampling = StepSampling(
            self.planned.id,
            PairScheduler(seed, warmup=self._warmup, say=self._say, side_by_side=self._side_by_side()),
            stop_rule,
            self.session.folder.append,
            self.warnings,
            lambda taken: self.session.progress(Sampled(self.planned, self._shown(taken))),
        )

    def _side_by_side(self) -> SideBySide | None:
        """Return how to run both processes of a pair at the same time; None if they could write the same files.

        A self-test has one tree. There both sides run the same program, which is as built unless layouts are drawn.
        """
        apart = len({context.root for context in self.session.contexts.values()}) > 1
        if not (apart or self.session.plants) or self.planned.tool is None or self.deterministic or self.counted:
            return None

        def can(item: BenchmarkToSample) -> bool:
            return self._clock.computes(item.own_id) and (apart or self.drawn is None)

        return SideBySide(sorted(os.sched_getaffinity(0)), can, self.session.at_once)

    def _shown(self, taken: SamplingProgress) -> SamplingProgress:
        """Return the sample with secrets masked: in `perfflow compare`, a benchmark's name is its command."""
        return replace(taken, benchmark=masked(taken.benchmark, self.session.context.secrets))

    def measure(self, benchmarks: Sequence[BenchmarkToSample], ends: float = math.inf) -> None:
        """Sample all benchmarks until each is decided, or as many times as the workflow specifies.

        ``ends`` is the time (monotonic, s) when the step's share of the run's budget is spent.
        """
        if self.deterministic and not self.counted:
            self._check_untimed()
        benchmark_budget = self.budget if self.planned.step.budget else math.inf
        gone = [item for item in benchmarks if item.one_sided and item.sides == (Side.BASELINE,)]
        # For a benchmark that head removed, one run is enough to report its old value.
        self.sampling.take_rounds(gone, Design.FIXED, 1, ends)
        benchmarks = [item for item in benchmarks if item not in gone]
        if self.planned.step.runs is not None:
            self.sampling.stop_rule.start(benchmarks, ends)
            rounds = _count("runs", self.planned.step.runs, self.context, 1, least=1)
            self.sampling.take_rounds(benchmarks, Design.FIXED, rounds, ends)
        else:
            others = 0 if self.deterministic else self.session.compared_steps - 1 + self._elsewhere
            self.sampling.take_until_decided(
                benchmarks,
                ends,
                benchmark_budget,
                others=others,
                coarsely=self.compares_trees,
                kept=OVER_LAYOUTS if self.has_layouts else 0.0,
            )
        if len(self.sides) == 2 and not self.deterministic:
            self.sampling.confirm(benchmarks, ends, self.planned.step.confirm or 0)
        reached = [item for item in benchmarks if self.sampling.stop_rule.rests_on_layout(item)]
        if self._times_itself:
            self._check_clock(reached)
        if self._outputs:
            self._check_more_outputs(self._outputs, reached)

    def raise_failures(self) -> None:
        """Raise the failures of benchmarks of a suite that could not be measured, all in one. Raises Failure."""
        criteria = self.session.context.plan.criteria
        for name in [name for name in self.failures if criteria.ignores(name)]:
            self.run.warnings.append(f"{name} is ignored, and failed: {self.failures.pop(name).reason}")
        if self.failures:
            first = next(iter(self.failures.values()))
            reason = "; ".join(f"{name}: {failure.reason}" for name, failure in self.failures.items())
            raise Failure(reason, timeout=first.timeout, exit_code=first.exit_code, log=first.log)

    @property
    def layouts(self) -> int | str:
        """The number of code layouts to measure, AUTO or OFF."""
        return layouts_asked(self.planned, in_trees=self.compares_trees)

    @property
    def has_layouts(self) -> bool:
        """Whether changes may be measured over fresh code layouts; Python is not linked again."""
        return self.layouts != OFF and not self.identical and not self._is_python

    @property
    def compares_trees(self) -> bool:
        """Whether its sides are two trees with separate builds."""
        return bool(self.session.contexts)

    def _with_random_state(self, prepared: ReadyProcess, request: Request) -> ReadyProcess:
        """Return the call of a request, with this pair's code layout, hash seed and environment size."""
        if self.drawn:
            self.drawn.put(prepared.side, request.layout)
        if self.deterministic or not runs_python(prepared):
            return prepared
        only = request.ids[0] if len(request.ids) == 1 else ""
        seed = f"{self.session.context.seed}\0{self.planned.id}\0{only}\0{request.number}"
        return with_random_state(prepared, seed)

    @property
    def rebuilt(self) -> bool:
        """Whether its sides are two builds of a native program, which differ in code layout whatever changed."""
        if not self.compares_trees or self._source.step.variants:
            return False
        native = [[digest for path, digest in files if is_binary(path)] for files in self._executed.values()]
        return len(native) == 2 and native[0] != native[1]

    @property
    def files(self) -> Mapping[str, list[str]]:
        """SHA-256 hashes of the files that each side executes. Raises PreparationError."""
        return {side: [digest for _, digest in files] for side, files in self._executed.items()}

    @cached_property
    def _first_calls(self) -> Mapping[Side, ReadyProcess]:
        folder = self.session.folder.step(self.planned.id)
        ops = first_count(self.session.context, self.planned)
        return {
            side: self.counted.prepared_source(side)
            if self.counted
            else self._direct(ready(self.session.tree_context_of(side), self.planned, side, folder / side.value, ops))
            for side in self.able
        }

    @cached_property
    def _executed(self) -> Mapping[str, list[tuple[Path, str]]]:
        return {side.value: executed_files(item) for side, item in self._first_calls.items()}

    @cached_property
    def _is_python(self) -> bool:
        return bool(self._first_calls) and all(map(runs_python, self._first_calls.values()))

    @property
    def identical(self) -> bool:
        """Whether both sides execute the same files and load the same code."""
        if self._source.step.variants:
            return False
        return bool(next(iter(self.files.values()), [])) and self.same_code

    @property
    def same_code(self) -> bool:
        """Whether all known code of both sides is the same. False if no code is known."""
        hashes, loaded = list(self.files.values()), self._own_code.same()
        known = bool(hashes and hashes[0]) or loaded is not None
        return known and len(hashes) == 2 and hashes[0] == hashes[1] and loaded is not False

    def note_files(self) -> None:
        """Store the hashes of the files to measure. Raises PreparationError if a resumed run has other files."""
        before = self.session.earlier.files_of(self.planned.id)
        if before and before != self.files:
            raise PreparationError("the measured files changed since the run was interrupted; start a new run")
        if not before:
            event = {"event": "measuring", "step": self.planned.id, "files": dict(self.files)}
            self.session.folder.append(event)

    def benchmarks(self) -> list[BenchmarkToSample]:
        """Return the benchmarks of the suite if it can run each alone, else one for the step."""
        source = self._source
        take: Take = self._count if self.counted else self.sample
        if source.step.variants:
            ids, name = self.session.benchmarks(source), source.benchmark
            together = self._together(tuple(Side))
            benchmarks = benchmarks_of(
                source.step.variants, StepSuite(name, ids, source.pattern, take, self._say, together)
            )
            if not ids:
                return [replace(item, take=self._of_chosen(item.take)) for item in benchmarks]
            chosen = self._counted([item.name for item in benchmarks])
            return [item for item in benchmarks if self.session.names.is_chosen(item.name) and item.name in chosen]
        as_a_whole = source.step.runs is not None and not self.session.names.chosen and not self.counted
        listed = {} if as_a_whole else self._listed()
        part = self.session.parts.get(source.id)
        if part:
            of_part = self._of_part(part, listed)
            self._elsewhere, listed = len(listed) - len(of_part), of_part
            if not of_part and (self.session.names.chosen or part.turns > 1):
                raise NothingChosenError
        if not listed:
            self.session.names.require_some(self.planned.id)
        if not self.counted and not listed and not part:
            take = self._of_chosen(take) if has_unknown_names(self.planned) else take
            return [BenchmarkToSample(source.benchmark, self.able, take, self.able != self.sides)]
        names = {own_id: benchmark_name(source, own_id) for own_id in listed}
        chosen = self._counted(names.values())
        return [
            BenchmarkToSample(names[own_id], having, take, having != self.sides, own_id, self._together(having))
            for own_id, having in listed.items()
            if names[own_id] in chosen
        ]

    def _of_part(self, part: Benchmarks, listed: Mapping[str, tuple[Side, ...]]) -> dict[str, tuple[Side, ...]]:
        """Return the benchmarks that this machine measures of a suite, and store the names of all for the merge."""
        names = {name: benchmark_name(self._source, name) for name in listed}
        own = set(part.among(names.values()))
        if part.turns > 1:
            event = {"event": "divided", "step": self._source.id, "names": sorted(names.values())}
            self.session.folder.append(event)
        return {name: having for name, having in listed.items() if names[name] in own}

    def _together(self, sides: Sequence[Side]) -> float:
        """Return the longest iteration (s) with which a benchmark shares a process with others of the suite, or 0."""
        tool = self.planned.tool
        if tool is None or self.counted:
            return 0.0
        if math.isinf(tool.suite.together):
            return tool.suite.together
        if len(sides) < 2:
            return 0.0
        if self.planned.id in self.session.disturbed and tool.suite.together and self.planned.step.rounds is None:
            self._say(
                "`perfflow calibrate` found that its benchmarks disturb each other, so each runs in its own process"
            )
            return 0.0
        return 0.0 if self.planned.step.rounds == "benchmark" else tool.suite.together

    def _counted(self, benchmarks: Collection[str]) -> Collection[str]:
        return self.counted.counted(benchmarks) if self.counted else benchmarks

    def _listed(self) -> dict[str, tuple[Side, ...]]:
        """Return the ids of a suite's benchmarks with the sides that have each; the trees of a gate may differ."""
        if not self.session.contexts:
            return dict.fromkeys(self.session.benchmarks(self._source), self.sides)
        having: dict[str, list[Side]] = {}
        for side in self.able:
            for name in self.session.benchmarks(self._source, side):
                having.setdefault(name, []).append(side)
        return {name: tuple(sides) for name, sides in having.items()}

    def _of_chosen(self, take: Take) -> Take:
        """Return a function that runs a suite as a whole, and returns the readings of the chosen benchmarks."""
        names: dict[Side, list[str]] = {}

        def taken(request: Request) -> tuple[Reading, ...]:
            readings = take(request)
            names.setdefault(request.side, [item.benchmark for item in readings])
            if request.warming and len(names) == len(self.able):
                for text in learn(self.session, self.planned, dict.fromkeys(chain(*names.values()))):
                    self._say(text)
            return tuple(item for item in readings if self.session.names.is_chosen(item.benchmark))

        return taken

    def _say(self, text: str) -> None:
        self.warnings[text] = None

    def _count(self, request: Request) -> tuple[Reading, ...]:
        """Count one iteration of a benchmark of a suite. Raises Failure, or LostError if only this benchmark fails."""
        if self.counted is None:
            return ()
        only = request.benchmarks[0].own_id
        try:
            return self.counted.sample(only, request.side, self.able)
        except NotFixedError as failure:
            if self.planned.benchmark == (name := benchmark_name(self._source, only)):
                self._blame(failure, request)
            # Of many benchmarks, those that can be counted are; a target on another one is not measured.
            self._say(f"{name} is not counted: {failure.reason}")
            raise LostError from failure
        except OutOfTimeFailure as failure:
            self.out_of_time = True
            raise TimeUpError from failure
        except Failure as failure:
            self._blame(failure, request)
            raise

    def sample(self, request: Request) -> tuple[Reading, ...]:
        """Take one sample: one process, or two with different ``ops`` whose difference cancels the fixed part.

        Warm-up processes are checked for code of other trees, and the output of each side's first one is read. Raises
        Failure, or LostError if only the benchmarks of the request fail.
        """
        side = request.side
        counts = operations(self.session.tree_context_of(side), self.planned)
        folder = self.session.folder_of(self.planned, side)
        while True:
            figures_by_count, paused, read = [], False, None
            try:
                for count in counts or (None,):
                    before = written(self.session.parsed_file(self.planned, side)) if self._parse else None
                    prepared = self._ready(request, count, folder)
                    read = self.unread.with_reader(prepared) if request.warming else None
                    checked = self._own_code.checked(read or prepared) if request.warming else nullcontext(prepared)
                    served = self._service_clock(request)
                    with checked as started:
                        invoked = invoke.run(self.session.spawner(), started, folder)
                    self._note_run(prepared, read, invoked, folder, warming=request.warming)
                    self._compare_output(request, count, prepared, folder)
                    figures = with_service_cpu(self._figures(prepared, invoked, before, request), served())
                    figures_by_count.append(figures if request.core is None else _without_core_waits(figures))
                    paused = paused or invoked.paused
            except OutOfTimeFailure as failure:
                self.out_of_time = True
                raise TimeUpError from failure
            except Failure as failure:
                if read and failure.timeout:
                    # It may finish in time if its output is not read.
                    self.unread.give_up(read)
                    continue
                if request.core is not None:
                    # It is judged by how it fails while the other side does not run.
                    raise LostError from failure
                # Whichever process ended last, it is the candidate's output that is wrong.
                at_fault = Side.CANDIDATE if failure.code in (Code.WRONG_OUTPUT, Code.OUTPUT_VARIES) else side
                self.run.failing, self.run.failing_side = list(prepared.shown), at_fault
                self._blame(failure, replace(request, side=at_fault))
                raise
            self.evidence.add(prepared, invoked.parsed)
            if not paused or self.deterministic:
                figures = per_operation(figures_by_count, counts)
                if self.deterministic:
                    figures = tuple(replace(figure, exact=True) for figure in figures)
                return with_work(figures, self.planned.step.work, self.context)
            self.warnings[STOPPED] = None

    def _ready(self, request: Request, count: int | None, folder: Path) -> ReadyProcess:
        """Return the call of a request with all that is special for it: its input, random state, output and core."""
        prepared = self._with_random_state(self._rendered(request, count), request)
        prepared = self._outputs.read(prepared, folder) if self._outputs else prepared
        prepared = prepared if request.warming else self._clock.timed(prepared)
        if prepared.call and request.core is not None:
            prepared = replace(prepared, call=replace(prepared.call, core=request.core))
        return prepared

    def _compare_output(self, request: Request, count: int | None, prepared: ReadyProcess, folder: Path) -> None:
        """Compare what a process printed with what that of the other side did. Raises Failure."""
        if self._outputs:
            # In a folder of its own, since the next process of this side may run at the same time.
            apart = self.session.folder.step(self.planned.id) / "again" / str(get_ident())
            again = partial(self._once_more, self._outputs.read(prepared, apart), apart)
            # Without drawn inputs all processes have the same one.
            number = 2 * self._input_of(request) + request.warming if self._draws_seed else 0
            self._outputs.note(request.side, (number, count or 0), folder, again)

    def _once_more(self, prepared: ReadyProcess, folder: Path) -> Path:
        """Run a process once more, with its output in a folder, and return the folder. Raises Failure."""
        folder.mkdir(parents=True, exist_ok=True)
        invoke.run(self.session.spawner(), prepared, folder)
        return folder

    def _check_more_outputs(self, outputs: TimedOutputs, benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Run what seems good enough until enough of its outputs were compared: one may be wrong in a few runs only."""
        ends = monotonic() + LONGEST_CHECK
        for item in benchmarks:
            sides = self.able if self._draws_seed else (Side.CANDIDATE,)
            for number in range(_BEYOND_PAIRS, _BEYOND_PAIRS + FEWEST_OUTPUTS - outputs.compared):
                for side in sides if monotonic() < ends else ():
                    self.sample(Request((item,), side, number))

    def _check_clock(self, benchmarks: Sequence[BenchmarkToSample]) -> None:
        """Check what seems good enough, and times itself, by the clock of its process. Raises Failure."""
        ends = monotonic() + outside_clock.LONGEST
        for item in benchmarks:
            if not self._is_saved(item, ends):
                self.run.flags.add(Flag.OWN_CLOCK)

    def _is_saved(self, item: BenchmarkToSample, ends: float) -> bool:
        """Return whether full runs show that a benchmark saves what it claims; False if they show nothing."""
        processes: dict[Side, list[Invoked]] = {side: [] for side in self.able}
        for number in range(1, outside_clock.LOOKS[-1] + 1):
            if number > outside_clock.LOOKS[0] and monotonic() > ends:
                return False
            for side in self.able:
                folder = self.session.folder_of(self.planned, side)
                prepared = self._ready(Request((item,), side, _BEYOND_PAIRS), None, folder)
                limit = outside_clock.limit_of(processes[Side.BASELINE])
                if prepared.call:
                    call = replace(prepared.call, effort=Effort.NORMAL, timeout=limit)
                    prepared = replace(prepared, timeout=limit, call=call)
                try:
                    processes[side].append(invoke.run(self.session.spawner(), prepared, folder))
                except Failure as failure:
                    if not failure.timeout or side is Side.BASELINE:
                        return False
                    raise outside_clock.too_slow(processes[Side.BASELINE]) from failure
            if number in outside_clock.LOOKS and (found := outside_clock.is_saved(processes)) is not False:
                return bool(found)
        return False

    def _service_clock(self, request: Request) -> Callable[[], float]:
        """Return a function that returns the CPU time (s) since now of the services that a load generator uses.

        It is 0 without services, and for a suite, whose benchmarks are what is measured.
        """
        if request.ids or self.counted:
            return lambda: 0.0
        services, context = self.session.services, self.session.tree_context_of(request.side)
        before = services.cpu_time(context, self.planned)
        return lambda: services.cpu_time(context, self.planned) - before

    def _figures(
        self, prepared: ReadyProcess, invoked: Invoked, before: Written, request: Request
    ) -> tuple[Reading, ...]:
        """Return the readings of one process. ``before``: earlier state of the file that ``parse`` reads."""
        readings, ids = invoked.parsed.readings, request.ids
        turns = self._turns.get(prepared.side)
        if turns is not None:
            readings += (Reading("turns", turns),)
        folder = self.session.folder.step(self.planned.id)
        if self._parse:
            left = time_left(prepared.timeout, invoked.usage.wall)
            readings = read_figures(self._parse, folder / "stdout", prepared.cwd, before, left)
        if ids:
            readings = tuple(reading for reading in readings if reading.benchmark in ids)
            if len(ids) == 1 and not readings:
                raise Failure(f"the suite lists {ids[0]!r} but does not report it when it runs alone")
        if request.warming:
            for own_id in ids or ("",):
                readings_of_id = (item for item in readings if not ids or item.benchmark == own_id)
                self.paces.notice(benchmark_name(self.planned, own_id), readings_of_id)
        # A benchmark that fails among others, or side by side, runs alone next, and is judged by that.
        for name, reason in invoked.parsed.failed.items() if len(ids) < 2 and request.core is None else ():
            log = folder / prepared.side.value / "stderr"
            failure = Failure(f"{self.session.where(prepared.side)}{reason}", log=log)
            self.failures.setdefault(benchmark_name(self.planned, name), failure)
        self.warnings.update(dict.fromkeys(invoked.parsed.warnings))
        if invoked.left and not self._told_left:
            self._told_left = True
            self._say(allowed_to_run(self.planned, invoked.left))
        return named(self.planned, readings)

    def _blame(self, failure: Failure, request: Request) -> None:
        """Name the side and code layout in the failure. Raises LostError if other benchmarks can still be measured."""
        layout = f"with code layout {request.layout}: " if request.layout else ""
        failure.reason = f"{self.session.where(request.side)}{layout}{failure.reason}"
        if len(request.ids) == 1:
            self.failures[benchmark_name(self._source, request.ids[0])] = failure
        if request.ids:
            raise LostError from failure

    def prepared(self, side: Side, ops: int | None, ids: tuple[str, ...]) -> ReadyProcess:
        """Return the call of a sample, by the suite's ids of its benchmarks.

        It is rendered once, because its inputs do not change while the step measures. The pace is known after the first
        warm-up, so the second one takes as long as a sample. Its duration shows how many samples fit into the budget.
        """
        key = (side, ops, ids[:1], self.paces.slowest(benchmark_name(self.planned, own_id) for own_id in ids or ("",)))
        if key not in self._prepared:
            self._prepared[key] = self._direct(self.session.prepare(self.planned, side, self.run, *key[1:]))
        return of_several(self._prepared[key], ids)

    def _input_of(self, request: Request) -> int:
        """Return the number of the input of a process: that of its pair, or its number on its side if it is single."""
        if not request.single or request.warming:
            return request.number
        before = self._singles.setdefault(request.side, {})
        return before.setdefault(request.number, len(before))

    def _rendered(self, request: Request, ops: int | None) -> ReadyProcess:
        """Return the call of a request, rendered for its pair if the step draws its input."""
        if not self._draws_seed:
            return self.prepared(request.side, ops, request.ids)
        session = self.session
        number = self._input_of(request)
        draw = f"{session.context.seed}\0{session.pair_secret}\0{self.planned.id}\0{number}\0{request.warming}"
        seed = int.from_bytes(hashlib.blake2b(draw.encode(), digest_size=4).digest(), "big") >> 1
        prepared = session.prepare(self.planned, request.side, self.run, ops, request.ids[:1], pair_seed=seed)
        return of_several(self._direct(prepared), request.ids)

    def _direct(self, prepared: ReadyProcess) -> ReadyProcess:
        """Return the call without shims and launchers before the program of a tool that runs one command."""
        if not prepared.tool or not prepared.tool.takes_command:
            return prepared
        folder = self.session.folder_of(self.planned, prepared.side)
        direct, note = invoke.without_launchers(self.session.spawner(), prepared, folder)
        if note:
            self._say(note)
        return direct

    def _note_run(
        self, prepared: ReadyProcess, read: ReadyProcess | None, invoked: Invoked, folder: Path, *, warming: bool
    ) -> None:
        """Note what one process tells about the program. ``read``: the call, if its output was read."""
        if warming:
            self._clock.note_warm_up(prepared, invoked)
            self._observe_turns(prepared, invoked, folder)
            self.brief_runs.run_full(prepared, lambda full: invoke.run(self.session.spawner(), full, folder))
        if read:
            self.unread.note_read(prepared, invoked)
        elif not warming:
            self.unread.note(prepared, invoked)
            self.brief_runs.note(prepared, invoked)
            if invoked.usage.shell_start is not None:
                self.shell_starts.append(invoked.usage.shell_start)

    def _observe_turns(self, prepared: ReadyProcess, invoked: Invoked, folder: Path) -> None:
        """Run a program with threads or children once more, untimed, to see whether they take turns."""
        main = next((item.value for item in invoked.parsed.readings if item.metric == "main_share"), 1.0)
        if prepared.side in self._turns or main >= ONE_THREAD:
            return
        self._turns[prepared.side] = None
        if invoked.usage.wall <= _LONGEST_OBSERVED:
            spawner = self.session.spawner()
            with Turns(lambda: spawner.pid) as turns:
                invoke.run(spawner, prepared, folder)
            self._turns[prepared.side] = turns.share

    def _check_untimed(self) -> None:
        """Check which tree's code runs, for a tool without warm-up. Raises Failure."""
        for side in self.able:
            ops = first_count(self.session.tree_context_of(side), self.planned)
            try:
                self._own_code.check_untimed(self.prepared(side, ops, ()))
            except Failure as failure:
                failure.reason = f"{self.session.where(side)}{failure.reason}"
                raise


def _without_core_waits(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Return the readings of a process that shared a core: its elapsed times without the turns of the other process.

    Benchmarks are left out of which these are not known, or which may have waited for the other process. Raises
    LostError if none is left.
    """
    left: list[Reading] = []
    cpu, known = (
        {reading.benchmark: reading for reading in readings if reading.metric == name}
        for name in ("cpu", "uncontended")
    )
    for reading in readings:
        uncontended, computed = known.get(reading.benchmark), cpu.get(reading.benchmark)
        if uncontended and computed and uncontended.value <= computed.value * WAITED_FOR_OTHER:
            left.append(replace(uncontended, metric="time", at_most=False) if reading.metric == "time" else reading)
    if not left:
        raise LostError
    return tuple(left)


def hostility(session: RunSession) -> list[str]:
    """Return the warning about a hostile machine, if it is one."""
    if session.noise is None or session.noise.kind is not NoiseClass.HOSTILE:
        return []
    return [f"{describe(as_json(session.noise.findings, session.noise.test))}; run `perfflow doctor` for details"]


def _count(key: str, value: int | str | None, context: dict[str, Any], default: int, *, least: int) -> int:
    return default if value is None else whole(key, rendered(value, context), least=least)


def read_figures(
    parse: Parse, stdout: Path, cwd: Path, before: Written, seconds: float | None = None
) -> tuple[Reading, ...]:
    """Read the figures that ``parse`` names from the output, or from a file that changed since ``before``.

    Raises Failure, also if a pattern takes longer than ``seconds``.
    """
    source = cwd / parse.file if parse.file else stdout
    if parse.file and written(source) in (before, None):
        raise Failure(f"the command did not write {parse.file}", exit_code=0, log=stdout)
    try:
        data = read(source, MOST_PARSED)
    except TooLargeError as error:
        hint = "print only the figures, or write them to a file and name it with `parse: {file: NAME}`"
        reason = f"`parse` reads at most {MOST_PARSED >> 20} MiB, and {source.name} is longer; {hint}"
        raise Failure(reason, exit_code=0, log=stdout) from error
    except OSError as error:
        raise Failure(f"cannot read {source}: {error.strerror}", exit_code=0, log=stdout) from error
    try:
        return figures_in(data.decode("utf-8", "replace"), parse, seconds)
    except ToolOutputError as error:
        raise Failure(str(error), isinstance(error, PatternTimeoutError), exit_code=0, log=stdout) from error


def executed_files(prepared: ReadyProcess) -> list[tuple[Path, str]]:
    """Return the files that a command line names with their SHA-256 hashes: the program, and scripts in its arguments.

    Empty for shell text, which may run anything.
    """
    if prepared.tool is None or prepared.call is None or prepared.call.shell_text:
        return []
    hashes = []
    named = prepared.tool.build.executed(prepared.call)
    for word in prepared.call.command if named is None else named:
        try:
            path = prepared.cwd / word
            # Reading a device may never end, and opening a FIFO waits for a writer.
            if path.is_file():
                with path.open("rb") as stream:
                    hashes.append((path, hashlib.file_digest(stream, "sha256").hexdigest()))
        except (OSError, ValueError):
            continue  # not a file, or an executable without read permission
    return hashes


class Paces:
    """The slowest pace of each benchmark over both sides, so that both take the same number of samples."""

    def __init__(self) -> None:
        self._found: dict[str, Pace] = {}

    def notice(self, benchmark: str, readings: Iterable[Reading]) -> None:
        """Update the pace from the readings of one process."""
        found, known = pace_of(readings), self._found.get(benchmark)
        if found and known and found.seconds > known.seconds:
            # Keep the number of samples of the first process, because a later one may have been asked for more.
            found = Pace(found.seconds, known.spent * (found.seconds / known.seconds))
        if found and (known is None or found.seconds > known.seconds):
            self._found[benchmark] = found

    def recall(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Restore the paces of an interrupted run from its first samples."""
        for event in events:
            if event.get("pair") == 0:
                for side in Side:
                    readings = [reading_from_json(item) for item in event.get(side.value, ())]
                    self.notice(readings[0].benchmark if readings else "", readings)

    def slowest(self, benchmarks: Iterable[str]) -> Pace | None:
        """Return the pace of the slowest of some benchmarks, None before the first process of one of them."""
        found = [self._found.get(name) for name in benchmarks]
        known = [pace for pace in found if pace]
        return max(known, key=lambda pace: pace.seconds) if len(known) == len(found) else None


ONE_PROCESS = "both variants run in one process in the suite's own order, so perfflow cannot randomize their order"


@dataclass(frozen=True)
class StepSuite:
    """A step's suite: its ``name`` as a whole, the ids that it can run, and the pattern of benchmark names.

    ``ids`` is empty if the suite only runs as a whole. ``take`` runs some of them, or all, and returns readings named
    by ``pattern``. ``say`` receives warnings. ``together``: see BenchmarkToSample.
    """

    name: str
    ids: Sequence[str]
    pattern: str
    take: Take
    say: Callable[[str], None]
    together: float = 0.0

    def name_of(self, found: str) -> str:
        """Return the name of a benchmark."""
        return self.pattern.replace("*", found, 1)

    def id_of(self, name: str) -> str:
        """Return the suite's own id for a name."""
        before, _, after = self.pattern.partition("*")
        return name.removeprefix(before).removesuffix(after)


def benchmarks_of(variants: Variants, suite: StepSuite) -> list[BenchmarkToSample]:
    """Return the benchmarks that exist as both variants, or one for all if the suite runs as a whole.

    Raises Failure if no benchmark exists as both.
    """
    if not suite.ids:
        return [BenchmarkToSample(suite.name, tuple(Side), FromOneProcess(variants, suite))]
    suite_ids = SuiteIds.among(variants, suite.ids)
    for text in suite_ids.alone():
        suite.say(text)

    def run(request: Request) -> tuple[Reading, ...]:
        own_ids = {item.name: suite_ids.ids[request.side][item.own_id] for item in request.benchmarks}
        of_side = tuple(replace(item, own_id=own_ids[item.name]) for item in request.benchmarks)
        names = {suite.name_of(own_id): name for name, own_id in own_ids.items()}
        readings = suite.take(replace(request, benchmarks=of_side))
        return tuple(replace(reading, benchmark=names[reading.benchmark]) for reading in readings)

    return [
        BenchmarkToSample(suite.name_of(stem), tuple(Side), run, own_id=stem, together=suite.together)
        for stem in suite_ids.both()
    ]


class FromOneProcess:
    """Takes both sides of a pair from one process: the second side uses the readings of the first side's process."""

    def __init__(self, variants: Variants, suite: StepSuite) -> None:
        self._variants, self._suite = variants, suite
        self._sides: Mapping[Side, tuple[Reading, ...]] = {}
        self._left: set[Side] = set()

    def __call__(self, request: Request) -> tuple[Reading, ...]:
        """Return the readings of a side. Raises Failure if the process reports no benchmark as both variants."""
        if request.side not in self._left:
            self._sides, self._left = self._sorted(self._suite.take(request)), set(Side)
        self._left.remove(request.side)
        return self._sides[request.side]

    def _sorted(self, readings: Iterable[Reading]) -> dict[Side, tuple[Reading, ...]]:
        with_ids = [(self._suite.id_of(reading.benchmark), reading) for reading in readings]
        suite_ids = SuiteIds.among(self._variants, [name for name, _ in with_ids])
        both = set(suite_ids.both())
        for text in (ONE_PROCESS, *suite_ids.alone()):
            self._suite.say(text)
        sides: dict[Side, tuple[Reading, ...]] = {}
        for side in Side:
            stems = [(reading, suite_ids.stem(name, side)) for name, reading in with_ids]
            named = [(reading, self._suite.name_of(stem)) for reading, stem in stems if stem and stem in both]
            sides[side] = tuple(replace(reading, benchmark=name) for reading, name in named)
        return sides
