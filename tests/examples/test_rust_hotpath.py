"""The example crate and its candidates: what applies, what is correct, and what `hotloop` and the proposer do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT
from tests.examples.rust import copy_without_benchmarks
from tests.examples.trees import apply, run, sources
from tests.long import rest_long
from tests.toolchains import needs_cargo

CRATE = Path("examples", "rust-hotpath")
PATCHES = Path("workflows", "patches", "rust-hotpath")
IN_ORDER = ("slab", "no-copy", "hash", "simd")

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the crate in it."""
    tree = tmp_path / "tree"
    copy_without_benchmarks(ROOT / CRATE, tree / CRATE)
    return tree


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


def _cargo(tree: Path, target: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv: list[str | Path] = ["cargo", *words, "--release", "--offline", "--quiet"]
    return run(argv, tree / CRATE, CARGO_TARGET_DIR=str(target), RUST_BACKTRACE="0")


def _propose(tree: Path, brief: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, CRATE / "propose.py"], tree, stdin=brief)


def _brief(*hotspots: Mapping[str, Any]) -> str:
    return json.dumps({"targets": [], "hotspots": hotspots, "ledger": [], "constraints": {}, "tree": "."})


@pytest.mark.parametrize("name", IN_ORDER)
def test_a_patch_applies_alone_and_changes_sources_only(tree: Path, name: str) -> None:
    before = sources(tree, CRATE, "*.rs")
    apply(tree, PATCHES, name)
    changed = {path for path, text in sources(tree, CRATE, "*.rs").items() if before.get(path) != text}
    assert changed
    assert all(path.startswith(f"{CRATE}/src/") for path in changed)


def test_the_patches_apply_on_top_of_each_other(tree: Path) -> None:
    apply(tree, PATCHES, *IN_ORDER)
    assert "Box<Task>" not in (tree / CRATE / "src/conductor.rs").read_text()
    assert "to_vec" not in (tree / CRATE / "src/codec.rs").read_text()


@needs_cargo
@pytest.mark.parametrize(
    "names", rest_long([(), ("slab", "no-copy", "hash")], one_name=True), ids=["original", "patched"]
)
def test_the_crate_is_correct(tree: Path, target: Path, names: tuple[str, ...]) -> None:
    apply(tree, PATCHES, *names)
    done = _cargo(tree, target, "test")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [int(count) for count in re.findall(r"test result: ok\. (\d+) passed; 0 failed", done.stdout)]
    assert sum(passed) >= 20


@pytest.mark.long  # compiles the crate with a patch
@needs_cargo
def test_the_tests_of_the_crate_find_what_is_wrong_with_simd(tree: Path, target: Path) -> None:
    apply(tree, PATCHES, "simd")
    done = _cargo(tree, target, "test", "--no-fail-fast")
    assert done.returncode == 101
    assert re.findall(r"^test result: FAILED\. (\d+) passed; (\d+) failed", done.stdout, re.MULTILINE) == [("3", "1")]
    # Sums of 5,552 bytes fit whatever the bytes are, so what is wrong is wrong for long frames alone.
    assert int(re.findall(r"(\d+) times 0x", done.stdout)[0]) > 5_552


@pytest.mark.long  # compiles the crate and counts; CI runs its tests
@needs_cargo
@needs_valgrind
def test_slab_leaves_no_allocation_in_the_loop_and_no_copy_none_in_the_decoder(tree: Path, target: Path) -> None:
    assert _allocations(tree, target, "dispatch") == 1
    assert _allocations(tree, target, "decode") == 512
    apply(tree, PATCHES, "slab")
    assert _allocations(tree, target, "dispatch") == 0
    apply(tree, PATCHES, "no-copy")
    assert _allocations(tree, target, "decode") == 0


def _allocations(tree: Path, target: Path, mode: str) -> float:
    """Return how many blocks one more operation of `hotloop` allocates."""
    built = _cargo(tree, target, "build", "--bins")
    assert built.returncode == 0, built.stderr
    counts = []
    for ops in (50, 250):
        hotloop: list[str | Path] = [target / "release" / "hotloop", "--mode", mode, "--ops", str(ops)]
        done = run(["valgrind", "--tool=dhat", "--dhat-out-file=/dev/null", *hotloop])
        assert done.stdout.startswith(f"ops={ops} checksum=")
        counts.append(int(re.findall(r"Total: +[\d,]+ bytes in ([\d,]+) blocks", done.stderr)[0].replace(",", "")))
    return (counts[1] - counts[0]) / 200


HOTSPOTS = [
    {"location": "_int_free", "file": "", "line": 0, "share": 0.3, "source": ""},
    {
        "location": "<rust_hotpath::codec::Decoder as core::iter::traits::iterator::Iterator>::next",
        "file": "/somewhere/else/examples/rust-hotpath/src/codec.rs",
        "line": 68,
        "share": 0.25,
        "source": "",
    },
    {"location": "rust_hotpath::checksum::adler32", "file": "src/checksum.rs", "line": 14, "share": 0.2, "source": ""},
]


def test_the_proposer_makes_the_change_of_the_patch(tree: Path, tmp_path: Path) -> None:
    patched = tmp_path / "patched"
    shutil.copytree(tree, patched)
    apply(patched, PATCHES, "no-copy")
    done = _propose(tree, _brief(*HOTSPOTS))
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"<rust_hotpath::codec::Decoder .* \(25% of it all\): frames borrow .*\n", done.stdout)
    assert sources(tree, CRATE, "*.rs") == sources(patched, CRATE, "*.rs")
    again = _propose(tree, _brief(*HOTSPOTS))
    assert again.returncode == 1
    assert sources(tree, CRATE, "*.rs") == sources(patched, CRATE, "*.rs")


@pytest.mark.parametrize(
    ("brief", "status", "message"),
    [
        (_brief(), 1, "no idea"),
        (_brief(HOTSPOTS[0], HOTSPOTS[2]), 1, "no idea"),
        ("{}", 2, "not a brief: `hotspots` is not a list of objects"),
        ("[]", 2, "not a brief"),
        ('{"hotspots": [1]}', 2, "not a brief"),
        ("", 2, "not a brief"),
    ],
)
def test_the_proposer_says_that_it_has_no_idea(tree: Path, brief: str, status: int, message: str) -> None:
    before = sources(tree, CRATE, "*.rs")
    done = _propose(tree, brief)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert sources(tree, CRATE, "*.rs") == before
