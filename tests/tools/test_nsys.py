"""``nsys`` on databases and tables: sums, overlap, nesting, both generations, damaged and hostile files.

The real one (some 600 MB) runs if it is on PATH, without a GPU: ranges and calls of the operating system.
"""

# ruff: noqa: S608 (names of tables are constants)

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.model.stacks import read_folded
from perfflow.testing.contract import check_sane
from perfflow.testing.mutations import cut, damage
from perfflow.tools.nvidia import nsys_report, nsys_sqlite, nsys_stats
from perfflow.tools.nvidia.nsys_report import NsysReport
from tests.tools.flows import run_flow
from tests.tools.harness import call_of, parsed_of, run, tool, values_of, why
from tests.tools.nsys import headers
from tests.tools.nsys.databases import PLANTED, REAL, build, kernel
from tests.tools.tables import refusals

SAMPLES = os.environ.get("PERFFLOW_NSYS_SAMPLES", "")
"""Folder with exports of nsys 2025.3 from a machine with a GPU, which are not part of the project."""
BARE = f"{Path(sys.executable).parent}:/usr/bin:/bin"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def _read(folder: Path, report: str) -> Parsed:
    """Return the parsed result of an existing report."""
    ran = run("nsys", folder / "out", report=report)
    assert ran.status == 0, (folder / "out" / "nsys.json").read_text()
    parsed = ran.parse()
    check_sane(parsed)
    return parsed


def _refused(folder: Path, report: str) -> str:
    ran = run("nsys", folder / "out", report=report)
    assert ran.status == 1
    with pytest.raises(ToolOutputError) as caught:
        ran.parse()
    return str(caught.value)


@pytest.mark.parametrize("version", ["2022.4", "2025.3"])
def test_figures_of_both_generations(version: str, tmp_path: Path) -> None:
    parsed = _read(tmp_path, str(build(tmp_path / "a b#?.sqlite", version=version)).replace("?", "[?]"))
    assert values_of(parsed) == pytest.approx(
        {
            # 1000..2500 and 3000..3500 of 1000..3500: overlapping streams count once.
            "gpu_time": 2e-6,
            "gpu_idle": 0.2,
            "kernel_time_sum": 2.1e-6,
            "kernel_launches": 3,
            "memcpy_time": 5e-7,
            "memcpy_bytes": 4000,
            "memcpy_bandwidth": 8e9,
            "cuda_api_time": 2.6e-6,
            "osrt_time": 5e-6,
        }
    )
    spots = {(spot.location, spot.unit): spot for spot in parsed.hotspots}
    # Of 2000 + 100 ns of kernels, 500 of a copy and 50 of a memset; of 3200 ns of the thread.
    saxpy = spots["void saxpy<float>(int, float *)", "device time"]
    assert saxpy.share == pytest.approx(2000 / 2650)
    assert saxpy.cause == "measured: 2 launches, median 1 us, grid 256x1x1, block 128x1x1, 24 registers"
    calls = {"cudaMemcpy": 2500, "cudaLaunchKernel": 60, "step": 500, "CCCL:transpose": 100}
    assert {name: spots[name, "time"].share * 3200 for name in calls} == pytest.approx(calls)


def test_what_the_driver_says_of_the_gpu(tmp_path: Path) -> None:
    (device,) = nsys_sqlite.read(build(tmp_path / "a.sqlite")).devices
    assert (device.name, device.bandwidth) == ("Model GPU (0)", 320e9)
    assert device.about == "compute capability 7.5, 40 SMs, 1590 MHz at most"
    (peak,) = _read(tmp_path, str(tmp_path / "a.sqlite")).peaks
    assert (peak.metric, peak.value, "Model GPU" in peak.how) == ("bandwidth", 320e9, True)


def test_each_gpu_is_idle_for_itself(tmp_path: Path) -> None:
    second = {KERNELS: [kernel(0, 100), kernel(900, 1000), kernel(0, 500, deviceId=1), kernel(500, 1000, deviceId=1)]}
    parsed = _read(tmp_path, str(build(tmp_path / "a.sqlite", second)))
    assert values_of(parsed)["gpu_idle"] == pytest.approx(1 - 1200 / 2000)
    assert any("2 GPUs together: GPU (0) 80.0%, GPU (1) 0.0%" in warning for warning in parsed.warnings)


