"""Comparing the code that native programs execute: planted changes differ, what no run can notice does not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.unchanged.model import Differs, Trace, Unchanged, compare
from perfflow.unchanged.native import DRIVER
from perfflow.unchanged.recorded import Recorded, trace_of

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

BENCH = r"""
#include <stdio.h>
#include <string.h>
static const int table[8] = {1, 2, 3, 5, 8, 13, 21, 34};
static volatile int factor = 3;
static const char *names[3] = {"alpha", "beta", "gamma"};
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x + 1; }
static int (*const calls[2])(int) = {twice, thrice};
static inline int mix(int x) { return x ^ 0x55; }
__attribute__((noinline)) static int choose(int x) {
    switch (x) {
    case 0: return 11;
    case 1: return 7 * factor;
    case 2: return table[factor];
    case 3: return (int)strlen(names[factor - 2]);
    case 4: return mix(factor);
    case 5: return calls[factor & 1](4);
    default: return 0;
    }
}
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 6 + argc - 1; i++) sum += choose(i) + calls[i & 1](i);
    printf("%s %d\n", argc > 1 ? argv[1] : "bench", sum);
    return 0;
}
"""


@pytest.fixture(scope="session")
def tracer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tracer") / "trace"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, DRIVER], check=True)
    return made


class Tree:
    """A side: a folder in which programs are built and traced."""

    def __init__(self, tracer: Path, path: Path) -> None:
        self.tracer, self.path = tracer, path
        path.mkdir(parents=True)

    def build(self, source: str, *flags: str, compiler: str = "cc", suffix: str = ".c", name: str = "bench") -> None:
        (self.path / f"{name}{suffix}").write_text(source)
        argv = [compiler, "-O2", *flags, "-o", name, f"{name}{suffix}"]
        subprocess.run(argv, cwd=self.path, check=True)

    def trace(self, *argv: str, status: int = 0) -> Trace:
        records = self.path.parent / f"{self.path.name}-records"
        words: list[str | Path] = [self.tracer, records, self.path, "--", *(argv or ("./bench",))]
        done = subprocess.run(words, cwd=self.path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == status, done.stderr
        return trace_of(Recorded.read(records.read_bytes()), {self.path.resolve(): ""})


@pytest.fixture
def trees(tracer: Path, tmp_path: Path) -> tuple[Tree, Tree]:
    return Tree(tracer, tmp_path / "a"), Tree(tracer, tmp_path / "b")


def both(trees: tuple[Tree, Tree], base: str, head: str, *flags: str, **settings: str) -> Unchanged | Differs:
    for tree, source in zip(trees, (base, head), strict=True):
        tree.build(source, *flags, **settings)
        # The source is no input of the benchmark.
        (tree.path / f"bench{settings.get('suffix', '.c')}").unlink()
    return compare(*(tree.trace() for tree in trees))


CHANGES: Mapping[str, tuple[str, str]] = {
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


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie"), ("-O0",), ("-flto",), ("-Wl,-z,pack-relative-relocs",)])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_executed_code_differs(trees: tuple[Tree, Tree], change: str, flags: tuple[str, ...]) -> None:
    before, after = CHANGES[change]
    assert before in BENCH
    found = both(trees, BENCH, BENCH.replace(before, after, 1), *flags)
    assert isinstance(found, Differs), found


HARMLESS: Mapping[str, tuple[str, str]] = {
    "comment and lines": ("static volatile", "/* more\nlines */\n\nstatic volatile"),
    "function that is not used": ("int main", "int unused(int x) { return x * 77; }\nint main"),
    "constant that is not used": (
        "int main",
        'const char unused[] = "not used";\nconst char *other(void) { return "words that nobody reads"; }\nint main',
    ),
    "table that is not used": (
        "static const int table",
        "const int squares[4] = {1, 4, 9, 16};\nint square(int x) { return squares[x]; }\nstatic const int table",
    ),
}


@pytest.mark.parametrize("flags", [(), ("-no-pie", "-fno-pie"), ("-g",), ("-flto",), ("-Wl,-z,pack-relative-relocs",)])
@pytest.mark.parametrize("change", HARMLESS)
def test_a_change_that_nothing_executes_is_the_same(
    trees: tuple[Tree, Tree], change: str, flags: tuple[str, ...]
) -> None:
    before, after = HARMLESS[change]
    found = both(trees, BENCH, BENCH.replace(before, after, 1), *flags, "-Wl,--build-id")
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
    assert found.by == "code"
    assert found.functions > 3


def test_a_program_that_executes_nothing_known_differs(trees: tuple[Tree, Tree]) -> None:
    trees[0].build(BENCH, "-s")
    stripped = trees[0].trace()
    changed = replace(stripped, loaded={"bench": "other"})
    # Its code is compared as a whole.
    assert isinstance(compare(stripped, changed), Unchanged)
    trees[1].build(BENCH.replace("77", "78").replace("7 * factor", "9 * factor"), "-s")
    assert isinstance(compare(stripped, trees[1].trace()), Differs)
