"""cargo's tools, end to end: a workspace is built, listed, and measured whole and by benchmark; and all failures.

The first test builds criterion, which takes one or two minutes. The build is kept for the next run.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH, Reading, Usage
from perfflow.tools.adapter import Call, Effort, Pace
from tests.session.project import Project
from tests.tools.harness import USAGE, Ran, call_of, parsed_of, run, start, tool

CONDUCTOR = ["conductor/overhead", "conductor/decimal", "conductor/context/1", "conductor/context/8"]
ODD = "a (b+c) [d]/e \"f\" 'g' ü* $h\\i"
LONG = f"{('long ' * 30)[:100]}..."


def _built(crate: Path, folder: Path, env: dict[str, str] | None = None, **options: Any) -> Call:
    """Build and list; return the call for all further steps."""
    call = call_of("cargo-bench", folder, crate=str(crate), locked=True, **options)
    call.folder.mkdir(exist_ok=True)
    for step in tool("cargo-bench").build.preparations(call):
        if start(step, call.folder, env):
            tool("cargo-bench").parse(call, USAGE)
    return replace(call, effort=Effort.BRIEF)


def _names(call: Call) -> list[str]:
    listing = tool("cargo-bench").suite.listing(call)
    assert listing
    step = replace(listing, stdout="ids")
    assert start(step, call.folder) == 0
    return (call.folder / step.stdout).read_text().splitlines()


def _measured(call: Call, env: dict[str, str] | None = None) -> dict[tuple[str, str], Reading]:
    """Run the built program like a sample, twice in the same folder."""
    adapter = tool("cargo-bench")
    for _ in range(2):
        for path in adapter.outputs(call):
            path.unlink()
        status = max(start(step, call.folder, env) for step in adapter.invocations(call))
        parsed = parsed_of(Ran(status, call, adapter))
    return {(reading.benchmark, reading.metric): reading for reading in parsed.readings}


def _why(crate: Path, folder: Path, env: dict[str, str] | None = None, **options: Any) -> str:
    with pytest.raises(ToolOutputError) as caught:
        _built(crate, folder, env, **options)
    return str(caught.value)


def test_criterion(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench="conductor")
    assert _names(call) == CONDUCTOR
    found = _measured(call)
    assert {name for name, _ in found} == set(CONDUCTOR)
    time, throughput = found[CONDUCTOR[0], "time"], found[CONDUCTOR[0], "throughput"]
    assert time.inner["min"] <= time.value <= 1.5 * time.inner["p50"]
    assert time.inner["min"] <= time.inner["p50"] <= time.inner["p99"]
    assert (time.inner["n"], time.inner[BATCH] > 1) == (10, True)
    assert throughput.value == pytest.approx(4096 / time.value, rel=0.01)
    assert found[CONDUCTOR[1], "throughput"].value == pytest.approx(5000 / found[CONDUCTOR[1], "time"].value, rel=0.01)
    assert found[CONDUCTOR[2], "rate"].value == pytest.approx(64 / found[CONDUCTOR[2], "time"].value, rel=0.01)
    # The user's own results, and those with which criterion would compare, do not change.
    assert not (crate / "target").exists()
    assert not list(call.folder.rglob("base")) + list(call.folder.rglob("change"))


def test_criterion_and_libtest_by_cpu_time(crate: Path, tmp_path: Path, cpu_clock_library: Path) -> None:
    call = replace(_built(crate, tmp_path, bench=["conductor", "plain"]), cpu_clock=cpu_clock_library)
    found = _measured(call)
    names = {name for name, _ in found}
    assert {*CONDUCTOR, "mixes"} <= names
    for name in names:
        cpu, time = found[name, "cpu"], found[name, "time"]
        # The two clocks are read one after the other.
        assert 0 < cpu.value <= time.value * 1.001
        assert cpu.inner.keys() == time.inner.keys()
    # Rates are those of elapsed time.
    overhead = found[CONDUCTOR[0], "time"]
    assert found[CONDUCTOR[0], "throughput"].value == pytest.approx(4096 / overhead.value, rel=0.01)
    assert found["mixes", "throughput"].value == pytest.approx(800 / found["mixes", "time"].value, rel=0.1)


def test_elapsed_time_of_criterion_without_the_turns_of_another_process(
    crate: Path, tmp_path: Path, cpu_clock_library: Path
) -> None:
    call = replace(_built(crate, tmp_path, bench="conductor"), cpu_clock=cpu_clock_library, core=0)
    _measured(call)
    # Of 10 s it waited 5.9 s for the core, and 0.1 s for something else, perhaps all in one benchmark.
    parsed = tool("cargo-bench").parse(call, Usage(10.0, 4.0, 0.0, queued=5.9, main_cpu=4.0))
    found = {(item.benchmark, item.metric): item for item in parsed.readings}
    for name in CONDUCTOR:
        cpu, time, bound = (found[name, clock] for clock in ("cpu", "time", "uncontended"))
        assert bound.at_most
        assert bound.value == pytest.approx(time.value, rel=1e-6)
        assert cpu.value <= time.value <= cpu.value * (1 + 0.1 * len(CONDUCTOR) / 4) * (1 + 1e-6)
    throughput = found[CONDUCTOR[0], "throughput"]
    assert throughput.value == pytest.approx(4096 / found[CONDUCTOR[0], "time"].value, rel=0.01)


def test_each_executable_has_the_usage_of_its_own_process(crate: Path, tmp_path: Path, cpu_clock_library: Path) -> None:
    call = replace(_built(crate, tmp_path, bench=["conductor", "plain"]), cpu_clock=cpu_clock_library)
    _measured(call)
    computes = Usage(10.0, 4.0, 0.0, queued=6.0, main_cpu=4.0)
    has_threads = replace(computes, main_cpu=1.0)
    for first, second, known in ((computes, has_threads, CONDUCTOR), (has_threads, computes, {"mixes"})):
        parsed = tool("cargo-bench").parse(call, replace(first, rest=(second,)))
        bounded = {item.benchmark for item in parsed.readings if item.metric == "uncontended"}
        assert bounded >= set(known)
        assert bounded.isdisjoint({*CONDUCTOR, "mixes"} - set(known))


def test_odd_names_run_alone(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd"])
    names = _names(call)
    assert names == [ODD, "new/x", "shared", LONG, "own/size"]
    for name in names:
        assert {found for found, _ in _measured(replace(call, chosen=(name,)))} == {name}


def test_several_of_two_executables(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd", "plain"])
    names = _names(call)
    chosen = (names[-1], *names[:3:2])
    assert {name for name, _ in _measured(replace(call, chosen=chosen))} == set(chosen)


def test_libtest_and_ids_that_two_targets_share(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd", "plain"], filter="shared|mixes")
    assert _names(call) == ["shared"]
    call = _built(crate, tmp_path, bench=["odd", "plain"], filter="shared")
    assert _names(call) == ["odd/shared", "plain/shared"]
    found = _measured(replace(call, chosen=("plain/shared",)))
    assert set(found) == {("plain/shared", "time")}
    call = _built(crate, tmp_path, bench="plain", filter="mixes")
    mixes = _measured(call)
    assert mixes["mixes", "throughput"].value == pytest.approx(800 / mixes["mixes", "time"].value, rel=0.1)


def test_two_packages_with_a_target_of_the_same_name(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, workspace=True, bench="conductor", filter="overhead|second")
    names = ["hot-loop/conductor/conductor/overhead", "second/conductor/conductor/overhead", "second"]
    assert sorted(_names(call)) == sorted(names)
    assert {name for name, _ in _measured(call)} == set(names)
    alone = _built(crate, tmp_path, package="second", filter="overhead")
    assert _names(alone) == ["conductor/overhead"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bench": "nowhere"}, "no bench target named `nowhere`"),
        ({"bench": "odd", "filter": "nowhere"}, "no benchmark matches the filter"),
        ({"bench": "plain", "filter": "mixes$"}, "for libtest it is a part of the name, not a regular expression"),
        ({"bench": "odd", "filter": "(("}, "it panicked: Unable to parse '(('"),
        ({"bench": "other"}, "not of criterion, divan or libtest"),
        ({"bench": "odd", "features": "nowhere"}, "feature"),
        ({"bench": "odd", "package": "nowhere"}, "nowhere"),
        ({"bench": "odd", "profile": "nowhere"}, "profile `nowhere` is not defined"),
        ({"bench": "odd", "args": "--nonsense"}, "unexpected argument '--nonsense'"),
    ],
    ids=str,
)
def test_nothing_to_measure(options: dict[str, Any], reason: str, crate: Path, tmp_path: Path) -> None:
    assert reason in _why(crate, tmp_path, **options)


def test_a_bench_of_libtest_on_a_stable_toolchain(crate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUSTC_BOOTSTRAP")
    assert "#[bench] needs a nightly toolchain" in _why(_without_criterion(crate, tmp_path), tmp_path, bench="plain")


def _without_criterion(crate: Path, folder: Path) -> Path:
    """A crate with only libtest benchmarks, which builds in a second."""
    lone = folder / "lone"
    shutil.copytree(crate / "src", lone / "src")
    (lone / "benches").mkdir()
    text = (crate / "benches" / "plain.rs").read_text()
    (lone / "benches" / "plain.rs").write_text(text.replace("hot_loop::", "lone::"))
    (lone / "Cargo.toml").write_text(
        '[package]\nname = "lone"\nversion = "0.1.0"\nedition = "2021"\nautobins = false\n'
    )
    (lone / "Cargo.lock").write_text('version = 4\n\n[[package]]\nname = "lone"\nversion = "0.1.0"\n')
    return lone


def test_a_crate_that_does_not_compile(crate: Path, tmp_path: Path) -> None:
    (crate / "benches" / "odd.rs").write_text("fn main() { missing(); }\n")
    assert 'could not compile `hot-loop` (bench "odd")' in _why(crate, tmp_path, bench="odd")
    assert "cannot find function `missing`" in (tmp_path / "stderr").read_text()


def test_a_lock_file_that_is_out_of_date(crate: Path, tmp_path: Path) -> None:
    manifest = crate / "second" / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("0.2.0", "0.3.0"))
    assert "commit the new Cargo.lock, or remove `locked`" in _why(crate, tmp_path, bench="odd")


def test_a_folder_without_a_manifest(crate: Path, tmp_path: Path) -> None:
    (crate / "Cargo.toml").unlink()
    assert "could not find `Cargo.toml`" in _why(crate, tmp_path, bench="odd")


def test_a_benchmark_that_panics(crate: Path, tmp_path: Path) -> None:
    env = {"HOT_PANIC": "1"}
    call = replace(_built(crate, tmp_path, env, bench="odd", filter="panics"), chosen=("panics",))
    (step,) = tool("cargo-bench").invocations(call)
    assert start(step, call.folder, env) == 101
    with pytest.raises(ToolOutputError, match="it panicked: the input is missing"):
        tool("cargo-bench").parse(call, USAGE)


def test_cargo_build(crate: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"crate": str(crate), "examples": True, "tests": ["mixing"], "locked": True}
    for _ in range(2):
        # The second time, everything is fresh.
        ran = run("cargo-build", tmp_path, **options)
        assert ran.status == 0
        found = ran.adapter.build.results(ran.call)
        assert found.keys() == {"hot-loop", "hot_loop", "example-shows", "example_shows", "test-mixing", "test_mixing"}
        assert all(Path(path).is_absolute() and Path(path).is_file() for path in found.values())


def test_cargo_build_of_what_does_not_compile(crate: Path, tmp_path: Path) -> None:
    (crate / "src" / "main.rs").write_text("fn main() { missing(); }\n")
    ran = run("cargo-build", tmp_path, crate=str(crate))
    assert ran.status == 101
    with pytest.raises(ToolOutputError, match="could not compile `hot-loop`"):
        ran.parse()


WORKFLOW = """
targets: {conductor/overhead: {time p99: <1s}}
stages:
  build:
    - id: bins
      uses: cargo-build
      with: {crate: CRATE, locked: true}
    - {id: once, run: "${{ steps.bins.outputs.hot_loop }} 10"}
  baseline:
    - id: bench
      uses: cargo-bench
      benchmark: "*"
      with: {crate: CRATE, bench: conductor, filter: overhead, locked: true}
      candidate: CANDIDATE
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    return Project(tmp_path)