def test_a_kernel_launched_in_several_ways(tmp_path: Path) -> None:
    several = {KERNELS: [kernel(0, 100), kernel(200, 500, gridX=8, dynamicSharedMemory=1024), kernel(600, 650)]}
    (row,) = nsys_sqlite.read(build(tmp_path / "a.sqlite", several)).kernels
    assert (row.calls, row.total, row.low, row.median, row.high) == (3, 450, 50, 100, 300)
    assert row.launch == "grid 8x1x1, block 128x1x1, 24 registers, 1024 B shared (1024 B dynamic), and 1 other ways"


def test_events_without_an_end_are_said(tmp_path: Path) -> None:
    cut_off = {KERNELS: [kernel(0, 100), kernel(200, None), kernel(300, 200)]}
    parsed = _read(tmp_path, str(build(tmp_path / "a.sqlite", cut_off)))
    assert values_of(parsed)["kernel_launches"] == 1
    assert any("2 events without an end" in warning for warning in parsed.warnings)


def test_a_report_without_cuda(tmp_path: Path) -> None:
    report = nsys_sqlite.read(REAL)
    assert report.version == "2022.4.2.1"
    assert not report.kernels
    assert not report.devices
    assert {row.name: row.calls for row in report.ranges} == {"epoch": 1, "load": 3, "step": 3, "whole": 1}
    # Seven calls of usleep: 3 of 2000, 3 of 1000 and one of 500 us.
    (slept,) = report.os
    assert (slept.name, slept.calls) == ("usleep", 7)
    assert slept.total >= 9.5e6
    own = {row.name: row.own for row in report.ranges}
    (epoch,) = (row for row in report.ranges if row.name == "epoch")
    assert sum(own[name] or 0 for name in ("epoch", "load", "step")) == epoch.total == report.threads
    stacks = {("thread 1", "epoch", "load"), ("thread 1", "epoch", "step"), ("thread 1", "epoch")}
    assert {stack: own[stack[-1]] for stack in stacks} == read_folded(report.stacks)


def _range(start: int, end: int, text: str, thread: int) -> dict[str, object]:
    return {"start": start, "end": end, "eventType": 59, "text": text, "globalTid": thread, "domainId": 0}


def test_stacks_begin_with_the_name_of_their_thread(tmp_path: Path) -> None:
    events = [_range(0, 100, "outer", 77), _range(20, 50, "in;ner", 77), _range(30, 40, "x", 5), _range(60, 60, "0", 5)]
    names = [{"nameId": 3, "priority": 20, "globalTid": 77}, {"nameId": 2, "priority": 10, "globalTid": 77}]
    path = build(tmp_path / "a.sqlite", {"NVTX_EVENTS": events, "ThreadNames": names})
    told = {("transpose", "outer"): 70, ("transpose", "outer", "in:ner"): 30, ("thread 2", "x"): 10}
    assert read_folded(nsys_sqlite.read(path).stacks) == told


def test_ranges_too_many_to_draw_count_for_those_around_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys_report, "MOST_STACKS", 3)
    events = [_range(0, 100, "outer", 1), *(_range(10 * turn, 10 * turn + 5, f"item {turn}", 1) for turn in range(9))]
    report = nsys_sqlite.read(build(tmp_path / "a.sqlite", {"NVTX_EVENTS": events}))
    stacks = read_folded(report.stacks)
    assert (len(stacks), stacks.total()) == (3, 100)
    assert {row.name: row.own for row in report.ranges}["item 8"] == 5


@pytest.mark.parametrize("stacks", ["no count", "a;b 1\nc -1"])
def test_damaged_stacks_are_refused(stacks: str, tmp_path: Path) -> None:
    ran = run("nsys", tmp_path / "out", report=str(build(tmp_path / "a.sqlite")))
    path = tmp_path / "out" / "nsys.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"stacks": stacks}))
    with pytest.raises(ToolOutputError, match="stacks"):
        ran.parse()


