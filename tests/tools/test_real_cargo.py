"""cargo's tools, end to end: a workspace is built, listed, and measured whole and by benchmark; and all failures.

Under a counting profiler, benchmarks run a fixed number of iterations, independent of groups and the clock. The first
tests build criterion and divan, which takes one or two minutes. The builds are kept for the next run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH, Reading, Usage
from perfflow.tools import adapter
from perfflow.tools.adapter import Call, Effort, Pace
from tests.kept import kept
from tests.session.project import Project
from tests.toolchains import needs_cargo
from tests.tools.harness import HERE, SORTS, USAGE, Ran, call_of, listed, parsed_of, run, run_call, start, tool

BENCH = tool("cargo-bench")
CONDUCTOR = ["conductor/overhead", "conductor/decimal", "conductor/context/1", "conductor/context/8"]
ODD = "a (b+c) [d]/e \"f\" 'g' ü* $h\\i"
LONG = f"{('long ' * 30)[:100]}..."
BENCHES = HERE / "crates" / "benches"
needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not on PATH")


def _built(crate: Path, folder: Path, env: dict[str, str] | None = None, **options: Any) -> Call:
    """Build and list; return the call for all further steps."""
    call = call_of("cargo-bench", folder, crate=str(crate), locked=True, **options)
    call.folder.mkdir(exist_ok=True)
    for step in BENCH.build.preparations(call):
        if start(step, call.folder, env):
            BENCH.parse(call, USAGE)
            pytest.fail((call.folder / step.stderr).read_text())
    return replace(call, effort=Effort.BRIEF, kept=call.folder)


def _names(call: Call) -> list[str]:
    status, names = listed("cargo-bench", call)
    assert status == 0
    return names


def _measured(call: Call, env: dict[str, str] | None = None) -> dict[tuple[str, str], Reading]:
    """Run the built program like a sample, twice in the same folder."""
    for _ in range(2):
        for path in BENCH.outputs(call):
            path.unlink()
        status = max(start(step, call.folder, env) for step in BENCH.invocations(call))
        parsed = parsed_of(Ran(status, call, BENCH))
    return {(reading.benchmark, reading.metric): reading for reading in parsed.readings}


def _measured_names(call: Call) -> set[str]:
    return {name for name, _ in _measured(call)}


def _why(crate: Path, folder: Path, **options: Any) -> str:
    with pytest.raises(ToolOutputError) as caught:
        _built(crate, folder, **options)
    return str(caught.value)


def _is_rate(found: dict[tuple[str, str], Reading], name: str, work: float, metric: str, rel: float = 0.01) -> bool:
    """Return whether a rate is the work by the time."""
    return found[name, metric].value == pytest.approx(work / found[name, "time"].value, rel=rel)


# criterion and libtest


def test_criterion(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench="conductor")
    assert _names(call) == CONDUCTOR
    found = _measured(call)
    assert {name for name, _ in found} == set(CONDUCTOR)
    time = found[CONDUCTOR[0], "time"]
    assert time.inner["min"] <= time.value <= 1.5 * time.inner["p50"]
    assert time.inner["min"] <= time.inner["p50"] <= time.inner["p99"]
    assert (time.inner["n"], time.inner[BATCH] > 1) == (10, True)
    assert _is_rate(found, CONDUCTOR[0], 4096, "throughput")
    assert _is_rate(found, CONDUCTOR[1], 5000, "throughput")
    assert _is_rate(found, CONDUCTOR[2], 64, "rate")
    # The user's own results, and those with which criterion would compare, do not change.
    assert not (crate / "target").exists()
    assert not list(call.folder.rglob("base")) + list(call.folder.rglob("change"))


@pytest.mark.long  # cheaper tests in this file run the same tool
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
    assert _is_rate(found, CONDUCTOR[0], 4096, "throughput")
    assert _is_rate(found, "mixes", 800, "throughput", rel=0.1)
    # Each executable has the usage of its own process.
    computes = Usage(10.0, 4.0, 0.0, queued=6.0, main_cpu=4.0)
    has_threads = replace(computes, main_cpu=1.0)
    for first, second, known in ((computes, has_threads, {*CONDUCTOR}), (has_threads, computes, {"mixes"})):
        parsed = BENCH.parse(call, replace(first, rest=(second,)))
        bounded = {item.benchmark for item in parsed.readings if item.metric == "uncontended"}
        assert bounded & {*CONDUCTOR, "mixes"} == known


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_elapsed_time_of_criterion_without_the_turns_of_another_process(
    crate: Path, tmp_path: Path, cpu_clock_library: Path
) -> None:
    call = replace(_built(crate, tmp_path, bench="conductor"), cpu_clock=cpu_clock_library, core=0)
    _measured(call)
    # Of 10 s it waited 5.9 s for the core, and 0.1 s for something else, perhaps all in one benchmark.
    parsed = BENCH.parse(call, Usage(10.0, 4.0, 0.0, queued=5.9, main_cpu=4.0))
    found = {(item.benchmark, item.metric): item for item in parsed.readings}
    for name in CONDUCTOR:
        cpu, time, bound = (found[name, clock] for clock in ("cpu", "time", "uncontended"))
        assert bound.at_most
        assert bound.value == pytest.approx(time.value, rel=1e-6)
        assert cpu.value <= time.value <= cpu.value * (1 + 0.1 * len(CONDUCTOR) / 4) * (1 + 1e-6)
    assert _is_rate(found, CONDUCTOR[0], 4096, "throughput")


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_odd_names_run_alone(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd"])
    names = _names(call)
    assert names == [ODD, "new/x", "shared", LONG, "own/size"]
    for name in names:
        assert _measured_names(replace(call, chosen=(name,))) == {name}


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_several_of_two_executables(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd", "plain"])
    names = _names(call)
    chosen = (names[-1], *names[:3:2])
    assert _measured_names(replace(call, chosen=chosen)) == set(chosen)


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_libtest_and_ids_that_two_targets_share(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, bench=["odd", "plain"], filter="shared|mixes")
    assert _names(call) == ["shared"]
    call = _built(crate, tmp_path, bench=["odd", "plain"], filter="shared")
    assert _names(call) == ["odd/shared", "plain/shared"]
    assert set(_measured(replace(call, chosen=("plain/shared",)))) == {("plain/shared", "time")}
    call = _built(crate, tmp_path, bench="plain", filter="mixes")
    assert _is_rate(_measured(call), "mixes", 800, "throughput", rel=0.1)


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_two_packages_with_a_target_of_the_same_name(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path, workspace=True, bench="conductor", filter="overhead|second")
    names = {"hot-loop/conductor/conductor/overhead", "second/conductor/conductor/overhead", "second"}
    assert set(_names(call)) == names == _measured_names(call)
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
    lone, named = folder / "lone", 'name = "lone"\nversion = "0.1.0"\n'
    shutil.copytree(crate / "src", lone / "src")
    (lone / "benches").mkdir()
    text = (crate / "benches" / "plain.rs").read_text()
    (lone / "benches" / "plain.rs").write_text(text.replace("hot_loop::", "lone::"))
    (lone / "Cargo.toml").write_text(f'[package]\n{named}edition = "2021"\nautobins = false\n')
    (lone / "Cargo.lock").write_text(f"version = 4\n\n[[package]]\n{named}")
    return lone


def test_a_crate_that_does_not_compile(crate: Path, tmp_path: Path) -> None:
    (crate / "benches" / "odd.rs").write_text("fn main() { missing(); }\n")
    assert 'could not compile `hot-loop` (bench "odd")' in _why(crate, tmp_path, bench="odd")
    assert "cannot find function `missing`" in (tmp_path / "stderr").read_text()
    (crate / "src" / "main.rs").write_text("fn main() { missing(); }\n")
    ran = run("cargo-build", tmp_path / "build", crate=str(crate))
    assert ran.status == 101
    with pytest.raises(ToolOutputError, match="could not compile `hot-loop`"):
        ran.parse()


def test_a_lock_file_that_is_out_of_date(crate: Path, tmp_path: Path) -> None:
    manifest = crate / "second" / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("0.2.0", "0.3.0"))
    assert "commit the new Cargo.lock, or remove `locked`" in _why(crate, tmp_path, bench="odd")


def test_a_folder_without_a_manifest(crate: Path, tmp_path: Path) -> None:
    (crate / "Cargo.toml").unlink()
    assert "could not find `Cargo.toml`" in _why(crate, tmp_path, bench="odd")


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_a_benchmark_that_panics(crate: Path, tmp_path: Path) -> None:
    env = {"HOT_PANIC": "1"}
    call = replace(_built(crate, tmp_path, env, bench="odd", filter="panics"), chosen=("panics",))
    (step,) = BENCH.invocations(call)
    assert start(step, call.folder, env) == 101
    with pytest.raises(ToolOutputError, match="it panicked: the input is missing"):
        BENCH.parse(call, USAGE)


def test_cargo_build(crate: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"crate": str(crate), "examples": True, "tests": ["mixing"], "locked": True}
    for _ in range(2):
        # The second time, everything is fresh.
        ran = run("cargo-build", tmp_path, **options)
        assert ran.status == 0
        found = ran.adapter.build.results(ran.call)
        assert found.keys() == {"hot-loop", "hot_loop", "example-shows", "example_shows", "test-mixing", "test_mixing"}
        assert all(Path(path).is_absolute() and Path(path).is_file() for path in found.values())


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
      candidate: {with: {features: slow}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    return Project(tmp_path)


@pytest.mark.long
def test_a_feature_that_doubles_the_work_is_a_regression(project: Project, crate: Path) -> None:
    result = project.run(WORKFLOW.replace("CRATE", str(crate)))
    assert result.verdict == "fail"
    (target,) = result.targets
    assert (target.status, target.detail.startswith("p99 of averages over about ")) == ("met", True)
    (row,) = (row for row in result.benchmarks if row.metric == "time")
    assert (row.name, row.decision, row.level) == ("conductor/overhead", "regressed", "action")
    assert row.change is not None
    assert (row.change.value or 0) > 0.5


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_a_setting_that_changes_nothing_is_told_as_identical(project: Project, crate: Path) -> None:
    lone = _without_criterion(crate, project.folder)
    # Each side has its own build folder, since the variable can affect the build.
    step = f"{{id: bench, uses: cargo-bench, benchmark: '*', with: {{crate: {lone}, filter: mixes, locked: true}}, "
    result = project.run(f"stages:\n  baseline:\n    - {step}runs: 1, candidate: {{env: {{NOT_READ: '1'}}}}}}\n")
    (row,) = (row for row in result.benchmarks if row.metric == "time")
    assert row.decision in ("same", "unproven")
    (files,) = (event["files"] for event in project.events() if event["event"] == "measuring")
    assert files["baseline"] == files["candidate"] != []


@pytest.fixture
def uneven(crate: Path) -> Path:
    """Every second call does UNEVEN times the work; OWN_SIZE has the group set its own number of samples."""
    shutil.copyfile(BENCHES / "uneven.rs", crate / "benches" / "other.rs")
    return crate


@pytest.mark.long
def test_every_second_call_twice_as_slow_is_a_regression(project: Project, uneven: Path) -> None:
    step = f"{{id: bench, uses: cargo-bench, benchmark: '*', with: {{crate: {uneven}, bench: other, locked: true}}, "
    text = f"stages:\n  baseline:\n    - {step}budget: 2m, candidate: {{env: {{UNEVEN: '2'}}}}}}\n"
    (row,) = (row for row in project.run(text).benchmarks if row.gating)
    assert (row.name, row.statistic) == ("uneven/calls", "capped mean")
    assert (row.decision, row.level) == ("regressed", "action")


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_a_slow_benchmark_has_few_samples_in_a_process(uneven: Path, tmp_path: Path) -> None:
    call = replace(_built(uneven, tmp_path / "out", bench="other"), chosen=("uneven/calls",))
    paces = (None, Pace(0.03, 0.3), Pace(1e-6, 0.1))
    found = [_measured(replace(call, pace=pace))["uneven/calls", "time"].inner["n"] for pace in paces]
    assert found == [10, 10, 100]


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_a_slow_benchmark_that_sets_its_own_sample_size_is_measured_quickly(uneven: Path, tmp_path: Path) -> None:
    call = replace(_built(uneven, tmp_path / "out", bench="other"), chosen=("uneven/calls",))
    first = _measured(call, {"OWN_SIZE": "yes"})["uneven/calls", "time"]
    assert first.inner["n"] == 100
    # The group's own settings would take 30 ms each.
    (quick,) = _measured(replace(call, pace=Pace(0.03, 3.0)), {"OWN_SIZE": "yes"}).values()
    assert quick.inner["n"] == 2
    assert quick.inner[BATCH] >= 1.5


# Under a counting profiler


def _counting(crate: Path, folder: Path, name: str, **options: Any) -> Call:
    """Build for one benchmark, with a clock that steps."""
    call = _built(crate, folder / "built", **options)
    clock, source = folder / "stepping_clock.so", Path(adapter.__file__).parent / "drivers" / "stepping_clock.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", clock, source], check=True)
    return replace(call, clock=clock, chosen=(name,))


def _each(call: Call, counts: tuple[int, ...], folder: Path, profiler: str = "callgrind") -> float:
    """Return what one iteration costs: what more of them cost in a whole process than fewer, without the harness."""
    metric = "instructions" if profiler == "callgrind" else "allocs"
    costs = []
    for number in counts:
        one = replace(call, iterations=number, folder=folder / str(number))
        one.folder.mkdir(parents=True)
        (step,) = BENCH.invocations(one)
        under = replace(call_of(profiler, one.folder, *step.argv), harness=BENCH.suite.harness)
        readings = parsed_of(run_call(profiler, under, dict(step.env))).readings
        costs += [reading.value for reading in readings if reading.metric == metric and not reading.benchmark]
        assert BENCH.suite.iterated(one)
    (less, more), (few, many) = costs, counts
    return (more - less) / (many - few)


@pytest.mark.long  # cheaper tests in this file run the same tool
@needs_valgrind
def test_an_iteration_costs_the_same_every_time_and_nothing_but_itself(crate: Path, tmp_path: Path) -> None:
    """Of a group that sets everything itself, with each way of timing."""
    shutil.copyfile(BENCHES / "own_settings.rs", crate / "benches" / "other.rs")
    built = _counting(crate, tmp_path, "", bench="other")
    for name in ("own/plain", "own/custom"):
        call = replace(built, chosen=(name,))
        counts = BENCH.suite.iteration_counts(call, 100e-6)
        assert counts == (20, 100)
        first, second = (_each(call, counts, tmp_path / name / again) for again in ("first", "second"))
        # Names of files and processes, and Rust's hash seeds, change the instructions of a process a little.
        assert first == pytest.approx(second, rel=1e-3), name
        # A multiplication, an addition and the loop's own instructions, two thousand times.
        assert 6_000 <= first <= 30_000, name


@pytest.mark.long  # cheaper tests in this file run the same tool
@needs_valgrind
def test_an_iteration_of_libtest(crate: Path, tmp_path: Path) -> None:
    call = _counting(crate, tmp_path, "mixes", bench="plain", filter="mixes")
    counts = BENCH.suite.iteration_counts(call, 1e-6)
    first, second = (_each(call, counts, tmp_path / again) for again in ("first", "second"))
    # It has only three hundred iterations, and additional threads.
    assert first == pytest.approx(second, rel=5e-3)
    # Without a compiler for the clock there are no fixed counts.
    assert BENCH.suite.iteration_counts(replace(call, clock=None), 1e-6) == ()


@pytest.mark.long  # cheaper tests in this file run the same tool
@needs_valgrind
def test_it_is_built_again_with_lines_and_what_it_depends_on_is_not(crate: Path, tmp_path: Path) -> None:
    call = _built(crate, tmp_path / "built", bench="odd")
    assert BENCH.build.lacks_lines(call)
    again = replace(call, kept=tmp_path / "again", built=call.place)
    again.place.mkdir()
    for step in BENCH.build.preparations(again):
        assert start(step, again.place) == 0, (again.place / step.stderr).read_text()
    assert not BENCH.build.lacks_lines(again)
    said = (again.place / "stderr").read_text()
    compiled = {line.split()[1] for line in said.splitlines() if line.strip().startswith("Compiling")}
    assert compiled <= {"hot-loop", "second"}
    # The measured program is unchanged.
    assert BENCH.build.lacks_lines(call)


# divan

OF_DIVAN = {"plain", "own", "sizes/text/a b", "sizes/text/(c) │ d", "sizes/each/1000", "sizes/each/4000"}
OF_DIVAN |= {"made/Vec<u64>", "made/String"}


@pytest.fixture
def sorts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the crate, always in the same folder: cargo would reuse the build of a copy in another folder."""
    with kept("divan") as place:
        monkeypatch.setenv("CARGO_TARGET_DIR", str(place / "target"))
        shutil.rmtree(place / "crate", ignore_errors=True)
        yield Path(shutil.copytree(SORTS, place / "crate"))


