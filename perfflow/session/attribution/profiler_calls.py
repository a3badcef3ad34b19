"""Choose the benchmarks to profile and a profiler for each, and run the calls of the profiler.

``subjects`` are the benchmarks that a profiling step profiles. If two trees are compared, these are the benchmarks that
regressed in a gating metric or in exact counts. ``choices`` are the profilers for the metric of each.

``ProfilerCalls`` makes one call per side, or for a sampling profiler as many as its shares need. A coin decides which
side of each round is first, so that other load on the machine affects both. Short programs run several times within one
recording. A counting profiler runs a benchmark with two different numbers of iterations, if these can be fixed without
a clock: their difference excludes start-up and shutdown. Source of the numbers: the standard error of a share of 5% in
2000 samples is half a percentage point.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute import invoke
from perfflow.execute.context import search_path
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess, missing_program, operations, ready
from perfflow.execute.schedule import StepRun
from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import METRICS, TIMES
from perfflow.model.readings import Parsed, Profile, Side, Usage
from perfflow.model.units import Dimension
from perfflow.plan.plan import Plan, Planned, attaches, chosen_of, counted_source
from perfflow.sampling.pairs import coin
from perfflow.session.attribution.function_costs import FunctionCosts
from perfflow.session.evidence import StepEvidence, costs_of_more, flatness
from perfflow.session.known_names import benchmark_name
from perfflow.session.profiled_builds import ProfiledBuilds
from perfflow.session.session import RunSession
from perfflow.session.suite_calls import SuiteCalls
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.run_facts import StepFindings
from perfflow.store.run_folder import file_name
from perfflow.tools import python_command, registry
from perfflow.tools.adapter import Adapter, Call, Profiler, ProfilingMethod
from perfflow.verdict.acceptance import effect_of
from perfflow.verdict.comparison import ComparedMetric
from perfflow.verdict.decide import rule
from perfflow.verdict.findings import waits_longer, worse_by
from perfflow.verdict.gating import choose_rows, compared, thresholds_for
from perfflow.verdict.judge import judge

AUTOMATIC = "attribution"
"""Id of the step that perfflow adds to a gate that fails."""
_TIME = "time"
_UNFOLLOWED = (Dimension.COUNT, Dimension.RATIO, Dimension.BYTES)
"""Dimensions of custom metrics that no profiler follows."""


@dataclass(frozen=True)
class Subject:
    """One benchmark to profile: the metric to explain, the step that measures it, and its id in a suite."""

    benchmark: str
    metric: str
    source: Planned
    only: str = ""

    @property
    def chosen(self) -> tuple[str, ...]:
        """Its id, as a call names the benchmarks to run."""
        return (self.only,) if self.only else ()


@dataclass(frozen=True)
class ChosenProfiler:
    """A profiler, and a note if a better one could not be used."""

    tool: Adapter
    note: str = ""

    def as_fallback(self, why: str) -> ChosenProfiler:
        """Return this choice with a note on why it replaces a better profiler."""
        sees = self.tool.profiler.sees if self.tool.profiler else "time"
        return replace(self, note=f"{why}; {self.tool.name} is used instead, which records {sees}")


def subjects(session: RunSession, planned: Planned) -> list[Subject]:
    """Return the benchmarks that the step's glob matches; in a gate, only those that regressed."""
    record = record_of(run_folder.events(session.folder.path))
    by_key: dict[tuple[str, tuple[str, ...]], Subject] = {}
    by_id = session.context.plan.by_id
    for benchmark, metric in rows_to_explain(session, planned, record):
        counting = by_id.get(record.series[benchmark, metric].step)
        source = (counting and counted_source(by_id, counting)) or counting
        if source is None or source.id == planned.id:
            continue
        if _is_client(source) and not attaches(planned):
            continue
        measured = {name for (name, _), series in record.series.items() if series.step == source.id}
        if benchmark not in chosen_of(planned.benchmark, source, measured | {benchmark}):
            continue
        # One profile explains every metric that the same profilers follow, and a rate by the profile of its time.
        followers = () if planned.tool else tuple(tool.name for tool in _following(metric))
        by_key.setdefault(
            (benchmark, followers), Subject(benchmark, metric, source, _alone(session, source, benchmark))
        )
    return list(by_key.values())