def test_nothing_of_the_environment_is_kept(tmp_path: Path) -> None:
    _read(tmp_path, str(build(tmp_path / "a.sqlite")))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir())
    assert PLANTED.encode() in (tmp_path / "a.sqlite").read_bytes()
    assert PLANTED.encode() not in kept


def test_a_report_is_read_without_nsys(tmp_path: Path) -> None:
    build(tmp_path / "a.sqlite")
    step = {"id": "there", "uses": "nsys", "with": {"report": "a.sqlite"}}
    done = run_flow(tmp_path, {"profile": [step]}, path=BARE, measured=True)
    assert done.returncode == 0, done.stderr
    assert "gpu_idle" in done.stdout
    left = {file.name: file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()}
    # pprof files are compressed.
    unpacked = [gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text for text in left.values()]
    assert not [text for text in unpacked if PLANTED.encode() in text]
    assert {"there-baseline.folded", "there-baseline.speedscope.json", "there-baseline.pb.gz"} <= left.keys()
    assert b"thread 1;step;cudaMemcpy 2500\n" in left["there-baseline.folded"]


@pytest.mark.skipif(bool(shutil.which("nsys", path=BARE)), reason="nsys is installed here")
def test_without_nsys_a_step_says_how_to_install_it(tmp_path: Path) -> None:
    step = {"id": "gpu", "uses": "nsys", "with": {"command": "touch began"}}
    done = run_flow(tmp_path, {"baseline": [step]}, path=BARE, measured=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "nsys is not on PATH; install it: apt-get install nsight-systems" in done.stdout + done.stderr
    assert not (tmp_path / "began").exists()


@pytest.mark.parametrize("keys", [{"delay": "500ms"}, {"duration": "1.5s"}, {"capture-range": "nvtx"}, {"trace": []}])
def test_what_nsys_would_take_for_something_else_is_refused(keys: Mapping[str, object], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"whole seconds|pattern|at least 1"):
        call_of("nsys", tmp_path, "/bin/true", **keys)


def test_the_words_for_nsys(tmp_path: Path) -> None:
    keys = {"trace": ["cuda"], "delay": "1s", "duration": "2s", "capture-range": "nvtx:a b@c"}
    (step,) = tool("nsys").invocations(call_of("nsys", tmp_path, "/bin/true", "-x", **keys))
    words = step.argv[step.argv.index("/opt/bin/nsys" if "/opt/bin/nsys" in step.argv else step.argv[6]) + 1 :]
    assert words == (
        "--trace=cuda", "--sample=none", "--cpuctxsw=none", "--delay=1", "--duration=2", "--capture-range=nvtx",
        "--capture-range-end=stop", "--nvtx-capture=a b@c", "/bin/true", "-x",
    )  # fmt: skip
    assert step.env == {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"}


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x + 1 AS end FROM n"


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (f"DROP TABLE {KERNELS}; CREATE VIEW {KERNELS} AS {ENDLESS}", ""),
        ("DROP TABLE StringIds", "kernel_launches"),
        (f"UPDATE {KERNELS} SET start = 'now'", "has no times"),
        (f"UPDATE {KERNELS} SET start = -9000000000000000000", "146 years"),
        (f"UPDATE {KERNELS} SET end = x'00'", "has no times"),
        (f"UPDATE {KERNELS} SET gridX = -1", "launch is -1"),
        (f"UPDATE {KERNELS} SET deviceId = 'all'", "deviceId is 'all'"),
        ("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 1e300", "bytes is 1e+300"),
        (f"ALTER TABLE {KERNELS} DROP COLUMN end", "does not support this version"),
        ("DROP TABLE META_DATA_EXPORT; DROP TABLE StringIds", "not a report of Nsight Systems"),
        ("UPDATE StringIds SET value = char(27) || '[2J' || printf('%.9000c', 'x')", "kernel_launches"),
        ("UPDATE TARGET_INFO_GPU SET memoryBandwidth = 'fast', smCount = x'ff', clockRate = NULL", "kernel_launches"),
        ("UPDATE NVTX_EVENTS SET text = x'fffe', textId = NULL", "kernel_launches"),
    ],
)
def test_a_hostile_database(statement: str, wanted: str, tmp_path: Path) -> None:
    path = build(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)
    if wanted in ("", "kernel_launches"):
        assert ("kernel_launches" in values_of(_read(tmp_path, str(path)))) == bool(wanted)
    else:
        assert wanted in _refused(tmp_path, str(path))


