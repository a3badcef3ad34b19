"""``perfflow.load``: every way to name a run, every field as in result.json, every error with a hint."""

from __future__ import annotations

import json
import shutil
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_type

import pytest

import perfflow
from perfflow.model.errors import UserError
from tests.api.stored import KINDS
from tests.repositories import git

SIDES, BOUNDS = ("baseline", "candidate"), ("change", "speedup")


def raw(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_run_is_found_by_each_of_its_names(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = assert_type(perfflow.load(), perfflow.Run)
    folder = here / ".perfflow" / "runs" / run.id
    assert run.folder == folder.resolve()
    for name in ("latest", run.id, folder, str(folder), folder / "result.json", f".perfflow/runs/{run.id}"):
        assert perfflow.load(name).folder == folder.resolve()
    monkeypatch.chdir(folder)
    assert perfflow.load().id == run.id


def test_root_names_another_project(
    here: Path, tmp_path: Path, kinds: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = perfflow.load()
    # A folder of the same name in the current folder must be ignored.
    shutil.copytree(kinds["run"], tmp_path / "latest")
    monkeypatch.chdir(tmp_path)
    assert perfflow.load("latest", root=here).id == run.id
    assert perfflow.load(run.id, root=str(here)).id == run.id
    assert perfflow.load(f".perfflow/runs/{run.id}/result.json", root=here).id == run.id
    assert perfflow.load(kinds["run"], root=here).workflow == "several"
    with pytest.raises(UserError, match=r"no run found(.|\n)*the newest in"):
        perfflow.load("run-that-is-not-there", root=here)


def test_a_result_alone_is_a_run_without_a_folder(here: Path, tmp_path: Path) -> None:
    copy = shutil.copy(here / ".perfflow/runs/latest/result.json", tmp_path / "perf.json")
    run = perfflow.load(copy)
    assert (run.folder, run.verdict) == (None, "fail")
    assert {row["order"] for row in run.to_rows()} == {None}
    assert [row["pair"] for row in run.to_rows() if row["side"] == "candidate"] == list(range(10))


def test_every_field_is_that_of_the_file(here: Path) -> None:
    run, data = perfflow.load(), raw(here / ".perfflow/runs/latest/result.json")
    info = data["run"]
    for name in ("id", "workflow", "component", "seconds", "seed", "version", "interrupted"):
        assert getattr(run, name) == info[name]
    assert run.started == datetime.fromisoformat(info["started"])
    assert run.started.tzinfo == UTC
    assert (run.verdict, run.gate) == (data["verdict"], data["gate"]["status"])
    assert ([item.model_dump(mode="json") for item in run.reasons], list(run.evidence)) == (
        data["reasons"],
        data["evidence"],
    )
    assert run.revision == git(here, "rev-parse", "HEAD").strip()
    assert (run.baseline_revision, run.dirty) == (None, False)
    assert run.to_dict() == data
    for row, stored in zip(run.benchmarks, data["benchmarks"], strict=True):
        same = type(row).model_fields.keys() - {*SIDES, *BOUNDS}
        assert {name: getattr(row, name) for name in same} == {name: stored[name] for name in same}
        for side in SIDES:
            own = getattr(row, side)
            assert [own.value, own.low, own.high, own.n] == [stored[side][k] for k in ("value", "low", "high", "n")]
            assert list(own.samples) == stored[side]["samples"]
        for name in BOUNDS:
            own = getattr(row, name)
            assert {"value": own.value, "low": own.low, "high": own.high} == stored[name]
    (target,) = run.targets
    assert {name: getattr(target, name) for name in ("requirement", "measured", "status")} == {
        name: data["targets"][0][name] for name in ("requirement", "measured", "status")
    }


def test_a_run_cannot_be_changed(here: Path) -> None:
    run = perfflow.load()
    with pytest.raises(FrozenInstanceError):
        run.verdict = "pass"  # type: ignore[misc]
    run.to_dict()["verdict"] = "pass"
    assert run.to_dict()["verdict"] == "fail"
    assert isinstance(hash(run), int)


def test_an_unknown_row_names_those_that_there_are(here: Path) -> None:
    with pytest.raises(KeyError, match="it has: count time"):
        perfflow.load().benchmark("count", "cpu")


@pytest.mark.parametrize("name", KINDS)
def test_runs_of_every_kind_are_read(name: str, kinds: dict[str, Path]) -> None:
    run, data = perfflow.load(kinds[name]), raw(kinds[name] / "result.json")
    assert (run.verdict, len(run.benchmarks)) == (data["verdict"], len(data["benchmarks"]))
    trees = data["trees"]
    assert run.baseline_revision == (trees["baseline"]["revision"] if trees["candidate"] else None)
    assert run.decisions()
    workflow = data["run"]["workflow"]
    assert repr(run) == f"<Run {run.id} of {workflow}: {run.verdict}, {len(run.benchmarks)} rows>"


def test_a_killed_run_says_how_to_make_its_result(here: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    shutil.copytree(here / ".perfflow/runs/latest/", folder)
    (folder / "result.json").unlink()
    with pytest.raises(UserError, match=r"has no result.json yet(.|\n)*`perfflow report"):
        perfflow.load(folder)


@pytest.mark.parametrize(("start", "end"), [("{", ""), ('"started": "2', '"started": "x'), ('"criteria": {', '"c": {')])
def test_a_damaged_file_is_an_error_with_a_remedy(start: str, end: str, here: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text((here / ".perfflow/runs/latest/result.json").read_text().replace(start, end, 1))
    with pytest.raises(UserError, match="hint: "):
        perfflow.load(path)


def test_damaged_events_are_an_error_of_the_rows_alone(here: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(here / ".perfflow/runs/latest/", folder)
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"metric":', '"matric":'))
    run = perfflow.load(folder)
    assert len(run.decisions()) == 1
    with pytest.raises(UserError, match=r"events.jsonl: not what this version"):
        run.to_rows()


def test_what_a_notebook_shows_is_escaped(here: Path, tmp_path: Path) -> None:
    data = raw(here / ".perfflow/runs/latest/result.json")
    data["benchmarks"][0]["name"] = "<script>alert(1)</script>\u202e"
    data["run"]["workflow"] = "a<b>&\x1b[2J"
    (tmp_path / "result.json").write_text(json.dumps(data))
    run = perfflow.load(tmp_path)
    page = run._repr_html_()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a&lt;b&gt;&amp;" in page
    for text in ("<script", "<b>", "\x1b", "\u202e"):
        assert text not in page
    assert "\x1b" not in repr(run)
    assert "+20.0%" in page
    assert "regressed (over 10%)" in page


def test_a_long_table_says_what_it_leaves_out(here: Path, tmp_path: Path) -> None:
    data = raw(here / ".perfflow/runs/latest/result.json")
    (row,) = data["benchmarks"]
    data["benchmarks"] = [{**row, "name": f"count{number}"} for number in range(60)]
    (tmp_path / "result.json").write_text(json.dumps(data))
    page = perfflow.load(tmp_path)._repr_html_()
    assert (page.count("<tr>"), "10 more rows" in page) == (51, True)