def _is_client(planned: Planned | None) -> bool:
    return planned is not None and planned.tool is not None and planned.tool.client


def failing(record: Record, plan: Plan) -> list[tuple[str, str]]:
    """Return the benchmark and metric of each row that fails a gate and that no step profiled, the worst first.

    A custom number that is neither a time nor a rate is left out, and a time that is longer because the program waits:
    no profiler follows them. So are figures of another process, such as a server.
    """
    criteria = plan.criteria
    result = judge(record, criteria)
    missed = {(item.benchmark, item.metric) for item in result.targets if item.status == "not met"}
    profiled = {entry.benchmark for _, step in record.ended_steps() for entry in step.costs}
    rows = [
        row
        for row in result.benchmarks
        if row.decision == "regressed"
        and ((row.gating and row.level == "action") or (row.name, row.metric) in missed)
        and row.name not in profiled
        and (row.metric in METRICS or criteria.metric(row.metric).dimension not in _UNFOLLOWED)
        and not waits_longer(row, result.benchmarks)
        and not _is_client(plan.by_id.get(row.step))
    ]
    return [(row.name, row.metric) for row in sorted(rows, key=lambda row: -(worse_by(row) or 0.0))]


def rows_to_explain(session: RunSession, planned: Planned, record: Record) -> Iterator[tuple[str, str]]:
    """Yield the benchmark and metric of each series that a profiling step explains; in a gate, the worst first."""
    criteria = session.context.plan.criteria
    if planned.id not in session.context.plan.by_id:
        yield from failing(record, session.context.plan)
        return
    comparisons = compared(record, criteria)
    gating = choose_rows(record, comparisons, criteria).gating
    rows = judge(record, criteria).benchmarks if session.contexts and planned.tool is None else []
    waiting = {(row.name, row.metric) for row in rows if waits_longer(row, rows)}
    for key, comparison in sorted(comparisons.items(), key=_worst_first) if session.contexts else comparisons.items():
        if not session.contexts:
            if key in gating:
                yield key
            continue
        by = gating[key].by if key in gating else None
        ruling = rule(comparison, thresholds_for(record, criteria, key, by)[0], identical=False)
        if ruling.is_regression and (key in gating or record.series[key].exact) and key not in waiting:
            yield key


def _worst_first(item: tuple[tuple[str, str], ComparedMetric]) -> float:
    effect = effect_of(item[1])
    return effect.estimate if effect else -math.inf


def _alone(session: RunSession, source: Planned, benchmark: str) -> str:
    """Return the id by which a suite runs one benchmark alone; '' if the step runs one command."""
    if not (source.tool and source.tool.is_suite):
        return ""
    return next((name for name in session.benchmarks(source) if benchmark_name(source, name) == benchmark), "")


def choices(session: RunSession, planned: Planned, subject: Subject) -> Iterator[ChosenProfiler]:
    """Yield the installed profilers for a metric, the best first. Raises Failure if none is installed."""
    tools = (planned.tool,) if planned.tool else _fitting(session, subject)
    if not planned.tool and subject.source.tool:
        best = filter(None, map(registry.find, subject.source.tool.suite.profilers))
        tools = (*best, *tools)
    path = search_path(session.context, subject.source) or os.environ.get("PATH", os.defpath)
    missing: list[str] = []
    for tool in tools:
        if lacking := missing_program(replace(planned, tool=tool), path):
            missing.append(lacking)
            continue
        yield ChosenProfiler(tool).as_fallback("; ".join(missing)) if missing else ChosenProfiler(tool)
    if len(missing) == len(tools):
        raise Failure(f"{subject.benchmark} cannot be profiled: {'; '.join(missing)}")


