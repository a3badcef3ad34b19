"""Profiles of a stored run, as perfflow reads and exports them. See also ``cases/export_profiles.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.stacks import read_folded
from perfflow.store import result_file
from perfflow.store.stored_stacks import stack_profiles
from tests.cli.test_cases import FOLDER, cases, perform


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run that the text cases export."""
    folder = tmp_path_factory.mktemp("profiled")
    perform(next(cases(FOLDER / "export_profiles.txt")), folder)
    return (folder / "project/.perfflow/runs/latest").resolve()


@pytest.mark.long  # profiles by several tools; tests/cli/cases/export_profiles.txt exports too
def test_profiles_are_read_with_the_cost_of_one_operation(run: Path) -> None:
    calls, stacks = stack_profiles(run, result_file.read(run / "result.json"))
    assert (calls.step, calls.benchmark, calls.side, calls.tool) == ("calls", "hot", "baseline", "cprofile")
    assert (calls.unit, calls.is_call_pairs) == ("ns", True)
    assert any(stack == ("<module> (hot.py)", "inner (hot.py)") for stack in calls.threads[""])
    assert (stacks.unit, stacks.threads[""][("main", "parse")]) == ("samples", 3)
    for profile in (calls, stacks):
        assert profile.per_operation == pytest.approx(100_000)
        assert profile.cost_unit == "ns"
        text = (run / "profiles" / f"{profile.step}-hot-baseline.folded").read_text()
        assert read_folded(text).total() == sum(sum(own.values()) for own in profile.threads.values())
