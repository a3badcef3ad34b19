"""Count what one iteration of each benchmark of a suite does, without the suite's harness.

A counting tool runs a benchmark alone with two numbers of iterations. Their difference excludes start-up, shutdown and
all that the harness does once. A tool that finds the largest amount held, such as massif, runs the smaller number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from statistics import median

from perfflow.execute import invoke
from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess, ready
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Parsed, Reading, Side
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned, chosen_of, counted_source
from perfflow.session.attribution.profiler_calls import rows_to_explain
from perfflow.session.evidence import StepEvidence, costs_of_more, hotspots_per_operation, is_total, per_operation
from perfflow.session.known_names import benchmark_name
from perfflow.session.profiled_builds import ProfiledBuilds
from perfflow.session.session import RunSession
from perfflow.session.suite_calls import SuiteCalls
from perfflow.store import run_folder
from perfflow.store.record import Record, record_of
from perfflow.store.run_facts import StepFindings
from perfflow.store.run_folder import file_name
from perfflow.tools.adapter import ProfilingMethod, Role

_NOT_FIXED = "cannot run a fixed number of times: this needs a C compiler (`cc`) and a dynamically linked program"


class NotFixedError(Failure):
    """A benchmark whose number of iterations cannot be fixed, so that one iteration cannot be counted."""


class CountedSuite:
    """The benchmarks of the suite of the step ``source``, to be counted by the tool of another step, ``planned``."""

    def __init__(self, session: RunSession, planned: Planned, source: Planned, run: StepRun) -> None:
        self._session, self._planned, self.source, self._run = session, planned, source, run
        self._calls = SuiteCalls(session, source, ProfiledBuilds(session, run))
        self._counts: dict[str, tuple[int, ...]] = {}
        self._iterated: dict[tuple[str, int], dict[Side, str]] = {}
        self._evidence: dict[str, StepEvidence] = {}

    def build(self, sides: Iterable[Side]) -> None:
        """Build the suite where the step that measures it has not done so. Raises PreparationError and Failure."""
        for side in sides:
            call = self.prepared_source(side).call
            if call and not call.place.is_dir():
                self._session.build_first(self.source, self._run, [side])

    def prepared_source(self, side: Side) -> ReadyProcess:
        """Return the call of the whole suite on a side. Raises PreparationError."""
        folder = self._session.folder_of(self.source, side)
        return ready(self._session.tree_context_of(side), self.source, side, folder)

    def counted(self, benchmarks: Collection[str]) -> Collection[str]:
        """Return those of the suite's benchmarks that the step counts.

        A step that perfflow added counts those with a target on its figures. In a gate, a step of the role ``profile``
        counts these and those that regressed.
        """
        chosen = chosen_of(self._planned.benchmark, self.source, benchmarks)
        if self._planned.for_targets:
            return [name for name in chosen if self._has_target(name)]
        if self._planned.role is not Role.PROFILE or not self._session.contexts:
            return chosen
        return [name for name in chosen if self._has_target(name) or name in self._regressed]

    def _has_target(self, benchmark: str) -> bool:
        """Return whether a target on one of the tool's figures exists that no other step measured."""
        wanted = self._planned.tool.metrics if self._planned.tool else {}
        return any(
            target.metric.name in wanted
            and matches(target.benchmark, benchmark)
            and not self._is_measured(benchmark, target.metric.name)
            for target in self._session.context.plan.criteria.targets
        )

    def _is_measured(self, benchmark: str, metric: str) -> bool:
        series = self._record.series.get((benchmark, metric))
        return series is not None and series.step != self._planned.id

    @cached_property
    def _record(self) -> Record:
        return record_of(run_folder.events(self._session.folder.path))

    @cached_property
    def _regressed(self) -> frozenset[str]:
        return frozenset(benchmark for benchmark, _ in rows_to_explain(self._session, self._planned, self._record))

    def sample(self, only: str, side: Side, sides: tuple[Side, ...]) -> tuple[Reading, ...]:
        """Return the figures of one iteration of a benchmark. Raises Failure and PreparationError.

        only: the suite's id of the benchmark. sides: those that have it, which must run equally many iterations.
        """
        name = benchmark_name(self.source, only)
        counts = self._counts_of(only, name, sides)
        totals: list[tuple[Reading, ...]] = []
        few: Parsed | None = None
        for count in counts:
            folder = self._folder(name, side)
            call = self._calls.call(side, folder, only, count)
            step = ready(self._session.tree_context_of(side), self._planned, side, folder)
            prepared = self._calls.under(step, call)
            if not self._run.argv:
                self._run.argv = list(prepared.shown)
            self._run.log = self._session.log_in(folder, "stderr")
            parsed = invoke.run(self._session.spawner(), prepared, folder).parsed
            known = self._iterated.setdefault((only, count), {})
            try:
                known[side] = self._calls.iterated(call)
            except Failure as failure:
                raise NotFixedError(failure.reason, exit_code=0) from failure
            if len({*known.values()}) > 1:
                raise Failure("both sides run another number of iterations, so they cannot be compared", exit_code=0)
            totals.append(tuple(item for item in parsed.readings if is_total(item) or self._holds))
            if few and not self._holds:
                costs = costs_of_more(few, parsed)
                spots = hotspots_per_operation(parsed, costs, counts[-1] - counts[0])
                # Warnings about sums of a whole process do not apply to a difference.
                parsed = replace(parsed, costs=costs, hotspots=spots, warnings=())
            few = parsed
            self._evidence.setdefault(name, StepEvidence(self._session, self._planned, name)).add(prepared, parsed)
            for text in parsed.warnings if self._holds else ():
                self._say(f"{name}: {text}")
        figures = totals[-1] if self._holds else per_operation(totals, counts)
        if not figures:
            raise Failure("a run with more iterations does not count more", exit_code=0)
        # The suite itself may report a figure of the same name.
        added = (item for item in figures if not self._is_measured(name, item.metric))
        return tuple(Reading(item.metric, item.value, name, exact=True) for item in added)

    @property
    def _holds(self) -> bool:
        """Whether the tool finds an amount held, which does not grow with the number of iterations."""
        profiler = self._planned.tool.profiler if self._planned.tool else None
        return profiler is not None and profiler.method is ProfilingMethod.HOLDS

    def _counts_of(self, only: str, name: str, sides: tuple[Side, ...]) -> tuple[int, ...]:
        if only not in self._counts:
            counts = self._calls.counts(sides, self._folder(name, sides[0]), only, self._seconds(name))
            if not counts:
                raise NotFixedError(_NOT_FIXED, exit_code=0)
            self._counts[only] = counts[:1] if self._holds else counts
        return self._counts[only]

    def _folder(self, name: str, side: Side) -> Path:
        folder = self._session.folder.step(self._planned.id) / file_name(name) / side.value
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _seconds(self, name: str) -> float:
        """Return the seconds of one iteration as measured, 1 s if it was not."""
        series = self._record.series.get((name, "time"))
        values = [item.value for item in series.readings(Side.BASELINE)] if series else []
        return median(values) if values else 1.0

    def _say(self, text: str) -> None:
        if text not in self._run.warnings:
            self._run.warnings.append(text)

    def found(self) -> StepFindings:
        """Return the profiles and hotspots of all benchmarks."""
        found = StepFindings()
        for evidence in self._evidence.values():
            found += evidence.found()
        return found


def counted_suite(session: RunSession, planned: Planned, run: StepRun) -> CountedSuite | None:
    """Return the suite that a step counts; None for a step that runs a command, or a suite as it is."""
    source = counted_source(session.context.plan.by_id, planned)
    return CountedSuite(session, planned, source, run) if source else None
