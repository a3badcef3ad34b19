"""Nsight Compute: names of kernels, numbers of any locale, unusual pages, and its command lines."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.testing.contract import check_sane
from perfflow.tools.adapter import Invocation
from perfflow.tools.nvidia import ncu, ncu_table
from perfflow.tools.nvidia.ncu_metrics import Kind
from perfflow.tools.nvidia.ncu_table import Cell
from tests.cli.shell import perfflow
from tests.tools.harness import DATA, PYTHON, USAGE, call_of, parsed_of, run, run_call, tool

FULL = DATA / "ncu" / "2022.3.0" / "full"
LIVE = DATA / "ncu" / "2025.1-synthetic" / "live" / "ncu.csv"


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        (["addConst(int, double *)"], ["addConst"]),
        (["void gemm<float, 128>(float *, int)"], ["gemm"]),
        (["void sum<float, 8>(float *)", "void sum<int, 8>(int *)"], ["sum<float,8>", "sum<int,8>"]),
        (["f(int)", "f(float, int)"], ["f(int)", "f(float,int)"]),
        (["void at::native::reduce<512, (anonymous namespace)::Op<float>>(T2)"], ["at::native::reduce"]),
        (["(anonymous namespace)::scale(float *)"], ["(anonymous namespace)::scale"]),
        (["std::enable_if<(N > 4), void>::type pad<N>(char *)"], ["pad"]),
        (["copy[abi:v1,cw51](Array<long long, 1, C, mutable, aligned>)"], ["copy"]),
        (["k(int) [clone .isra.0]"], ["k"]),
        (["triton_poi_fused_0d1d2de"], ["triton_poi_fused_0d1d2de"]),
        (["evil\x1b[31m\n(int)"], ["evil?[31m"]),
        (["(", "", ">>>)"], ["(", "?", ">>>)"]),
    ],
)  # fmt: skip
def test_names_are_as_short_as_tells_them_apart(kernels: list[str], names: list[str]) -> None:
    assert list(ncu.short_names(kernels).values()) == names


def test_names_that_are_cut_alike_still_differ() -> None:
    kernels = [f"f({'x' * 400}{index})" for index in range(3)]
    found = list(ncu.short_names(kernels).values())
    assert len(set(found)) == 3
    assert all(len(name) <= ncu.LONGEST + 3 for name in found)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["4,963,609,951.19", "1,024"], [4963609951.19, 1024]),
        (["27.595.520", "65,77", "1.024"], [27595520, 65.77, 1024]),
        (["1 024,5", "12 288"], [1024.5, 12288]),
        (["1\u202f024,5"], [1024.5]),
        (["1'024.5"], [1024.5]),
        (["0.125", "1.024"], [0.125, 1.024]),
        (["0,125", "1.024"], [0.125, 1024]),
        (["12,288", "1.5"], [12288, 1.5]),
        (["1.5e+06"], [1.5e6]),
        (["1,376 (12; 13.5)"], [1376]),
        (["(!) 3.5"], [3.5]),
    ],
)
def test_numbers_of_any_locale(cells: list[str], values: list[float]) -> None:
    table = [Cell(cell) for cell in cells]
    mark = ncu_table.decimal_mark(table)
    assert [ncu_table.figure(cell, mark, "1", "it") for cell in table] == values


@pytest.mark.parametrize(
    ("text", "unit", "kind", "value"),
    [
        # There are no fractions of a nanosecond, so the mark separates thousands.
        ("117.344", "nsecond", "s", 117344e-9),
        ("117,344", "ns", "s", 117344e-9),
        ("4.096", "byte/block", "B", 4096),
        # A figure with a prefix is below 1000.
        ("117.344", "usecond", "s", 117.344e-6),
        ("117,344", "Gbyte/second", "B/s", 117.344e9),
        ("1.410", "cycle/nsecond", "1/s", 1.41e9),
    ],
)
def test_a_lone_mark_is_told_by_its_unit(text: str, unit: str, kind: Kind, value: float) -> None:
    cell = Cell(text, unit)
    assert ncu_table.figure(cell, ncu_table.decimal_mark([cell]), kind, "it") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["117.344", "12,288"])
def test_a_number_that_may_be_two_is_none(text: str) -> None:
    cell = Cell(text, "inst/cycle")
    with pytest.raises(ToolOutputError, match="a thousand times as much or as little: use LC_ALL=C"):
        ncu_table.figure(cell, ncu_table.decimal_mark([cell]), "1", "it")


def test_a_german_page_with_a_lone_time_is_in_nanoseconds(tmp_path: Path) -> None:
    """Return a real page with one requested metric, with German separators of thousands."""
    page = csv.DictReader((DATA / "ncu" / "2022.3.0" / "selected" / "ncu.csv").read_text().splitlines())
    columns = ("ID", "Kernel Name", "gpu__time_duration.sum")
    units, launch = ([row[column] for column in columns] for row in page)
    assert (units[2], launch[2]) == ("nsecond", "239008")
    rows = [columns, units, [*launch[:2], "239.008"]]
    (reading,) = _parsed(tmp_path, "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)).readings
    assert reading.metric == "kernel_time"
    assert reading.value == pytest.approx(239008e-9)


def test_a_page_that_ends_before_its_launches_do_is_told(tmp_path: Path) -> None:
    lines = LIVE.read_text().splitlines(keepends=True)
    last = [number for number, line in enumerate(lines) if line.startswith('"2",')]
    assert not _parsed(tmp_path, "".join(lines)).warnings
    # The progress above has three launches.
    warnings = _parsed(tmp_path, "".join(lines[: last[0]])).warnings
    assert any("contains 2 of 3 profiled launches" in warning for warning in warnings)
    table = [line for line in lines[: last[2]] if not line.startswith("==")]
    assert any(
        "has fewer metrics of launch 2 than of others" in item for item in _parsed(tmp_path, "".join(table)).warnings
    )


def test_advice_of_fewer_launches_than_were_profiled_is_told(tmp_path: Path) -> None:
    page = (DATA / "ncu" / "2025.1-synthetic" / "live" / "ncu.csv").read_text()
    details = "".join(line for line in page.splitlines(keepends=True) if not line.startswith(('"2",', "==")))
    warnings = _parsed(tmp_path, page, details=details).warnings
    assert any("ncu-details.csv contains 2 of 3 launches" in warning for warning in warnings)


def test_two_notations_in_one_table_are_none() -> None:
    with pytest.raises(ToolOutputError, match="LC_ALL=C"):
        ncu_table.decimal_mark([Cell("1.5"), Cell("1,5")])


@pytest.mark.parametrize(
    "cell", ["1,2,3", "1.2.3", "-4", "inf", "1e999", "9" * 400, "4 GB", "0x10", "٣", "1_000", "--1"]
)
def test_what_is_no_figure(cell: str) -> None:
    with pytest.raises(ToolOutputError):
        ncu_table.figure(Cell(cell), ".", "1", "it")


@pytest.mark.parametrize(
    ("unit", "kind", "value"),
    [
        ("ns", "s", 5e-9),
        ("nsecond", "s", 5e-9),
        ("msecond", "s", 5e-3),
        ("%", "%", 0.05),
        ("hz", "1/s", 5),
        ("Ghz", "1/s", 5e9),
        ("cycle/nsecond", "1/s", 5e9),
        ("Gbyte/second", "B/s", 5e9),
        ("byte/s", "B/s", 5),
        ("Kbyte/block", "B", 5000),
        ("register/thread", "1", 5),
    ],
)
def test_units_of_both_generations(unit: str, kind: Kind, value: float) -> None:
    assert ncu_table.figure(Cell("5", unit), ".", kind, "it") == value


@pytest.mark.parametrize(("unit", "kind"), [("%", "s"), ("second", "%"), ("parsec", "1"), ("", "s")])
def test_a_unit_of_another_kind(unit: str, kind: Kind) -> None:
    with pytest.raises(ToolOutputError, match="unit"):
        ncu_table.figure(Cell("5", unit), ".", kind, "it")


def _parsed(folder: Path, text: str, benchmark: str = "", details: str = "") -> Parsed:
    (folder / "ncu.csv").write_text(text)
    if details:
        (folder / "ncu-details.csv").write_text(details)
    parsed = ncu.parse(replace(call_of("ncu", folder, "/bin/true"), benchmark=benchmark), USAGE)
    check_sane(parsed)
    return parsed


def test_both_pages_agree_on_the_figures(tmp_path: Path) -> None:
    pages = [(FULL / name).read_text() for name in ("ncu.csv", "ncu-details.csv")]
    raw, details = ({item.metric: item.value for item in _parsed(tmp_path, page).readings} for page in pages)
    assert len(details) >= 15
    # The details page has no operations and no tensor pipe.
    assert raw.keys() - details.keys() == {"flops", "tensor_share"}
    assert {metric: raw[metric] for metric in details} == details


def test_operations_are_those_of_the_program(tmp_path: Path) -> None:
    """Each thread of the kernel adds three doubles. Every expected figure is from the report of that run."""
    _parsed(tmp_path, (FULL / "ncu.csv").read_text())
    (kernel,) = json.loads((tmp_path / "kernels.json").read_text())["kernels"]
    launch, figures = kernel["longest launch"], kernel["figures"]
    threads = launch["grid_size"] * launch["block_size"]
    assert figures["flops"] * figures["kernel_time"] == pytest.approx(3 * threads, rel=0.01)
    assert launch["flops"]["f64"] == figures["flops"]
    assert launch["name"] == "NVIDIA RTX A2000"


def test_the_peaks_are_those_that_ncu_holds_its_shares_against(tmp_path: Path) -> None:
    page = (FULL / "ncu.csv").read_text()
    parsed = _parsed(tmp_path, page)
    peaks = {(peak.metric, peak.precision): peak.value for peak in parsed.peaks}
    assert peaks.keys() == {("bandwidth", ""), ("flops", "f64")}
    bandwidth = next(item.value for item in parsed.readings if item.metric == "bandwidth")
    names, _, values = (row.split('","') for row in page.splitlines())
    busy = float(values[names.index("dram__cycles_active.avg.pct_of_peak_sustained_elapsed")])
    assert bandwidth / peaks["bandwidth", ""] == pytest.approx(busy / 100, rel=0.01)
    # Each of the 26 multiprocessors can do two fused operations per cycle.
    clock = float(values[names.index("sm__cycles_elapsed.avg.per_second")])
    assert peaks["flops", "f64"] == pytest.approx(clock * 26 * 2 * 2)


def test_the_advice_is_kept_in_the_words_of_ncu(tmp_path: Path) -> None:
    pages = [(FULL / name).read_text() for name in ("ncu.csv", "ncu-details.csv")]
    _parsed(tmp_path, pages[0], details=pages[1])
    (kernel,) = json.loads((tmp_path / "kernels.json").read_text())["kernels"]
    said = {rule["rule"]: rule["says"] for rule in kernel["rules"]}
    assert said["UncoalescedGlobalAccess"] in pages[1]


def test_pages_of_two_reports_are_not_mixed(tmp_path: Path) -> None:
    other = (FULL / "ncu-details.csv").read_text().replace("addConstDouble3", "addConstDouble")
    with pytest.raises(ToolOutputError, match="not of the same launches"):
        _parsed(tmp_path, (FULL / "ncu.csv").read_text(), details=other)


def test_several_launches_are_put_together_by_kernel(tmp_path: Path) -> None:
    parsed = _parsed(tmp_path, LIVE.read_text())
    times = {item.benchmark: item for item in parsed.readings if item.metric == "kernel_time"}
    assert times["scale"].inner["n"] == 2
    assert times["scale"].value == pytest.approx(10.368e-6)
    assert [spot.location for spot in parsed.hotspots] == ["transpose", "scale"]
    assert "(limit: registers)" in parsed.hotspots[0].cause
    assert "limit" not in parsed.hotspots[1].cause


def test_a_step_that_names_its_benchmark_has_one(tmp_path: Path) -> None:
    parsed = _parsed(tmp_path, LIVE.read_text(), benchmark="step")
    figures = {item.metric: item.value for item in parsed.readings}
    assert {item.benchmark for item in parsed.readings} == {""}
    assert "kernel_time" not in figures
    moved = 2 * 10368e-9 * 1462257541006.575, 1061888e-9 * 629145600000
    assert figures["bandwidth"] == pytest.approx(sum(moved) / (2 * 10368e-9 + 1061888e-9), rel=1e-3)
    assert any("2 kernels together" in warning for warning in parsed.warnings)


def test_a_limit_that_was_reached_is_said(tmp_path: Path) -> None:
    shutil.copy(LIVE, tmp_path / "ncu.csv")
    parsed = ncu.parse(call_of("ncu", tmp_path, "/bin/true", launches=3), USAGE)
    assert any("set `launches` to profile more" in warning for warning in parsed.warnings)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('"nsecond"', '"%"', "unit"),
        ('"239008"', '"0"', "took 0 s"),
        ('"239008"', '"-239008"', "not valid"),
        ('"239008"', '"1e30"', "not valid"),
        ('"32"\n', '"33"\n', "32 threads"),
        ('"32"\n', "", "cut short"),
        ('"Kernel Name"', '"Name"', "columns"),
        ('"ID",', '"Id",', "no table"),
        ('"nsecond"', '"nsecond', "cut short"),
    ],
)
def test_an_odd_page_is_no_measurement(old: str, new: str, wanted: str, tmp_path: Path) -> None:
    text = (DATA / "ncu" / "2022.3.0" / "selected" / "ncu.csv").read_text()
    assert old in text
    with pytest.raises(ToolOutputError, match=wanted):
        _parsed(tmp_path, text.replace(old, new))


def test_only_lines_of_ncu_itself_are_its_complaints() -> None:
    assert ncu.reason("ERR_NVGPUCTRPERM, says the program\n", "No kernels were profiled\n") == ""
    assert "NVreg_RestrictProfilingToAdminUsers=0" in ncu.reason("==ERROR== ERR_NVGPUCTRPERM - The user\n")
    assert ncu.reason("==ERROR== Option '--section x' did not match any section.\n").startswith("ncu failed: ")


def _words(steps: Sequence[Invocation]) -> list[str]:
    return [" ".join(step.argv) for step in steps]


def test_it_profiles_into_a_report_and_prints_both_pages(tmp_path: Path) -> None:
    options = {"kernel": "^scale", "skip": 2, "launches": 5, "metrics": ["a__b.sum", "c__d.sum"], "nvtx": "loop/"}
    first, *pages = _words(ncu.invocations(call_of("ncu", tmp_path, "/bin/app", "--size", "9", **options)))
    assert first.endswith(
        "--replay-mode kernel --clock-control none --set detailed --metrics a__b.sum,c__d.sum "
        "--nvtx --nvtx-include loop/ --kernel-name regex:^scale --launch-skip 2 --launch-count 5 /bin/app --size 9"
    )
    assert [page.rpartition("--page ")[2] for page in pages] == ["raw", "details"]
    basic = _words(ncu.invocations(call_of("ncu", tmp_path, "/bin/app", set="basic", launches=0)))[0]
    assert "--section SpeedOfLight" in basic
    assert "--launch-count" not in basic


def test_a_report_is_read_and_nothing_is_run(tmp_path: Path) -> None:
    call = replace(call_of("ncu", tmp_path, "x"), options=ncu.NcuOptions(report="a.ncu-rep"), command=())
    assert all("--import a.ncu-rep" in words for words in _words(ncu.invocations(call)))
    call = replace(call, options=ncu.NcuOptions(report="a.csv"))
    assert _words(ncu.invocations(call)) == ["/bin/cat -- a.csv"]
    with pytest.raises(ToolOutputError, match="not of a report in CSV"):
        ncu.invocations(replace(call, options=ncu.NcuOptions(report="a.csv", kernel="x")))
    with pytest.raises(ValidationError, match="set either `report`"):
        ncu.NcuOptions(report="a.csv", command="x")
    assert [tool("ncu").starts_program({"report": name}) for name in ("a.csv", "a.log", "a.ncu-rep", "")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_a_page_is_read_without_ncu_and_its_kernels_are_judged(tmp_path: Path) -> None:
    shutil.copy(FULL / "ncu.csv", tmp_path / "page.csv")
    step = {"id": "gpu", "uses": "ncu", "with": {"report": "page.csv"}}
    targets = {"addConstDouble3": {"registers": "≤16", "occupancy_theoretical": "≥50%"}}
    flow = {"perfflow": 1, "targets": targets, "stages": {"profile": [step]}}
    (tmp_path / "flow.yaml").write_text(json.dumps(flow))
    path = f"{Path(PYTHON).parent}:/usr/bin:/bin"
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, path=path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {item["status"] for item in result["targets"]} == {"met"}
    assert {spot["unit"] for spot in result["hotspots"]} == {"device time", "stalls"}
    (tmp_path / "page.csv").unlink()
    done = perfflow("run", "flow.yaml", "--out", "again", cwd=tmp_path, path=path, measured=True)
    assert done.returncode == 3
    assert "check that 'page.csv' exists" in done.stdout + done.stderr


needs_ncu = pytest.mark.skipif(
    not shutil.which("ncu") or not os.environ.get("PERFFLOW_NCU_REPORTS", ""),
    reason="ncu is not on PATH, or PERFFLOW_NCU_REPORTS does not name the folder of its example reports",
)


@needs_ncu
def test_the_real_ncu_prints_what_is_read(tmp_path: Path) -> None:
    report = Path(os.environ["PERFFLOW_NCU_REPORTS"]) / "addConstDouble3.ncu-rep"
    call = replace(call_of("ncu", tmp_path, "/bin/true"), options=ncu.NcuOptions(report=str(report)))
    parsed = parsed_of(run_call("ncu", call))
    golden = json.loads((FULL / "parsed.json").read_text())
    if (tmp_path / "ncu.csv").read_text() == (FULL / "ncu.csv").read_text():
        assert [item.value for item in parsed.readings] == [item["value"] for item in golden["readings"]]
    assert {item.benchmark for item in parsed.readings} == {"addConstDouble3"}


@needs_ncu
def test_the_real_ncu_without_a_gpu_says_so(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a driver here")
    ran = run("ncu", tmp_path, "/bin/true")
    assert ran.status
    with pytest.raises(ToolOutputError, match="no NVIDIA GPU was found"):
        ran.parse()
