"""Git histories of a small C program whose cost is a number in a header, written in one go."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.repositories import git

PROGRAM = r"""
#include "rounds.h"
#include <stdio.h>

int main(void) {
    unsigned state = 1;
    for (long i = 0; i < ROUNDS * SCALE; i++) {
        state = state * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(state));
    }
    printf("%u\n", state);
    return 0;
}
"""
FLOW = """
name: history
thresholds: {concern: 5%, action: 10%}
params: {scale: 200000}
stages:
  build:
    - {id: make, run: 'echo built >> "$BUILDS"; cc -O1 -DSCALE=${{ params.scale }} -o work work.c'}
  baseline:
    - {id: work, uses: command, with: {command: ./work}, budget: 20s}
"""
"""Each build of a revision adds a line to the file that BUILDS names."""

Commit = Mapping[str, str]
"""What a commit changes: path → content."""


def base(rounds: int = 100) -> dict[str, str]:
    """The first commit's files."""
    return {"work.c": PROGRAM, "rounds.h": header(rounds), ".gitignore": "work\n.perfflow\n"}


def header(rounds: int) -> str:
    return f"#define ROUNDS {rounds}\n"


def linear(count: int, change: Callable[[int], Commit | None]) -> list[Commit]:
    """``count`` commits after the first one, numbered from 1; where ``change`` has nothing, a note is added."""
    return [change(number) or {f"notes/{number}.txt": f"note {number}\n"} for number in range(1, count + 1)]


def make(root: Path, commits: Sequence[Commit]) -> list[str]:
    """A repository with one commit for each change, on the branch ``main``; returns their ids, the oldest first."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    stream = []
    for number, files in enumerate(commits):
        message = f"change {number}"
        stream.append(
            f"commit refs/heads/main\nmark :{number + 1}\n"
            f"author A <a@example.org> {1700000000 + number * 60} +0000\n"
            f"committer A <a@example.org> {1700000000 + number * 60} +0000\n"
            f"data {len(message)}\n{message}\n" + (f"from :{number}\n" if number else "")
        )
        for path, text in files.items():
            stream.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=root, input="".join(stream), text=True, check=True, capture_output=True
    )
    git(root, "reset", "-q", "--hard", "main")
    return git(root, "rev-list", "--reverse", "main").split()
