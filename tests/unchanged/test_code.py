"""Comparing the code that native programs execute: planted changes differ, what no run can notice does not."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.unchanged.model import Differs, Unchanged, compare
from perfflow.unchanged.recorded import program_at
from tests.long import rest_long
from tests.toolchains import needs_go
from tests.tools.harness import GO_MODULE
from tests.unchanged.traced import HERE, Tree

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

PROGRAMS = HERE / "data" / "programs"
BENCH, VIRTUAL, RUST = ((PROGRAMS / name).read_text() for name in ("bench.c", "virtual.cc", "bench.rs"))


def both(trees: tuple[Tree, Tree], base: str, head: str, *flags: str, **settings: str) -> Unchanged | Differs:
    for tree, source in zip(trees, (base, head), strict=True):
        tree.build(source, *flags, **settings)
        # The source is no input of the benchmark.
        (tree.path / f"bench{settings.get('suffix', '.c')}").unlink()
    return compare(*(tree.trace() for tree in trees))


CHANGES = {
    "constant": ("8, 13, 21", "8, 14, 21"),
    "initial value": ("factor = 3", "factor = 4"),
    "string": ('"beta"', '"bets"'),
    "string of another length": ('"beta"', '"betas"'),
    "inlined callee": ("x ^ 0x55", "x ^ 0x56"),
    "case": ("7 * factor", "9 * factor"),
    "case removed": ("case 0: return 11;", ""),
    "order of pointers to functions": ("{twice, thrice}", "{thrice, twice}"),
    "body behind a pointer": ("3 * x + 1", "3 * x + 2"),
    "condition": ("i < 6 + argc - 1", "i <= 6 + argc - 1"),
}
WORDS = 'const char unused[] = "not used";\nconst char *other(void) { return "words that nobody reads"; }\n'
TABLE = "const int squares[4] = {1, 4, 9, 16};\nint square(int x) { return squares[x]; }\n"
HARMLESS = {
    "comment and lines": ("static volatile", "/* more\nlines */\n\nstatic volatile"),
    "function that is not used": ("int main", "int unused(int x) { return x * 77; }\nint main"),
    "constant that is not used": ("int main", f"{WORDS}int main"),
    "table that is not used": ("static const int table", f"{TABLE}static const int table"),
}
FLAGS = ["", "-no-pie -fno-pie", "-flto", "-Wl,-z,pack-relative-relocs"]


@pytest.mark.parametrize("flags", rest_long([*FLAGS, "-O0"], keep=2))
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_executed_code_differs(trees: tuple[Tree, Tree], change: str, flags: str) -> None:
    before, after = CHANGES[change]
    assert before in BENCH
    found = both(trees, BENCH, BENCH.replace(before, after, 1), *flags.split())
    assert isinstance(found, Differs), found


@pytest.mark.parametrize("flags", rest_long([*FLAGS, "-g"], keep=2))
@pytest.mark.parametrize("change", HARMLESS)
def test_a_change_that_nothing_executes_is_the_same(trees: tuple[Tree, Tree], change: str, flags: str) -> None:
    before, after = HARMLESS[change]
    found = both(trees, BENCH, BENCH.replace(before, after, 1), *flags.split(), "-Wl,--build-id")
    assert isinstance(found, Unchanged), found


def test_equal_programs_are_the_same_files(trees: tuple[Tree, Tree]) -> None:
    found = both(trees, BENCH, BENCH)
    assert isinstance(found, Unchanged)
    assert found.by == "files"


def test_a_build_id_is_the_same_code(trees: tuple[Tree, Tree]) -> None:
    for tree, number in zip(trees, ("0x11", "0x22"), strict=True):
        tree.build(BENCH, f"-Wl,--build-id={number}")
        (tree.path / "bench.c").unlink()
    found = compare(*(tree.trace() for tree in trees))
    assert isinstance(found, Unchanged)
    assert (found.by, found.functions > 3) == ("code", True)


def test_a_program_that_executes_nothing_known_differs(trees: tuple[Tree, Tree]) -> None:
    trees[0].build(BENCH, "-s")
    stripped = trees[0].trace()
    changed = replace(stripped, loaded={"bench": "other"})
    # Its code is compared as a whole.
    assert isinstance(compare(stripped, changed), Unchanged)
    trees[1].build(BENCH.replace("77", "78").replace("7 * factor", "9 * factor"), "-s")
    assert isinstance(compare(stripped, trees[1].trace()), Differs)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    rest_long(
        [
            ("3.5 * r", "3.25 * r", False),
            ("std::make_unique<Circle>()", "std::make_unique<Square>()", False),
            ("return r * r;", "return r * r * r;", True),
            ("doubled(argc)", "doubled((short)argc)", False),
            ('"the text"', '"his text"', False),
            ("struct Square : Shape {", "struct Square : Shape {\n  // The side.\n", True),
        ],
        keep=3,
    ),
)
@pytest.mark.parametrize("compiler", rest_long(["g++", "clang++"]))
def test_cpp(trees: tuple[Tree, Tree], compiler: str, before: str, after: str, same: bool) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    assert before in VIRTUAL
    found = both(trees, VIRTUAL, VIRTUAL.replace(before, after, 1), compiler=compiler, suffix=".cc")
    assert isinstance(found, Unchanged) is same, found


@pytest.mark.parametrize(
    ("before", "after", "same"),
    rest_long(
        [
            ("1, 4, 9", "1, 5, 9", False),
            ('"beta"', '"bet"', False),
            ("parse::<u16>", "parse::<u8>", False),
            ("3.5 * self.0", "3.25 * self.0", False),
            ("wrapping_mul(31)", "wrapping_mul(33)", False),
            ("0 => 11", "0 => 12", False),
            ("fn choose", "// A comment.\n\nfn choose", True),
            ("'_', x)", "'_', x * 3)", True),
            ("{ self.0 * self.0 }", "{ self.0 * self.0 * 1.5 }", True),
        ],
        keep=4,
    ),
)
def test_rust(trees: tuple[Tree, Tree], before: str, after: str, same: bool) -> None:
    if not shutil.which("rustc"):
        pytest.skip("needs rustc")
    assert before in RUST
    for tree, source in zip(trees, (RUST, RUST.replace(before, after, 1)), strict=True):
        (tree.path / "bench.rs").write_text(source)
        argv = ["rustc", "-O", "--crate-name=bench", "-o", "bench", "bench.rs"]
        subprocess.run(argv, cwd=tree.path, check=True)
        (tree.path / "bench.rs").unlink()
    found = compare(*(tree.trace() for tree in trees))
    assert isinstance(found, Unchanged) is same, found


@needs_go
def test_the_runtime_of_go_counts_as_executed_in_each_run(tmp_path: Path) -> None:
    program = tmp_path / "text.test"
    subprocess.run(["go", "test", "-trimpath", "-c", "-o", str(program), "./text"], cwd=GO_MODULE, check=True)
    items = program_at(str(program), "").items(())
    # The garbage collector enters other functions of it in each run.
    assert {"runtime.gcStart", "runtime.mallocgc"} <= items.digests.keys()
    assert "example.com/words/text.Count" not in items.digests
