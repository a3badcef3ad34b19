"""Stored sets: damaged ones give UserError or a result, never another exception; and their machines."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.jobs.compare.compare_stored import CompareOptions, compare_stored
from perfflow.model.errors import UserError
from perfflow.store.history import baselines, summary
from perfflow.store.history.find_stored import find, names_stored
from perfflow.store.history.stored import stored_of
from perfflow.store.result_file import to_text
from perfflow.tools.read_file import read as read_import
from tests.damage import damaged
from tests.imports.harness import DATA, source
from tests.verdict.records import MACHINE, ended, judged, pairs, planned

fuzz = settings(database=None, suppress_health_check=list(HealthCheck))
RUN = judged(*pairs("b", [1.0, 1.1, 1.2], [2.0, 2.1, 2.2], inner={"p50": 1.0, "p99": 2.0}), ended("b"))
PYPERF = read_import(source(DATA / "pyperf" / "2.10.0" / "time"))


@fuzz
@given(st.data())
def test_a_damaged_result(data: st.DataObject) -> None:
    content = data.draw(damaged(to_text(RUN).encode()))
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "run.json").write_bytes(content)
        _compare(root, "run.json")


@fuzz
@given(st.data(), st.sampled_from([RUN, PYPERF]))
def test_a_damaged_baseline(data: st.DataObject, kept: Any) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        path = baselines.save(root, "main", kept, "here", force=False)
        path.write_bytes(data.draw(damaged(path.read_bytes())))
        _compare(root, "main")


def test_a_result_with_a_threshold_below_zero_is_refused(tmp_path: Path) -> None:
    text = to_text(RUN)
    assert text.count('"action": 0.1') == 2
    (tmp_path / "run.json").write_text(text.replace('"action": 0.1', '"action": -1.0'))
    with pytest.raises(UserError, match=r"its criteria cannot be read \(ValueError: a threshold of -1\.0\)"):
        find(tmp_path, str(tmp_path / "run.json"))


def _compare(root: Path, word: str) -> None:
    path = word if baselines.exists(root, word) else str(root / word)
    try:
        found = find(root, path)
        for number, sides in enumerate(((found, stored_of(RUN, "run")), (stored_of(RUN, "run"), found))):
            compare_stored(*sides, CompareOptions(root / f"out{number}", across_machines=True))
    except UserError as error:
        (problem,) = error.problems
        assert problem.hint


def test_what_the_candidate_lacks_is_not_taken_from_the_baseline() -> None:
    events = pairs("b", [1.0, 1.0], [2.0, 2.0])
    for event in events:
        event["baseline"].append({"metric": "time", "value": 5.0, "benchmark": "gone"})
    stored = stored_of(judged(*events, ended("b")), "run")
    assert stored.benchmarks == ["b"]
    assert [reading.value for reading in stored.series["b", "time"]] == [2.0, 2.0]


def test_a_step_of_one_side_counts_beside_one_of_two() -> None:
    events = [*pairs("b", [1.0], [2.0]), *pairs("c", [3.0], None)]
    run = judged(*events, ended("b"), ended("c"), steps=[planned("b"), planned("c")])
    assert {name: [item.value for item in readings] for (name, _), readings in stored_of(run, "").series.items()} == {
        "b": [2.0],
        "c": [3.0],
    }


@pytest.mark.parametrize(
    ("other", "facts"),
    [
        ({"os": "linux", "arch": "amd64", "mhz": "1"}, []),
        ({"os": "Linux", "cpus": "4", "kernel": "6.1.9-generic"}, ["cores"]),
        ({"arch": "aarch64", "cpu": "other"}, ["cpu", "architecture"]),
        ({"kernel": "5.10.3"}, ["kernel_series"]),
        ({}, []),
        (MACHINE | {"load": [9.0], "python": "3.13", "identity": MACHINE["identity"]}, []),
        (MACHINE | {"identity": "0"}, ["identity"]),
        (MACHINE | {"cores": 3}, ["cores"]),
        (MACHINE | {"caches": ["L2"], "cores": 3, "identity": "0"}, ["cores"]),
    ],
)
def test_the_facts_that_differ(other: dict[str, Any], facts: list[str]) -> None:
    here = MACHINE | {"architecture": "x86_64"}
    assert [item.fact for item in summary.machine_differences(here, other)] == facts
    assert [item.fact for item in summary.machine_differences(other, here)] == facts


def test_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    baselines.save(tmp_path, "main", RUN, "here", force=False)
    (tmp_path / "file.txt").write_text("")
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "folder").mkdir()
    words = ("main", "file.txt", "folder", "missing.json", "folder:x", "./folder")
    assert [word for word in words if not names_stored(tmp_path, word)] == []
    commands = ("tool", "./tool", "sort file.txt", "cat a.json", "latest", "", " ", "x" * 5000, "none:x", "a\nb")
    assert [word for word in commands if names_stored(tmp_path, word)] == []


def test_an_interrupted_save_leaves_no_baseline(tmp_path: Path) -> None:
    (baselines.folder_of(tmp_path) / "main").mkdir(parents=True)
    assert baselines.names(tmp_path) == []
    baselines.save(tmp_path, "main", RUN, "here", force=False)
    assert baselines.names(tmp_path) == ["main"]
    assert json.loads((tmp_path / ".perfflow" / "baselines" / "main" / "baseline.json").read_text())["origin"] == "here"
