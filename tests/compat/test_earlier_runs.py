"""Runs, results and baselines that 0.1.0 wrote: they load, and keep their decisions until somebody asks for others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.result import Result
from perfflow.model.rules import CURRENT
from perfflow.store.history import baselines
from perfflow.store.result_file import read

DATA = Path(__file__).parent / "data" / "0.1.0"
RUNS = ("run", "gate", "compare")


@pytest.fixture(params=RUNS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA / str(request.param), tmp_path / str(request.param)))


def decisions(result: Result) -> dict[str, Any]:
    found = result.model_dump(mode="json", by_alias=True)
    rows = [
        {key: row[key] for key in ("name", "metric", "change", "confidence", "decision", "level", "gating", "pairs")}
        for row in found["benchmarks"]
    ]
    targets = [{key: item[key] for key in ("benchmark", "metric", "status")} for item in found["targets"]]
    return {"verdict": found["verdict"], "gate": found["gate"], "rows": rows, "targets": targets}


def test_a_run_of_an_earlier_version_keeps_its_decisions(stored: Path) -> None:
    before = decisions(read(stored / "result.json"))
    assert decisions(rejudge(stored, (), None).result) == before


def test_its_result_alone_keeps_them_as_well(stored: Path) -> None:
    before = decisions(read(stored / "result.json"))
    assert decisions(rejudge(stored / "result.json", (), None).result) == before


def test_current_rules_are_named_and_leave_the_files_alone(stored: Path) -> None:
    before = (stored / "result.json").read_bytes()
    result = rejudge(stored, (), None, CURRENT.name).result
    assert result.criteria["rules"] == CURRENT.name
    assert result.run.judged_by == ["rules=current"]
    assert (stored / "result.json").read_bytes() == before


def test_a_baseline_of_an_earlier_version_is_read() -> None:
    source = baselines.read(DATA / "baseline.json")
    assert isinstance(source, Result)
    assert "rules" not in json.loads((DATA / "baseline.json").read_text())["result"]["criteria"]
    assert source.verdict == "fail"
