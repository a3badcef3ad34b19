"""``requires`` of the cells of a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.plan.coverage import requires_of
from tests.workflow.drafts import opened, said

TEXT = """\
params: {{labelled: {labelled}, tool: ncu}}
stages:
  baseline:
    - id: a
      uses: command
      with: {{command: x}}
      matrix: {{arch: [sm_80, sm_90]}}
      requires: {{gpu: 1, tool: ["${{{{ params.tool }}}}>=2022"], label: {label}}}
"""
OWN = "\"${{ matrix.arch if params.labelled else '' }}\""


@pytest.mark.parametrize(("labelled", "labels"), [("true", [["sm_80"], ["sm_90"]]), ("false", [[], []])])
def test_a_cell_asks_for_its_own_label_or_for_none(labelled: str, labels: list[list[str]], tmp_path: Path) -> None:
    found = opened(tmp_path, TEXT.format(labelled=labelled, label=OWN))
    assert said(found) == []
    asked = [requires_of(item, found.plan.params) for item in found.plan.steps]
    assert [item and (item.gpu, item.tool, item.label) for item in asked] == [
        (1, ["ncu>=2022"], label) for label in labels
    ]


def test_a_step_that_requires_nothing(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {build: [{id: a, run: x}]}\n")
    assert requires_of(found.plan.by_id["a"], {}) is None


@pytest.mark.parametrize("name", ["matrix.size", "params.none", "run.id"])
def test_what_is_not_known_before_the_run_is_said_once(name: str, tmp_path: Path) -> None:
    (wrong,) = said(opened(tmp_path, TEXT.format(labelled="true", label=f'"${{{{ {name} }}}}"')))
    assert name.partition(".")[0] in wrong
