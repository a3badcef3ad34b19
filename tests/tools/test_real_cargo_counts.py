"""Under a counting profiler, benchmarks run a fixed number of iterations, independent of groups and the clock."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.tools import adapter
from perfflow.tools.adapter import Call, Effort
from tests.tools.harness import call_of, parsed_of, run_call, start, tool

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH")
CLOCK = Path(adapter.__file__).parent / "drivers" / "stepping_clock.c"
OWN = """//! A group that sets everything itself, with each way of timing.
use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use std::hint::black_box;
use std::time::{Duration, Instant};

fn burn(units: u64) -> u64 {
    (0..units).fold(1u64, |state, _| black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1)))
}

fn own(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("own");
    group.sample_size(50).measurement_time(Duration::from_secs(20)).warm_up_time(Duration::from_secs(10));
    group.bench_function("plain", |bencher| bencher.iter(|| burn(2000)));
    group.bench_function("small", |bencher| bencher.iter_batched(|| 2000, burn, BatchSize::SmallInput));
    group.bench_function("each", |bencher| bencher.iter_batched(|| 2000, burn, BatchSize::PerIteration));
    group.bench_function("custom", |bencher| {
        bencher.iter_custom(|iterations| {
            let start = Instant::now();
            for _ in 0..iterations {
                burn(2000);
            }
            start.elapsed()
        })
    });
    group.finish();
}

criterion_group!(benches, own);
criterion_main!(benches);
"""


def built(crate: Path, folder: Path, **options: Any) -> Call:
    call = call_of("cargo-bench", folder, crate=str(crate), locked=True, **options)
    call.folder.mkdir()
    for step in tool("cargo-bench").build.preparations(call):
        assert start(step, call.folder) == 0, (call.folder / step.stderr).read_text()
    clock = folder / "stepping_clock.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", clock, CLOCK], check=True)
    return replace(call, effort=Effort.BRIEF, kept=call.folder, clock=clock)


def counted(call: Call, name: str, iterations: int, folder: Path) -> tuple[float, str]:
    """Return the instructions of a whole process with so many iterations, and its number of clock readings."""
    one = replace(call, chosen=(name,), iterations=iterations, folder=folder)
    (step,) = tool("cargo-bench").invocations(one)
    for old in folder.glob("callgrind.*"):
        old.unlink()
    ran = run_call("callgrind", call_of("callgrind", folder, *step.argv), dict(step.env))
    (reading,) = parsed_of(ran).readings
    return reading.value, tool("cargo-bench").suite.iterated(one)


def each_of(call: Call, name: str, folder: Path) -> float:
    """Return the instructions of one iteration."""
    few, many = tool("cargo-bench").suite.iteration_counts(replace(call, chosen=(name,)), 100e-6)
    assert (few, many) == (20, 100)
    (less, _), (more, _) = (counted(call, name, number, folder) for number in (few, many))
    return (more - less) / (many - few)


def test_an_iteration_costs_the_same_every_time_and_nothing_but_itself(crate: Path, tmp_path: Path) -> None:
    (crate / "benches" / "other.rs").write_text(OWN)
    call = built(crate, tmp_path / "built", bench="other")
    for name in ("own/plain", "own/custom"):
        found = []
        for again in ("first", "second"):
            (tmp_path / again).mkdir(exist_ok=True)
            found.append(each_of(call, name, tmp_path / again))
        # Names of files and processes, and Rust's hash seeds, change the instructions of a process a little.
        assert found[0] == pytest.approx(found[1], rel=1e-3), name
        # A multiplication, an addition and the loop's own instructions, two thousand times.
        assert 6_000 <= found[0] <= 30_000, name


def test_a_benchmark_of_libtest(crate: Path, tmp_path: Path) -> None:
    call = built(crate, tmp_path / "built", bench="plain", filter="mixes")
    few, many = tool("cargo-bench").suite.iteration_counts(replace(call, chosen=("mixes",)), 1e-6)
    found = []
    for _ in range(2):
        (less, _), (more, _) = (counted(call, "mixes", number, tmp_path / "counted") for number in (few, many))
        found.append((more - less) / (many - few))
    # It has only three hundred iterations, and additional threads.
    assert found[0] == pytest.approx(found[1], rel=5e-3)


def test_without_a_compiler_for_the_clock_there_are_no_fixed_counts(crate: Path, tmp_path: Path) -> None:
    call = replace(built(crate, tmp_path / "built", bench="plain", filter="mixes"), clock=None)
    assert tool("cargo-bench").suite.iteration_counts(replace(call, chosen=("mixes",)), 1e-6) == ()


def test_it_is_built_again_with_lines_and_what_it_depends_on_is_not(crate: Path, tmp_path: Path) -> None:
    call = built(crate, tmp_path / "built", bench="odd")
    cargo = tool("cargo-bench")
    assert cargo.build.lacks_lines(call)
    again = replace(call, kept=tmp_path / "again", built=call.place)
    again.place.mkdir()
    for step in cargo.build.preparations(again):
        assert start(step, again.place) == 0, (again.place / step.stderr).read_text()
    assert not cargo.build.lacks_lines(again)
    said = (again.place / "stderr").read_text()
    compiled = {line.split()[1] for line in said.splitlines() if line.strip().startswith("Compiling")}
    assert compiled <= {"hot-loop", "second"}
    # The measured program is unchanged.
    assert cargo.build.lacks_lines(call)
