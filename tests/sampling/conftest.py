"""The plan of a comparison of two commands."""

from __future__ import annotations

import json

import pytest

from perfflow.jobs.compare.compare_stored import Question, workflow_of
from perfflow.plan.plan import Plan
from perfflow.session.open_workflow import open_workflow


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = tmp_path_factory.mktemp("plan") / "compare.yaml"
    path.write_text(json.dumps(workflow_of(Question("old", "new"))))
    return open_workflow(str(path)).plan
