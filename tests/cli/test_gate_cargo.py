"""A gate on the example workspace of cargo with its default profiles: which function, where, and by which commit.

Its benchmarks need criterion, whose build takes minutes, so its trees and builds are cached. A workspace without
dependencies is in ``cases/gate_cargo.txt``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.kept import kept
from tests.repositories import git
from tests.toolchains import needs_cargo

pytestmark = [
    needs_cargo,
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
# More work in the function that sums up the bytes for `encode`: about 25% with one more pass over a sixth of them.
SUM = "pub fn fletcher(bytes: &[u8]) -> u32 {\n"
SLOWER = f"""{SUM}    let part = std::hint::black_box(&bytes[..bytes.len() / 6]);
    std::hint::black_box(part.iter().fold(1, |sum: u32, &byte| sum.rotate_left(5) ^ u32::from(byte)));
"""
# Like perf when it crashes on inlined frames, and like perf without permission to sample.
DIES = 'case "$*" in script*srcline*) kill -s PIPE $$ ;; esac; exec REAL "$@"'
DENIED = 'echo "No permission to enable cpu-clock event." >&2; exit 255'


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with the example workspace, and a commit that makes a function slower."""
    with kept("cargo-gate") as cache:
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
        source = root / "codec/src/checksum.rs"
        text = source.read_text()
        assert text.count(SUM) == 1
        source.write_text(text.replace(SUM, SLOWER))
        git(root, "commit", "-qam", "Sum up twice")
        yield root


@pytest.mark.long
@pytest.mark.parametrize(
    ("perf", "tool"),
    [
        # See also tests/tools/test_perf.py for perf crashing on inlined frames.
        pytest.param(DIES, "perf", id="perf-without-srcline"),
        pytest.param(DENIED, "callgrind", id="callgrind"),
    ],
)
def test_a_slower_function_is_named_with_its_place_and_commit(
    perf: str, tool: str, clone: Path, tmp_path: Path
) -> None:
    real = shutil.which("perf")
    if real is None:
        pytest.skip("perf is not on PATH (apt-get install linux-perf)")
    (tmp_path / "perf").write_text(f"#!/bin/sh\n{perf.replace('REAL', real)}\n")
    (tmp_path / "perf").chmod(0o700)
    words = ("gate", "flow.yaml", "--base", "HEAD~1", "--unproven=pass", "--progress", "off", "--json")
    done = perfflow(*words, cwd=clone, path=f"{tmp_path}:{os.environ['PATH']}", measured=True, timeout=1800)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    found = [item for item in result["attributions"] if item["benchmark"].startswith("encode")]
    assert found, [(step["id"], step["warnings"]) for step in result["steps"]]
    assert result["verdict"] == "fail", result["reasons"]
    blamed = found[0]
    assert blamed["tool"] == tool
    # The compiler inlines functions this small, and so it does their closures.
    assert blamed["function"].removesuffix("::{{closure}}") in ("codec::encode", "codec::checksum::fletcher")
    assert blamed["file"].startswith("codec/src/")
    assert blamed["line"] > 0
    assert blamed["crate"] == "codec"
    assert [item["subject"] for item in blamed["commits"]] == ["Sum up twice"]
    assert not [item for item in result["attributions"] if item["benchmark"].startswith("build")]
    # The measured program has no line numbers, unlike the profiled one.
    places = clone / ".perfflow/runs/latest/steps/bench/prepared"
    for side in ("baseline", "candidate"):
        assert [told(places / name) for name in (side, f"{side}-with-lines")] == [False, True]


def told(place: Path) -> bool:
    benches = json.loads((place / "suite.json").read_text())["benches"]
    return all(bench["lines"] for bench in benches)
