"""A gate on a cargo workspace with cargo's default profiles: which function, where, and by which commit.

The first test builds criterion, which takes a minute or two; its trees, and what is built in them, stay in pytest's
cache.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.repositories import git

pytestmark = [
    pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not on PATH (https://rustup.rs)"),
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH (apt-get install valgrind)"),
]
FLOW = """
perfflow: 1
name: workspace
stages:
  baseline:
    - id: bench
      uses: cargo-bench
      benchmark: "*"
      with: {package: [codec, index], locked: true, filter: "encode|build"}
  profile:
    - {id: hotspots, uses: auto, benchmark: "**"}
"""
# About a quarter more of the work of `encode`, in the function that sums the bytes up.
SUM = "pub fn fletcher(bytes: &[u8]) -> u32 {\n"
SLOWER = f"""{SUM}    let part = &bytes[..bytes.len() / 6];
    std::hint::black_box(part.iter().fold(1, |sum: u32, &byte| sum.rotate_left(5) ^ u32::from(byte)));
"""


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    cache = request.config.cache.mkdir("cargo-gate")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    root = cache / "clone"
    shutil.rmtree(root, ignore_errors=True)
    ignored = shutil.ignore_patterns("target")
    shutil.copytree(ROOT / "examples/rust-workspace", root, ignore=ignored, copy_function=shutil.copyfile)
    manifest = root / "Cargo.toml"
    text = manifest.read_text()
    assert "\n[profile.release]\n" in text
    manifest.write_text(text.partition("\n[profile.release]\n")[0])
    (root / "flow.yaml").write_text(FLOW)
    (root / ".gitignore").write_text("target/\n.perfflow/\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "The workspace")
    return root


def slow_down(root: Path) -> None:
    source = root / "codec/src/checksum.rs"
    text = source.read_text()
    assert text.count(SUM) == 1
    source.write_text(text.replace(SUM, SLOWER))
    git(root, "commit", "-qam", "Sum up twice")


def gate(root: Path, path: str) -> dict[str, Any]:
    done = perfflow(
        *("gate", "flow.yaml", "--base", "HEAD~1", "--allow-unproven", "--progress", "off", "--json"),
        cwd=root,
        path=path,
        measured=True,
        timeout=1800,
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_encode(result: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [item for item in result["attributions"] if item["benchmark"].startswith("encode/")]
    assert found, [(step["id"], step["warnings"]) for step in result["steps"]]
    assert result["verdict"] == "fail", result["reasons"]
    return found[0]


def programs(folder: Path, perf: str) -> str:
    """A PATH with a `perf` of one's own before the others."""
    folder.mkdir()
    (folder / "perf").write_text(f"#!/bin/sh\n{perf}\n")
    (folder / "perf").chmod(0o700)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("perf", "tool"),
    [
        # As where it dies on inlined frames, and as where it may not sample.
        ('case "$*" in script*srcline*) kill -s PIPE $$ ;; esac; exec REAL "$@"', "perf"),
        ('echo "No permission to enable cpu-clock event." >&2; exit 255', "callgrind"),
    ],
    ids=["perf-without-srcline", "callgrind"],
)
def test_a_slower_function_is_named_with_its_place_and_commit(
    perf: str, tool: str, clone: Path, tmp_path: Path
) -> None:
    real = shutil.which("perf")
    if real is None:
        pytest.skip("perf is not on PATH (apt-get install linux-perf)")
    slow_down(clone)
    result = gate(clone, programs(tmp_path / "bin", perf.replace("REAL", real)))
    blamed = of_encode(result)
    assert blamed["tool"] == tool
    # The compiler puts what is that small into what calls it.
    assert blamed["function"] in ("codec::encode", "codec::checksum::fletcher")
    assert blamed["file"].startswith("codec/src/")
    assert blamed["line"] > 0
    assert blamed["crate"] == "codec"
    assert [item["subject"] for item in blamed["commits"]] == ["Sum up twice"]
    assert not [item for item in result["attributions"] if item["benchmark"].startswith("build/")]
    # What is measured has none of the lines that what is profiled has.
    places = clone / ".perfflow/runs/latest/steps/bench/prepared"
    for side in ("baseline", "candidate"):
        assert [told(places / name) for name in (side, f"{side}-with-lines")] == [False, True]


def told(place: Path) -> bool:
    benches = json.loads((place / "suite.json").read_text())["benches"]
    return all(bench["lines"] for bench in benches)