def _fitting(session: RunSession, subject: Subject) -> tuple[Adapter, ...]:
    if profilers := registry.profilers(subject.metric) if subject.metric not in TIMES else ():
        return profilers
    # A suite that is built first knows its programs by the files in the folder of its step.
    folder = session.folder_of(subject.source, Side.BASELINE)
    prepared = ready(
        session.tree_context_of(Side.BASELINE), subject.source, Side.BASELINE, folder, chosen=subject.chosen
    )
    if not subject.only:
        return registry.profilers(_TIME, python=_is_python(prepared.argv))
    try:
        started = prepared.invocations()[0].argv
    except ToolOutputError as error:
        raise Failure(str(error)) from error
    if not _is_python(started):
        return registry.profilers(_TIME)
    # Only stacks tell a benchmark's own calls from those of its harness.
    by_stacks = (tool for tool in registry.profilers(_TIME, python=True) if tool.python)
    return tuple(tool for tool in by_stacks if tool.profiler and tool.profiler.method is ProfilingMethod.SAMPLES)


def _following(metric: str) -> tuple[Adapter, ...]:
    return registry.profilers(metric) or registry.profilers(_TIME)


def _is_python(command: tuple[str, ...]) -> bool:
    try:
        python_command.split(command)
    except ToolOutputError:
        return False
    return True


def step_of(planned: Planned, subject: Subject, tool: Adapter) -> Planned:
    """Return the profiling step for one benchmark, which runs the measured program under ``tool``."""
    return replace(planned, tool=tool, benchmark=subject.benchmark, watches=subject.source.id)


SAMPLES = 2000
"""Samples to collect on each side."""
PROFILING_SECONDS = 20.0
"""Seconds of the program's own time for each side, within which they are collected."""
LEAST_CALLS, CALLS = 3, 6
"""Calls of each side, if time allows: their differences show noise beyond that of the samples."""
LONGEST = 60.0
"""Seconds within which one benchmark must be profiled if perfflow chose the profiler."""
TRACED = 10
"""Calls of a tracing profiler: the noise of its times cannot be computed from one call."""
_FREQUENCIES = ((0.5, 4999), (10.0, 997), (math.inf, 197))
"""(Longest run of the program in s, samples per second): odd rates, to avoid sampling in step with periodic work."""
_OF_A_SUITE = 1.0
"""Shortest assumed run (s) of a suite's process with a single benchmark."""
_FIRST_OF_A_SUITE, _MOST_OF_A_SUITE = 199, 997
"""Samples per second of the first recording of a suite, because its process may run much longer, and of the others.

The first one is of a single run for the same reason.
"""
_LEAST_RATE = 97
"""Samples per second below which a rate is not lowered."""
_MOST_RUNS = 200
"""Most runs of the program in one recording, because perfflow must read its text."""
_REPEATED = 'n=$1; shift; while [ "$n" -gt 0 ]; do "$@" || exit; n=$((n - 1)); done'
_REPEATING = ("/bin/sh", "-c", _REPEATED, "sh")


@dataclass(frozen=True)
class ProfilingEffort:
    """How to profile a benchmark: calls per side, runs of the program per call, and samples per second."""

    calls: int
    runs: int
    frequency: int


_UNKNOWN = Profiler(method=ProfilingMethod.SAMPLED_TIME)
"""Used for an adapter that declares no profiler."""


def calls_of(seconds: float) -> int:
    """Return the calls of each side that there is time for if one takes ``seconds``, at least LEAST_CALLS."""
    return max(LEAST_CALLS, min(CALLS, int(PROFILING_SECONDS / max(seconds, 1e-3))))


