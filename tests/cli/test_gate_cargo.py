"""A gate on a cargo workspace with cargo's default profiles: which function, where, and by which commit.

The benchmarks of the example workspace need criterion, whose build takes minutes, so its trees and builds are cached.
The workspace for CI has no dependencies.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, perfflow
from tests.kept import kept
from tests.repositories import git
from tests.rust import needs_cargo

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
SLOWER = f"""{SUM}    for _ in 0..TIMES {{
        let part = std::hint::black_box(&bytes[..bytes.len() / PART]);
        std::hint::black_box(part.iter().fold(1, |sum: u32, &byte| sum.rotate_left(5) ^ u32::from(byte)));
    }}
"""
PACKAGE = '[package]\nname = "NAME"\nversion = "0.1.0"\nedition = "2021"\n\n[lib]\nbench = false\n\n'
PACKAGE += '[[bench]]\nname = "NAME"\nharness = false\n'
# Real libtest benchmarks take three seconds on a busy machine; tests/tools/test_real_cargo.py tests them.
BENCH = """
fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.iter().any(|word| word == "--list") {
        return println!("NAME: benchmark\\n\\n0 tests, 1 benchmark");
    }
    let bytes = vec![7; 60_000];
    let timed = |rounds: u128| {
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(CALL(std::hint::black_box(&bytes)));
        }
        start.elapsed().as_nanos()
    };
    // As libtest does it, but with one batch in place of many if one round takes a second or less on a real clock.
    let first = timed(1);
    let rounds = (1_000_000 / first).max(1);
    let each = (0..50).flat_map(|_| [timed(rounds) / rounds, timed(5 * rounds) / (5 * rounds)]).min().unwrap();
    println!("test NAME ... bench: {each} ns/iter (+/- 0)\\n");
    println!("test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 0 filtered out");
}
"""
SMALL: Mapping[str, str] = {
    "Cargo.toml": '[workspace]\nmembers = ["codec", "index"]\nresolver = "2"\n',
    "codec/Cargo.toml": PACKAGE.replace("NAME", "codec"),
    "codec/src/lib.rs": "pub mod checksum;\n\npub fn encode(bytes: &[u8]) -> u32 {\n    checksum::fletcher(bytes)\n}\n",
    "codec/src/checksum.rs": f"""#[inline(never)]
{SUM}    bytes.iter().fold(1, |sum: u32, &byte| sum.rotate_left(7) ^ u32::from(byte))
}}
""",
    "codec/benches/codec.rs": BENCH.replace("NAME", "encode").replace("CALL", "codec::encode"),
    "index/Cargo.toml": PACKAGE.replace("NAME", "index"),
    "index/src/lib.rs": """pub fn build(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum: u32, &byte| sum.rotate_left(3) ^ u32::from(byte))
}
""",
    "index/benches/index.rs": BENCH.replace("NAME", "build").replace("CALL", "index::build"),
}
"""A workspace whose benchmarks print the output of libtest."""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    root = tmp_path / "small"
    for name, text in SMALL.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    # No code layouts: tests/execute/layouts tests those with cargo.
    few = FLOW.replace('benchmark: "*"', 'benchmark: "*"\n      layouts: off')
    (root / "flow.yaml").write_text(few.replace(', locked: true, filter: "encode|build"', ""))
    return committed(root, "target/\nCargo.lock\n.perfflow/\n")


def committed(root: Path, ignored: str) -> Path:
    (root / ".gitignore").write_text(ignored)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "The workspace")
    return root


@pytest.fixture
def clone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with kept("cargo-gate") as cache:
        yield clone_in(cache, monkeypatch)


def clone_in(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    return committed(root, "target/\n.perfflow/\n")


def slow_down(root: Path, part: int, times: int) -> None:
    source = root / "codec/src/checksum.rs"
    text = source.read_text()
    assert text.count(SUM) == 1
    source.write_text(text.replace(SUM, SLOWER.replace("PART", str(part)).replace("TIMES", str(times))))
    git(root, "commit", "-qam", "Sum up twice")


def gate(root: Path, path: str) -> dict[str, Any]:
    done = perfflow(
        *("gate", "flow.yaml", "--base", "HEAD~1", "--unproven=pass", "--progress", "off", "--json"),
        cwd=root,
        path=path,
        measured=True,
        timeout=1800,
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_encode(result: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [item for item in result["attributions"] if item["benchmark"].startswith("encode")]
    assert found, [(step["id"], step["warnings"]) for step in result["steps"]]
    assert result["verdict"] == "fail", result["reasons"]
    return found[0]


def programs(folder: Path, perf: str) -> str:
    """Return a PATH with a fake `perf` first."""
    folder.mkdir()
    (folder / "perf").write_text(f"#!/bin/sh\n{perf}\n")
    (folder / "perf").chmod(0o700)
    return f"{folder}:{os.environ['PATH']}"


# Like perf when it crashes on inlined frames, and like perf without permission to sample.
DIES = 'case "$*" in script*srcline*) kill -s PIPE $$ ;; esac; exec REAL "$@"'
DENIED = 'echo "No permission to enable cpu-clock event." >&2; exit 255'


@pytest.mark.parametrize(
    ("workspace", "part", "times", "perf", "tool"),
    [
        # See also tests/tools/test_perf.py for perf crashing on inlined frames.
        pytest.param("small", 1, 5, DENIED, "callgrind", id="small"),
        pytest.param("clone", 6, 1, DIES, "perf", id="perf-without-srcline", marks=pytest.mark.long),
        pytest.param("clone", 6, 1, DENIED, "callgrind", id="callgrind", marks=pytest.mark.long),
    ],
)
def test_a_slower_function_is_named_with_its_place_and_commit(
    workspace: str, part: int, times: int, perf: str, tool: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    real = shutil.which("perf")
    if real is None:
        pytest.skip("perf is not on PATH (apt-get install linux-perf)")
    clone: Path = request.getfixturevalue(workspace)
    slow_down(clone, part, times)
    result = gate(clone, programs(tmp_path / "bin", perf.replace("REAL", real)))
    blamed = of_encode(result)
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


def test_the_benchmarks_of_a_program_that_is_the_same_are_not_timed(small: Path) -> None:
    flow = small / "flow.yaml"
    flow.write_text(flow.read_text().replace("layouts: off", "layouts: off\n      budget: 1s"))
    source = small / "codec/src/checksum.rs"
    source.write_text(source.read_text().replace("rotate_left(7)", "rotate_left(9)"))
    git(small, "commit", "-qam", "Rotate further")
    result = gate(small, os.environ["PATH"])
    found = {row["name"].partition("/")[0]: row["unchanged"] for row in result["benchmarks"]}
    assert found == {"encode": None, "build": "files"}


def told(place: Path) -> bool:
    benches = json.loads((place / "suite.json").read_text())["benches"]
    return all(bench["lines"] for bench in benches)


def test_what_does_not_build_is_no_pass(small: Path) -> None:
    source = small / "index" / "src" / "lib.rs"
    source.write_text(source.read_text() + 'compile_error!("not yet");\n')
    git(small, "commit", "-qam", "Break it")
    result = gate(small, os.environ["PATH"])
    assert result["verdict"] == "error"
    assert any("index" in reason["text"] for reason in result["reasons"]), result["reasons"]