def test_a_damaged_database_is_read_right_or_refused(tmp_path: Path) -> None:
    """Damaged bytes cause no traceback, no hang and no impossible figure."""
    content = build(tmp_path / "a.sqlite").read_bytes()
    chance = random.Random(7)
    reasons = []
    for number in range(int(os.environ.get("PERFFLOW_NSYS_DAMAGES", "150"))):
        path = tmp_path / "damaged.sqlite"
        path.write_bytes(cut(content, chance) if number % 3 == 0 else damage(content, chance))
        try:
            report = nsys_sqlite.read(path)
            assert TypeAdapter(NsysReport).validate_json(report.to_json()) == report
        except ToolOutputError as error:
            reasons.append(str(error))
    assert len(reasons) > 10
    assert all(10 < len(reason) < 400 and reason.isprintable() for reason in reasons)


def test_too_many_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys_sqlite, "MOST_EVENTS", 2)
    with pytest.raises(ToolOutputError, match="profile less with `duration`"):
        nsys_sqlite.read(build(tmp_path / "a.sqlite"))


HEAD = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"
CALLS = HEAD.replace("Instances", "Num Calls") + ",Name"
TABLES = {
    "rep_gpukernsum.csv": f"Processing [rep.sqlite] with [gpukernsum.py]...\n\n{HEAD},GridXYZ,BlockXYZ,Name\n"
    '80.0,800,2,400.0,400.0,300,500,9.9," 256    1    1"," 128    1    1","void saxpy<float>(int, float *)"\n'
    '20.0,200,2,100.0,100.0,100,100,0.0,"   8    1    1"," 128    1    1","void saxpy<float>(int, float *)"\n\nafter\n',
    "rep_cudaapisum.csv": f"{CALLS}\n90.0,900,3,300.0,300.0,100,500,9.9,cudaMemcpy\n"
    "10.0,100,1,100,100,100,100,0,cuInit\n",
    "rep_gpumemtimesum.csv": f"{HEAD.replace('Instances', 'Count')},Operation\n"
    "100.0,500,1,500,500,500,500,0,[CUDA memcpy HtoD]\n",
    "rep_gpumemsizesum.csv": "Total (MB),Count,Avg (MB),Operation\n0.004,1,0.004,[CUDA memcpy HtoD]\n",
    "rep_nvtxsum.csv": f"{HEAD},Style,Range\n100.0,3200,1,3200,3200,3200,3200,0,PushPop,:step\n",
    "rep_osrtsum.csv": f"{CALLS}\n100.0,5000,1,5000,5000,5000,5000,0,poll\n",
}
LATER = {
    "gpukernsum": "cuda_gpu_kern_sum", "cudaapisum": "cuda_api_sum", "gpumemtimesum": "cuda_gpu_mem_time_sum",
    "gpumemsizesum": "cuda_gpu_mem_size_sum", "nvtxsum": "nvtx_sum", "osrtsum": "osrt_sum",
}  # fmt: skip
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Bytes (MB),Device,Strm,Name\n"
    '1500,1000,2,256,1,1,128,1,1,24,,Model GPU (0),8,"void saxpy<float>(int, float *)"\n'
    "1000,1000,1,256,1,1,128,1,1,24,None,Model GPU (0),7,transpose\n"
    "3000,500,3,,,,,,,,0.004,Model GPU (0),7,[CUDA memcpy HtoD]\n"
)


