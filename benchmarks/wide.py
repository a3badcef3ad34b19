"""Gates of many benchmarks: ``python -m benchmarks.wide FOLDER``, or with ``--comment``.

Writes a workspace of six Rust crates into FOLDER, each with 50 criterion benchmarks of about 20 ms, commits it, makes
the function of one crate 15% slower, and gates that. With ``--comment``, it is a suite of 40 benchmarks of
pytest-benchmark, and the change is a comment. Prints one line of JSON as ``replay.py`` does. Needs cargo, or
pytest-benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from benchmarks.replay import busy, gate, git, summary

SOURCE = """pub fn work(steps: u64) -> u64 {
    let mut x = 1u64;
    for i in 0..steps * @PERCENT@ / 100 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(i ^ (x >> 33));
    }
    x
}
"""
BENCHES = """use criterion::{black_box, criterion_group, criterion_main, Criterion};

fn all(c: &mut Criterion) {
    for number in 0..@EACH@u64 {
        let steps = 10_000_000 + number * 1000;
        c.bench_function(&format!("@NAME@/{number}"), |b| b.iter(|| @NAME@::work(black_box(steps))));
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
"""
MANIFEST = """[package]
name = "@NAME@"
version = "0.1.0"
edition = "2021"

[dev-dependencies]
criterion = { version = "0.5", default-features = false }

[[bench]]
name = "@NAME@_all"
harness = false
"""
WORKFLOW = """perfflow: 1
name: wide
stages:
  baseline:
    - {id: bench, uses: cargo-bench}
"""


SUITE = """import pytest

from subject import work


@pytest.mark.parametrize("number", range(40))
def test_work(benchmark, number):
    benchmark(work, 1000 + number)
"""
SUBJECT = """def work(steps):
    total = 0
    for number in range(steps):
        total += number * number % 7
    return total
"""
OF_SUITE = """perfflow: 1
name: wide
stages:
  baseline:
    - {id: bench, uses: pytest-benchmark, with: {paths: bench}}
"""


def write(folder: Path, crates: int, each: int) -> None:
    """Write the workspace."""
    names = [f"crate_{number}" for number in range(crates)]
    folder.mkdir(parents=True)
    (folder / "Cargo.toml").write_text(f'[workspace]\nresolver = "2"\nmembers = {json.dumps(names)}\n')
    (folder / ".gitignore").write_text("target\n.perfflow\n")
    for name in names:
        for path, text in (
            ("Cargo.toml", MANIFEST),
            ("src/lib.rs", SOURCE.replace("@PERCENT@", "100")),
            (f"benches/{name}_all.rs", BENCHES.replace("@EACH@", str(each))),
        ):
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_text(text.replace("@NAME@", name))


def commit(folder: Path) -> None:
    """Commit all files of a new repository."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")


def commented(folder: Path) -> dict[str, Any]:
    """Write a suite of Python and change a comment; return the change."""
    (folder / "bench").mkdir(parents=True)
    (folder / "bench/test_bench.py").write_text(SUITE)
    (folder / "conftest.py").touch()
    (folder / "subject.py").write_text(SUBJECT)
    (folder / ".gitignore").write_text(".perfflow\n__pycache__\n.pytest_cache\n")
    commit(folder)
    (folder / "subject.py").write_text("# Work.\n" + SUBJECT)
    return {"name": "a comment", "repository": "40 Python benchmarks", "workflow": OF_SUITE}


def slower(folder: Path, asked: argparse.Namespace) -> dict[str, Any]:
    """Write the workspace and make a crate slower; return the change."""
    write(folder, asked.crates, asked.each)
    commit(folder)
    changed = f"crate_{asked.crates // 2}"
    (folder / changed / "src/lib.rs").write_text(SOURCE.replace("@PERCENT@", str(100 + asked.slower)))
    about = f"{asked.crates * asked.each} Rust benchmarks"
    return {
        "name": f"{changed} {asked.slower:+}%",
        "repository": about,
        "slower": [f"{changed}/*"],
        "workflow": WORKFLOW,
    }


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Write and gate a new project; return what counts of the result."""
    folder = asked.folder.resolve() / "wide"
    change = commented(folder) if asked.comment else slower(folder, asked)
    with busy(asked.busy):
        result, minutes = gate(change, folder, "main", [f"--budget={asked.budget}"])
    return summary({**change, "kind": "wide"}, result, minutes, backwards=False)


def main() -> None:
    """Parse the arguments and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--crates", type=int, default=6)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--slower", type=int, default=15)
    parser.add_argument("--comment", action="store_true")
    parser.add_argument("--busy", type=int, default=0, help="number of busy loops beside the gate")
    parser.add_argument("--budget", default="10m")
    os.environ.setdefault("CARGO_TERM_COLOR", "never")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