def _workflow(crate: Path, candidate: str) -> str:
    return WORKFLOW.replace("CRATE", str(crate)).replace("CANDIDATE", candidate)


@pytest.mark.long
def test_a_feature_that_doubles_the_work_is_a_regression(project: Project, crate: Path) -> None:
    result = project.run(_workflow(crate, "{with: {features: slow}}"))
    assert result.verdict == "fail"
    (target,) = result.targets
    assert (target.status, target.detail.startswith("p99 of averages over about ")) == ("met", True)
    (row,) = (row for row in result.benchmarks if row.metric == "time")
    assert (row.name, row.decision, row.level) == ("conductor/overhead", "regressed", "action")
    assert row.change is not None
    assert row.change.value is not None
    assert row.change.value > 0.5


def test_a_setting_that_changes_nothing_is_told_as_identical(project: Project, crate: Path) -> None:
    lone = _without_criterion(crate, project.folder)
    # Each side has its own build folder, since the variable can affect the build.
    step = f"{{id: bench, uses: cargo-bench, benchmark: '*', with: {{crate: {lone}, filter: mixes, locked: true}}, "
    result = project.run(f"stages:\n  baseline:\n    - {step}runs: 1, candidate: {{env: {{NOT_READ: '1'}}}}}}\n")
    (row,) = (row for row in result.benchmarks if row.metric == "time")
    assert row.decision in ("same", "unproven")
    (files,) = (event["files"] for event in project.events() if event["event"] == "measuring")
    assert files["baseline"] == files["candidate"] != []


