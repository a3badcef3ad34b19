"""``torch-profiler`` on traces: self times, metrics of ranks, damaged files, and files that count as new.

Its examples run with a real PyTorch (some gigabytes) only if PERFFLOW_TORCH is set.
"""

from __future__ import annotations

import gzip
import json
import os
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
from tests.cli.shell import perfflow
from tests.tools.harness import DATA, PROGRAMS, USAGE, call_of, parsed_of, run, tool, values_of

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


SPAN = '{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1}'


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
        (f'{{"traceEvents": [{SPAN}]}}', "dur of 'a' is null"),
        ('{"traceEvents": [{"name": "' + "x" * (1 << 16), "longer than"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if said == "longer than":
        # A value without an end is refused before it is in memory.
        monkeypatch.setattr(torch_profiler, "_LONGEST", 1 << 12)
        monkeypatch.setattr(torch_profiler, "_CHUNK", 1 << 10)
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(ToolOutputError, match=said):
        torch_profiler.read_trace(tmp_path / "trace.json")


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


def _captured(folder: Path, case: Path) -> Parsed:
    shutil.copytree(case, folder)
    return tool("torch-profiler").parse(call_of("torch-profiler", folder, "x"), USAGE)


def test_without_a_schedule_operators_are_told_and_what_is_missing(tmp_path: Path) -> None:
    parsed = _captured(tmp_path / "out", CAPTURED / "no-schedule")
    assert "aten::mm" in {spot.location for spot in parsed.hotspots}
    assert not values_of(parsed).keys() & {"dataloader_wait", "compile_time"}
    assert any("schedule" in text for text in parsed.warnings)


def test_operators_and_kernels_are_ranked_each_by_its_own_time(tmp_path: Path) -> None:
    parsed = _captured(tmp_path / "out", CAPTURED.with_name("2.15.0-synthetic") / "cuda")
    first = {unit: next(spot for spot in parsed.hotspots if spot.unit == unit) for unit in ("time", "device time")}
    assert first["device time"].location == "ampere_sgemm_128x64_tn"
    assert first["device time"].share == pytest.approx(3000.0 / 5250.0)
    assert first["time"].location == "ProfilerStep"


@pytest.mark.parametrize(
    ("command", "status"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -9 $$"], 137), (["./no-such-program"], 127)],
)
def test_the_driver_ends_as_the_command_did(command: list[str], status: int, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(DRIVER), str(tmp_path), "*.json", "--", *command], check=False)
    assert done.returncode == status
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


ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "torch-training"
TORCH = os.environ.get("PERFFLOW_TORCH", "")
"""The interpreter with PyTorch; 1 means python3."""
PYTHON = "python3" if TORCH == "1" else TORCH

needs_torch = pytest.mark.skipif(
    not TORCH, reason="set PERFFLOW_TORCH to an interpreter with PyTorch, or to 1 for python3; captured traces stand in"
)


def _said(*words: str) -> Any:
    done = subprocess.run([PYTHON, *words], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


@needs_torch
def test_self_times_are_those_of_pytorch_itself(tmp_path: Path) -> None:
    program = (PROGRAMS / "torch_loop.py").read_text() + (
        "import json\n"
        "rows = {row.key: row.self_cpu_time_total for row in profiler.key_averages()}\n"
        "sys.stdout.write(json.dumps(rows))\n"
    )
    # Without a schedule, since key_averages() loses the events of its earlier cycles.
    theirs = _said("-c", program, str(tmp_path / "trace.json"), "--no-schedule")
    ours: dict[str, float] = {}
    for (name, _), row in torch_profiler.read_trace(tmp_path / "trace.json").rows.items():
        ours[name] = ours.get(name, 0.0) + row.own
    assert {"aten::mm", "forward"} < theirs.keys()
    # Both round start and end of each event to 1 us or less.
    assert all(ours[name] == pytest.approx(value, rel=0.01, abs=5.0) for name, value in theirs.items() if value)


@needs_torch
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_training_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--records", "64", "--epochs", "1", "--profile-steps", "2", "--show", "loss")
    train = [PYTHON, str(EXAMPLE / "train.py"), "--batch", "16", "--profile", name, *words, "--profile-steps", "4"]
    parsed = parsed_of(run("torch-profiler", tmp_path / "out", *train, trace=name))
    values = values_of(parsed)
    assert values.keys() == {"dataloader_wait", "compile_time", "tensor_memory_peak"}
    assert 0 < values["dataloader_wait"] < 1
    spots = {spot.location for spot in parsed.hotspots}
    assert {"aten::addmm", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"} < spots
    assert parsed.warnings == ()


@needs_torch
def test_two_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--records", "128", "--trace", "rank{rank}.json.gz", "--trace-steps", "3")
    ran = run("torch-profiler", tmp_path / "out", PYTHON, str(EXAMPLE / "ddp.py"), *words, trace="rank*.json.gz")
    parsed = parsed_of(ran)
    assert {"allreduce_fraction", "rank_skew", "dataloader_wait"} <= values_of(parsed).keys()
    assert len([profile for profile in parsed.profiles if profile.kind == "chrome-trace"]) == 2


@needs_torch
def test_settings_that_only_load_otherwise_change_no_loss() -> None:
    few = ("--records", "64", "--batch", "16", "--epochs", "2", "--show", "loss")
    plain = _said(str(EXAMPLE / "train.py"), *few)
    workers = ("--num-workers", "2", "--persistent-workers", "--prefetch-factor", "4", "--pin-memory")
    assert _said(str(EXAMPLE / "train.py"), *few, *workers) == plain


@needs_torch
def test_the_program_tells_its_loader_apart() -> None:
    few = ("--records", "64", "--batch", "16", "--epochs", "2")
    whole = _said(str(EXAMPLE / "train.py"), *few)
    assert len(whole["steps"]) == 2 * 4 - 1
    assert 0 < whole["dataloader_fraction"] <= 1
    assert whole["rate"] == pytest.approx(64 / whole["epoch"])
    assert _said(str(EXAMPLE / "train.py"), *few, "--loader-only").keys() == {"loader", "rate"}


@pytest.mark.parametrize("name", ["torch-training", "torch-ddp"])
def test_without_pytorch_a_workflow_says_so(name: str, tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {os.path.realpath("/usr/bin/env")} python3 -I -S "$@"\n')
    bare.chmod(0o755)
    flow, out = str(ROOT / "workflows" / f"{name}.yaml"), str(tmp_path / "out")
    done = perfflow("run", flow, "--set", f"python={bare}", "--out", out, cwd=ROOT)
    assert done.returncode == 3, done.stderr
    assert "skipped: torch: PyTorch cannot be imported by" in done.stdout
    assert "pip install torch" in done.stdout