@pytest.mark.long  # cheaper tests in this file run the same tool
@needs_cargo
def test_divan_all_together_and_each_alone(sorts: Path, tmp_path: Path, cpu_clock_library: Path) -> None:
    call = _built(sorts, tmp_path)
    assert set(_names(call)) == OF_DIVAN
    for clock in (None, cpu_clock_library):
        found = _measured(replace(call, cpu_clock=clock))
        assert {name for name, _ in found} == OF_DIVAN
        assert _is_rate(found, "own", 4096, "throughput")
        assert _is_rate(found, "sizes/each/4000", 4000, "rate")
    assert all(0 < found[name, "cpu"].value <= found[name, "time"].value for name in OF_DIVAN)
    for name in ("own", "sizes/text/(c) │ d", "sizes/each/1000", "made/Vec<u64>"):
        assert _measured_names(replace(call, chosen=(name,))) == {name}
    several = ("made/Vec<u64>", "sizes/text/(c) │ d", "own")
    assert _measured_names(replace(call, chosen=several)) == set(several)


@needs_cargo
def test_a_filter_of_divan_is_a_regular_expression(sorts: Path, tmp_path: Path) -> None:
    call = replace(_built(sorts, tmp_path, filter="each::[14]0+$"), effort=Effort.NORMAL)
    assert set(_names(call)) == {"sizes/each/1000", "sizes/each/4000"} == _measured_names(call)


@needs_cargo
def test_several_numbers_of_threads_of_divan(sorts: Path, tmp_path: Path) -> None:
    call = replace(_built(sorts, tmp_path, filter="plain"), chosen=("plain",))
    with pytest.raises(ToolOutputError, match=r"by_size::plain runs with several .* `env: \{DIVAN_THREADS: 1\}`"):
        _measured(call, {"DIVAN_THREADS": "1,2"})
    assert set(_measured(call, {"DIVAN_THREADS": "2"})) == {("plain", "time")}


@pytest.mark.long  # cheaper tests in this file run the same tool
@needs_cargo
@needs_valgrind
@pytest.mark.parametrize(
    ("name", "profiler", "least", "most"),
    [("plain", "callgrind", 3000, 15_000), ("sizes/text/a b", "dhat", 1, 1), ("own", "dhat", 2, 2)],
)
def test_an_iteration_of_divan(
    name: str, profiler: str, least: float, most: float, sorts: Path, tmp_path: Path
) -> None:
    call = _counting(sorts, tmp_path, name)
    counts = BENCH.suite.iteration_counts(call, 1e-6)
    assert least <= _each(call, counts, tmp_path / "counted", profiler) <= most
