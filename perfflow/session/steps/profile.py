"""Profiling steps, which run each side under a profiler, and steps that measure the machine's peak performance.

A profiling step with a glob profiles several benchmarks. ``measure_peaks`` makes one call, whatever is compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import ReadyProcess, operations
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Parsed, Peak, Reading, Side
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned, counted_source, profiles_several
from perfflow.session.attribution.function_costs import FunctionCosts
from perfflow.session.attribution.profiler_calls import LONGEST, ProfilerCalls, Subject, choices, subjects
from perfflow.session.evidence import StepEvidence, flatness, per_operation
from perfflow.session.known_names import named
from perfflow.session.profiled_builds import ProfiledBuilds
from perfflow.session.session import RunSession
from perfflow.session.steps.measure import measure_step
from perfflow.store import run_folder
from perfflow.store.record import record_of
from perfflow.tools.adapter import ProfilingMethod

LONGEST_STEP = 120.0
"""Seconds for the profiles of a step in a gate, or whose profilers perfflow chose."""
SHORTEST = 20.0
"""Seconds that each benchmark gets at least, if many share the time; fewer would give too few samples."""
MOST_BYTES = 256 * 2**20
"""Bytes of the files of such a step, beyond which no further benchmark is profiled."""
_TIMING = (ProfilingMethod.SAMPLES, ProfilingMethod.SAMPLED_TIME)
"""Methods that may be ended early: what they have so far is a profile with more noise."""


def profile(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Profile the benchmarks that the step names, on every side."""
    if counted_source(session.context.plan.by_id, planned):
        measure_step(session, planned, run)
    elif profiles_several(planned) or _takes_turns(session, planned):
        _profile_several(session, planned, run)
    else:
        _profile_one(session, planned, run)
    run.exit_code = 0


def _takes_turns(session: RunSession, planned: Planned) -> bool:
    """Return whether one run per side may be too few: two sides are compared by a tool whose shares have noise.

    A tool that reports figures gets one run per side, because figures of several runs would have to be combined.
    """
    both = len(session.sides_of(planned)) == 2
    tool = planned.tool
    return both and bool(planned.watches and tool and not tool.deterministic and not tool.metrics)


