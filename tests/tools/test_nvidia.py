"""NVIDIA's tools: pages of Nsight Compute, tables of nvidia-smi, nvcc, compute-sanitizer and Triton.

Real programs run if they are installed; those that need a GPU only up to their error message without one.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.execute import gpus, prepare
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.testing.contract import check_sane
from perfflow.tools.adapter import Effort, Invocation
from perfflow.tools.nvidia import ncu, ncu_table
from perfflow.tools.nvidia.ncu_metrics import Kind
from perfflow.tools.nvidia.ncu_table import Cell
from tests.cli.shell import perfflow
from tests.tools.flows import result_in, run_flow
from tests.tools.harness import DATA, PROGRAMS, PYTHON, USAGE, call_of, listed, parsed_of, run, run_call, tool
from tests.tools.tables import answers, parsed_from, refusals, refused_by

FULL = DATA / "ncu" / "2022.3.0" / "full"
LIVE = DATA / "ncu" / "2025.1-synthetic" / "live" / "ncu.csv"
SMI = DATA / "nvidia-smi" / "595-synthetic"


def _short(*kernels: str) -> list[str]:
    return list(ncu.short_names(kernels).values())


test_names_are_as_short_as_tells_them_apart = answers(
    _short,
    ("addConst(int, double *)", ["addConst"]),
    ("void gemm<float, 128>(float *, int)", ["gemm"]),
    ("void sum<float, 8>(float *)", "void sum<int, 8>(int *)", ["sum<float,8>", "sum<int,8>"]),
    ("f(int)", "f(float, int)", ["f(int)", "f(float,int)"]),
    ("void at::native::reduce<512, (anonymous namespace)::Op<float>>(T2)", ["at::native::reduce"]),
    ("(anonymous namespace)::scale(float *)", ["(anonymous namespace)::scale"]),
    ("std::enable_if<(N > 4), void>::type pad<N>(char *)", ["pad"]),
    ("copy[abi:v1,cw51](Array<long long, 1, C, mutable, aligned>)", ["copy"]),
    ("k(int) [clone .isra.0]", ["k"]),
    ("triton_poi_fused_0d1d2de", ["triton_poi_fused_0d1d2de"]),
    ("evil\x1b[31m\n(int)", ["evil?[31m"]),
    ("(", "", ">>>)", ["(", "?", ">>>)"]),
)


def test_names_that_are_cut_alike_still_differ() -> None:
    found = _short(*(f"f({'x' * 400}{index})" for index in range(3)))
    assert len(set(found)) == 3
    assert all(len(name) <= ncu.LONGEST + 3 for name in found)


def _figures(*cells: str) -> list[float | None]:
    """Return the numbers of a table, with the decimal mark that its cells have together."""
    mark = ncu_table.decimal_mark([Cell(cell) for cell in cells])
    return [ncu_table.figure(Cell(cell), mark, "1", "it") for cell in cells]


test_numbers_of_any_locale = answers(
    _figures,
    ("4,963,609,951.19", "1,024", [4963609951.19, 1024]),
    ("27.595.520", "65,77", "1.024", [27595520, 65.77, 1024]),
    ("1 024,5", "12 288", [1024.5, 12288]),
    ("1\u202f024,5", [1024.5]),
    ("1'024.5", [1024.5]),
    ("0.125", "1.024", [0.125, 1.024]),
    ("0,125", "1.024", [0.125, 1024]),
    ("12,288", "1.5", [12288, 1.5]),
    ("1.5e+06", [1.5e6]),
    ("1,376 (12; 13.5)", [1376]),
    ("(!) 3.5", [3.5]),
)
test_two_notations_in_one_table_are_none = refused_by(_figures, ("1.5", "1,5", "LC_ALL=C"))


def _figure(text: str, unit: str, kind: Kind) -> float | None:
    cell = Cell(text, unit)
    return ncu_table.figure(cell, ncu_table.decimal_mark([cell]), kind, "it")


test_a_lone_mark_is_told_by_its_unit = answers(
    _figure,
    # There are no fractions of a nanosecond, so the mark separates thousands.
    ("117.344", "nsecond", "s", pytest.approx(117344e-9, rel=1e-12)),
    ("117,344", "ns", "s", pytest.approx(117344e-9, rel=1e-12)),
    ("4.096", "byte/block", "B", 4096),
    # A figure with a prefix is below 1000.
    ("117.344", "usecond", "s", pytest.approx(117.344e-6, rel=1e-12)),
    ("117,344", "Gbyte/second", "B/s", pytest.approx(117.344e9, rel=1e-12)),
    ("1.410", "cycle/nsecond", "1/s", pytest.approx(1.41e9, rel=1e-12)),
)
test_units_of_both_generations = answers(
    _figure,
    ("5", "ns", "s", 5e-9),
    ("5", "nsecond", "s", 5e-9),
    ("5", "msecond", "s", 5e-3),
    ("5", "%", "%", 0.05),
    ("5", "hz", "1/s", 5),
    ("5", "Ghz", "1/s", 5e9),
    ("5", "cycle/nsecond", "1/s", 5e9),
    ("5", "Gbyte/second", "B/s", 5e9),
    ("5", "byte/s", "B/s", 5),
    ("5", "Kbyte/block", "B", 5000),
    ("5", "register/thread", "1", 5),
)
NO_FIGURES = ("1,2,3", "1.2.3", "-4", "inf", "1e999", "9" * 400, "4 GB", "0x10", "٣", "1_000", "--1")
test_figures_that_are_none = refused_by(
    _figure,
    ("117.344", "inst/cycle", "1", "a thousand times as much or as little: use LC_ALL=C"),
    ("12,288", "inst/cycle", "1", "a thousand times as much or as little: use LC_ALL=C"),
    ("5", "%", "s", "unit"),
    ("5", "second", "%", "unit"),
    ("5", "parsec", "1", "unit"),
    ("5", "", "s", "unit"),
    *((text, "inst", "1", "it") for text in NO_FIGURES),
)


def test_a_german_page_with_a_lone_time_is_in_nanoseconds(tmp_path: Path) -> None:
    """Return a real page with one requested metric, with German separators of thousands."""
    page = csv.DictReader(SELECTED.splitlines())
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
    table = [line for line in lines[: last[2]] if not line.startswith("==")]
    for page, warning in (
        (lines, ""),
        # The progress above has three launches.
        (lines[: last[0]], "contains 2 of 3 profiled launches"),
        (table, "has fewer metrics of launch 2 than of others"),
    ):
        warnings = _parsed(tmp_path, "".join(page)).warnings
        assert any(warning in item for item in warnings) == bool(warning)


def test_advice_of_fewer_launches_than_were_profiled_is_told(tmp_path: Path) -> None:
    page = LIVE.read_text()
    details = "".join(line for line in page.splitlines(keepends=True) if not line.startswith(('"2",', "==")))
    warnings = _parsed(tmp_path, page, details=details).warnings
    assert any("ncu-details.csv contains 2 of 3 launches" in warning for warning in warnings)


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


SELECTED = (DATA / "ncu" / "2022.3.0" / "selected" / "ncu.csv").read_text()


def _selected(old: str, new: str) -> str:
    assert old in SELECTED
    return SELECTED.replace(old, new)


test_an_odd_page_is_no_measurement = refusals(
    *("ncu", "ncu.csv"),
    (_selected('"nsecond"', '"%"'), "unit"),
    (_selected('"239008"', '"0"'), "took 0 s"),
    (_selected('"239008"', '"-239008"'), "not valid"),
    (_selected('"239008"', '"1e30"'), "not valid"),
    (_selected('"32"\n', '"33"\n'), "32 threads"),
    (_selected('"32"\n', ""), "cut short"),
    (_selected('"Kernel Name"', '"Name"'), "columns"),
    (_selected('"ID",', '"Id",'), "no table"),
    (_selected('"nsecond"', '"nsecond'), "cut short"),
)


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


@pytest.mark.long  # a whole workflow; pages are read in other tests
def test_a_page_is_read_without_ncu_and_its_kernels_are_judged(tmp_path: Path) -> None:
    shutil.copy(FULL / "ncu.csv", tmp_path / "page.csv")
    step = {"id": "gpu", "uses": "ncu", "with": {"report": "page.csv"}}
    targets = {"addConstDouble3": {"registers": "≤16", "occupancy_theoretical": "≥50%"}}
    path = f"{Path(PYTHON).parent}:/usr/bin:/bin"
    done = run_flow(tmp_path, {"profile": [step]}, targets, path=path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = result_in(tmp_path)
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


SMI = DATA / "nvidia-smi" / "595-synthetic"


def _sampled(folder: Path, text: str, seconds: float = 1.0, **keys: object) -> Parsed:
    parsed = parsed_from("nvidia-smi", folder, {"nvidia-smi.txt": text}, usage=Usage(wall=seconds), **keys)
    check_sane(parsed)
    return parsed


def test_a_table_of_nvidia_smi_that_ends_within_a_sample_is_told(tmp_path: Path) -> None:
    lines = (SMI / "two-gpus" / "nvidia-smi.txt").read_text().splitlines(keepends=True)
    for kept, is_told in ((lines, False), (lines[:-1], True)):
        warnings = _sampled(tmp_path, "".join(kept)).warnings
        assert any("GPU 1 has fewer samples than others" in warning for warning in warnings) == is_told


def test_a_table_of_nvidia_smi_that_ends_long_before_the_command_is_told(tmp_path: Path) -> None:
    text = (SMI / "dmon" / "nvidia-smi.txt").read_text()
    # Three samples, one per second; nvidia-smi can take some seconds to start.
    for seconds, is_told in ((3.0, False), (8.0, False), (20.0, True)):
        warnings = _sampled(tmp_path, text, seconds, mode="dmon").warnings
        assert any("do not cover the" in warning for warning in warnings) == is_told


test_a_figure_of_nvidia_smi_that_is_too_large_once_scaled_is_none = refusals(
    *("nvidia-smi", "nvidia-smi.txt"),
    ((SMI / "two-gpus" / "nvidia-smi.txt").read_text().replace("9000", "9" + "0" * 18), "which is not valid"),
)

CROWDED = str(PROGRAMS / "crowded.cu")
NVCC = tool("nvcc")


@pytest.fixture(scope="module")
def nvcc() -> str:
    program = prepare.located(NVCC.program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"nvcc is not installed: {NVCC.program.install}")
    return program


def test_nvcc_builds_for_one_architecture(nvcc: str, tmp_path: Path) -> None:
    ran = run("nvcc", tmp_path / "out", file=CROWDED, arch="sm_80")
    assert ran.status == 0
    handed_on = NVCC.build.results(ran.call)
    assert os.access(handed_on["path"], os.X_OK)
    assert int(handed_on["binary_size"]) == Path(handed_on["path"]).stat().st_size
    assert (handed_on["kernels"], handed_on["registers"], handed_on["shared"]) == ("3", "32", "256")
    assert int(handed_on["spills"]) > 0
    (warning,) = ran.parse().warnings
    assert warning.startswith("dense::crowded (sm_80) spills: ")
    assert warning.endswith("per thread, at 32 registers")


def test_nvcc_puts_the_program_where_it_is_wanted(nvcc: str, tmp_path: Path) -> None:
    out = tmp_path / "new folder" / "crowded"
    ran = run("nvcc", tmp_path / "out", file=[CROWDED], arch=["sm_80", "sm_90"], out=str(out), flags=["-DNDEBUG"])
    assert ran.status == 0
    assert NVCC.build.results(ran.call)["path"] == str(out)
    assert out.stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"flags": "-DBROKEN"}, r'error: identifier "missing" is undefined$'),
        ({"arch": "sm_35"}, r"Unsupported gpu architecture 'sm_35'; run `nvcc --list-gpu-code` for those"),
        ({"file": "no-such.cu"}, r"fatal error: no-such.cu: No such file"),
        ({"flags": ["-ccbin", "no-such-compiler"]}, r"no-such-compiler"),
        ({"flags": "-ptx"}, r"crowded is not a program"),
        ({"flags": "-lno-such-library"}, r"cannot find -lno-such-library"),
    ],
    ids=["code", "architecture", "file", "host compiler", "other output", "library"],
)
def test_nvcc_that_fails_says_why(nvcc: str, options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    ran = run("nvcc", tmp_path / "out", **{"file": CROWDED, "arch": "sm_80", **options})
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


@pytest.mark.parametrize("arch", ["80", "sm_8", "compute_80", ["sm_80", "native"], "sm_80 native"])
def test_nvcc_refuses_what_is_no_architecture(arch: str | list[str], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"`arch` is '(80|sm_8|compute_80|native)': set sm_90"):
        NVCC.invocations(call_of("nvcc", tmp_path, arch=arch))


def test_code_for_several_architectures_and_later_ones(tmp_path: Path) -> None:
    argv = NVCC.invocations(call_of("nvcc", tmp_path, arch="sm_80, sm_90a"))[0].argv
    one, other = "arch=compute_80,code=sm_80", "arch=compute_90a,code=[sm_90a,compute_90a]"
    assert argv[5:9] == ("-gencode", one, "-gencode", other)


WORKFLOW = """
perfflow: 1
stages:
  build:
    - id: make
      uses: nvcc
      with: {file: %s, out: "build/crowded-${{ matrix.arch }}", arch: "${{ matrix.arch }}"}
      matrix: {arch: [sm_80, sm_90]}
  baseline:
    - {id: one, run: ls, runs: 1, warmup: 0}
  verify:
    - run: test ${{ steps['make[arch=sm_80]'].outputs.spills }} -gt 0 && test -x build/crowded-sm_90
