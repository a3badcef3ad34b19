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


def raw(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.fixture
def latest(here: Path) -> Path:
    return here / ".perfflow" / "runs" / "latest"


@pytest.fixture
def copy(latest: Path, tmp_path: Path) -> Path:
    """The run again, which a test may change."""
    return Path(shutil.copytree(latest, tmp_path / "copy"))


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


def test_a_result_alone_is_a_run_without_a_folder(latest: Path, tmp_path: Path) -> None:
    run = perfflow.load(shutil.copy(latest / "result.json", tmp_path / "perf.json"))
    assert (run.folder, run.verdict) == (None, "fail")
    assert {row["order"] for row in run.to_rows()} == {None}
    assert [row["pair"] for row in run.to_rows() if row["side"] == "candidate"] == list(range(10))


def parts(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def test_every_field_is_that_of_the_file(here: Path, latest: Path) -> None:
    run, data = perfflow.load(), raw(latest)
    info = data["run"]
    same = ("id", "workflow", "component", "seconds", "seed", "version", "interrupted")
    assert info.items() >= parts(run, *same).items()
    assert run.started == datetime.fromisoformat(info["started"])
    assert run.started.tzinfo == UTC
    assert (run.verdict, run.gate, list(run.evidence)) == (data["verdict"], data["gate"]["status"], data["evidence"])
    assert [item.model_dump(mode="json") for item in run.reasons] == data["reasons"]
    assert run.revision == git(here, "rev-parse", "HEAD").strip()
    assert (run.baseline_revision, run.dirty) == (None, False)
    assert run.to_dict() == data
    for row, stored in zip(run.benchmarks, data["benchmarks"], strict=True):
        assert stored.items() >= parts(row, *(type(row).model_fields.keys() - {*SIDES, *BOUNDS})).items()
        for side in SIDES:
            own = getattr(row, side)
            assert stored[side].items() >= parts(own, "value", "low", "high", "n").items()
            assert list(own.samples) == stored[side]["samples"]
        for name in BOUNDS:
            assert parts(getattr(row, name), "value", "low", "high") == stored[name]
    (target,) = run.targets
    assert data["targets"][0].items() >= parts(target, "requirement", "measured", "status").items()


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
    run, data = perfflow.load(kinds[name]), raw(kinds[name])
    assert (run.verdict, len(run.benchmarks)) == (data["verdict"], len(data["benchmarks"]))
    trees = data["trees"]
    assert run.baseline_revision == (trees["baseline"]["revision"] if trees["candidate"] else None)
    assert run.decisions()
    workflow = data["run"]["workflow"]
    assert repr(run) == f"<Run {run.id} of {workflow}: {run.verdict}, {len(run.benchmarks)} rows>"


def test_a_killed_run_says_how_to_make_its_result(copy: Path) -> None:
    (copy / "result.json").unlink()
    with pytest.raises(UserError, match=r"has no result.json yet(.|\n)*`perfflow report"):
        perfflow.load(copy)


@pytest.mark.parametrize(("start", "end"), [("{", ""), ('"started": "2', '"started": "x'), ('"criteria": {', '"c": {')])
def test_a_damaged_file_is_an_error_with_a_remedy(start: str, end: str, copy: Path) -> None:
    path = copy / "result.json"
    path.write_text(path.read_text().replace(start, end, 1))
    with pytest.raises(UserError, match="hint: "):
        perfflow.load(path)


def test_damaged_events_are_an_error_of_the_rows_alone(copy: Path) -> None:
    events = copy / "events.jsonl"
    events.write_text(events.read_text().replace('"metric":', '"matric":'))
    run = perfflow.load(copy)
    assert len(run.decisions()) == 1
    with pytest.raises(UserError, match=r"events.jsonl: not what this version"):
        run.to_rows()


def test_what_a_notebook_shows_is_escaped(copy: Path) -> None:
    data = raw(copy)
    data["benchmarks"][0]["name"] = "<script>alert(1)</script>\u202e"
    data["run"]["workflow"] = "a<b>&\x1b[2J"
    (copy / "result.json").write_text(json.dumps(data))
    run = perfflow.load(copy)
    page = run._repr_html_()
    shown = ("&lt;script&gt;alert(1)&lt;/script&gt;", "a&lt;b&gt;&amp;", "+20.0%", "regressed (over 10%)")
    assert [text for text in shown if text not in page] == []
    assert [text for text in ("<script", "<b>", "\x1b", "\u202e") if text in page] == []
    assert "\x1b" not in repr(run)


def test_a_long_table_says_what_it_leaves_out(copy: Path) -> None:
    data = raw(copy)
    (row,) = data["benchmarks"]
    data["benchmarks"] = [{**row, "name": f"count{number}"} for number in range(60)]
    (copy / "result.json").write_text(json.dumps(data))
    page = perfflow.load(copy)._repr_html_()
    assert (page.count("<tr>"), "10 more rows" in page) == (51, True)
