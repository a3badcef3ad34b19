"""The functions that perform the steps of each role."""

from __future__ import annotations

from perfflow.execute.invoke import Failure
from perfflow.execute.schedule import StepRun
from perfflow.plan.plan import Planned
from perfflow.session.session import Perform, RunSession
from perfflow.session.steps.check import check, work
from perfflow.session.steps.measure import measure_step
from perfflow.session.steps.profile import measure_peaks, profile
from perfflow.session.steps.service import serve
from perfflow.tools.adapter import Role


def performer_of(planned: Planned) -> Perform:
    """Return the function that performs a step."""
    match planned.role:
        case Role.WORK if planned.step.background:
            return serve
        case Role.WORK:
            return work
        case Role.MEASURE:
            return measure_step
        case Role.PROFILE:
            return profile
        case Role.MACHINE:
            return measure_peaks
        case Role.CHECK:
            return check
        case Role.CANDIDATE:
            return _no_candidate
        case Role.COMPARE:
            return _nothing_kept


def _no_candidate(_session: RunSession, _planned: Planned, _run: StepRun) -> None:
    raise Failure("only `perfflow run` tries candidates")


def _nothing_kept(_session: RunSession, _planned: Planned, run: StepRun) -> None:
    run.reason = "no optimize stage, so there is nothing to compare with the baseline"
