"""Workflows that came with 0.1.0: each loads, and what is deprecated in it is mended by `perfflow migrate`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perfflow.jobs.start.migrate_workflow import migrated
from perfflow.jobs.start.rewritten_file import write
from perfflow.model.errors import Problem, Severity
from perfflow.plan.parameters import MISSING
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.workflow.step_checks import MIGRATE
from tests.cli.shell import ROOT

DATA = Path(__file__).parent / "data" / "0.1.0"
FILES = sorted([*DATA.glob("library/*.yaml"), *DATA.glob("workflows/*.yaml"), *DATA.glob("*.yaml")])
DEPRECATED = {
    "library/python-optimize.yaml": "tolerance",
    "library/two-commands.yaml": "tolerance",
    "workflows/regression-gate.yaml": "metric",
    "workflows/torch-ddp.yaml": "tolerance",
    "workflows/torch-training.yaml": "tolerance",
    "run.yaml": "metric",
}
"""Files with something deprecated, and a word of the warning."""


@pytest.fixture
def copied(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A workflow in a project that has what the bundled ones refer to."""
    for name in ("workflows/patches", "examples", "src"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("target", ".git"))
    (tmp_path / "workflows").mkdir(exist_ok=True)
    return Path(shutil.copy(request.param, tmp_path / "workflows"))


def mistakes(opened: Opened) -> list[Problem]:
    return [item for item in opened.problems if item.severity is Severity.ERROR and item.rule != MISSING]


def deprecated(opened: Opened) -> list[str]:
    return [item.message for item in opened.problems if MIGRATE in item.hint]


def without_role(opened: Opened) -> list[str]:
    return [item.message for item in opened.problems if "without a `role`" in item.message]


def decided_by(opened: Opened) -> tuple[object, ...]:
    """What a verdict rests on, but for the metric of what is accepted."""
    plan = opened.plan
    steps = [(item.id, item.stage, item.role, item.benchmark, item.needs, item.after) for item in plan.steps]
    criteria = plan.criteria.to_json()
    accepted = [{key: value for key, value in item.items() if key != "metric"} for item in criteria.pop("accepted")]
    return steps, criteria, accepted


@pytest.mark.parametrize("copied", FILES, indirect=True, ids=lambda path: str(path.relative_to(DATA)))
def test_a_workflow_of_an_earlier_version_loads_and_can_be_migrated(
    copied: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(copied.parents[1])
    before, text = open_workflow(str(copied)), copied.read_text()
    assert mistakes(before) == []
    word = next((word for name, word in DEPRECATED.items() if f"[{name}]" in request.node.name), "")
    assert bool(word) == bool(deprecated(before))
    assert all(word in said for said in deprecated(before))
    found = migrated(str(copied))
    assert (found.after == text) == (not word and not without_role(before))
    write(found)
    after = open_workflow(str(copied))
    assert (mistakes(after), deprecated(after), without_role(after)) == ([], [], [])
    assert decided_by(after) == decided_by(before)
    comments = [line.partition("#")[2] for line in text.splitlines() if "# " in line]
    assert [line.partition("#")[2] for line in copied.read_text().splitlines() if "# " in line] == comments
    assert migrated(str(copied)).after == found.after