UNEVEN = """//! Every second call does UNEVEN times the work; OWN_SIZE has the group set its own number of samples.
use criterion::{criterion_group, criterion_main, Criterion};
use std::hint::black_box;

fn burn(units: u64) -> u64 {
    (0..units).fold(1u64, |state, _| black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1)))
}

fn uneven(criterion: &mut Criterion) {
    let more = std::env::var("UNEVEN").map_or(1, |text| text.parse().unwrap());
    let units = std::env::var("UNITS").map_or(1_000_000, |text| text.parse().unwrap());
    let mut calls = 0u64;
    let mut group = criterion.benchmark_group("uneven");
    if std::env::var("OWN_SIZE").is_ok() {
        group.sample_size(100);
    }
    group.bench_function("calls", |bencher| {
        bencher.iter(|| {
            calls += 1;
            burn(if calls % 2 == 0 { units * more } else { units })
        })
    });
    group.finish();
}

criterion_group!(benches, uneven);
criterion_main!(benches);
"""


@pytest.fixture
def uneven(crate: Path) -> Path:
    (crate / "benches" / "other.rs").write_text(UNEVEN)
    return crate


@pytest.mark.long
def test_every_second_call_twice_as_slow_is_a_regression(project: Project, uneven: Path) -> None:
    step = f"{{id: bench, uses: cargo-bench, benchmark: '*', with: {{crate: {uneven}, bench: other, locked: true}}, "
    text = f"stages:\n  baseline:\n    - {step}budget: 2m, candidate: {{env: {{UNEVEN: '2'}}}}}}\n"
    (row,) = (row for row in project.run(text).benchmarks if row.gating)
    assert (row.name, row.statistic) == ("uneven/calls", "capped mean")
    assert (row.decision, row.level) == ("regressed", "action")


def test_a_slow_benchmark_has_few_samples_in_a_process(uneven: Path, tmp_path: Path) -> None:
    call = replace(_built(uneven, tmp_path / "out", bench="other"), chosen=("uneven/calls",))
    paces = (None, Pace(0.03, 0.3), Pace(1e-6, 0.1))
    found = [_measured(replace(call, pace=pace))["uneven/calls", "time"].inner["n"] for pace in paces]
    assert found == [10, 10, 100]


def test_a_slow_benchmark_that_sets_its_own_sample_size_is_measured_quickly(uneven: Path, tmp_path: Path) -> None:
    call = replace(_built(uneven, tmp_path / "out", bench="other"), chosen=("uneven/calls",))
    first = _measured(call, {"OWN_SIZE": "yes"})["uneven/calls", "time"]
    assert first.inner["n"] == 100
    # The group's own settings would take 30 ms each.
    (quick,) = _measured(replace(call, pace=Pace(0.03, 3.0)), {"OWN_SIZE": "yes"}).values()
    assert quick.inner["n"] == 2
    assert quick.inner[BATCH] >= 1.5
