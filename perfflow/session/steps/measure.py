"""Measuring steps: sample every benchmark until it is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from time import monotonic

from perfflow.execute.schedule import StepRun, StepStatus
from perfflow.model.units import Dimension, format_quantity
from perfflow.plan.plan import Planned
from perfflow.sampling.pairs import BenchmarkToSample
from perfflow.sampling.stop_rule import Stop
from perfflow.session.bench import Bench
from perfflow.session.known_names import NothingChosenError
from perfflow.session.list_benchmarks import list_benchmarks
from perfflow.session.own_code import SAME_CODE, differ_in_code_only
from perfflow.session.session import RunSession
from perfflow.session.steps.over_layouts import decide_over_layouts

LONGEST_AUDIT = 20.0
"""Seconds for timing what has the same code."""


def measure_step(session: RunSession, planned: Planned, run: StepRun) -> None:
    """Sample the chosen benchmarks of a step until each is decided; store each round at once as an event.

    A step without a chosen benchmark is skipped.
    """
    try:
        list_benchmarks(session, planned, run)
        bench = Bench(session, planned, run)
        bench.note_files()
        benchmarks: Sequence[BenchmarkToSample] = bench.benchmarks()
        audited: Sequence[BenchmarkToSample] = ()
        if len(bench.sides) == 2:
            from perfflow.session.unchanged_benchmarks import without_unchanged

            benchmarks, audited = without_unchanged(bench, benchmarks)
        if benchmarks or audited:
            bench.sampling.recall(session.earlier.samples_of(planned.id), [*benchmarks, *audited])
            bench.paces.recall(session.earlier.samples_of(planned.id))
            ends = session.budget.ends(planned.id, len(benchmarks) + len(audited), session.names.numbers())
            if benchmarks:
                bench.measure(benchmarks, ends)
                measure_over_layouts(bench, benchmarks, ends)
            if audited:
                _audit(bench, audited, ends)
                measure_over_layouts(bench, audited, ends)
    except NothingChosenError:
        run.status, run.reason = StepStatus.SKIPPED, "none of its benchmarks was chosen"
        return
    conclude(bench, [*benchmarks, *audited])
    # Raised only now, so that the other benchmarks are measured first.
    bench.raise_failures()


def _audit(bench: Bench, benchmarks: Sequence[BenchmarkToSample], ends: float) -> None:
    """Time benchmarks whose code is the same, for at most LONGEST_AUDIT; a regression is measured again."""
    ends = min(ends, monotonic() + LONGEST_AUDIT)
    bench.measure(benchmarks, ends)
    bench.sampling.confirm(benchmarks, ends, 1)


def conclude(bench: Bench, benchmarks: Sequence[BenchmarkToSample]) -> None:
    """Put the warnings and findings of a measured step into its run, and store why each benchmark was stopped."""
    session, planned, run = bench.session, bench.planned, bench.run
    _note_out_of_time(bench, benchmarks)
    bench.sampling.tell_why_stopped(benchmarks)
    unread = bench.unread.warnings(lambda prepared: session.start(prepared, run))
    about_bash = list(_about_bash(bench.shell_starts))
    bench.warnings.update(unread)
    run.warnings += [*bench.warnings, *about_bash, *filter(None, [bench.brief_runs.warning])]
    run.cautions += [*unread, *about_bash]
    run.exit_code = 0
    run.found = (bench.counted or bench.evidence).found()
    if len(bench.sides) == 2:
        run.identical, run.rebuilt = bench.identical, bench.rebuilt
        if bench.same_code and differ_in_code_only(session, planned):
            run.warnings.append(SAME_CODE)


def _note_out_of_time(bench: Bench, benchmarks: Sequence[BenchmarkToSample]) -> None:
    """Note for each benchmark whose process was ended, or not started, that the time of the command was over."""
    measured = {item.name for item in bench.sampling.able(benchmarks)}
    ended = [item for item in benchmarks if item.name not in measured and item.name not in bench.failures]
    if bench.out_of_time:
        bench.sampling.stop_rule.stop(ended, Stop.TOTAL_BUDGET)


def _about_bash(starts: Sequence[float]) -> Iterator[str]:
    """Yield the note about the start of bash, which is not part of the figures. ``starts``: its duration (s)."""
    if starts:
        shown = format_quantity(median(starts), Dimension.TIME)
        yield f"bash ran the text of the command; the start of bash itself ({shown}) is not counted"


def measure_over_layouts(bench: Bench, benchmarks: Sequence[BenchmarkToSample], ends: float) -> None:
    """Measure benchmarks whose verdict rests on one code layout over others too, if the workflow requests it."""
    if bench.has_layouts:
        decide_over_layouts(bench, benchmarks, ends)
