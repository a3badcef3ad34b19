"""Reports of GPU kernels through the real command: the report and result.json.

The pages of Nsight Compute are real. Tests with a second GPU use the same page under another name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.tools.harness import DATA
from tests.tools.nsys.databases import build

NCU = DATA / "ncu" / "2022.3.0" / "full"
A2000, L4 = "NVIDIA RTX A2000", "NVIDIA L4"


def run(folder: Path, tool: str, report: str, more: str = "", *, status: int = 0) -> dict[str, Any]:
    """Return the result of a run that reads a report. Check its receipt, and that judging it again changes nothing."""
    step = f"{{id: kernels, uses: {tool}, with: {{report: {report}}}}}"
    write(folder, f"{more}stages: {{profile: {{steps: [{step}]}}}}\n")
    done = perfflow("run", "flow.yaml", "--out", "run", "--unproven=pass", "--progress", "off", cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    result: dict[str, Any] = json.loads((folder / "run" / "result.json").read_text())
    verified = perfflow("receipt", "verify", "run", cwd=folder)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    (folder / "alone").mkdir()
    (folder / "alone" / "result.json").write_bytes((folder / "run" / "result.json").read_bytes())
    again = perfflow("report", "alone/result.json", "--json", cwd=folder)
    assert json.loads(again.stdout) == result
    return result


def page(folder: Path) -> str:
    return (folder / "run" / "report.md").read_text()


def real_page(folder: Path, name: str, device: str = A2000, **cells: str) -> str:
    """Return the real page, or the same page for another GPU."""
    text = (NCU / "ncu.csv").read_text().replace(A2000, device)
    for before, after in cells.items():
        text = text.replace(before, after)
    (folder / name).write_text(text)
    return name


def test_a_report_of_ncu_says_what_bounds_a_kernel_and_why_its_warps_wait(tmp_path: Path) -> None:
    targets = "targets: {addConstDouble3: {bandwidth: ≥50% of peak, flops: ≥10% of peak}}\n"
    result = run(tmp_path, "ncu", real_page(tmp_path, "ncu.csv"), targets)
    (kernel,) = result["kernels"]
    assert (kernel["device"], kernel["capability"], kernel["bound"], kernel["precision"]) == (
        A2000,
        "8.6",
        "memory",
        "f64",
    )
    # The model agrees with ncu for the same launch: 6 blocks of 8 warps fill the 48 slots.
    assert kernel["model"] == {"occupancy": 1.0, "blocks": 6, "limiters": [], "lifts": []}
    assert (kernel["occupancy_theoretical"], kernel["warnings"]) == (1.0, [])
    # 3145728 of 4718592 sectors, by the columns memory_l2_theoretical_sectors_global and _ideal.
    assert kernel["uncoalesced"] == pytest.approx(3145728 / 4718592)
    assert kernel["stalls"][0]["reason"] == "lg_throttle"
    # 48 B a cycle at 5.963 GHz; 52 fused operations a cycle at 0.5596 GHz.
    peaks = {target["metric"]: target["peak"] for target in result["targets"]}
    assert peaks == pytest.approx({"bandwidth": 48 * 5963035442.49, "flops": 2 * 52 * 559587229.11}, rel=1e-5)
    assert [item["rule"] for item in result["recommendations"]] == ["uncoalesced-accesses"]
    for heading in ("### GPU Kernels", "### Warp Stalls", "### Roofline", "### Recommendations"):
        assert heading in page(tmp_path)
    assert "67% of the global memory sectors it moves are not needed for its data" in page(tmp_path)


def test_the_advice_of_ncu_stands_under_its_name(tmp_path: Path) -> None:
    report = real_page(tmp_path, "details.csv")
    (tmp_path / report).write_text((NCU.parent / "details" / "ncu.csv").read_text())
    result = run(tmp_path, "ncu", report)
    rules = [(item["source"], item["rule"]) for item in result["recommendations"]]
    assert rules == [("ncu", "SOLFPRoofline"), ("ncu", "SOLFPRoofline"), ("ncu", "IssueSlotUtilization")]
    assert "ncu rule `IssueSlotUtilization`" in page(tmp_path)
    # The page names neither the GPU nor its architecture.
    assert result["kernels"][0]["model"] is None
    assert "no occupancy model: ncu does not report the compute capability" in page(tmp_path)


def test_a_database_of_nsys_tells_launches_that_the_model_works_out(tmp_path: Path) -> None:
    build(tmp_path / "a.sqlite")
    result = run(tmp_path, "nsys", "a.sqlite")
    saxpy = result["kernels"][0]
    assert (saxpy["device"], saxpy["capability"], saxpy["grid"], saxpy["threads"]) == ("Model GPU", "7.5", 256, 128)
    assert saxpy["registers"] == 24
    # On 7.5 an SM has 32 slots for warps: 8 blocks of 4.
    assert (saxpy["model"]["blocks"], saxpy["model"]["occupancy"]) == (8, 1.0)
    assert saxpy["bound"] is None
    assert {peak["device"] for peak in result["peaks"]} == {"Model GPU"}


BENCH = """#!/bin/sh
# Prints what a program of CUDA would; no GPU takes part.
[ "$1" = --list ] && { echo copy; exit; }
echo 'gpu="NVIDIA L4" cc=8.9'
for ms in 1.01 1.02 1.03; do echo "kernel=copy ms=$ms bytes=250000000"; done
echo 'end kernels=1 times=3'
"""


def test_a_benchmark_is_held_against_the_published_peak_of_the_gpu_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "bench").write_text(BENCH)
    (tmp_path / "bench").chmod(0o755)
    step = "{id: bench, uses: cuda-bench, runs: 6, with: {command: ./bench}}"
    write(tmp_path, f"targets: {{copy: {{bandwidth: ≥70% of peak}}}}\nstages: {{baseline: [{step}]}}\n")
    done = perfflow("run", "flow.yaml", "--out", "run", "--progress", "off", cwd=tmp_path, measured=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (target,) = json.loads((tmp_path / "run" / "result.json").read_text())["targets"]
    assert (target["peak"], target["peak_source"], target["status"]) == (300e9, "published for L4", "met")


def stored(folder: Path, name: str, device: str = A2000, **cells: str) -> str:
    (folder / name).mkdir()
    run(folder / name, "ncu", real_page(folder / name, "ncu.csv", device, **cells))
    return f"{name}/run/result.json"


def test_kernels_on_two_gpus_are_compared_by_their_roofs_and_nothing_is_decided(tmp_path: Path) -> None:
    first = stored(tmp_path, "first")
    # As if the L4 took ten times as long, with the peaks of the page.
    slower = {'"294336"': '"2943360"', '"166440095672.97"': '"16644009567.30"'}
    second = stored(tmp_path, "second", L4, **slower)
    done = perfflow("compare", first, second, "--json", "--out", "both", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] is None
    assert {row["decision"] for row in result["benchmarks"]} == {None}
    assert not any(row["gating"] or row["leading"] for row in result["benchmarks"])
    lines = {line["device"]: line for line in result["across_gpus"]}
    assert lines[L4]["slower"] == pytest.approx(10)
    assert lines[A2000]["of_best"] == 1.0
    assert {point["device"] for point in result["roofline"]} == {A2000, L4}
    text = (tmp_path / "both" / "report.md").read_text()
    assert "### Across GPUs" in text
    assert "regressed" not in text
    again = perfflow("report", "both", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == result


def test_the_same_kernel_on_one_gpu_is_compared_as_always(tmp_path: Path) -> None:
    first, second = stored(tmp_path, "first"), stored(tmp_path, "second", **{'"16"': '"20"'})
    done = perfflow("compare", first, second, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["across_gpus"] == []
    assert {row["metric"]: row["decision"] for row in result["benchmarks"]}["occupancy_theoretical"] == "same"
    assert [item["tree"] for item in result["kernels"]] == ["baseline", "candidate"]


def test_a_kernel_of_one_gpu_alone_is_neither_new_nor_gone(tmp_path: Path) -> None:
    both = DATA / "ncu" / "2025.1-synthetic" / "live" / "ncu.csv"
    for name, edit in (("first", {}), ("second", {'"9.0"': '"10.0"', "transpose(": "transpose_sm100("})):
        (tmp_path / name).mkdir()
        text = both.read_text()
        for before, after in edit.items():
            text = text.replace(before, after)
        (tmp_path / name / "ncu.csv").write_text(text)
        run(tmp_path / name, "ncu", "ncu.csv")
    done = perfflow("compare", "first/run/result.json", "second/run/result.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert {row["name"] for row in result["benchmarks"]} == {"scale"}
    assert "only one of the GPUs ran them: transpose, transpose_sm100" in " ".join(result["run"]["warnings"])
