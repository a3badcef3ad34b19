"""``torch-profiler`` on traces: self times, metrics of ranks, damaged files, and files that count as new."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.torch import torch_profiler
from perfflow.tools.torch.torch_profiler import length, union, within
from tests.tools.harness import DATA, USAGE, call_of, tool, values_of

CAPTURED = DATA / "torch-profiler" / "2.15.0"
DRIVER = Path(torch_profiler.__file__).parents[1] / "drivers" / "written_files.py"


def _events(path: Path) -> list[dict[str, Any]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events: list[dict[str, Any]] = json.loads(content)["traceEvents"]
    return events


def _parsed(folder: Path, *documents: object) -> Parsed:
    """Write documents as traces of one program, and parse them."""
    folder.mkdir(exist_ok=True)
    files = []
    for number, document in enumerate(documents):
        (folder / f"written-{number}.json").write_text(json.dumps(document))
        files.append({"copy": f"written-{number}.json", "path": f"{number}.json"})
    (folder / "written.json").write_text(json.dumps({"files": files, "old": []}))
    return tool("torch-profiler").parse(call_of("torch-profiler", folder, "x"), USAGE)


def _span(name: str, start: float, duration: float, category: str = "cpu_op", thread: int = 1) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "pid": 1, "tid": thread}


def _document(*events: object, rank: int | None = None) -> dict[str, object]:
    told = {} if rank is None else {"distributedInfo": {"backend": "gloo", "rank": rank}}
    return {**told, "traceEvents": list(events)}


@pytest.mark.parametrize("case", ["small/written-0.json", "train/written-0.json.gz", "ranks/written-1.json.gz"])
def test_self_time_is_what_lies_in_no_other_span(case: str) -> None:
    spans = [event for event in _events(CAPTURED / case) if event.get("cat") in {"cpu_op", "user_annotation"}]
    spans = [event for event in spans if event["ph"] == "X"]
    own: dict[str, float] = {}
    for span in spans:
        end = span["ts"] + span["dur"]
        inner = [
            (other["ts"], min(end, other["ts"] + other["dur"]))
            for other in spans
            if other is not span
            and other["tid"] == span["tid"]
            and span["ts"] <= other["ts"] < end
            # Of two events with the same ends, the later one in the file is the inner one.
            and (other["ts"], -other["dur"], spans.index(other)) > (span["ts"], -span["dur"], spans.index(span))
        ]
        name = "ProfilerStep" if span["name"].startswith("ProfilerStep#") else span["name"]
        own[name] = own.get(name, 0.0) + span["dur"] - length(union(inner))
    found = {name: row.own for (name, _), row in torch_profiler.read_trace(CAPTURED / case).rows.items()}
    assert found.keys() == own.keys()
    assert all(found[name] == pytest.approx(own[name], abs=0.05) for name in own)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_chunks_of_any_size_read_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = CAPTURED / "small" / "written-0.json"
    whole: list[object] = []
    others = torch_profiler.read_events(path, whole.append)
    monkeypatch.setattr(torch_profiler, "_CHUNK", size)
    seen: list[object] = []
    assert torch_profiler.read_events(path, seen.append) == others
    assert seen == whole == _events(path)


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_a_trace_that_was_cut_anywhere_is_refused(ending: str, tmp_path: Path) -> None:
    content = (CAPTURED / "small" / "written-0.json").read_bytes().rstrip()
    content = gzip.compress(content) if ending.endswith("gz") else content
    path = tmp_path / f"trace{ending}"
    for end in [0, 1, 2, *range(20, len(content) - 1, len(content) // 40), len(content) - 1]:
        path.write_bytes(content[:end])
        with pytest.raises(ToolOutputError, match=r"cut short|empty"):
            torch_profiler.read_trace(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "contains no traceEvents"),
        ('{"traceEvents": []}', "contains no traceEvents"),
        ('{"traceEvents": [1]}', "not an object"),
        ('{"traceEvents": [{"ph": "M"}]}', "contains no operator"),
        ('{"traceEvents": [{"ph": "M"}], "traceEvents": [{"ph": "M"}]}', "twice"),
        ('{"traceEvents": [{"ph": "M"}]} more', "damaged"),
        ('{"traceEvents": ' + "[" * 100_000, "nested|damaged"),
        ('[{"ph": "M"}]', "damaged"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1}]}', "dur of 'a' is null"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(ToolOutputError, match=said):
        torch_profiler.read_trace(path)


def test_a_value_without_end_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_profiler, "_LONGEST", 1 << 12)
    monkeypatch.setattr(torch_profiler, "_CHUNK", 1 << 10)
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": [{"name": "' + "x" * (1 << 16))
    with pytest.raises(ToolOutputError, match="longer than"):
        torch_profiler.read_trace(path)


def test_figures_of_a_run_worked_out_by_hand(tmp_path: Path) -> None:
    loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    steps = [(0, 0.0, 900.0), (1, 1000.0, 100.0), (2, 1100.0, 120.0), (3, 1220.0, 140.0)]
    events = [_span(f"ProfilerStep#{number}", start, span, "user_annotation") for number, start, span in steps]
    events += [_span(loading, start + 1, 40.0, "user_annotation") for _, start, _ in steps]
    # The loader's wait before the first step belongs to no step.
    events += [_span(loading, 950.0, 40.0, "user_annotation")]
    values = values_of(_parsed(tmp_path / "out", _document(*events)))
    assert values == {
        "dataloader_wait": pytest.approx(160.0 / 1260.0),
        "compile_time": pytest.approx((860.0 - 80.0) * 1e-6),
    }


def test_the_rank_that_waits_is_not_the_slow_one(tmp_path: Path) -> None:
    # Both take 100 us per step: rank 0 works for 20 us and waits for 80 us, rank 1 the other way round.
    documents = []
    for rank, held in ((0, 80.0), (1, 20.0)):
        events: list[object] = []
        for number in range(2):
            start = number * 100.0
            called = start + 100.0 - held
            events += [
                _span(f"ProfilerStep#{number}", start, 100.0, "user_annotation"),
                _span("c10d::allreduce_", called, 1.0),
                _span("gloo:all_reduce", called + 0.5, held - 5.0, "user_annotation", thread=2),
            ]
        events.append(_span("ProfilerStep#2", 200.0, 0.0, "user_annotation"))
        documents.append(_document(*events, rank=rank))
    values = values_of(_parsed(tmp_path / "out", *documents))
    assert values["allreduce_fraction"] == pytest.approx(0.5)
    assert values["rank_skew"] == pytest.approx(80.0 / 50.0 - 1.0)


def test_two_traces_of_one_rank_are_refused(tmp_path: Path) -> None:
    one = _document(_span("aten::mm", 0.0, 1.0), rank=3)
    with pytest.raises(ToolOutputError, match="2 traces are of rank 3"):
        _parsed(tmp_path / "out", one, one)


def test_without_a_schedule_operators_are_told_and_what_is_missing(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CAPTURED / "no-schedule", tmp_path / "out"))
    parsed = tool("torch-profiler").parse(call_of("torch-profiler", folder, "x"), USAGE)
    assert "aten::mm" in {spot.location for spot in parsed.hotspots}
    assert not values_of(parsed).keys() & {"dataloader_wait", "compile_time"}
    assert any("schedule" in text for text in parsed.warnings)


def test_operators_and_kernels_are_ranked_each_by_its_own_time(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CAPTURED.with_name("2.15.0-synthetic") / "cuda", tmp_path / "out"))
    parsed = tool("torch-profiler").parse(call_of("torch-profiler", folder, "x"), USAGE)
    first = {unit: next(spot for spot in parsed.hotspots if spot.unit == unit) for unit in ("time", "device time")}
    assert first["device time"].location == "ampere_sgemm_128x64_tn"
    assert first["device time"].share == pytest.approx(3000.0 / 5250.0)
    assert first["time"].location == "ProfilerStep"


@pytest.mark.parametrize("command", [["sh", "-c", "exit 3"], ["sh", "-c", "kill -9 $$"], ["./no-such-program"]])
def test_the_driver_ends_as_the_command_did(command: list[str], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(DRIVER), str(tmp_path), "*.json", "--", *command], check=False)
    assert done.returncode == {"exit 3": 3, "kill -9 $$": 137}.get(command[-1], 127)
    assert json.loads((tmp_path / "written.json").read_text()) == {"files": [], "old": []}


def test_only_what_the_command_wrote_is_kept(tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    for folder in (out, work / "deep" / "er"):
        folder.mkdir(parents=True)
    for name in ("old.json", "again.json"):
        (work / name).write_text("before")
    text = "echo new | tee deep/er/trace.json.gz again.json; echo aged > aged.json; touch -d @1000000000 aged.json"
    argv = [sys.executable, str(DRIVER), str(out), "*.json", "**/*.json.gz", "--", "sh", "-c", text]
    subprocess.run(argv, cwd=work, check=True, stdout=subprocess.DEVNULL)
    listed = json.loads((out / "written.json").read_text())
    assert {file["path"]: (out / file["copy"]).read_text() for file in listed["files"]} == {
        "again.json": "new\n",
        "deep/er/trace.json.gz": "new\n",
    }
    assert [Path(file["copy"]).suffix for file in listed["files"]] == [".json", ".gz"]
    assert listed["old"] == ["aged.json", "old.json"]


def test_intervals() -> None:
    assert union([(3, 4), (0, 2), (1, 3)]) == [(0, 4)]
    assert within([(0, 10), (2, 3)], [(1, 4), (8, 12), (3, 5)]) == [(1, 5), (8, 10)]
    assert length([]) == 0
