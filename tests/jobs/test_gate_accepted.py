"""Accepted regressions in a gate: each entry counts until the base contains it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.jobs.run.run import RunRequest, run
from perfflow.model.result import Result
from perfflow.session.open_workflow import open_workflow
from perfflow.workflow.load import load
from tests.repositories import git
from tests.session.project import Project, row

COST = "'(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}"
STEPS = f"stages: {{baseline: [{{id: b, run: cat costs, parse: {{regex: {COST}}}}}]}}\n"
ENTRY = "{benchmark: b, metric: cost, change: 30%, why: a correct parser, until: '2999-01-01'}"


@pytest.fixture
def tree(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Project:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    git(project.folder, "init", "-q", "-b", "main")
    project.write(".gitignore", ".perfflow\n")
    return project


def commit(project: Project, text: str, cost: int) -> None:
    project.write("flow.yaml", f"perfflow: 1\n{text}")
    project.write("costs", f"{cost}\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "costs")


def gated(project: Project, text: str, path: Path | None = None) -> Result:
    file = path or project.write("flow.yaml", f"perfflow: 1\n{text}")
    return run(open_workflow(str(file)), RunRequest(seed=1, base="main"), project.told).result


def test_an_entry_counts_until_it_is_merged(tree: Project) -> None:
    accepted = f"accepted: [{ENTRY}]\n{STEPS}"
    commit(tree, STEPS, 100)
    tree.write("costs", "120\n")
    assert (gated(tree, STEPS).verdict, gated(tree, accepted).verdict) == ("fail", "pass")
    commit(tree, accepted, 120)
    tree.write("costs", "144\n")
    result = gated(tree, accepted)
    assert result.verdict == "fail"
    text = "b cost: the base already contains the regression accepted until 2999-01-01: a correct parser"
    assert text in result.reason_texts
    # A new entry for a further change is another one, although the old one stays.
    assert gated(tree, f"accepted: [{ENTRY}, {ENTRY.replace('30%', '25%')}]\n{STEPS}").verdict == "pass"


def test_an_entry_may_come_from_a_file_that_is_extended(tree: Project) -> None:
    tree.write("parts/parent.yaml", f"perfflow: 1\naccepted: [{ENTRY}]\n{STEPS}")
    commit(tree, "extends: parts/parent.yaml\n", 100)
    tree.write("costs", "120\n")
    assert gated(tree, "extends: parts/parent.yaml\n").verdict == "fail"


def test_a_base_whose_workflow_cannot_be_read_has_no_entry(tree: Project) -> None:
    commit(tree, f"accepted: [{ENTRY}]\nextends: gone.yaml\n", 100)
    tree.write("costs", "120\n")
    assert gated(tree, f"accepted: [{ENTRY}]\n{STEPS}").verdict == "pass"


def test_of_a_workflow_outside_the_repository_it_is_said_that_nothing_is_known(
    tree: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commit(tree, STEPS, 100)
    tree.write("costs", "120\n")
    outside = tmp_path_factory.mktemp("elsewhere") / "flow.yaml"
    outside.write_text(f"perfflow: 1\naccepted: [{ENTRY}]\n{STEPS}")
    result = gated(tree, "", outside)
    assert result.verdict == "pass"
    assert any("each counts until its date" in text for text in result.run.warnings)


def test_an_entry_without_a_metric_is_warned_of(tree: Project) -> None:
    path = tree.write("flow.yaml", f"perfflow: 1\naccepted: [{ENTRY.replace('metric: cost, ', '')}]\n{STEPS}")
    opened = open_workflow(str(path))
    assert ["without `metric`" in problem.message for problem in opened.problems] == [True]
    assert row(gated_without(tree), "b", "cost").accepted
    assert load(path, lambda text, folder: folder / text).workflow.accepted[0].metric is None


def gated_without(tree: Project) -> Result:
    text = f"accepted: [{ENTRY.replace('metric: cost, ', '')}]\n{STEPS}"
    commit(tree, STEPS, 100)
    tree.write("costs", "120\n")
    return gated(tree, text)
