"""The workflow of the Mojo example with the real compiler: what is faster is proven, and what is wrong is rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfflow.session.open_workflow import open_workflow
from tests.cli.shell import ROOT, perfflow
from tests.examples.mojo import EXAMPLE, MOJO, PATCHES, needs_mojo
from tests.examples.trees import committed, copied
from tests.repositories import git

WORKFLOW = Path("workflows", "mojo-kernel.yaml")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    return committed(copied(tmp_path / "clone", EXAMPLE, PATCHES, WORKFLOW, "scripts/mojo", ".gitignore"))


@pytest.mark.long
@pytest.mark.timeout(2400)
@needs_mojo
def test_speedups_are_proven_and_the_wrong_kernel_is_rejected(clone: Path) -> None:
    done = perfflow(
        *("run", str(WORKFLOW), "--set", f"compiler={MOJO}", "--set", "budget=8s", "--progress", "off", "--json"),
        cwd=clone,
        timeout=2300,
    )
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["reasons"]
    rows = {(row["name"], row["metric"]): row for row in result["benchmarks"]}
    for kernel in ("add", "saxpy", "matmul"):
        assert rows[kernel, "time"]["decision"] == "improved"
        assert rows[kernel, "time"]["speedup"]["low"] > 1.3
    assert {target["status"] for target in result["targets"]} == {"met"}
    wanted = {(target["benchmark"], target["metric"]) for target in result["targets"]}
    assert wanted >= {("matmul", "flops"), ("add", "rate"), ("memory/add", "bandwidth"), ("draft", "time")}

    decisions = {item["id"]: item["decision"] for item in result["optimizations"]}
    assert decisions == dict.fromkeys(("tiling", "simd", "registers"), "accepted") | {"wrong": "rejected"}
    (wrong,) = (item for item in result["optimizations"] if item["id"] == "wrong")
    assert wrong["reason"].startswith("correctness does not hold: step differences: max_abs_diff of draft is ")
    assert rows["draft", "cache_misses_d1"]["decision"] == "improved"
    share = rows["draft", "simd_share"]
    assert share["baseline"]["value"] < 0.2
    assert share["candidate"]["value"] > 0.8
    (check,) = result["verification"]
    assert (check["id"], check["status"]) == ("differences", "passed")

    peaks = {(peak["metric"], peak["precision"]) for peak in result["peaks"]}
    assert peaks >= {("bandwidth", ""), ("flops", "f32")}
    report = (clone / ".perfflow" / "runs" / result["run"]["id"] / "report.md").read_text()
    assert "### Roofline" in report
    assert "kernels::draft::matmul_draft`" in report
    assert git(clone, "status", "--porcelain") == ""
    kept = git(clone, "diff", "--name-only", "main", result["trees"]["candidate"]["branch"]).split()
    assert kept == ["examples/mojo-kernels/kernels/draft.mojo"]


def test_without_a_compiler_it_says_so_in_one_line(clone: Path) -> None:
    done = perfflow(
        *("run", str(WORKFLOW), "--set", "compiler=", "--set", "peaks=false", "--progress", "plain"),
        cwd=clone,
        env={"PERFFLOW_MOJO": str(clone / "no-such-compiler")},
    )
    assert done.returncode == 3
    assert done.stdout.count("Mojo 1.2.0 is not installed: PERFFLOW_MOJO=") == 1
    assert "failed" not in done.stderr


def test_counts_of_the_draft_have_time_for_eleven_pairs_on_a_busy_machine() -> None:
    found = open_workflow(str(ROOT / WORKFLOW))
    assert found.problems == ()
    assert found.plan.by_id["draft-misses"].step.budget == "2m"
