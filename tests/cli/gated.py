"""A git project with many small C programs, one benchmark each, for tests of the gate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.cli.shell import write
from tests.repositories import git

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
__attribute__((noinline)) static uint64_t stir_@NAME@(uint64_t seed, long steps) {
  for (long step = 0; step < steps; ++step)
     seed = seed * 6364136223846793005ull + (seed >> 33) + 1442695040888963407ull;
  return seed;
}
__attribute__((noinline)) static uint64_t fold_@NAME@(uint64_t seed, long steps) {
  for (long step = 0; step < steps; ++step)
     seed = seed * 6364136223846793005ull + (seed >> 33) + 2891336453ull;
  return seed;
}
int main(void) {
  printf("%llu\n", (unsigned long long)fold_@NAME@(stir_@NAME@(7, STIRRED), FOLDED));
  return 0;
}
"""
MAKEFILE = """
all: $(patsubst src/%.c,bin/%,$(wildcard src/*.c))
bin/%: src/%.c
	@mkdir -p bin
	@$(CC) -O2 -g -DSTIRRED=10000000 -DFOLDED=10000000 -o $@ $<
"""
FLOW = """
name: many
stages:
  build:
    - {id: make, run: make -s}
  baseline:
    - id: bench
      uses: command
      benchmark: "${{ matrix.name }}"
      matrix: {name: [@NAMES@]}
      with: {command: "./bin/${{ matrix.name }}"}
  verify:
    - {id: prints, run: "./bin/b00 | grep -q ."}
"""


def project(root: Path, count: int) -> list[str]:
    """Make and commit the project on ``main``, leave ``topic`` checked out, and return the benchmarks' names."""
    names = [f"b{number:02}" for number in range(count)]
    (root / "src").mkdir(parents=True)
    for name in names:
        (root / "src" / f"{name}.c").write_text(SOURCE.replace("@NAME@", name))
    (root / "Makefile").write_text(MAKEFILE)
    (root / ".gitignore").write_text("bin/\n.perfflow/\n")
    flow(root, names)
    git(root, "init", "-q", "-b", "main")
    commit(root)
    git(root, "checkout", "-qb", "topic")
    return names


def flow(root: Path, names: Sequence[str]) -> None:
    """Write the workflow that measures these benchmarks."""
    write(root, FLOW.replace("@NAMES@", ", ".join(names)))


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "-qm", "change")


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Change the program of one benchmark and commit it."""
    path = root / "src" / f"{name}.c"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    commit(root)
