"""Profile the benchmarks that fail a gate and that no step of the workflow profiled, so that a function can be named.

It is a step of its own, which the result shows only if it ran.
"""

from __future__ import annotations

from collections.abc import Collection

from perfflow.plan.plan import EVERY, Plan, Planned
from perfflow.session.attribution.profiler_calls import AUTOMATIC, failing
from perfflow.session.perform import perform
from perfflow.session.progress import StepEnded
from perfflow.session.session import RunSession, planned_step, step_event
from perfflow.store import run_folder
from perfflow.store.record import record_of
from perfflow.tools.adapter import Role
from perfflow.workflow.model import Step
from perfflow.workflow.roles import AUTO


def explain_failure(session: RunSession) -> None:
    """Profile what fails the gate so far, unless a profile of it exists, and store the step with its findings."""
    record = record_of(run_folder.events(session.folder.path))
    plan = session.context.plan
    if not failing(record, plan) or _is_asked(plan, record.steps):
        return
    planned = automatic_step(plan)
    added = planned_step(planned, plan.params, selected=True).model_copy(update={"automatic": True})
    session.folder.append({"event": "planned", **added.model_dump(exclude_defaults=True)})
    run = perform(session, planned)
    session.folder.append(step_event(run))
    session.progress(StepEnded(run))


def _is_asked(plan: Plan, ended: Collection[str]) -> bool:
    """Return whether a step of the workflow already chose profilers for all benchmarks that got worse."""
    return any(item.step.uses == AUTO and item.benchmark == EVERY and item.id in ended for item in plan.steps)


def automatic_step(plan: Plan) -> Planned:
    """Return the step that perfflow adds; its id is one that the workflow does not use."""
    name = AUTOMATIC
    while name in plan.by_id:
        name += "-2"
    return Planned(
        id=name,
        step=Step(id=name, uses=AUTO),
        stage="profile",
        cell={},
        role=Role.PROFILE,
        tool=None,
        alone=True,
        needs=(),
        after=(),
        benchmark=EVERY,
    )
