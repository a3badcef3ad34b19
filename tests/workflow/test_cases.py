"""Workflows in ``cases/*.txt``, and what is found when they are opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflow import flow_cases


@pytest.mark.parametrize("case", list(flow_cases.read(Path(__file__).with_name("cases"))))
def test_opening_a_workflow_finds_what_its_case_says(
    case: flow_cases.Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow_cases.check(case, tmp_path, monkeypatch)