def effort_for(
    tool: Adapter, seconds: float, frequency: int | None = None, *, of_suite: bool = False
) -> ProfilingEffort:
    """Return the effort for a program that runs ``seconds``; ``frequency`` is the one in the workflow, if any.

    ``of_suite``: the process of a suite may run much longer, so its first call runs it once.
    """
    chosen = frequency or next(rate for limit, rate in _FREQUENCIES if seconds <= limit)
    profiler = tool.profiler or _UNKNOWN
    if profiler.method is ProfilingMethod.CALLS:
        return ProfilingEffort(max(1, min(TRACED, int(PROFILING_SECONDS / max(seconds, 1e-3)))), 1, chosen)
    calls = calls_of(seconds)
    wanted = SAMPLES / calls / max(seconds * chosen, 1e-9)
    affordable = PROFILING_SECONDS / calls / max(seconds, 1e-3)
    repeated = profiler.repeats and not of_suite
    return ProfilingEffort(calls, max(1, math.ceil(min(wanted, affordable))) if repeated else 1, chosen)


@contextmanager
def restored(folder: Path, profiles: Iterable[Profile]) -> Iterator[None]:
    """Put the files of the call before back if a call fails."""
    places = [folder / profile.path for profile in profiles]
    aside = [(place, place.with_name(f"{place.name}.before")) for place in places if place.is_file()]
    for place, kept in aside:
        place.replace(kept)
    try:
        yield
    except Failure:
        for place, kept in aside:
            kept.replace(place)
        raise
    for _, kept in aside:
        kept.unlink()


