"""Comparing the code that native programs execute: planted changes differ, what no run can notice does not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest

from perfflow.unchanged.model import Differs, Unchanged, compare
from tests.unchanged.traced import Tree

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


VIRTUAL = r"""
#include <cstdio>
#include <memory>
#include <string>
struct Shape { virtual double area() const = 0; virtual ~Shape() = default; };
struct Circle : Shape { double r = 2; double area() const override { return 3.5 * r * r; } };
struct Square : Shape { double r = 2; double area() const override { return r * r; } };
__attribute__((noinline)) std::unique_ptr<Shape> make(int kind) {
    if (kind) return std::make_unique<Circle>();
    return std::make_unique<Square>();
}
template <typename T> __attribute__((noinline)) T doubled(T x) { return x + x; }
int main(int argc, char **) {
    auto shape = make(argc > 0);
    std::string text = "the text";
    std::printf("bench %f %zu %d\n", shape->area(), doubled(text).size(), doubled(argc));
}
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("3.5 * r", "3.25 * r", False),
        ("std::make_unique<Circle>()", "std::make_unique<Square>()", False),
        ("doubled(argc)", "doubled((short)argc)", False),
        ('"the text"', '"his text"', False),
        ("return r * r;", "return r * r * r;", True),
        ("struct Square : Shape {", "struct Square : Shape {\n  // The side.\n", True),
    ],
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_cpp(trees: tuple[Tree, Tree], compiler: str, before: str, after: str, same: bool) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    assert before in VIRTUAL
    found = both(trees, VIRTUAL, VIRTUAL.replace(before, after, 1), compiler=compiler, suffix=".cc")
    assert isinstance(found, Unchanged) is same, found


RUST = r"""
use std::hint::black_box;
static TABLE: [u32; 6] = [1, 4, 9, 16, 25, 36];
trait Shape { fn area(&self) -> f64; }
struct Circle(f64);
struct Square(f64);
impl Shape for Circle { #[inline(never)] fn area(&self) -> f64 { 3.5 * self.0 * self.0 } }
impl Shape for Square { #[inline(never)] fn area(&self) -> f64 { self.0 * self.0 } }
#[inline(never)]
fn choose(index: usize, words: &[&str]) -> u32 {
    match index {
        0 => 11,
        1 => TABLE[black_box(index)],
        2 => words[black_box(1)].len() as u32,
        3 => words.iter().map(|word| word.parse::<u16>().map(u32::from).unwrap_or(7)).sum(),
        4 => black_box(index as u32).wrapping_mul(31),
        _ => panic!("too large"),
    }
}
#[inline(never)]
fn unused(x: u32) -> String { format!("{}{}", '_', x) }
fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Circle(2.0)), Box::new(Square(3.0))];
    let area: f64 = shapes.iter().take(black_box(1)).map(|shape| shape.area()).sum();
    let sum: u32 = (0..black_box(5)).map(|index| choose(index, black_box(&["12", "beta", "14"]))).sum();
    if std::env::args().count() > 5 { println!("{}", unused(sum)); }
    println!("bench {} {}", area, sum);
}
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
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
)
def test_rust(trees: tuple[Tree, Tree], before: str, after: str, same: bool) -> None:
    if not shutil.which("rustc"):
        pytest.skip("needs rustc")
    assert before in RUST
    flags = {"compiler": "rustc", "suffix": ".rs"}
    for tree, source in zip(trees, (RUST, RUST.replace(before, after, 1)), strict=True):
        (tree.path / "bench.rs").write_text(source)
        argv = [flags["compiler"], "-O", "--crate-name=bench", "-o", "bench", "bench.rs"]
        subprocess.run(argv, cwd=tree.path, check=True)
        (tree.path / "bench.rs").unlink()
    found = compare(*(tree.trace() for tree in trees))
    assert isinstance(found, Unchanged) is same, found
