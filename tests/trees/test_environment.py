"""The environment of a step in a slot, tested with the real programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.trees.python_layout import environment
from perfflow.trees.repository import Repository
from perfflow.trees.slots import Slot, Slots
from perfflow.trees.snapshots import at, snapshot
from tests.toolchains import needs_cargo
from tests.trees.projects import git, write

REAL_HOME = {name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
"""Variables with which cargo finds its toolchain."""


def run(slot: Slot, *argv: str, **inherited: str) -> str:
    mine = {**os.environ, **inherited}
    env = {name: value for name, value in (mine | environment(slot, mine)).items() if value is not None}
    done = subprocess.run(argv, cwd=slot.path, env=env, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip()


def test_the_trees_own_python_comes_first(root: Path, repository: Repository, slots: Slots) -> None:
    write(root, {"src/package.py": "", "tools/tool": ""})
    slots.a.switch(snapshot(repository).tree)
    inherited = os.pathsep.join([str(root / "tools"), str(root / "src"), "/elsewhere"])
    find = "import package, sys; print(package.__file__)"
    assert run(slots.a, sys.executable, "-c", find, PYTHONPATH=inherited) == str(slots.a.path / "src" / "package.py")
    entries = [str(slots.a.path / "tools"), str(slots.a.path / "src"), str(slots.a.path), "/elsewhere"]
    assert environment(slots.a, {"PYTHONPATH": inherited})["PYTHONPATH"] == os.pathsep.join(entries)
    write(slots.a.path, {"src/__init__.py": ""})
    assert environment(slots.a, {})["PYTHONPATH"] == str(slots.a.path)


def test_git_in_a_slot_is_about_the_tree_there(
    root: Path, repository: Repository, slots: Slots, untouched: Callable[[], None]
) -> None:
    git(root, "tag", "-am", "first", "v1")
    (root / "a.txt").write_text("stashed\n")
    git(root, "stash")
    untouched()
    # Nor is a repository around the cache found.
    git(slots.folder.parent.parent, "init", "-q")
    leaked = {"GIT_DIR": str(root / ".git"), "GIT_INDEX_FILE": str(root / ".git" / "index")}
    base = at(repository, "HEAD")
    slots.a.switch(base.tree, base.commit)
    assert run(slots.a, "git", "rev-parse", "HEAD", **leaked) == base.commit
    assert run(slots.a, "git", "describe", "--dirty", **leaked) == "v1"
    assert run(slots.a, "git", "rev-parse", "--show-toplevel", **leaked) == str(slots.a.path)
    mess = """
        echo more >> a.txt; git describe --dirty; git diff --stat; git add -A; git commit -qm mess; git branch mine
        echo else > new; git stash -u; git stash pop -q; git gc -q --prune=now; git push 2>&1 || true
    """
    said = run(slots.a, "bash", "-ec", mess, **leaked)
    assert "v1-dirty" in said
    assert "No configured push destination" in said
    taken = slots.a.take().tree
    assert (slots.a.path / "new").exists()
    slots.b.switch(taken)
    assert (slots.b.path / "new").read_text() == "else\n"
    assert run(slots.b, "git", "status", "--porcelain") == "M  a.txt\nA  new"
    slots.a.switch(base.tree, base.commit)
    assert run(slots.a, "git", "status", "--porcelain") == ""
    assert run(slots.a, "git", "branch", "--list", "mine") == ""


@pytest.mark.long  # compiles with cargo
@needs_cargo
def test_cargo_builds_what_is_there_and_only_that(root: Path, repository: Repository, slots: Slots) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "top"\nversion = "0.1.0"\n[dependencies]\ndep = {path = "dep"}\n',
        "Cargo.lock": "",
        "dep/Cargo.toml": '[package]\nname = "dep"\nversion = "0.1.0"\n',
        "dep/src/lib.rs": "pub fn one() -> u32 { 1 }\n",
        ".gitignore": "target\n",
    }
    trees = []
    for number in range(2):
        main = f'fn main() {{ println!("{{}}", dep::one() + {number}); }}\n'
        write(root, {**files, "src/main.rs": main})
        trees.append(snapshot(repository).tree)
    for turn, number in enumerate((0, 1, 0, 0, 1)):
        slots.a.switch(trees[number])
        said = run(slots.a, "bash", "-c", "cargo build --offline -v 2>&1", **REAL_HOME)
        assert ("Fresh dep" in said) == (turn > 0), said
        assert ("Fresh top" in said) == (turn == 3)
        assert run(slots.a, str(slots.a.path / "target" / "debug" / "top")) == str(number + 1)


def test_two_slots_never_build_into_one_folder(slots: Slots, tmp_path: Path) -> None:
    assert "CARGO_TARGET_DIR" not in environment(slots.a, {})
    for name in ("CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"):
        for slot in (slots.a, slots.b):
            assert environment(slot, {name: "/one"})[name] == str(slot.build / "cargo")
    settings = tmp_path / "home"
    write(settings, {".cargo/config.toml": '[build]\ntarget-dir = "/one"\n'})
    assert environment(slots.b, {})["CARGO_TARGET_DIR"] == str(slots.b.build / "cargo")
    write(settings, {".cargo/config.toml": "not toml ["})
    assert "CARGO_TARGET_DIR" not in environment(slots.a, {})
    write(slots.a.path, {".cargo/config.toml": '[build]\ntarget-dir = "out"\n'})
    assert "CARGO_TARGET_DIR" not in environment(slots.a, {})
