"""``extends`` with several parents, removed steps, and the resolved workflow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.model.errors import Severity, UserError
from perfflow.session.open_workflow import Opened, open_workflow
from perfflow.workflow import load
from perfflow.workflow.yaml_text import read_text
from tests.cli.shell import perfflow

ONE = """\
perfflow: 1
name: one
env: {A: 1, B: 1}
thresholds: {concern: 5%, action: 10%}
data: [x]
params: {n: {default: 1, help: how many}}
stages:
  baseline:
    - {id: bench, uses: command, with: {command: ./one}, runs: 5}
    - {id: heap, uses: massif, benchmark: bench}
  profile: [{id: cpu, uses: perf, benchmark: bench}]
"""
TWO = """\
perfflow: 1
name: two
env: {B: 2, C: 2}
thresholds: {concern: 5%, action: 20%}
params: {n: 2}
stages:
  baseline:
    - {id: bench, runs: 9, warmup: 1}
"""


def opened(folder: Path, child: str, **parents: str) -> Opened:
    for name, text in {"one": ONE, "two": TWO, **parents}.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "child.yaml").write_text(f"perfflow: 1\n{child}")
    return open_workflow(str(folder / "child.yaml"))


def said(found: Opened, severity: Severity) -> list[str]:
    return [
        f"{Path(item.place.file).name}:{item.place.line} {item.message.replace(str(found.path.parent) + '/', '')}"
        for item in found.problems
        if item.place and item.severity is severity
    ]


def test_later_parents_win_and_what_they_contradict_is_named(tmp_path: Path) -> None:
    found = opened(tmp_path, "extends: [one.yaml, two.yaml]\n")
    flow = found.draft.workflow
    assert flow.env == {"A": "1", "B": "2", "C": "2"}
    assert flow.params["n"].default == 2
    assert flow.params["n"].help == "how many"
    (bench, _) = flow.stages["baseline"].steps
    assert (bench.with_, bench.runs, bench.warmup) == ({"command": "./one"}, 9, 1)
    # Equal values, and the names of the files, are no conflict.
    assert said(found, Severity.WARNING) == [
        "two.yaml:3 `env.B` differs from one.yaml:3, which is also extended",
        "two.yaml:4 `thresholds.action` differs from one.yaml:4, which is also extended",
        "two.yaml:5 `params.n.default` differs from one.yaml:6, which is also extended",
        "two.yaml:8 `stages.baseline.bench.runs` differs from one.yaml:9, which is also extended",
    ]
    assert said(found, Severity.ERROR) == []
    other = opened(tmp_path, "extends: [two.yaml, one.yaml]\n")
    assert (other.draft.workflow.env["B"], other.draft.workflow.stages["baseline"].steps[0].runs) == ("1", 5)


def test_what_the_workflow_itself_says_settles_it(tmp_path: Path) -> None:
    own = "env: {B: 3}\nthresholds: {action: 15%}\nparams: {n: 4}\nstages: {baseline: [{id: bench, runs: 7}]}\n"
    found = opened(tmp_path, f"extends: [one.yaml, two.yaml]\n{own}")
    assert said(found, Severity.WARNING) == []
    assert (found.draft.workflow.params["n"].default, found.draft.workflow.stages["baseline"].steps[0].runs) == (4, 7)
    removed = opened(tmp_path, f"extends: [one.yaml, two.yaml]\n{own.replace('{id: bench, runs: 7}', 'bench: null')}")
    assert said(removed, Severity.WARNING) == []


def test_two_commands_for_one_step_are_a_contradiction(tmp_path: Path) -> None:
    two = "perfflow: 1\nstages:\n  baseline:\n    - {id: bench, run: ./two}\n"
    found = opened(tmp_path, "extends: [one.yaml, two.yaml]\n", two=two)
    assert said(found, Severity.WARNING)[0] == (
        "two.yaml:4 `stages.baseline.bench` differs from one.yaml:9, which is also extended"
    )
    step = found.draft.workflow.stages["baseline"].steps[0]
    assert (step.run, step.uses, step.with_) == ("./two", None, {})


def test_inherited_steps_and_stages_are_removed(tmp_path: Path) -> None:
    child = (
        "extends: one.yaml\nstages:\n  profile: null\n  baseline:\n    - heap: null\n    - {id: more, run: 'true'}\n"
    )
    found = opened(tmp_path, child)
    assert {name: [step.id for step in stage.steps] for name, stage in found.draft.workflow.stages.items()} == {
        "baseline": ["bench", "more"]
    }
    assert said(found, Severity.ERROR) == []
    # A parent may remove a step of another parent.
    less = opened(
        tmp_path, "extends: [one.yaml, less.yaml]\n", less="perfflow: 1\nstages: {baseline: [{heap: null}]}\n"
    )
    assert [step.id for step in less.draft.workflow.stages["baseline"].steps] == ["bench"]
    # A removed step can be written again.
    anew = opened(
        tmp_path, "extends: one.yaml\nstages:\n  baseline: [{bench: null}, {id: bench, run: x}, {heap: null}]\n"
    )
    (step,) = anew.draft.workflow.stages["baseline"].steps
    assert (step.run, step.runs) == ("x", None)


def test_what_is_not_inherited_cannot_be_removed(tmp_path: Path) -> None:
    found = opened(tmp_path, "extends: one.yaml\nstages:\n  baseline:\n    - haep: null\n  profile:\n    - cpu: null\n")
    assert said(found, Severity.ERROR) == ["child.yaml:5 cannot remove `haep`: stage `baseline` inherits no such step"]
    (problem,) = (item for item in found.problems if item.severity is Severity.ERROR)
    assert problem.hint == "did you mean `heap`?"
    alone = opened(tmp_path, "stages:\n  baseline:\n    - heap: null\n    - {id: a, run: 'true'}\n")
    assert said(alone, Severity.ERROR) == ["child.yaml:4 cannot remove `heap`: stage `baseline` inherits no such step"]
    # A step that needs a removed step is reported at its own place.
    needed = opened(
        tmp_path,
        "extends: one.yaml\nstages:\n  baseline:\n    - bench: null\n    - {id: a, run: x, needs: [bench]}\n",
    )
    assert any("unknown step `bench` under `needs`" in text for text in said(needed, Severity.ERROR))


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("[one.yaml, nowhere.yaml]", "nowhere.yaml: no such file"),
        ("[one.yaml, child.yaml]", "circular `extends`: child.yaml -> child.yaml"),
        ("https://example.org/a.yaml", "is an address, not a workflow"),
        ("pkg:no-such/a", "no installed package provides workflows called 'no-such'"),
    ],
)
def test_a_parent_that_is_wrong_is_named_where_it_stands(extends: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        opened(tmp_path, f"extends: {extends}\n")
    (problem,) = raised.value.problems
    assert message in problem.message
    assert problem.place
    assert problem.place.column == (21 if extends.startswith("[") else 10)


def test_few_files_cannot_become_very_many(tmp_path: Path) -> None:
    for number in range(8):
        text = f"perfflow: 1\nextends: [{', '.join([f'f{number + 1}.yaml'] * 9)}]\n"
        (tmp_path / f"f{number}.yaml").write_text(text)
    (tmp_path / "f8.yaml").write_text(ONE)
    with pytest.raises(UserError, match="extends more than 50 files"):
        open_workflow(str(tmp_path / "f0.yaml"))
    (tmp_path / "f0.yaml").write_text("perfflow: 1\nextends: {a: b}\n")
    problems = open_workflow(str(tmp_path / "f0.yaml")).problems
    assert any("`extends`" in item.message for item in problems)


AWKWARD = """\
perfflow: 1
name: "on"
env: {A: "1", B: yes, C: "true", D: "a: b # c", "odd key": "", E: "\\ttab", F: null text}
data: []
report: {}
extends: one.yaml
stages:
  build:
    - id: make
      run: |
        for i in 1 2; do
          echo $i   # not a comment
        done

    - id: folded
      run: >-
        one
        two
      timeout: 3m
    - id: kept
      run: |+
        x

        y


    - {id: list, argv: [echo, "- a", "'", "\\u00e9", "\\u2028"], if: "matrix.a == 1", matrix: {a: [1, 2.5, true]}}
"""


def test_the_resolved_workflow_says_the_same_and_where_it_was_said(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "flow.yaml").write_text(AWKWARD)
    found = open_workflow(str(tmp_path / "flow.yaml"))
    assert said(found, Severity.ERROR) == []
    document = found.draft.document
    lines = list(load.resolved_lines(document, lambda file: Path(file).name))
    again = read_text("\n".join(lines) + "\n", "again.yaml").data()
    wanted = document.data()
    del wanted["extends"]
    assert again == wanted
    assert '  concern: "5%"  # one.yaml:4' in lines
    assert 'name: "on"  # flow.yaml:2' in lines
    origins = load.origins(document, lambda file: Path(file).name)
    assert origins["stages.baseline.0.runs"] == "one.yaml:9"
    assert origins["stages.build.3.matrix.a.1"] == "flow.yaml:27"
    assert origins["data"] == "flow.yaml:4"


def test_show_prints_what_will_run(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE)
    (tmp_path / "own.yaml").write_text("perfflow: 1\nextends: one.yaml\nstages: {baseline: [{heap: null}]}\n")
    done = perfflow("show", "own.yaml", "--resolved", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "      runs: 5  # one.yaml:9" in done.stdout.splitlines()
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
