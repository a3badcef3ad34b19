"""Whether this machine can run a workflow: what is known before, and what a step of its setup says when it runs."""

from __future__ import annotations

from collections.abc import Collection

from perfflow.execute.states import UNABLE
from perfflow.jobs.catalog.preview import LEFT_OUT, SKIPPED, STOPS, preview
from perfflow.model.result import Result
from perfflow.session.opening import Opened
from perfflow.tools.adapter import Role

_FINDING_OUT = ((Role.MEASURE, Role.MACHINE), (Role.PROFILE,))


def lacking(opened: Opened, selected: Collection[str]) -> str:
    """What this machine lacks so that a run would measure nothing; '' where it can run, as far as is known before."""
    rows = [row for row in preview(opened, selected) if row["outcome"] != LEFT_OUT]
    for row in rows:
        if row["outcome"] == STOPS:
            return str(row["lacks"][0])
    for roles in _FINDING_OUT:
        asked = [row for row in rows if row["role"] in roles]
        if asked:
            return str(asked[0]["lacks"][0]) if all(row["outcome"] == SKIPPED for row in asked) else ""
    return ""


def said_unable(result: Result) -> str:
    """Why a step of the setup says that the machine lacks what the workflow needs; '' where none does."""
    said = (step.reason for step in result.steps if step.status == "skipped" and step.exit_code == UNABLE)
    return next(said, "")
