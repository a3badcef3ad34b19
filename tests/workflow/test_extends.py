"""``extends``: limits, aliases, and the resolved workflow; merging and its mistakes are in ``cases``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from perfflow.model.errors import Severity, UserError
from perfflow.session.open_workflow import open_workflow
from perfflow.workflow import load
from perfflow.workflow.extends import merge
from perfflow.workflow.yaml_text import read_text
from tests.cli.shell import perfflow
from tests.workflow.drafts import FILES, document


@pytest.mark.parametrize(
    ("files", "parents", "message"),
    [(12, 1, "more than 10 files extend each other"), (8, 9, "extends more than 50 files")],
    ids=["a chain", "few files that become very many"],
)
def test_the_number_of_files_is_limited(files: int, parents: int, message: str, tmp_path: Path) -> None:
    for number in range(files):
        extends = ", ".join([f"f{number + 1}.yaml"] * parents)
        (tmp_path / f"f{number}.yaml").write_text(f"perfflow: 1\nextends: [{extends}]\n")
    shutil.copy(FILES / "one.yaml", tmp_path / f"f{files}.yaml")
    with pytest.raises(UserError, match=message):
        open_workflow(str(tmp_path / "f0.yaml"))


def test_an_alias_that_holds_itself_on_both_sides_ends() -> None:
    parent, child = (document("a: &x {a: *x}\n").root for _ in range(2))
    assert merge(parent, child).start_mark == child.start_mark


def test_the_resolved_workflow_says_the_same_and_where_it_was_said() -> None:
    found = open_workflow(str(FILES / "awkward.yaml"))
    assert [problem for problem in found.problems if problem.severity is Severity.ERROR] == []
    document = found.draft.document
    lines = list(load.resolved_lines(document, lambda file: Path(file).name))
    wanted = document.data()
    del wanted["extends"]
    assert read_text("\n".join(lines) + "\n", "again.yaml").data() == wanted
    assert {'  concern: "5%"  # one.yaml:2', 'name: "on"  # awkward.yaml:2'} <= set(lines)
    origins = load.origins(document, lambda file: Path(file).name)
    places = {
        "stages.baseline.0.runs": "one.yaml:6",
        "stages.build.3.matrix.a.1": "awkward.yaml:27",
        "data": "awkward.yaml:4",
    }
    assert places.items() <= origins.items()


def test_show_prints_what_will_run(tmp_path: Path) -> None:
    shutil.copy(FILES / "one.yaml", tmp_path)
    (tmp_path / "own.yaml").write_text("perfflow: 1\nextends: one.yaml\nstages: {baseline: [{heap: null}]}\n")
    done = perfflow("show", "own.yaml", "--resolved", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "      runs: 5  # one.yaml:6" in done.stdout.splitlines()
    (tmp_path / "whole.yaml").write_text(done.stdout)
    assert perfflow("validate", "whole.yaml", cwd=tmp_path).returncode == 0
    found = json.loads(perfflow("show", "own.yaml", "--resolved", "--json", cwd=tmp_path).stdout)
    assert found["workflow"]["stages"]["baseline"] == [
        {"id": "bench", "uses": "command", "with": {"command": "./one"}, "runs": 5}
    ]
    assert found["origins"]["perfflow"] == "own.yaml:1"
    (tmp_path / "own.yaml").write_text("perfflow: 1\nextends: one.yaml\nstages: {baseline: [{haep: null}]}\n")
    wrong = perfflow("show", "own.yaml", "--resolved", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "own.yaml:3:21: error: cannot remove `haep`: stage `baseline` inherits no such step" in wrong.stderr
