"""Binaries and benchmarks of cargo: rustc removes its objects, and cargo stores executables under another name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.execute.layouts.relinking import forget
from tests.execute.layouts.builds import Project, needs, project, require_layouts

pytestmark = needs("cargo", "cc")
FUNCTIONS = "".join(
    f"#[inline(never)] fn f{n}(x: u64) -> u64 {{ std::hint::black_box(x) * {n} + 1 }}\n" for n in range(9)
)
MAIN = FUNCTIONS + 'fn main() { println!("{}", ' + " + ".join(f"f{n}({n})" for n in range(9)) + "); }\n"
MANIFEST = """\
[package]
name = "my-app"
version = "0.1.0"
edition = "2021"
[[bench]]
name = "suite"
harness = false
[profile.release]
debug = 1
[profile.small]
inherits = "release"
codegen-units = 1
panic = "abort"
strip = "debuginfo"
"""
NAMES = r"_.*f\d.*"


@pytest.fixture
def crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    # The folder name must not be read as an option.
    made = project(tmp_path, "profile-use=x")
    for name, text in {"Cargo.toml": MANIFEST, "src/main.rs": MAIN, "benches/suite.rs": MAIN}.items():
        (made.folder / name).parent.mkdir(exist_ok=True)
        (made.folder / name).write_text(text)
    return made


@pytest.mark.long  # compiles a crate several times
def test_a_binary_and_a_benchmark(crate: Project) -> None:
    crate.build("cargo build --release --offline; cargo bench --no-run --offline")
    deps = crate.folder / "target" / "release" / "deps"
    suite = next(path for path in deps.glob("suite-*") if not path.suffix)
    for executable in (crate.folder / "target" / "release" / "my-app", suite):
        found = crate.relinker(str(executable))
        require_layouts(found, executable, crate.work / "out", NAMES)
    shutil.rmtree(crate.recordings)
    crate.build("cargo build --release --offline")
    with pytest.raises(LayoutsRefusedError, match="no link of my-app was recorded"):
        crate.relinker("target/release/my-app")
    forget(crate.folder / "target" / "release" / "my-app")
    forget(suite)
    crate.build("cargo build --release --offline; cargo bench --no-run --offline")
    crate.relinker("target/release/my-app")
    crate.relinker(str(suite))


def test_another_profile_that_strips(crate: Project) -> None:
    crate.build("cargo build --profile small --offline")
    executable = crate.folder / "target" / "small" / "my-app"
    require_layouts(crate.relinker(str(executable)), executable, crate.work / "out", NAMES)


def test_a_profile_that_the_link_does_not_show(crate: Project) -> None:
    (crate.folder / "empty.profraw").write_text("")
    (crate.folder / "p.profdata").write_text("# IR level instrumentation flag\n:ir\n")
    shutil.copy(crate.folder / "src" / "main.rs", crate.folder / "plain.rs")
    crate.build(
        "llvm-profdata merge p.profdata -o merged.profdata || $(ls /usr/bin/llvm-profdata-* | head -1) merge p.profdata"
        " -o merged.profdata; rustc -O -Cprofile-use=$PWD/merged.profdata plain.rs -o program"
    )
    with pytest.raises(LayoutsRefusedError, match="with a profile"):
        crate.relinker("program")
