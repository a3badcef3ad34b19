"""Stored sets: damaged ones give UserError or a result; their machines and statistics, and summaries by machine."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.jobs.compare.compare_stored import CompareOptions, compare_stored
from perfflow.model.errors import UserError
from perfflow.model.readings import Reading, reading_of_process
from perfflow.model.result import NodeResult
from perfflow.store.history import baselines, summary
from perfflow.store.history.find_stored import find, names_stored
from perfflow.store.history.stored import Stored, stored_of, with_same_statistic
from perfflow.store.history.summary import summaries_of
from perfflow.store.result_file import to_text
from perfflow.tools.read_file import read as read_import
from tests.damage import damaged
from tests.imports.harness import DATA, source
from tests.verdict.records import MACHINE, ended, judged, pairs, planned

fuzz = settings(database=None, suppress_health_check=list(HealthCheck))
RUN = judged(*pairs("b", [1.0, 1.1, 1.2], [2.0, 2.1, 2.2], inner={"p50": 1.0, "p99": 2.0}), ended("b"))
PYPERF = read_import(source(DATA / "pyperf" / "2.10.0" / "time"))


@pytest.mark.parametrize("kind", ["a result", "its baseline", "an imported baseline"])
@fuzz
@given(data=st.data())
def test_what_is_damaged_is_a_user_error_or_a_result(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        path = root / "run.json"
        if kind == "a result":
            path.write_text(to_text(RUN))
        else:
            path = baselines.save(root, "main", PYPERF if "imported" in kind else RUN, "here", force=False)
        path.write_bytes(data.draw(damaged(path.read_bytes())))
        try:
            found = find(root, str(path) if kind == "a result" else "main")
            for number, sides in enumerate(((found, stored_of(RUN, "run")), (stored_of(RUN, "run"), found))):
                compare_stored(*sides, CompareOptions(root / f"out{number}", across_machines=True))
        except UserError as error:
            (problem,) = error.problems
            assert problem.hint


def test_a_result_with_a_threshold_below_zero_is_refused(tmp_path: Path) -> None:
    text = to_text(RUN)
    assert text.count('"action": 0.1') == 2
    (tmp_path / "run.json").write_text(text.replace('"action": 0.1', '"action": -1.0'))
    with pytest.raises(UserError, match=r"its criteria cannot be read \(ValueError: a threshold of -1\.0\)"):
        find(tmp_path, str(tmp_path / "run.json"))


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


# ---- two stored sets with different statistics: a statistic that both contain is compared, else none ----

KEY = ("b", "time")
VALUES = [1.0, 1.0, 1.0, 2.0, 5.0]
NEW = reading_of_process("time", VALUES)
OLD = replace(NEW, value=1.0, statistic="p50")
PLAIN = Reading("time", 3.0)


def stored(label: str, *readings: Reading, started: str = "") -> Stored:
    return Stored(label, "perfflow", "", {KEY: readings}, {}, started=started)


def test_medians_are_compared_where_one_side_was_judged_by_them() -> None:
    old, new, (text,) = with_same_statistic(stored("old", OLD, OLD), stored("new", NEW, NEW))
    for side in (old, new):
        assert [(item.value, item.statistic) for item in side.series[KEY]] == [(1.0, "p50")] * 2
    said = "compared by the median of each process, which both contain: b time (old was judged by the median "
    assert text.startswith(said)


@pytest.mark.parametrize(
    ("old", "new"),
    [*((reading, reading) for reading in (NEW, OLD, PLAIN)), (replace(PLAIN, exact=True), replace(NEW, exact=True))],
    ids=["means", "medians", "plain", "exact figures have no other statistic"],
)
def test_the_same_statistic_is_left_as_it_is(old: Reading, new: Reading) -> None:
    sides = stored("old", old), stored("new", new)
    assert with_same_statistic(*sides) == (*sides, [])


def test_what_has_no_statistic_in_common_is_left_out() -> None:
    sides = stored("old", PLAIN, started="2026-02-01"), stored("new", NEW, started="2026-01-01")
    old, new, (text,) = with_same_statistic(*sides)
    assert (old.series, new.series) == ({}, {})
    said = "skipped, because old contains single values and new the capped mean of each process: b time; "
    assert text.startswith(said)
    assert text.endswith("measure new again to compare them")


# ---- a run that machines of several kinds measured is kept apart by kind ----


@pytest.mark.parametrize(("kinds", "machines"), [("ab", ["a", "b"]), ("aa", ["a"])], ids=["two kinds", "one kind"])
def test_figures_of_each_kind_of_machine_are_a_summary(kinds: str, machines: list[str]) -> None:
    values = [1.0, 1.01, 0.99] * 5
    result = judged(*pairs("b", values, values), ended("b"), *pairs("c", values, values), ended("c"))
    nodes = [
        NodeResult(name=f"n{number}", identity=kind, machine={"identity": kind}, jobs=[])
        for number, kind in enumerate(kinds)
    ]
    rows = [row.model_copy(update={"node": f"n{number % 2}"}) for number, row in enumerate(result.benchmarks)]
    assert len(rows) > 1
    found = list(summaries_of(result.model_copy(update={"nodes": nodes, "benchmarks": rows})))
    assert [summary.machine for summary in found] == machines
    assert len({summary.id for summary in found}) == len(machines)
    if len(machines) == 1:
        (alone,) = summaries_of(result)
        assert (found[0].id, found[0].points) == (result.run.id, alone.points)
    else:
        kept = [{point.benchmark for point in summary.points} for summary in found]
        assert kept == [{row.name for row in rows[start::2] if row.baseline} for start in (0, 1)]
