"""Whether this machine can run a workflow, as known before the run and as a setup step reports it."""

from __future__ import annotations

from collections.abc import Collection

from perfflow.execute.states import UNABLE
from perfflow.jobs.catalog.preview import LEFT_OUT, SKIPPED, STOPS, preview
from perfflow.model.result import Result
from perfflow.session.open_workflow import Opened
from perfflow.tools.adapter import Role

_FINDING_OUT = ((Role.MEASURE, Role.MACHINE), (Role.PROFILE,))


def lacking(opened: Opened, selected: Collection[str]) -> str:
    """Return what this machine lacks, if a run would therefore measure nothing; '' if it can run, as far as known."""
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
    """Return why a setup step reported that this machine cannot run the workflow; '' if none did."""
    said = (step.reason for step in result.steps if step.status == "skipped" and step.exit_code == UNABLE)
    return next(said, "")
