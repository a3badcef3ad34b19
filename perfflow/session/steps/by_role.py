"""What performs the steps of each role."""

from __future__ import annotations

from perfflow.execute.invoke import Failure
from perfflow.execute.schedule import StepRun
from perfflow.plan.plan import Planned
from perfflow.session.session import Perform, RunSession
from perfflow.tools.adapter import Role


def performer_of(planned: Planned) -> Perform:
    """What performs a step; its module is imported with the first step that has it: few workflows use all of them."""
    match planned.role:
        case Role.WORK if planned.step.background:
            from perfflow.session.steps.service import serve

            return serve
        case Role.WORK:
            from perfflow.session.steps.work import work

            return work
        case Role.MEASURE:
            from perfflow.session.steps.measure import measure_step

            return measure_step
        case Role.PROFILE:
            from perfflow.session.steps.profile import profile

            return profile
        case Role.MACHINE:
            from perfflow.session.steps.peaks import survey

            return survey
        case Role.CHECK:
            from perfflow.session.steps.check import check

            return check
        case Role.CANDIDATE:
            return _no_candidate
        case Role.COMPARE:
            return _nothing_kept


def _no_candidate(_session: RunSession, _planned: Planned, _run: StepRun) -> None:
    raise Failure("candidates are tried by `perfflow run` alone")


def _nothing_kept(_session: RunSession, _planned: Planned, run: StepRun) -> None:
    run.reason = "no optimize stage, so there is nothing to compare with the baseline"