@pytest.mark.parametrize("later", [False, True])
def test_tables_of_both_generations(later: bool, tmp_path: Path) -> None:
    for name, text in TABLES.items():
        table = name.removeprefix("rep_").removesuffix(".csv")
        (tmp_path / f"rep_{LATER[table] if later else table}.csv").write_text(text)
    parsed = _read(tmp_path, str(tmp_path / "rep_*.csv"))
    assert values_of(parsed) == pytest.approx(
        {
            "kernel_time_sum": 1e-6,
            "kernel_launches": 4,
            "memcpy_time": 5e-7,
            "memcpy_bytes": 4000,
            "memcpy_bandwidth": 8e9,
            "cuda_api_time": 1e-6,
            "osrt_time": 5e-6,
        }
    )
    assert any("gpu_time and gpu_idle are missing" in warning for warning in parsed.warnings)
    spots = {spot.location: spot for spot in parsed.hotspots}
    assert spots["void saxpy<float>(int, float *)"].share == pytest.approx(1000 / 1500)
    assert "grid 256x1x1, block 128x1x1" in spots["void saxpy<float>(int, float *)"].cause
    assert spots["cudaMemcpy"].share == pytest.approx(0.9)


def test_tables_as_json(tmp_path: Path) -> None:
    times = {"Total Time (us)": 1.5, "Med (us)": 1.5, "Min (us)": 1.5, "Max (us)": 1.5}
    (tmp_path / "a.json").write_text(json.dumps([{**times, "Instances": 1, "Name": "saxpy"}], indent=2))
    assert values_of(_read(tmp_path, str(tmp_path / "a.json"))) == {"kernel_time_sum": 1.5e-6, "kernel_launches": 1}


def test_a_table_of_all_kernels_tells_when_a_gpu_was_idle(tmp_path: Path) -> None:
    (tmp_path / "rep_cuda_gpu_trace.csv").write_text(TRACE)
    values = values_of(_read(tmp_path, str(tmp_path / "rep_cuda_gpu_trace.csv")))
    wanted = {"gpu_idle": 0.2, "memcpy_bandwidth": 8e9, "kernel_launches": 2}
    assert {metric: values[metric] for metric in wanted} == pytest.approx(wanted)


def test_a_table_whose_columns_are_quoted(tmp_path: Path) -> None:
    head, *rows = TABLES["rep_cudaapisum.csv"].splitlines()
    quoted = ",".join(f'"{cell}"' for cell in head.split(","))
    (tmp_path / "a.csv").write_text("\n".join([quoted, *rows]) + "\n")
    assert values_of(_read(tmp_path, str(tmp_path / "a.csv"))) == pytest.approx({"cuda_api_time": 1e-6})


def test_a_report_without_kernels_says_so(tmp_path: Path) -> None:
    parsed = _read(tmp_path, str(REAL))
    assert any("the report contains no kernel" in warning for warning in parsed.warnings)
    assert not any("no kernel" in item for item in _read(tmp_path, str(build(tmp_path / "a.sqlite"))).warnings)


