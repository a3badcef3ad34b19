"""Steps that profile: each side under the profiler; with a glob a step is about several benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from perfflow.execute.invoke import Failure
from perfflow.execute.prepare import Ready, operations
from perfflow.execute.schedule import StepRun
from perfflow.model.readings import Parsed, Peak, Reading, Side
from perfflow.model.targets import matches
from perfflow.plan.plan import Planned, profiles_several
from perfflow.session.attribution.function_costs import FunctionCosts
from perfflow.session.attribution.profiled import Subject, choices, subjects
from perfflow.session.attribution.profiled_builds import ProfiledBuilds
from perfflow.session.attribution.profiler_calls import ProfilerCalls
from perfflow.session.benchmark_names import named
from perfflow.session.evidence import Evidence, flatness
from perfflow.session.figures import per_operation
from perfflow.session.session import RunSession
from perfflow.store import folder as rundir
from perfflow.store.record import record_of


def profile(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Profile what the step names; what it is evidence of is on both sides of the change."""
    if profiles_several(planned) or _takes_turns(session, planned):
        _profile_several(session, planned, run)
    else:
        _profile_one(session, planned, run)
    run.exit_code = 0


def _takes_turns(session: RunSession, planned: Planned) -> bool:
    """Whether one run a side may be too little: two sides are compared, by a tool whose shares have noise.

    Of a tool with figures the calls would have to be put together; one a side is kept of those.
    """
    both = len(session.sides_of(planned)) == 2
    tool = planned.tool
    return both and bool(planned.watches and tool and not tool.deterministic and not tool.metrics)


def _profile_one(session: RunSession, planned: Planned, run: StepRun) -> None:
    """One run under the profiler for each side."""
    counts = operations(session.context, planned)
    readings: dict[Side, list[Reading]] = {}
    evidence = Evidence(session, planned)
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
    for side in sides if _is_worth_a_second_run(session, planned, readings) else ():
        figures, prepared, parsed = _profiled(session, planned, run, side, counts)
        readings[side] += figures
        # The files of the first run are gone.
        evidence.add(prepared, parsed)
    run.readings, run.found = readings, replace(evidence.found(), costs=costs.both_sides(), peaks=peaks)


def _profiled(
    session: RunSession, planned: Planned, run: StepRun, side: Side, counts: Sequence[int]
) -> tuple[list[Reading], Ready, Parsed]:
    """The figures of one run, or of one for each count of operations; profiles are those of the last."""
    found = []
    for count in counts or (None,):
        prepared, invoked = session.invoke(planned, side, run, count)
        found.append(named(planned, invoked.parsed.readings))
    return list(per_operation(found, counts)), prepared, invoked.parsed


def _is_worth_a_second_run(session: RunSession, planned: Planned, readings: Mapping[Side, list[Reading]]) -> bool:
    """Whether figures that ought to repeat differ between the sides, or have a target: two runs show if they do."""
    if not planned.tool or not planned.tool.deterministic:
        return False
    criteria = session.context.plan.criteria
    exact = {
        side: {(item.benchmark or planned.benchmark, item.metric): item.value for item in found}
        for side, found in readings.items()
    }
    known = {key for found in exact.values() for key in found if criteria.metric(key[1]).exact}
    differ = any(len({found.get(key) for found in exact.values()}) > 1 for key in known)
    return differ or any(
        target.metric.name == metric and matches(target.benchmark, name)
        for target in criteria.targets
        for name, metric in known
    )


def _profile_several(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Profile each benchmark that the step is about; what fails of one keeps none of the others back."""
    found = subjects(session, planned)
    if not found:
        run.warnings.append(f"nothing that `{planned.benchmark}` names was measured, or regressed, so none is profiled")
    failures = []
    builds = ProfiledBuilds(session, run)
    for subject in found:
        try:
            _profile_subject(session, planned, subject, run, builds)
        except Failure as failure:
            failures.append(failure)
    if failures:
        said = [failure.reason for failure in failures]
        run.warnings += [text for text in said if not any(text in known for known in run.warnings)]
        if len(failures) == len(found):
            raise failures[0]


def _profile_subject(
    session: RunSession, planned: Planned, subject: Subject, run: StepRun, builds: ProfiledBuilds
) -> None:
    """Profile with the best tool that is there and works. Raises Failure where none does."""
    seconds = _seconds(session, subject)
    failed: Failure | None = None
    broken = ""
    for found in choices(session, planned, subject):
        choice = found.standing_in(f"{broken} failed") if broken and not found.note else found
        if choice.note:
            run.warnings.append(f"{subject.benchmark}: {choice.note}")
        calls = ProfilerCalls(session, planned, subject, choice, run, builds)
        try:
            calls.profile(seconds)
        except Failure as failure:
            where = f" (log: {failure.log.relative_to(session.folder.path)})" if failure.log else ""
            run.warnings.append(f"{subject.benchmark}: {choice.tool.name} failed: {failure.reason}{where}")
            failed, broken = failure, choice.tool.name
            continue
        run.found += calls.found()
        return
    if failed:
        raise failed


def _seconds(session: RunSession, subject: Subject) -> float:
    """How long one run of the benchmark's program takes; a second where that was not measured.

    What a program prints of itself may be the time of a small part of it, so there the step's time is shared by its
    processes.
    """
    record = record_of(rundir.events(session.folder.path))
    source = subject.source
    if source.step.parse:
        series = record.series.get((subject.benchmark, subject.metric))
        processes = sum(len(series.readings(side)) for side in Side) if series else 0
        took = record.outcome_of(source.id).seconds
        return took / processes if processes and took else 1.0
    series = record.series.get((subject.benchmark, "time"))
    values = [item.value for item in series.readings(Side.BASELINE)] if series else []
    counts = operations(session.context, source)
    return median(values) * (counts[-1] if counts else 1) if values else 1.0