"""


def test_a_matrix_of_architectures(nvcc: str, tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW % json.dumps(CROWDED))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, env={"CUDA_HOME": str(Path(nvcc).parents[1])})
    assert done.returncode == 0, done.stdout + done.stderr
    steps = json.loads((tmp_path / "out/result.json").read_text())["steps"]
    assert [step["status"] for step in steps] == ["done"] * 4
    assert "dense::crowded (sm_90) spills" in (tmp_path / "out/result.json").read_text()


def test_nvcc_that_was_stopped_half_way_is_no_success(nvcc: str, tmp_path: Path) -> None:
    """A wrapper that hides the exit status, as build scripts do."""
    program = tmp_path / "bin" / "nvcc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{nvcc} "$@" -DBROKEN || true\n')
    program.chmod(0o755)
    (tmp_path / "flow.yaml").write_text(WORKFLOW % json.dumps(CROWDED))
    path = f"{program.parent}:{os.environ['PATH']}"
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, path=path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert 'identifier "missing" is undefined' in done.stderr


SANITIZER = tool("compute-sanitizer")


def _report(*lines: str) -> str:
    return "".join(f"========= {line}\n" for line in ["COMPUTE-SANITIZER", *lines])


CLEAN = "ERROR SUMMARY: 0 errors"
test_a_report_that_is_not_clean = refusals(
    *("compute-sanitizer", "sanitizer.txt"),
    (_report(), "cut short: it has no summary$"),
    (_report("ERROR SUMMARY: no errors"), "it has no summary$"),
    (_report(CLEAN, "ERROR SUMMARY: 1 error"), "1 error, first: the report does not name it"),
    (_report(CLEAN, "LEAK SUMMARY: what"), "it has no summary$"),
    (_report("Error: Target application terminated before first instrumented API call"), "nothing was checked"),
    (_report("Target application doesn't exist or is not a valid executable"), "the command is not a program"),
)
test_a_report_without_leaks = refusals(
    *("compute-sanitizer", "sanitizer.txt"), (_report(CLEAN), "no summary of leaks"), leaks=True
)
test_a_report_without_races = refusals(
    *("compute-sanitizer", "sanitizer.txt"), (_report(CLEAN), "it has no summary$"), check="racecheck"
)


def test_what_makes_a_check_weaker_is_said(tmp_path: Path) -> None:
    overflow = "Detected overflow of tracked cuda::barrier structures."
    content = _report(*[f"Warning: {overflow}"] * 2, CLEAN)
    assert parsed_from("compute-sanitizer", tmp_path, {"sanitizer.txt": content}).warnings == (overflow,)
    races = _report(
        "WARNING: Race reported between Write at x",
        "and Read at y",
        "RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)",
    )
    files = {"sanitizer.txt": races}
    (warning,) = parsed_from("compute-sanitizer", tmp_path, files, check="racecheck").warnings
    assert warning.endswith("racecheck also warns (1): WARNING: Race reported between Write at x and Read at y")


def test_leaks_are_a_matter_of_memcheck(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="`leaks` needs `check: memcheck`"):
        SANITIZER.invocations(call_of("compute-sanitizer", tmp_path, "/bin/x", check="synccheck", leaks=True))


@pytest.mark.parametrize("command", ["/bin/true", "./no-such-program"])
def test_a_program_that_never_used_a_gpu_was_not_checked(command: str, tmp_path: Path) -> None:
    program = prepare.located(SANITIZER.program, os.environ["PATH"])
    if program is None:
        pytest.skip(f"compute-sanitizer is not installed: {SANITIZER.program.install}")
    step = {"id": "accesses", "uses": "compute-sanitizer", "with": {"command": command}}
    done = run_flow(tmp_path, {"verify": [step]}, env={"CUDA_HOME": str(Path(program).parents[1])})
    assert done.returncode == 1, done.stdout + done.stderr
    wanted = "nothing was checked" if command == "/bin/true" else "no-such-program"
    assert wanted in done.stdout + done.stderr


TORCH = os.environ.get("PERFFLOW_TORCH", "")
needs_triton = pytest.mark.skipif(not TORCH, reason="PERFFLOW_TORCH names no Python with PyTorch and Triton")
TRITON_CPU = str(PROGRAMS / "triton_cpu.py")
LAMBDA = next(at for at, line in enumerate(Path(TRITON_CPU).read_text().splitlines(), 1) if "3_000" in line)
NAMES = ["total", "total#2", f"triton_cpu.py:{LAMBDA}", "sizes[n=5000,how=loop]", "sizes[n=50000,how=loop]"]


@needs_triton
def test_every_call_of_do_bench_is_a_benchmark(tmp_path: Path) -> None:
    ran = run("triton-bench", tmp_path / "out", script=TRITON_CPU, python=TORCH)
    assert ran.status == 0
    readings = ran.parse().readings
    assert [reading.benchmark for reading in readings] == NAMES
    assert readings[0].inner["n"] > 1
    assert all(reading.value > 0 for reading in readings)


@needs_triton
def test_triton_benchmarks_are_listed_and_run_alone(tmp_path: Path) -> None:
    call = call_of("triton-bench", tmp_path, script=TRITON_CPU, python=TORCH)
    assert listed("triton-bench", call) == (0, NAMES)
    alone = replace(call, chosen=(NAMES[3],), effort=Effort.BRIEF)
    ran = run_call("triton-bench", alone)
    assert [reading.benchmark for reading in ran.parse().readings] == [NAMES[3]]


@needs_triton
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import triton.testing\ntriton.testing.do_bench(lambda: None)\n", r"finds no GPU; add `requires: \{gpu: 1\}`"),
        ("raise LookupError('no such thing')\n", "LookupError: no such thing$"),
        ("import sys\nsys.exit(3)\n", "was not written"),
        ("pass\n", r"has no call of triton.testing.do_bench$"),
    ],
    ids=["no gpu", "raises", "exits", "nothing"],
)
def test_triton_bench_that_fails_says_why(script: str, reason: str, tmp_path: Path) -> None:
    if "None" in script and gpus.visible(os.environ["PATH"]).count:
        pytest.skip("there is a GPU here")
    (tmp_path / "bench.py").write_text(script)
    ran = run("triton-bench", tmp_path / "out", script=str(tmp_path / "bench.py"), python=TORCH)
    assert ran.status != 0
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


def test_triton_that_is_not_installed(tmp_path: Path) -> None:
    ran = run("triton-bench", tmp_path / "out", script=TRITON_CPU, python="/usr/bin/python3")
    assert ran.status != 0
    with pytest.raises(ToolOutputError, match=r"triton is not installed for this python .*: pip install triton"):
        ran.parse()