ROW = '{"os": [{"name": "a", "calls": 1, "total": %s, "low": 0, "median": %d, "high": 1}]}'
test_damaged_sums_are_no_report = refusals(
    *("nsys", "nsys.json"),
    ("{}", "a figure or a table of it is missing"),
    ('{"kernels": [', "damaged"),
    ('{"kernels": [{"name": "k"}]}', r"kernels\.0\.calls"),
    ('{"kernel": []}', "damaged"),
    ('{"error": "what\\u001b[31m"}', r"what\?"),
    ('{"threads": 1e999, "api": []}', "not valid"),
    ('{"devices": [{"name": "G", "busy": 2.0, "span": 1.0}]}', "was busy for 2 of 1 ns"),
    (ROW % ("1", 2), "the times of 'a' are impossible"),
    (ROW % ("true", 0), r"os\.0\.total"),
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "is empty"),
        ("Processing...\nSKIPPED: rep.sqlite does not contain CUDA kernel data.\n", "contain CUDA kernel data"),
        (TABLES["rep_cudaapisum.csv"][:-9], "cut short"),
        (TABLES["rep_cudaapisum.csv"].replace(",900,", ",9,"), "are impossible"),
        (TABLES["rep_cudaapisum.csv"].replace("(ns)", "(weeks)"), "unit 'weeks'"),
        (TABLES["rep_cudaapisum.csv"].replace(",cuInit", ""), "cells under"),
        (TABLES["rep_gpumemsizesum.csv"], "has no times"),
        ("name,value\na,1\n", "no known table of `nsys stats`"),
    ],
)
def test_a_table_that_holds_nothing_or_nonsense(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert wanted in _refused(tmp_path, str(tmp_path / "a.csv"))


def test_reports_that_are_none(tmp_path: Path) -> None:
    assert "no file matches" in _refused(tmp_path, str(tmp_path / "absent.sqlite"))
    build(tmp_path / "a.sqlite")
    build(tmp_path / "b.sqlite", {})
    assert "names 2 files" in _refused(tmp_path, str(tmp_path / "*.sqlite"))
    (tmp_path / "c.sqlite").write_bytes(b"SQLite 2 or so, and more than a hundred bytes of it" * 3)
    assert "not an SQLite file" in _refused(tmp_path, str(tmp_path / "c.sqlite"))
    (tmp_path / "d.nsys-rep").write_bytes(b"no report")
    assert "could not be" in _refused(tmp_path, str(tmp_path / "d.nsys-rep"))
    ran = run("nsys", tmp_path / "out", report=str(tmp_path / "b.sqlite"))
    with pytest.raises(ToolOutputError, match=r"nothing was recorded of .*b\.sqlite"):
        ran.parse()


def test_the_whole_report_goes_through_json(tmp_path: Path) -> None:
    report = nsys_sqlite.read(build(tmp_path / "a.sqlite"))
    assert TypeAdapter(NsysReport).validate_json(report.to_json()) == report
    assert NsysReport().holds_nothing
    assert _read(tmp_path, str(tmp_path / "a.sqlite")).readings


@pytest.mark.skipif(not SAMPLES, reason="set PERFFLOW_NSYS_SAMPLES to a folder with exports of nsys 2025.3 from a T4")
def test_real_exports_of_a_gpu(tmp_path: Path) -> None:
    samples = Path(SAMPLES)
    parsed = _read(tmp_path, str(samples / "reduced.sqlite"))
    values = values_of(parsed)
    assert 1 - values["gpu_idle"] == pytest.approx(0.646, abs=0.002)
    assert values["kernel_launches"] == 700
    with closing(sqlite3.connect(samples / "reduced.sqlite")) as connection:
        (total,) = connection.execute(f"SELECT sum(end - start) FROM {KERNELS}").fetchone()
    assert values["kernel_time_sum"] == pytest.approx(total / 1e9)
    names = ("gpukernsum", "cudaapisum", "gpumemtimesum", "gpumemsizesum", "nvtxsum", "osrtsum")
    sums = nsys_stats.read([samples / f"pi_{name}.csv" for name in names])
    as_json = nsys_stats.read([samples / "pij_cudaapisum.json", samples / "pij_gpukernsum_base.json"])
    assert sum(row.calls for row in sums.kernels) == sum(row.calls for row in as_json.kernels)
    assert sums.api == as_json.api
    trace = nsys_stats.read([samples / "pi_gputrace_head200.csv"])
    assert {row.name for row in trace.kernels} == {row.name for row in sums.kernels}


# The real one

SECRET = "planted-4c6f-in-the-environment"  # noqa: S105 (what must be found nowhere)
needs_nsys = pytest.mark.skipif(
    not shutil.which("nsys"),
    reason="nsys is not on PATH (apt-get install nsight-systems from Debian's non-free); captured reports stand in",
)


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> str:
    try:
        return str(headers.build(tmp_path_factory.mktemp("nvtx") / "ranges"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


def _wait(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait until it is so, or for so long; return whether it is."""
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.05)
    return is_so()


@pytest.fixture
def alone() -> Iterator[None]:
    """Check that no process and no private folder of nsys remain after the test."""
    before = _agents(), set(Path(tempfile.gettempdir()).glob("perfflow-nsys-*"))
    yield
    assert _wait(lambda: not _agents() - before[0], 10)
    assert set(Path(tempfile.gettempdir()).glob("perfflow-nsys-*")) <= before[1]


def _agents() -> set[int]:
    """Return the running processes of nsys that this user can inspect."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            name = str((entry / "exe").readlink()) if entry.name.isdecimal() else ""
        except OSError:
            continue
        if Path(name).name in ("nsys", "nsys-launcher"):
            found.add(int(entry.name))
    return found


@needs_nsys
@pytest.mark.usefixtures("alone")
def test_ranges_and_calls(ranges: str, tmp_path: Path) -> None:
    parsed = parsed_of(run("nsys", tmp_path / "out", ranges))
    report = json.loads((tmp_path / "out" / "nsys.json").read_text())
    assert {row["name"]: row["calls"] for row in report["ranges"]} == {"epoch": 1, "load": 3, "step": 3, "whole": 1}
    assert [row["calls"] for row in report["os"] if row["name"] == "usleep"] == [7]
    assert {spot.location for spot in parsed.hotspots} == {"epoch", "load", "step"}
    assert any("no kernel was recorded" in warning for warning in parsed.warnings)


@needs_nsys
def test_only_a_range(ranges: str, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"trace": ["nvtx", "osrt"], "capture-range": "nvtx:load"}
    run("nsys", tmp_path / "out", ranges, **keys).parse()
    report = json.loads((tmp_path / "out" / "nsys.json").read_text())
    assert {row["name"]: row["calls"] for row in report["ranges"]} == {"load": 1}
    ran = run("nsys", tmp_path / "never", ranges, **{**keys, "capture-range": "nvtx:absent"})
    with pytest.raises(ToolOutputError, match="was never entered"):
        ran.parse()


@needs_nsys
@pytest.mark.usefixtures("alone")
def test_a_duration_ends_the_program(tmp_path: Path) -> None:
    ran = run("nsys", tmp_path / "out", "/bin/sh", "-c", "while :; do sleep 0.1; done", trace=["osrt"], duration="1s")
    assert ran.status == 0
    ran.parse()


@needs_nsys
def test_a_program_that_fails(tmp_path: Path) -> None:
    assert "exit status 3" in why("nsys", call_of("nsys", tmp_path / "out", "/bin/sh", "-c", "exit 3"))
    assert "exit status" in why("nsys", call_of("nsys", tmp_path / "bad", "/bin/true", trace=["no-such-thing"]))


def _holding_the_secret(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    return sorted(file.name for file in files)


@needs_nsys
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("keep", [False, True])
def test_the_environment_reaches_no_file_of_a_run(keep: bool, tmp_path: Path) -> None:
    step = {"id": "gpu", "uses": "nsys", "with": {"command": "/bin/sleep 0.1", "keep-report": keep}}
    done = run_flow(tmp_path, {"baseline": [step]}, env={"PLANTED": SECRET}, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert _holding_the_secret(tmp_path / "out") == (["report.nsys-rep", "report.sqlite"] if keep else [])
    assert ("all its secrets: do not publish" in (tmp_path / "out" / "result.json").read_text()) == keep


@needs_nsys
@pytest.mark.usefixtures("alone")
def test_a_time_limit_leaves_nothing_behind(tmp_path: Path) -> None:
    step = {"id": "gpu", "uses": "nsys", "timeout": "3s", "with": {"command": "/bin/sleep 61.5"}}
    done = run_flow(tmp_path, {"baseline": [step]}, env={"PLANTED": SECRET}, measured=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "time limit of 3 s" in done.stdout + done.stderr
    assert not _holding_the_secret(tmp_path / "out")
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 61.5" not in running


@needs_nsys
@pytest.mark.usefixtures("alone")
def test_a_killed_run_leaves_no_recording(tmp_path: Path) -> None:
    """SIGKILL of perfflow leaves no recording of nsys, which would contain the environment."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$TMPDIR" > began\nexec sleep 62.5\n')
    program.chmod(0o755)
    step = {"id": "gpu", "uses": "nsys", "with": {"command": "./program"}}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"baseline": [step]}}))
    theirs, run_by = tmp_path / "theirs", [sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", "out"]
    theirs.mkdir()
    env = {**os.environ, "TMPDIR": str(theirs), "PLANTED": SECRET, "PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    with subprocess.Popen(run_by, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _wait((tmp_path / "began").exists, 60)
        child.kill()
    assert (tmp_path / "began").read_text().strip() == str(theirs)
    assert _wait(lambda: not any(file.is_file() for file in theirs.rglob("*")), 20)
    assert not _holding_the_secret(tmp_path / "out")
