"""Problems of ``layouts`` and ``layout.seed``, and their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow.drafts import opened, said

FLOW = """stages:
  build:
    - {id: make, run: 'make %s'}
  baseline:
    - {id: bench, uses: command, with: {command: ./bench}%s}
"""


def messages(folder: Path, build: str = "", keys: str = "") -> list[str]:
    return [text.partition(" ")[2] for text in said(opened(folder, FLOW % (build, keys)))]


@pytest.mark.parametrize("value", ["5", "64", "auto", "off"])
def test_these_are_values(value: str, tmp_path: Path) -> None:
    assert messages(tmp_path, keys=f", layouts: {value}") == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("4", "invalid `layouts`: 4"),
        ("65", "invalid `layouts`: 65"),
        ("many", "invalid `layouts`: 'many'"),
        ("'5'", "invalid `layouts`: '5'"),
    ],
)
def test_others_are_errors_that_name_the_values(value: str, message: str, tmp_path: Path) -> None:
    found = opened(tmp_path, FLOW % ("", f", layouts: {value}"))
    assert [problem.message for problem in found.problems] == [message]
    assert found.problems[0].hint == "write a number from 5 to 64, `auto` or `off`"


def test_a_step_that_measures_nothing_has_no_layouts(tmp_path: Path) -> None:
    found = opened(tmp_path, "stages: {build: [{id: make, run: make, layouts: 8}]}\n")
    assert "`layouts` on a step that does not measure" in [problem.message for problem in found.problems]


def test_the_seed_is_of_builds(tmp_path: Path) -> None:
    assert messages(tmp_path, build="${{ layout.seed }}") == []
    assert messages(tmp_path, build="${{ layout.seeds }}") == ["undefined `layout.seeds`"]
    (message,) = messages(tmp_path, keys=", env: {SEED: '${{ layout.seed }}'}")
    assert message == "`layout.seed` in a step that does not build"
