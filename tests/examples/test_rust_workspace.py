"""The example workspace: each feature set is correct, and a gate names what got slower in it and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.examples.rust import copy_without_benchmarks
from tests.examples.trees import committed, copied, run
from tests.kept import kept
from tests.long import rest_long
from tests.repositories import git
from tests.toolchains import needs_cargo

WORKSPACE, WORKFLOW = "examples/rust-workspace", "workflows/regression-gate.yaml"
# One feature set and two crates of three, and the program of the third: the others are measured as they are.
REDUCED = """
perfflow: 1
extends: ./regression-gate.yaml
params: {packages: [codec, index], features: [default], budget: 20s}
stages:
  baseline:
    - {id: decode, runs: 6}
  profile:
    - {id: hotspots, benchmark: "codec/**"}
"""
FEATURES = ("default", "compact")
SUITE = {f"{name}/2000" for name in ("codec/default/decode", "codec/default/encode", "index/default/build")}
READ = "    let word = |bytes: &[u8]|"
# Reads every byte twice more; `codec::decode` calls it, and little of a report is that.
SLOWER = f"""    for _ in 0..2 {{
        std::hint::black_box(body.iter().map(|&byte| u32::from(byte)).sum::<u32>());
    }}
{READ}"""

pytestmark = needs_cargo


@pytest.mark.long  # compiles; tests/cli/cases/gate_cargo.txt gates a workspace
@pytest.mark.parametrize("features", rest_long(["", "compact"]))
def test_the_workspace_is_correct(features: str, tmp_path: Path) -> None:
    copy_without_benchmarks(ROOT / WORKSPACE, tmp_path / "workspace")
    argv: list[str | Path] = ["cargo", "test", "--release", "--offline", "--quiet", f"--features={features}"]
    done = run(argv, tmp_path / "workspace", CARGO_TARGET_DIR=str(tmp_path / "target"))
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [int(count) for count in re.findall(r"test result: ok\. (\d+) passed; 0 failed", done.stdout)]
    assert sum(passed) >= 15


def test_the_plan_has_every_crate_with_every_feature_set() -> None:
    done = perfflow("plan", WORKFLOW, "--format", "json", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    steps = {step["id"] for step in json.loads(done.stdout)["steps"]}
    cells = {f"bench[crate={crate},features={name}]" for crate in ("codec", "index", "pipeline") for name in FEATURES}
    assert cells <= steps
    assert len((ROOT / WORKFLOW).read_text().splitlines()) < 60


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with the example in it. Its trees, and what is built in them, are kept."""
    with kept("rust-workspace") as cache:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(cache / "lock"))
        root = cache / "clone"
        shutil.rmtree(root, ignore_errors=True)
        copied(root, WORKSPACE, WORKFLOW)
        (root / "workflows" / "reduced.yaml").write_text(REDUCED)
        (root / ".gitignore").write_text("target/\n")
        yield committed(root)


def gate(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow(
        *("gate", "workflows/reduced.yaml", *words, "--unproven=pass", "--progress", "off", "--json"),
        cwd=root,
        measured=True,
        timeout=1200,  # two builds from nothing
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.long
def test_a_slower_decoder_is_named_and_nothing_else(clone: Path) -> None:
    source = clone / WORKSPACE / "codec" / "src" / "wide.rs"
    text = source.read_text()
    assert text.count(READ) == 1
    source.write_text(text.replace(READ, SLOWER))
    committed(clone, "Look at every byte")
    status, result = gate(clone, "--base", "HEAD~1")
    assert status == 1, result["reasons"]
    measured = {row["name"] for row in result["benchmarks"]}
    assert measured >= {*SUITE, "report/default"}
    failing = {row["name"] for row in result["benchmarks"] if row["level"] == "action"}
    # The program that decodes, for its growth, runs the same function.
    assert {name for name in failing if not name.startswith("decode[")} == {"codec/default/decode/2000"}
    (blamed, *_) = [item for item in result["attributions"] if item["benchmark"] == "codec/default/decode/2000"]
    assert blamed["function"].startswith("codec::form::read")
    assert (blamed["file"], blamed["region"]) == (f"{WORKSPACE}/codec/src/wide.rs", "form")
    assert blamed["crate"] == "codec"
    assert [item["subject"] for item in blamed["commits"]] == ["Look at every byte"]
    assert result["routes"][0]["to"] == "storage"
    assert {item["status"] for item in result["verification"]} == {"passed"}
    assert {item["id"].partition("[")[0] for item in result["verification"]} == {"tests", "deterministic", "accuracy"}
    assert git(clone, "status", "--porcelain") == ""
