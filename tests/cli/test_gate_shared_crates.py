"""How often a gate compiles a crate: external crates once for both sides, crates of the tree once per side."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git
from tests.rust import needs_cargo

pytestmark = needs_cargo
FLOW = """
name: gate
stages:
  build:
    - {id: bins, uses: cargo-build, with: {offline: true}}
  baseline:
    - {id: cost, runs: 10, run: "${{ steps.bins.outputs.app }}",
       parse: {regex: 'cost (?P<cost>\\d+)', units: {cost: '1'},
       better: {cost: lower}}}
"""
WRAPPER = """#!/bin/sh
for word; do
  [ "$before" = --crate-name ] && echo "$word" >> LOG
  before=$word
done
exec "$@"
"""
PACKAGE = '[package]\nname = "NAME"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
SOURCES = '[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "FOLDER"\n'


def package(folder: Path, name: str, dependencies: str, source: str, file: str = "lib.rs") -> None:
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(PACKAGE.replace("NAME", name) + dependencies)
    (folder / "src" / file).write_text(source)


class Workspace:
    """A program that depends on a crate of its tree and on an external crate with a build script."""

    def __init__(self, root: Path, elsewhere: Path) -> None:
        self.root, self.log = root, root.parent / "compiled"
        package(root, "app", 'near = {path = "near"}\nleaf = "0.1"\n[workspace]\n', "", "main.rs")
        self.print("100")
        package(root / "near", "near", "", "pub const EXTRA: u32 = 0;\n")
        package(elsewhere / "leaf", "leaf", "", 'include!(concat!(env!("OUT_DIR"), "/made.rs"));\n')
        script = 'std::env::var("OUT_DIR").unwrap() + "/made.rs", "pub const ONE: u32 = 1;"'
        (elsewhere / "leaf/build.rs").write_text(f"fn main() {{ std::fs::write({script}).unwrap(); }}\n")
        (elsewhere / "leaf/.cargo-checksum.json").write_text('{"files": {}}')
        (root / ".cargo").mkdir()
        (root / ".cargo/config.toml").write_text(SOURCES.replace("FOLDER", str(elsewhere)))
        (root / ".gitignore").write_text("target/\nCargo.lock\n.perfflow/\n")
        write(root, FLOW)
        git(root, "init", "-q", "-b", "main")
        self.commit()

    def print(self, cost: str) -> None:
        (self.root / "src/main.rs").write_text(
            f'fn main() {{ println!("cost {{}}", {cost} * leaf::ONE + near::EXTRA); }}\n'
        )

    def commit(self) -> None:
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "A state")

    def compiled(self, base: str, status: int, *more: str) -> Counter[str]:
        """Run a gate and return how often each crate was compiled."""
        self.log.unlink(missing_ok=True)
        done = perfflow("gate", "flow.yaml", "--base", base, "--progress", "off", *more, cwd=self.root)
        assert done.returncode == status, done.stdout + done.stderr
        return Counter(self.log.read_text().split() if self.log.exists() else [])


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    wrapper = tmp_path / "rustc"
    wrapper.write_text(WRAPPER.replace("LOG", str(tmp_path / "compiled")))
    wrapper.chmod(0o700)
    monkeypatch.setenv("RUSTC_WRAPPER", str(wrapper))
    return tmp_path


def of(found: Counter[str]) -> dict[str, int]:
    return {name: found[name] for name in ("leaf", "build_script_build", "near", "app")}


def test_a_crate_from_elsewhere_is_compiled_once(compiled: Path) -> None:
    workspace = Workspace(compiled / "root", compiled / "elsewhere")
    workspace.print("120")
    workspace.commit()
    assert of(workspace.compiled("HEAD~1", 1)) == {"leaf": 1, "build_script_build": 1, "near": 2, "app": 2}
    # The programs of both sides exist, and nothing up to date is built again.
    assert of(workspace.compiled("HEAD~1", 1)) == {"leaf": 0, "build_script_build": 0, "near": 0, "app": 0}


def test_a_crate_that_the_tree_holds_is_compiled_on_both_sides(compiled: Path) -> None:
    workspace = Workspace(compiled / "root", compiled / "root" / "vendor")
    config = workspace.root / ".cargo/config.toml"
    config.write_text(SOURCES.replace("FOLDER", "vendor"))
    workspace.commit()
    # The same version with different code.
    source = workspace.root / "vendor/leaf/build.rs"
    source.write_text(source.read_text().replace("u32 = 1", "u32 = 2"))
    workspace.commit()
    assert of(workspace.compiled("HEAD~1", 1)) == {"leaf": 2, "build_script_build": 2, "near": 2, "app": 2}


def test_where_base_is_head_it_is_built_once(compiled: Path) -> None:
    workspace = Workspace(compiled / "root", compiled / "elsewhere")
    assert of(workspace.compiled("HEAD", 0)) == {"leaf": 1, "build_script_build": 1, "near": 1, "app": 1}


def test_a_head_that_becomes_the_base_is_not_compiled_again(compiled: Path) -> None:
    workspace = Workspace(compiled / "root", compiled / "elsewhere")
    for cost in ("120", "150"):
        workspace.print(cost)
        workspace.commit()
    assert of(workspace.compiled("HEAD~2", 1))["app"] == 2
    workspace.print("190")
    workspace.commit()
    # The head is built where the first base was, so `near` is there.
    assert of(workspace.compiled("HEAD~1", 1)) == {"leaf": 0, "build_script_build": 0, "near": 0, "app": 1}
    # A base between gets a place of its own, and the head stays built.
    assert of(workspace.compiled("HEAD~2", 1)) == {"leaf": 0, "build_script_build": 0, "near": 1, "app": 1}
    assert of(workspace.compiled("HEAD~1", 1))["app"] == 0


def test_what_is_built_is_not_built_again_but_on_request(compiled: Path) -> None:
    workspace = Workspace(compiled / "root", compiled / "elsewhere")
    workspace.print("120")
    workspace.commit()
    first = of(workspace.compiled("HEAD~1", 1))
    assert of(workspace.compiled("HEAD~1", 1))["app"] == 0
    events = (workspace.root / ".perfflow/runs/latest/events.jsonl").read_text()
    assert events.count('"event":"reused"') == 2
    page = (workspace.root / ".perfflow/runs/latest/report.md").read_text()
    assert "build of base: kept from" in page
    assert of(workspace.compiled("HEAD~1", 1, "--fresh")) == first
