"""The gate names the function that got slower and the commit that changed it, on git projects of real programs."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from perfflow.jobs.rejudge.rejudge import rejudge
from perfflow.model.result import Attribution, Result
from perfflow.report.page import page_of
from perfflow.session.attribution import profiler_calls
from perfflow.session.attribution.function_costs import region_of
from perfflow.session.attribution.profiler_calls import ProfilingEffort
from perfflow.session.steps import profile
from perfflow.tools import registry
from tests.long import rest_long
from tests.session.project import Project, flow, row, step

C_SOURCE = """
#include <stdio.h>
#include <stdlib.h>

#define HIDDEN __attribute__((noinline))

HIDDEN double parse(long n) {
    double sum = 0;
    for (long i = 1; i < n * PARSE; i++) sum += 1.0 / (double)i;
    return sum;
}

HIDDEN double fold(long n) {
    double sum = 0;
    for (long i = 1; i < n * FOLD; i++) sum += (double)i / 3.0;
    return sum;
}

HIDDEN char *grab(long n) {
    char *block = malloc(GRAB * n);
    block[0] = (char)n;
    return block;
}

HIDDEN char *hold(long n) {
    char *block = malloc(100 * n);
    block[0] = (char)n;
    return block;
}

int main(void) {
    char *kept[2] = {grab(1000), hold(1000)};
    printf("%f %d\\n", parse(SIZE) + fold(SIZE), kept[0][0] + kept[1][0]);
    return 0;
}
"""
"""With the size for timing, ``parse`` and ``fold`` take about 10 ms each."""
COUNTED, SIZE = 2_000, 100_000
"""Sizes for Valgrind, which needs less work for the same shares, and for timing."""


@pytest.fixture
def explains() -> bool:
    return True


@pytest.fixture
def tree(tree: Project) -> Project:
    tree.write(".gitignore", ".perfflow\nflow.yaml\nwork\n__pycache__\n")
    return tree


VALGRIND = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
PERF = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")


def c_source(**amounts: int) -> str:
    text = C_SOURCE
    for name, amount in ({"PARSE": 100, "FOLD": 60, "GRAB": 500, "SIZE": COUNTED} | amounts).items():
        text = text.replace(name, str(amount))
    return text


def c_history(project: Project, **planted: int) -> list[str]:
    """Commit a base on main and three commits on topic, of which the second has the ``planted`` amounts."""
    base = c_source(SIZE=planted.get("SIZE", COUNTED))
    project.commit({"src/work.c": base})
    first = project.branch({"src/work.c": base + "\n/* A remark. */\n"})
    second = project.commit({"src/work.c": c_source(**planted) + "\n/* A remark. */\n"}, "planted")
    return [first, second, project.commit({"README": "words"})]


def gated(project: Project, *measuring: str, profile: str = "{uses: auto}", more: str = "", build: str = "") -> Result:
    """Compare with ``main``."""
    made = f"{{id: make, run: '{build or 'gcc -O2 -g -o work src/work.c'}'}}"
    profiles = {"profile": profile} if profile else {}
    return project.run(flow(f"name: gate\n{more}", build=made, baseline=measuring, **profiles), base="main")


CALLGRIND = "{id: one, uses: callgrind, with: {command: ./work}}"


TIMED = "{id: one, uses: command, runs: 8, layouts: off, with: {command: ./work}}"


def named(result: Result, benchmark: str = "one", metric: str = "") -> list[Attribution]:
    found = [item for item in result.attributions if item.benchmark == benchmark]
    return [item for item in found if not metric or item.metric == metric]


def revisions(*found: Attribution) -> set[str]:
    """Return the commits that are named."""
    return {each.revision for item in found for each in item.commits}


def test_a_region_of_a_functions_exact_name_comes_before_globs() -> None:
    regions = {"all": "*sort*", "slices": "<[T]>::sort_by", "times": "vec::operator*", "go": "*hash.Sum*"}
    assert region_of("<[T]>::sort_by", regions) == "slices"
    assert region_of("<[T]>::sort", regions) == "all"
    assert region_of("vec::operator*(vec const&)", regions) == "times"
    assert region_of("example.org/hash.Sum256", regions) == "go"
    assert region_of("T>::sort_by", {"slices": "<[T]>::sort_by"}) == ""


def test_a_suite_of_which_a_process_may_run_much_longer_is_first_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_calls, "PROFILING_SECONDS", 20.0)
    monkeypatch.setattr(profiler_calls, "SAMPLES", 2000)
    perf = registry.find("perf")
    assert perf
    assert profiler_calls.effort_for(perf, 1.0, 199) == ProfilingEffort(calls=6, runs=2, frequency=199)
    assert profiler_calls.effort_for(perf, 1.0, 199, of_suite=True) == ProfilingEffort(calls=6, runs=1, frequency=199)
    # The time of that call tells how many there is time for.
    assert [profiler_calls.calls_of(seconds) for seconds in (0.0, 3.3, 4.1, 8.0, 60.0)] == [6, 6, 4, 3, 3]


@PERF
def test_one_profile_names_the_function_its_file_and_the_commit_for_a_time_and_for_its_rate(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A fifth of the usual number, which is enough for what is said here.
    monkeypatch.setattr(profiler_calls, "SAMPLES", 400)
    # Several times slower, so that the verdict does not depend on the load of the machine.
    _, planted, _ = c_history(tree, PARSE=500, SIZE=SIZE)
    measuring = TIMED.replace("runs: 8", "runs: 12, work: {elements: 1000}")
    more = "targets: {one: {rate: ≥1/s}}\nregions: {reading: 'par*', rest: '*'}"
    result = gated(tree, measuring, more=more)
    assert result.verdict == "fail"
    for metric in (next(item.metric for item in result.benchmarks if item.gating and item.metric != "rate"), "rate"):
        (found,) = named(result, metric=metric)
        assert (found.function, found.file, found.tool, found.region) == ("parse", "src/work.c", "perf", "reading")
        assert [(each.revision, each.subject) for each in found.commits] == [(planted, "planted")]
        assert min(found.samples) >= 400
        assert (found.candidate or 0) > (found.baseline or 0) > 0
        assert found.region_share == found.share
        assert 0 < (found.share_low or 0) < (found.share or 0) < (found.share_high or 0)
        assert "less than three times" not in found.note
    spots = [spot for spot in result.hotspots if spot.benchmark == "one"]
    assert {(spot.tree, spot.location) for spot in spots} >= {("baseline", "parse"), ("candidate", "parse")}
    folder = (tree.folder / ".perfflow/runs/latest").resolve()
    assert not [*folder.rglob("perf.data"), *folder.rglob("perf.script")]
    assert len({item.path for item in result.profiles}) == len(result.profiles) == 2
    assert all(hashlib.sha256((folder / item.path).read_bytes()).hexdigest() == item.sha256 for item in result.profiles)
    (table,) = page_of(result).profiles
    assert len({spot.location for spot in table.spots}) == len(table.spots)
    again = rejudge(folder / "result.json", (), None).result
    for key in ("attributions", "hotspots", "profiles"):
        assert getattr(again, key) == getattr(result, key)


@pytest.mark.long
@PERF
def test_a_program_that_prints_a_small_part_of_its_time_is_profiled_by_all_of_it(tree: Project) -> None:
    """By the printed time, one recording would run it tens of thousands of times, and its text could not be read."""
    tree.write("printed", "0.00100 ms\n")
    c_history(tree, PARSE=150, SIZE=SIZE)
    tree.commit({"printed": "0.00200 ms\n"})
    parse = "parse: {regex: '(?P<time>\\S+) ms', units: {time: ms}}"
    result = gated(tree, f"{{id: one, run: ./work; cat printed, runs: 8, layouts: off, {parse}}}")
    assert {spot.source for spot in result.hotspots} == {"perf"}
    assert "parse" in [item.function for item in named(result)]


@VALGRIND
@pytest.mark.parametrize(
    ("tool", "metric", "planted", "function"),
    rest_long([("callgrind", "instructions", {"FOLD": 75}, "fold"), ("dhat", "alloc", {"GRAB": 625}, "grab")]),
)
def test_the_profiler_follows_the_metric(
    tree: Project, tool: str, metric: str, planted: dict[str, int], function: str
) -> None:
    _, second, _ = c_history(tree, **planted)
    result = gated(tree, f"{{id: one, uses: {tool}, with: {{command: ./work}}}}")
    (found,) = named(result, metric=metric)
    assert (found.function, found.metric, found.tool, found.file) == (function, metric, tool, "src/work.c")
    assert revisions(found) == {second}
    assert row(result, "one", metric).change is not None
    assert found.share == pytest.approx(1.0, abs=0.02)


def without_profile(tree: Project, measuring: str, build: str = "gcc -O1 -fno-inline -o work src/work.c") -> Result:
    """Compare with ``main`` by a workflow that has no stage for profiles."""
    return gated(tree, measuring, profile="", build=build)


@VALGRIND
def test_a_failed_gate_without_a_profile_names_function_place_and_commit_without_debug_information(
    tree: Project,
) -> None:
    _, planted, _ = c_history(tree, FOLD=90)
    result = without_profile(tree, CALLGRIND)
    (found,) = named(result)
    assert (found.function, found.file, found.step) == ("fold", "src/work.c", "attribution")
    assert c_source().splitlines()[found.line - 1].startswith("HIDDEN double fold")
    assert revisions(found) == {planted}
    assert result.routes[0].next.startswith(f"look at fold (src/work.c:{found.line}), which causes 100%")
    assert result.routes[0].command == f"git show {planted[:12]}"
    folder = (tree.folder / ".perfflow/runs/latest").resolve()
    assert rejudge(folder / "result.json", (), None).result.attributions == result.attributions


@VALGRIND
def test_a_gate_that_passes_is_not_profiled(tree: Project) -> None:
    c_history(tree, FOLD=61)
    result = without_profile(tree, CALLGRIND)
    assert result.verdict == "pass"
    assert [item.id for item in result.steps] == ["make", "one"]


@pytest.mark.parametrize(("unit", "is_profiled"), [("'1'", False), ("B", False), ("ms", True)])
def test_a_custom_figure_is_profiled_only_if_it_is_a_time(
    unit: str, is_profiled: bool, tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # That it was begun is enough: no profile fits.
    monkeypatch.setattr(profile, "LONGEST_STEP", 0.0)
    tree.commit({"cost": "#!/bin/sh\necho 100\n"})
    tree.branch({"cost": "#!/bin/sh\necho 120\n"})
    parse = f"parse: {{regex: '(?P<cost>[0-9]+)', units: {{cost: {unit}}}, better: {{cost: lower}}}}"
    result = tree.run(flow(baseline=f"{{id: one, run: ./cost, {parse}}}"), base="main")
    assert result.verdict == "fail"
    assert ("attribution" in [item.id for item in result.steps]) is is_profiled


@VALGRIND
def test_what_the_time_for_profiles_did_not_allow_is_named(tree: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "LONGEST_STEP", 0.0)
    c_history(tree, FOLD=90)
    result = without_profile(tree, CALLGRIND)
    assert named(result) == []
    (said,) = step(result, "attribution").warnings
    assert said.startswith("not profiled, because the profiles of a step may take 0 s and 256 MiB: one; to profile")
    assert result.routes[0].command.startswith("perfflow bisect ")


@pytest.mark.long  # slow; cheaper tests in this file name functions of the same program
@VALGRIND
def test_the_worst_rows_are_profiled_first_and_what_the_bytes_did_not_allow_is_named(
    tree: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One file is enough, so only the first benchmark is profiled.
    monkeypatch.setattr(profile, "MOST_BYTES", 0)
    tree.write("src/light.c", c_source())
    c_history(tree, FOLD=90)
    tree.write("src/light.c", c_source(FOLD=75))
    steps = [CALLGRIND.replace("one", "light").replace("./work", "./light"), CALLGRIND.replace("one", "worst")]
    build = "gcc -O2 -g -o work src/work.c && gcc -O2 -g -o light src/light.c"
    result = gated(tree, *steps, profile="{id: calls, uses: auto}", build=build)
    assert {item.benchmark for item in result.attributions if item.step == "calls"} == {"worst"}
    (said,) = [text for text in step(result, "calls").warnings if text.startswith("not profiled")]
    assert "0 MiB: light; to profile" in said


GOOGLE = """
#include <benchmark/benchmark.h>
#define HIDDEN __attribute__((noinline))
HIDDEN double parse(long n) { double s = 0; for (long i = 1; i < n; i++) s += 1.0 / i; return s; }
HIDDEN double fold(long n) { double s = 0; for (long i = 1; i < n * TIMES; i++) s += i / 3.0; return s; }
static void BM_Parse(benchmark::State& state) { for (auto _ : state) benchmark::DoNotOptimize(parse(state.range(0))); }
static void BM_Fold(benchmark::State& state) { for (auto _ : state) benchmark::DoNotOptimize(fold(state.range(0))); }
BENCHMARK(BM_Parse)->Arg(1000);
BENCHMARK(BM_Fold)->Arg(1000);
BENCHMARK_MAIN();
"""


@pytest.mark.long
@PERF
@pytest.mark.skipif(not Path("/usr/include/benchmark/benchmark.h").exists(), reason="Google Benchmark is not installed")
def test_a_benchmark_of_a_program_with_several_is_profiled_alone(tree: Project) -> None:
    tree.commit({"src/work.cc": GOOGLE.replace("TIMES", "2")})
    planted = tree.branch({"src/work.cc": GOOGLE.replace("TIMES", "4")})
    suite = "{id: suite, uses: google-benchmark, budget: 5s, layouts: off, with: {command: ./work}}"
    result = without_profile(tree, suite, "g++ -O1 -o work src/work.cc -lbenchmark -lpthread")
    found = named(result, "BM_Fold/1000")
    assert [item.function for item in found] == ["fold"]
    assert revisions(found[0]) == {planted}
    spots = [spot.location for spot in result.hotspots if spot.benchmark == "BM_Fold/1000"]
    assert not [place for place in spots if "parse" in place]


SUITES = {
    "pytest-benchmark": (
        "test_work.py",
        "from work import fold\n\n\ndef test_fold(benchmark):\n    benchmark(fold, range(900))\n",
        "paths: test_work.py",
        "test_work.py::test_fold",
    ),
    "asv": ("suite/speed.py", "from work import fold\ndef time_fold(): fold(range(900))\n", "", "speed.time_fold"),
    "pyperf": (
        "bench.py",
        "import pyperf\nfrom work import fold\npyperf.Runner().bench_func('fold', fold, range(900))\n",
        "script: bench.py",
        "fold",
    ),
}


@pytest.mark.long  # profiles a suite under py-spy for half a minute; C programs are profiled in CI
@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not installed")
@pytest.mark.parametrize(
    "name", ["pytest-benchmark", *(pytest.param(name, marks=pytest.mark.long) for name in ("asv", "pyperf"))]
)
def test_a_benchmark_of_python_is_profiled_without_its_harness(name: str, tree: Project) -> None:
    """asv and pyperf fork for each benchmark, which a profiler of their process would not see."""
    file, text, keys, benchmark = SUITES[name]
    source = "def fold(numbers):\n    return sorted(number % 7 for _ in range({}) for number in numbers)\n"
    settings = '{"version": 1, "benchmark_dir": "suite"}\n'
    tree.commit({"work.py": source.format(2), file: text, "suite/__init__.py": "", "asv.conf.json": settings})
    planted = tree.branch({"work.py": source.format(6)})
    options = ", ".join(filter(None, [f"python: {sys.executable}", keys]))
    result = without_profile(tree, f"{{id: suite, uses: {name}, budget: 5s, with: {{{options}}}}}", "true")
    found = named(result, benchmark)
    assert {item.file for item in found} == {"work.py"}
    assert revisions(*found) == {planted}
    assert sum(item.share or 0 for item in found) > 0.8
    assert not [spot.file for spot in result.hotspots if name.replace("-", "_").partition("_")[0] in spot.file]


def test_what_is_not_committed_is_named_as_such(tree: Project) -> None:
    c_history(tree)
    tree.write("src/work.c", c_source(FOLD=75))
    (found,) = named(gated(tree, CALLGRIND))
    assert [(each.revision, each.subject) for each in found.commits] == [("", "uncommitted changes")]
    assert tree.git("status", "--porcelain").strip() == "M src/work.c"


@pytest.mark.long  # slow; cheaper tests in this file name functions of the same program
def test_a_function_whose_own_lines_nobody_touched_is_followed_to_its_file(tree: Project) -> None:
    c_history(tree)
    more = tree.commit({"src/work.c": c_source().replace(f"fold({COUNTED})", f"fold({COUNTED * 5 // 4})")})
    (found,) = named(gated(tree, CALLGRIND))
    assert found.function == "fold"
    assert more in revisions(found)
    assert found.note == "no commit touched its lines; these commits touched its file"


@pytest.mark.long  # as a function whose file stays, which this file has
def test_a_file_that_was_moved_keeps_its_function(tree: Project) -> None:
    c_history(tree)
    tree.git("mv", "src/work.c", "src/other.c")
    tree.commit()
    slow = tree.commit({"src/other.c": c_source(FOLD=75)})
    (found,) = named(gated(tree, CALLGRIND, build="gcc -O2 -g -o work src/*.c"))
    assert (found.function, found.file) == ("fold", "src/other.c")
    assert found.baseline
    assert slow in revisions(found)


@pytest.mark.long
def test_of_several_benchmarks_only_those_are_profiled_that_regressed(tree: Project) -> None:
    _, planted, _ = c_history(tree, GRAB=700)
    cells = 'benchmark: "core/${{ matrix.which }}", matrix: {which: [a, b]}'
    steps = [
        f"{{id: core, uses: dhat, {cells}, with: {{command: ./work}}}}",
        "{id: none, uses: dhat, benchmark: other/c, with: {command: ls}}",
    ]
    result = gated(tree, *steps, profile="{uses: massif, benchmark: 'core/*'}")
    assert {item.benchmark for item in result.profiles if item.kind == "massif"} == {"core/a", "core/b"}
    # Each benchmark has its own table, although one step profiled both.
    tables = [table.benchmark for table in page_of(result).profiles if table.source == "massif"]
    assert tables == ["core/a", "core/b"]
    assert {item.benchmark for item in result.attributions if item.tool == "massif"} == {"core/a", "core/b"}
    assert {item.function for item in result.attributions} == {"grab"}
    assert all(revisions(item) == {planted} for item in result.attributions)


@pytest.mark.long  # slow; cheaper tests in this file name functions of the same program
def test_a_missing_profiler_is_named_and_the_next_best_stands_in(
    tree: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    c_history(tree, FOLD=180, SIZE=SIZE)
    programs = tmp_path / "bin"
    programs.mkdir()
    for path in Path("/usr/bin").iterdir():
        if not path.name.startswith("perf"):
            (programs / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", str(programs))
    result = gated(tree, TIMED.replace("runs: 8", "runs: 12"))
    wanted = (
        "perf is not on PATH; install it: apt-get install linux-perf; "
        "callgrind is used instead, which records instructions"
    )
    assert f"one: {wanted}" in step(result, "profile-1").warnings
    (found,) = named(result)
    assert (found.function, found.tool, found.unit) == ("fold", "callgrind", "1")
    assert wanted in found.note


APP = """
def parse(words):
    return sum(len(word) for word in words)


def fold(numbers):
    found = []
    for number in numbers:
        found.append(number % 7)
    return sorted(found)


def main():
    for _ in range(400):
        parse(["a"] * 1000)
        fold(range(1000))


main()
"""


@pytest.mark.long  # slow; cheaper tests in this file name functions of the same program
def test_a_python_function_is_named_by_the_interpreters_profiler(tree: Project) -> None:
    tree.commit({"app/__init__.py": "", "app/work.py": APP})
    tree.branch({"app/other.py": ""})
    thrice = APP.replace("for number in numbers:", "for number in [*numbers, *numbers, *numbers]:")
    planted = tree.commit({"app/work.py": thrice})
    measuring = f"{{id: one, uses: command, runs: 8, with: {{command: {sys.executable} app/work.py}}}}"
    (found,) = named(gated(tree, measuring, build="true"))
    place = (found.function, found.file, found.crate, found.tool)
    assert place == ("fold", "app/work.py", "app", "cprofile")
    assert revisions(found) == {planted}
    assert (found.share or 0) > 0.5