class ProfilerCalls:
    """Profiles one benchmark and keeps the costs and profiles."""

    def __init__(
        self,
        session: RunSession,
        planned: Planned,
        subject: Subject,
        choice: ChosenProfiler,
        run: StepRun,
        builds: ProfiledBuilds,
        ends: float = math.inf,
    ) -> None:
        """``ends``: the time (monotonic, s) at which a process that is still running is ended."""
        self._ends = ends
        self._session, self._run, self._subject, self._tool = session, run, subject, choice.tool
        self._step = step_of(planned, subject, choice.tool)
        self._declared = planned
        self._suite = SuiteCalls(session, subject.source, builds)
        self._profiler = choice.tool.profiler or _UNKNOWN
        counts = operations(session.context, subject.source)
        self.costs = FunctionCosts(session, subject.benchmark, choice.tool, counts[-1] if counts else None, choice.note)
        self.evidence = StepEvidence(session, self._step, subject.benchmark)
        # Each benchmark of a step has its own folder. So has a tool that replaces a better one, because it may also
        # have profiled the same benchmark by its own right.
        name = f"{subject.benchmark} {choice.tool.name}" + (f" {subject.metric}" if choice.note else "")
        self._folder = session.folder.step(planned.id) / file_name(name)

    def profile(self, seconds: float) -> None:
        """Profile every side of a program that runs ``seconds``. Raises Failure and PreparationError."""
        sides = self._session.sides_of(self._subject.source)
        if self._profiler.method is ProfilingMethod.COUNTS and self._count(sides, seconds):
            return
        # One call is enough if the profiler counts, or if there is one tree, since functions are then not compared.
        many = not self._tool.deterministic and bool(self._session.contexts)
        effort = self._first_effort(seconds) if many else ProfilingEffort(1, 1, self._given_rate or 0)
        taken: dict[Side, list[str]] = {side: [] for side in sides}
        last: dict[Side, tuple[ReadyProcess, Parsed]] = {}
        number, began = 0, time.monotonic()
        ends = min(self._ends, began + PROFILING_SECONDS * len(sides))
        while not number or time.monotonic() < (self._ends if number < effort.calls else ends):
            if number >= effort.calls and not (many and self._wants_more(sides)):
                break
            seed = self._session.context.seed
            for side in sides if coin(seed, f"profile {self._subject.benchmark}", number) else sides[::-1]:
                prepared, _ = self._prepared(side, effort)
                folder, before = self._folder / side.value, last[side][1].profiles if side in last else ()
                try:
                    with restored(folder, before):
                        invoked = invoke.run(self._session.spawner(), prepared, folder)
                except Failure as failure:
                    if failure.timeout and number:
                        # The calls before it are enough, with more noise.
                        break
                    raise
                self.costs.add(prepared, invoked.parsed)
                last[side] = (prepared, invoked.parsed)
                recording = self._folder / side.value / self._profiler.recording
                if effort.calls > 1 and recording.is_file():
                    taken[side].append(recording.read_text(encoding="utf-8", errors="replace"))
            number += 1
            if self._is_sampling:
                effort = self._adjusted(sides, effort, number, (time.monotonic() - began) / len(sides) / number)
        for side, (prepared, parsed) in last.items():
            self._keep(prepared, self._together(prepared, parsed, taken[side]), sides)

    def _count(self, sides: Sequence[Side], seconds: float) -> bool:
        """Count the costs of an iteration; return False if the sides may run different numbers of iterations."""
        numbers = self._suite.counts(sides, self._folder, self._subject.only, seconds) if self._runs_suite else ()
        if not numbers:
            return False
        last: dict[Side, tuple[ReadyProcess, Parsed]] = {}
        counted: dict[Side, tuple[Parsed, str]] = {}
        for side in sides:
            taken, iterated = [], []
            for number in numbers:
                prepared, call = self._prepared(side, ProfilingEffort(1, 1, 0), number)
                taken.append(invoke.run(self._session.spawner(), prepared, self._folder / side.value).parsed)
                try:
                    iterated.append(self._suite.iterated(call) if call else "")
                except invoke.Failure as failure:
                    self._say(f"{failure.reason}; its whole process is profiled instead")
                    return False
            last[side] = (prepared, taken[-1])
            counted[side] = (replace(taken[-1], costs=costs_of_more(*taken)), " ".join(iterated))
        if len({pattern for _, pattern in counted.values()}) > 1:
            self._say("the sides read the clock a different number of times, so one may have run fewer iterations")
            return False
        self.costs.ops = numbers[-1] - numbers[0]
        self._say(f"counted over {self.costs.ops:,} iterations: a run of {numbers[-1]:,} less a run of {numbers[0]:,}")
        for side, (prepared, parsed) in last.items():
            self.costs.add(prepared, counted[side][0])
            # Warnings about the totals of a process do not apply to a difference.
            self._keep(prepared, replace(parsed, warnings=()), sides)
        return True

    def _say(self, text: str) -> None:
        self._run.warnings.append(f"{self._subject.benchmark}: {text}")

    @property
    def _runs_suite(self) -> bool:
        """Whether the benchmark is of a suite, and either the only one to run or one of those that were built."""
        tool = self._subject.source.tool
        return tool is not None and tool.is_suite and (bool(self._subject.only) or tool.is_built_first)

    @property
    def _is_sampling(self) -> bool:
        """Whether costs are numbers of samples."""
        return self._profiler.method is ProfilingMethod.SAMPLES

    def _wants_more(self, sides: Sequence[Side]) -> bool:
        """Return whether a side has too few samples, for example because the program waited for a core when timed."""
        return self._is_sampling and min(self.costs.samples(side) for side in sides) < SAMPLES

    @property
    def _given_rate(self) -> int | None:
        """Samples per second in the workflow, if it has a number of them."""
        options = self._declared.step.with_
        return next((int(options[key]) for key in ("frequency", "rate") if str(options.get(key, "")).isdecimal()), None)

    def _first_effort(self, seconds: float) -> ProfilingEffort:
        if not self._subject.only:
            return effort_for(self._tool, seconds, self._given_rate)
        # A suite reports the time of one iteration, but its process runs many of them.
        rate = self._given_rate or _FIRST_OF_A_SUITE
        return effort_for(self._tool, max(seconds, _OF_A_SUITE), rate, of_suite=True)

    def _adjusted(self, sides: Sequence[Side], effort: ProfilingEffort, done: int, seconds: float) -> ProfilingEffort:
        """Return the effort of the next calls. ``seconds``: how long one of the calls so far took."""
        calls = effort.calls
        if self._subject.only and done == 1:
            calls = min(calls, calls_of(seconds))
        frequency = self._given_rate or self._frequency(sides, effort, done)
        return ProfilingEffort(calls, self._runs(sides, effort, done), frequency)

    def _runs(self, sides: Sequence[Side], effort: ProfilingEffort, done: int) -> int:
        """Return the runs of the program per remaining call, estimated from the samples so far."""
        if not self._profiler.repeats or not self._wants_more(sides):
            return effort.runs
        have = min(self.costs.samples(side) for side in sides)
        missing = (SAMPLES - have) / max(1, effort.calls - done)
        return max(1, min(_MOST_RUNS, math.ceil(effort.runs * missing / max(1.0, have / done))))

    def _frequency(self, sides: Sequence[Side], effort: ProfilingEffort, done: int) -> int:
        """Return the samples per second of the next calls: fewer if the calls so far gave many more than needed.

        A recording with call stacks has 8 KiB for each sample. The first one of a suite has few, so others get more.
        """
        have = max(self.costs.samples(side) for side in sides) / done
        needed = 2 * SAMPLES / effort.calls
        rate = round(effort.frequency * needed / max(have, 1))
        if have > 2 * needed:
            return max(_LEAST_RATE, rate)
        return min(_MOST_OF_A_SUITE, rate) if self._subject.only and rate > effort.frequency else effort.frequency

    def _prepared(self, side: Side, effort: ProfilingEffort, iterations: int = 0) -> tuple[ReadyProcess, Call | None]:
        """Return the profiler's call for a side, and the suite's call within it."""
        folder = self._folder / side.value
        folder.mkdir(parents=True, exist_ok=True)
        with_ = dict(self._declared.step.with_)
        fields = self._tool.options.model_fields
        for key in ("frequency", "rate"):
            if key in fields and effort.frequency:
                with_.setdefault(key, min(effort.frequency, 1000 if key == "rate" else effort.frequency))
        step = self._step.step.model_copy(update={"with_": with_, "uses": self._tool.name})
        prepared = ready(self._session.tree_context_of(side), replace(self._step, step=step), side, folder)
        suite = self._suite.call(side, folder, self._subject.only, iterations) if self._runs_suite else None
        if suite:
            prepared = self._suite.under(prepared, suite)
        else:
            prepared, _ = invoke.without_launchers(self._session.spawner(), prepared, folder)
        if effort.runs > 1:
            command = (*_REPEATING, str(effort.runs), *prepared.argv)
            call = replace(prepared.call, command=command) if prepared.call else None
            prepared = replace(prepared, call=call, argv=command)
        if self._ends < math.inf:
            left = max(1.0, self._ends - time.monotonic())
            prepared = replace(prepared, timeout=min(left, prepared.timeout or left))
        if not self._run.argv:
            self._run.argv = list(prepared.shown)
        self._run.log = self._session.log_in(folder, "stderr")
        return prepared, suite

    def _together(self, prepared: ReadyProcess, parsed: Parsed, texts: Sequence[str]) -> Parsed:
        """Return the joined recordings of a side, or the last one if they cannot be joined."""
        if len(texts) < 2 or prepared.tool is None or prepared.call is None:
            return parsed
        whole = prepared.call.folder / self._profiler.recording
        whole.write_text("\n".join(texts), encoding="utf-8")
        return prepared.tool.parse(prepared.call, Usage(0.0))

    def _keep(self, prepared: ReadyProcess, parsed: Parsed, sides: Sequence[Side]) -> None:
        self.evidence.add(prepared, parsed)
        if len(sides) == 2 and prepared.call:
            # A gate may profile many benchmarks. What was read from these files is stored.
            for name in self._profiler.raw:
                (prepared.call.folder / name).unlink(missing_ok=True)
        said = [*parsed.warnings, *flatness(parsed)]
        if self._is_sampling and len(sides) == 2:
            said.append(f"{self.costs.samples(prepared.side):,.0f} samples")
        self._run.warnings += [f"{self._subject.benchmark}, {prepared.side.value}: {text}" for text in said]
        self._run.few_samples |= parsed.few_samples

    def found(self) -> StepFindings:
        """Return the facts to store for the step: profiles, hotspots, and the function costs of both sides."""
        return replace(self.evidence.found(), costs=self.costs.both_sides())
