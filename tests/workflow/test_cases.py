"""Workflows in ``cases/*.txt``, here and in ``tests/plan``, and what is found when they are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow import flow_cases

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "case", [case for name in ("workflow", "plan") for case in flow_cases.read(TESTS / name / "cases")]
)
def test_opening_a_workflow_finds_what_its_case_says(
    case: flow_cases.Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow_cases.check(case, tmp_path, monkeypatch)
