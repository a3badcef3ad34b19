"""``expect`` and ``confirms`` of the cells of a step."""

from __future__ import annotations

from pathlib import Path

from perfflow.plan.plan import confirmed_by, expected_of
from tests.workflow.drafts import opened, said

TEXT = """\
params: {{area: core}}
stages:
  baseline:
    - {{id: a, uses: command, with: {{command: x}}, benchmark: "core/${{{{ matrix.k }}}}", matrix: {{k: [1, 2]}}}}
    - {{id: b, uses: command, with: {{command: x}}, scenario: realistic, matrix: {{k: [1, 2]}}, confirms: {confirms}}}
"""


def test_a_cell_confirms_the_benchmarks_of_its_own_key(tmp_path: Path) -> None:
    found = opened(tmp_path, TEXT.format(confirms="'${{ params.area }}/${{ matrix.k }}'"))
    assert said(found) == []
    assert [confirmed_by(item, found.plan.params) for item in found.plan.steps] == [[], [], ["core/1"], ["core/2"]]


def test_globs_stand_as_they_are(tmp_path: Path) -> None:
    found = opened(tmp_path, TEXT.format(confirms="[core/*, 'a[k=1]']"))
    assert confirmed_by(found.plan.by_id["b[k=1]"], found.plan.params) == ["core/*", "a[k=1]"]


def test_a_name_that_there_is_not_is_said_once(tmp_path: Path) -> None:
    assert [text.partition(" ")[2] for text in said(opened(tmp_path, TEXT.format(confirms="core/1/x")))] == [
        "no other step measures `core/1/x`"
    ]
    (wrong,) = said(opened(tmp_path, TEXT.format(confirms="'${{ matrix.size }}'")))
    assert "matrix.size" in wrong


EXPECTING = """\
stages:
  baseline:
    - id: a
      uses: command
      with: {{command: x}}
      benchmark: "${{{{ matrix.k }}}}"
      matrix: {{k: [1, 2]}}
      expect: {expect}
"""


def test_a_cell_expects_the_benchmarks_of_its_own_key(tmp_path: Path) -> None:
    found = opened(tmp_path, EXPECTING.format(expect="['${{ matrix.k }}', other/*]"))
    assert said(found) == []
    assert [expected_of(item, found.plan.params) for item in found.plan.steps] == [["1", "other/*"], ["2", "other/*"]]
    (wrong,) = said(opened(tmp_path, EXPECTING.format(expect="['${{ matrix.size }}']")))
    assert "matrix.size" in wrong