def _profile_one(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Profile each side with one run."""
    counts = operations(session.context, planned)
    readings: dict[Side, list[Reading]] = {}
    evidence = StepEvidence(session, planned)
    peaks: tuple[Peak, ...] = ()
    costs = FunctionCosts(session, planned.benchmark, planned.tool, counts[-1] if counts else None)
    sides = session.sides_of(planned)
    for side in sides:
        figures, prepared, parsed = _profiled(session, planned, run, side, counts)
        readings[side] = figures
        evidence.add(prepared, parsed)
        peaks = peaks or parsed.peaks
        costs.add(prepared, parsed)
        run.warnings += [f"{side.value}: {text}" for text in (*parsed.warnings, *flatness(parsed))]
        run.few_samples |= parsed.few_samples
    for side in sides if _is_worth_a_second_run(session, planned, readings) else ():
        figures, prepared, parsed = _profiled(session, planned, run, side, counts)
        readings[side] += figures
        # The second run has overwritten the files of the first.
        evidence.add(prepared, parsed)
    run.readings, run.found = readings, replace(evidence.found(), costs=costs.both_sides(), peaks=peaks)


def _profiled(
    session: RunSession, planned: Planned, run: StepRun, side: Side, counts: Sequence[int]
) -> tuple[list[Reading], ReadyProcess, Parsed]:
    """Return the figures of one run, or of one run per number of operations, and the profiles of the last run."""
    found = []
    for count in counts or (None,):
        prepared, invoked = session.invoke(planned, side, run, count)
        found.append(named(planned, invoked.parsed.readings))
    return list(per_operation(found, counts)), prepared, invoked.parsed


def _is_worth_a_second_run(session: RunSession, planned: Planned, readings: Mapping[Side, list[Reading]]) -> bool:
    """Return whether exact figures differ between the sides or have a target, so that they need a second run."""
    if not planned.tool or not planned.tool.deterministic:
        return False
    criteria = session.context.plan.criteria
    exact = {
        side: {(item.benchmark or planned.benchmark, item.metric): item.value for item in readings_of_side}
        for side, readings_of_side in readings.items()
    }
    known = {key for readings_of_side in exact.values() for key in readings_of_side if criteria.metric(key[1]).exact}
    differ = any(len({readings_of_side.get(key) for readings_of_side in exact.values()}) > 1 for key in known)
    return differ or any(
        target.metric.name == metric and matches(target.benchmark, name)
        for target in criteria.targets
        for name, metric in known
    )


def _profile_several(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Profile each benchmark that the step names. A failure of one does not stop the others.

    In a gate, or if perfflow chooses the profilers, none is begun after LONGEST_STEP seconds or MOST_BYTES of files,
    and what is left is named. Those that got worse the most are first.
    """
    chosen = subjects(session, planned)
    if not chosen:
        text = f"nothing to profile: no benchmark that matches `{planned.benchmark}` was measured, or none regressed"
        run.warnings.append(text)
    failures = []
    builds = ProfiledBuilds(session, run)
    limited = planned.tool is None or bool(session.contexts)
    is_ended = planned.tool is None or (limited and _method(planned) in _TIMING)
    # In a gate, no more is begun once the time of the whole command is over.
    ends = time.monotonic() + min(LONGEST_STEP, session.deadline.left) if limited else math.inf
    left = []
    for number, subject in enumerate(chosen):
        now = time.monotonic()
        if now >= ends or (limited and _size(session.folder.step(planned.id)) > MOST_BYTES):
            left.append(subject.benchmark)
            continue
        try:
            seconds = min(LONGEST, max(SHORTEST, (ends - now) / (len(chosen) - number)))
            _profile_subject(session, planned, subject, run, builds, min(ends, now + seconds) if is_ended else math.inf)
        except Failure as failure:
            failures.append(failure)
    if left:
        run.warnings.append(
            f"not profiled, because the profiles of a step may take {LONGEST_STEP:g} s and {MOST_BYTES >> 20} MiB: "
            f"{', '.join(left)}; "
            "to profile one of them, add a step such as `{uses: perf, benchmark: NAME}` to the stage `profile`"
        )
    if failures:
        run.warnings += [failure.reason for failure in failures if not failure.is_told]
        if len(failures) == len(chosen):
            raise failures[0]


def _method(planned: Planned) -> ProfilingMethod | None:
    return planned.tool.profiler.method if planned.tool and planned.tool.profiler else None


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _profile_subject(
    session: RunSession, planned: Planned, subject: Subject, run: StepRun, builds: ProfiledBuilds, ends: float
) -> None:
    """Profile with the best installed tool that works. Raises Failure if none works.

    ends: the time (monotonic, s) at which a process that is still running is ended.
    """
    seconds = _seconds(session, subject)
    failed: Failure | None = None
    broken = ""
    for candidate in choices(session, planned, subject):
        choice = candidate.as_fallback(f"{broken} failed") if broken and not candidate.note else candidate
        if choice.note:
            run.warnings.append(f"{subject.benchmark}: {choice.note}")
        calls = ProfilerCalls(session, planned, subject, choice, run, builds, ends)
        try:
            calls.profile(seconds)
        except Failure as failure:
            where = f" (log: {failure.log.relative_to(session.folder.path)})" if failure.log else ""
            run.warnings.append(f"{subject.benchmark}: {choice.tool.name} failed: {failure.reason}{where}")
            failure.is_told = True
            failed, broken = failure, choice.tool.name
            if time.monotonic() >= ends:
                break
            continue
        run.found += calls.found()
        return
    if failed:
        raise failed


def _seconds(session: RunSession, subject: Subject) -> float:
    """Return the seconds of one run of the benchmark's program; 1 s if it was not measured.

    Only a suite's process cannot be timed for this: it has run other benchmarks too. What any other program says of
    itself may be the time of a small part of its work, such as the latency of a request.
    """
    record = record_of(run_folder.events(session.folder.path))
    source = subject.source
    if source.tool is None or not source.tool.is_suite:
        series = record.series.get((subject.benchmark, subject.metric))
        processes = sum(len(series.readings(side)) for side in Side) if series else 0
        return series.seconds / processes if series and processes and series.seconds else 1.0
    series = record.series.get((subject.benchmark, "time"))
    values = [item.value for item in series.readings(Side.BASELINE)] if series else []
    counts = operations(session.context, source)
    return median(values) * (counts[-1] if counts else 1) if values else 1.0


def measure_peaks(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Run the tool once and keep the peaks that it measured. Raises PreparationError and Failure."""
    session.build_first(planned, run, (Side.BASELINE,))
    prepared, invoked = session.invoke(planned, Side.BASELINE, run)
    evidence = StepEvidence(session, planned)
    evidence.add(prepared, invoked.parsed)
    run.exit_code = invoked.exit_code
    run.warnings += invoked.parsed.warnings
    run.found = replace(evidence.found(), peaks=invoked.parsed.peaks)
