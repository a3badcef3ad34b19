"""Benchmarks are listed before the first sample, and ``--benchmark`` measures and judges a part of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from tests.long import rest_long
from tests.session.project import MS, Project, both, change_of, cut, flow, row, step
from tests.tools.harness import PROGRAMS

FIB = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def test_fib(benchmark):
    benchmark(fib, 5)

def test_other(benchmark):
    benchmark(fib, 3)
"""


PYTEST = (
    f"uses: pytest-benchmark, env: {{PYTEST_DISABLE_PLUGIN_AUTOLOAD: '1'}}, with: {{python: {sys.executable}, "
    "paths: bench_fib.py, args: -p pytest_benchmark.plugin --benchmark-max-time=0.001}"
)
NAMED = 'parse: {regex: "(?P<benchmark>.*)=(?P<time>.*)", units: {time: ms}}'


SUITE = flow(
    baseline=[f"{{id: first, run: echo ms=1, {MS}, runs: 2}}", f"{{id: suite, runs: 2, {PYTEST}}}"],
)


FIGURES = f"""{{id: figures, run: "printf 'a*=1\\nab=2\\nc=3\\n'", runs: 2, {NAMED}}}"""
PRINTING = flow(baseline=[FIGURES, f"{{id: alone, run: echo ms=4, {MS}, runs: 2}}"])


@pytest.fixture
def fib(project: Project) -> Project:
    project.write("bench_fib.py", FIB)
    return project


def names_of(result: Result) -> set[str]:
    return {item.name for item in result.benchmarks}


def errors(project: Project, text: str, **asked: object) -> list[str]:
    with pytest.raises(UserError) as refused:
        project.run(text, **asked)
    assert refused.value.exit == 2
    return str(refused.value).splitlines()


def test_wrong_names_stop_a_run_before_its_first_sample(fib: Project) -> None:
    names = """
targets: {first: {time: <1s}, fib: {time: <1s}}
ignore: [test_othre]
thresholds: {for: {core: {action: 20%}}}"""
    profile = '  profile:\n    - {id: cpu, uses: auto, benchmark: "fib*"}\n'
    told = "\n".join(errors(fib, names + SUITE + profile))
    assert fib.told.taken == []
    assert [step.planned.id for step in fib.told.ended_steps] == []
    for name in ("fib", "test_othre", "core", "fib*"):
        assert f"no benchmark matches `{name}`" in told
    assert "`first`" not in told
    assert "did you mean `bench_fib.py::test_fib`" in told
    assert "did you mean `bench_fib.py::test_other`" in told
    assert told.count("benchmarks: first, bench_fib.py::test_fib, bench_fib.py::test_other") == 1
    assert list((fib.folder / ".perfflow/runs").iterdir()) == []


def test_a_glob_for_benchmarks_that_a_project_lacks_is_a_warning(project: Project) -> None:
    names = '\nignore: ["io/*"]\nthresholds: {for: {"core/**": {action: 20%}}}'
    result = project.run(names + PRINTING)
    told = [text for item in result.steps for text in item.warnings]
    for glob, key in (("io/*", "ignore"), ("core/**", "thresholds")):
        assert told.count(f"no benchmark matches `{glob}` under `{key}`") == 1
    assert result.verdict == "pass"


@pytest.mark.long  # as a whole suite, which is measured in this file
def test_a_run_without_samples_does_not_replace_the_latest(fib: Project) -> None:
    kept = fib.finish(SUITE).folder
    errors(fib, "\ntargets: {fib: {time: <1s}}" + SUITE)
    assert (fib.folder / ".perfflow/runs/latest").resolve() == kept.resolve()


@pytest.mark.long  # as a suite whose benchmarks are chosen, which this file measures
def test_a_suite_that_a_later_step_makes_is_listed_when_it_exists(project: Project) -> None:
    project.write("later.py", FIB)
    text = (
        SUITE.partition("    - {id: suite")[0]
        + f"""\
  make: {{role: work, steps: [{{id: make, run: mv later.py bench_fib.py}}]}}
  second: {{role: measure, steps: [{{id: suite, runs: 2, {PYTEST}}}]}}
"""
    )
    result = project.run('\ntargets: {"**test_fib": {time: <1s}}' + text)
    assert [target.status for target in result.targets] != ["not measured"]
    assert step(result, "first").status == "done"


def test_only_the_chosen_benchmarks_are_measured_and_judged(fib: Project) -> None:
    names = '\ntargets: {first: {time: <1ns}, "**test_other": {time: <1ns}}'
    text = names + SUITE.replace("runs: 2, uses", "runs: 2, expect: ['**test_other'], uses")
    result = fib.run(text, benchmarks=["**test_fib"])
    assert names_of(result) == {"bench_fib.py::test_fib"}
    targets = [(item.benchmark, item.status) for item in result.targets]
    assert targets == [("first", "not looked at"), ("**test_other", "not looked at")]
    assert (result.verdict, result.run.chosen) == ("pass", ["**test_fib"])
    assert not step(result, "first").selected
    page = (fib.folder / ".perfflow/runs/latest/report.md").read_text()
    assert "--benchmark '**test_fib'" in page


def test_a_command_is_chosen_by_its_benchmark_and_a_suite_without_one_is_skipped(fib: Project) -> None:
    result = fib.run(SUITE, benchmarks=["first"])
    assert names_of(result) == {"first"}
    assert (result.verdict, step(result, "suite").status) == ("pass", "skipped")


def test_a_choice_that_matches_nothing_shows_the_names(fib: Project) -> None:
    told = errors(fib, SUITE, benchmarks=["fib", "first"])
    assert told[0] == "error: --benchmark fib: no benchmark matches"
    assert told[1].endswith("(benchmarks: first, bench_fib.py::test_fib, bench_fib.py::test_other)")
    assert fib.told.taken == []
    # The names of commands are known without running anything.
    text = SUITE.partition("    - {id: suite")[0]
    assert errors(fib, text, benchmarks=["frist"])[1] == "  hint: did you mean `first`? (benchmarks: first)"


def test_names_that_cannot_be_listed_are_checked_after_the_first_run(project: Project) -> None:
    flow = PRINTING.replace("runs: 2", "runs: 4", 1)
    told = "\n".join(errors(project, "\ntargets: {d: {time: <1s}, c: {time: <1s}}" + flow))
    assert "no benchmark matches `d`" in told
    assert "`c`" not in told
    assert "benchmarks: a*, ab, c, alone" in told
    assert not (project.folder / ".perfflow/runs/latest").exists()
    assert "benchmarks: a*, ab, c, alone" in errors(project, PRINTING, benchmarks=["d"])[1]


@pytest.mark.parametrize(
    ("globs", "names"),
    rest_long([(["a*"], ["a*"]), (["?b"], ["ab"]), (["c", "alone"], ["alone", "c"]), (["alone"], ["alone"])], keep=2),
)
def test_a_suite_that_runs_as_a_whole_shows_the_chosen_ones(
    project: Project, globs: list[str], names: list[str]
) -> None:
    result = project.run(PRINTING, benchmarks=globs)
    assert sorted(item.name for item in result.benchmarks) == names
    assert result.verdict == "pass"


def test_of_variants_the_chosen_are_compared(project: Project) -> None:
    text = FIGURES.replace("a*=1\\nab=2\\nc=3", "x/a=1\\nx/b=2\\ny/a=2\\ny/b=1").replace(
        "runs: 2", 'runs: 2, variants: {baseline: "*/a", candidate: "*/b"}'
    )
    assert names_of(project.run(flow(baseline=text), benchmarks=["y"])) == {"y"}


def test_a_resumed_run_keeps_its_choice(project: Project) -> None:
    text = PRINTING.replace("runs: 2", "runs: 6")
    first = project.finish(text, benchmarks=["ab"])
    cut(first.folder, 3)
    assert "--benchmark ab" in errors(project, text, resume=first.folder, benchmarks=["c"])[0]
    again = project.finish(text, resume=first.folder).result
    assert names_of(again) == {"ab"}
    assert row(again, "ab", "time").baseline is not None


def test_a_long_list_is_cut(project: Project) -> None:
    many = "\n".join(f"def test_{number}(benchmark):\n    benchmark(int)\n" for number in range(60))
    project.write("bench_fib.py", many)
    told = "\n".join(errors(project, '\ntargets: {"**test_99": {time: <1s}}' + SUITE))
    assert "bench_fib.py::test_9" in told
    assert told.endswith(" and 31 more)")


def test_a_workflow_from_memory_is_told_how_to_run(fib: Project) -> None:
    text = flow("targets: {fib: {time: <1ms}}", baseline=f"{{id: fib, {PYTEST}}}")
    with pytest.raises(UserError, match="did you mean `paths`"):
        fib.run(text.replace("paths:", "path:"))
    assert "did you mean `bench_fib.py::test_fib`" in "\n".join(errors(fib, text))
    result = fib.run(text.replace("{fib: {time", '{"**test_fib": {time').replace("id: fib,", "id: fib, runs: 1,"))
    assert [item.benchmark for item in result.targets] == ["bench_fib.py::test_fib"]


@pytest.mark.long  # as a suite whose benchmarks are chosen, which this file measures
def test_a_profile_may_name_a_suite_by_its_step(project: Project) -> None:
    text = PRINTING + "  profile:\n    - {id: cpu, uses: auto, benchmark: %s}\n"
    errors(project, text % "figure")
    assert step(project.run(text % "figures"), "figures").status == "done"


WORK = """
import pytest

@pytest.mark.parametrize("variant", ["scalar", "simd"])
@pytest.mark.parametrize("name", ["halved", "alike"])
def test_work(benchmark, name, variant):
    benchmark(sum, range(5000 if (name, variant) == ("halved", "simd") else 20000))

def test_alone_scalar(benchmark):
    benchmark(sum, range(10))
"""


OPTIONS = "args: -p pytest_benchmark.plugin --benchmark-max-time=0.001"
ALONE = f"""
targets: {{"**halved": {{speedup: ≥1.5x}}}}
stages:
  baseline:
    - id: suite
      uses: pytest-benchmark
      runs: 4
      env: {{PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
      with: {{python: {sys.executable}, paths: work.py, {OPTIONS}}}
      expect: [halved, alike]
      variants: {{baseline: "work.py::test_work[*-scalar]", candidate: "work.py::test_work[*-simd]"}}
"""


TARGET = "targets: {sort: {speedup: ≥1.5x}}"
TOGETHER = f"""
{TARGET}
stages:
  baseline:
    - id: suite
      run: python3 suite.py
      parse: {{regex: "(?P<benchmark>[a-z/]+) (?P<time>[0-9.]+)", units: {{time: ms}}}}
      runs: 12
      variants: {{baseline: "*/old", candidate: "*/new"}}
"""


PRINTS_BOTH = """
from pathlib import Path
file = Path("count")
count = int(file.read_text()) if file.exists() else 0
file.write_text(str(count + 1))
factor = 1 + 0.5 * (count % 3)
print("sort/old", 8 * factor)
print("sort/new", 4 * factor)
print("hash/old", 2)
"""


@pytest.fixture
def variants(project: Project) -> Project:
    project.write("work.py", WORK)
    project.write("suite.py", PRINTS_BOTH)
    return project


@pytest.mark.long  # as a whole suite, which is measured in this file
def test_one_process_measures_the_variants_of_a_side_in_the_order_of_the_coin(variants: Project) -> None:
    result = variants.run(ALONE, seed=2)
    assert [target.benchmark for target in result.targets] == ["halved"]
    halved = row(result, "halved", "time")
    assert (halved.pairs, halved.paired) == (4, True)
    assert change_of(halved) < 0
    assert names_of(result) == {"halved", "alike"}
    pairs = [event for event in variants.events() if event["event"] == "sample"]
    assert {event["first"] for event in pairs} == {"baseline", "candidate"}
    assert [event["together"] for event in pairs] == [2] * 8


@pytest.mark.long  # measures each variant in a process of its own; a test of Google Benchmark does so too
def test_each_variant_is_run_alone_if_asked(variants: Project) -> None:
    result = variants.run(ALONE + "      rounds: benchmark\n", seed=2)
    assert {item.name: item.pairs for item in result.benchmarks} == {"halved": 4, "alike": 4}
    assert not any("together" in event for event in variants.events())


def test_a_suite_that_runs_as_a_whole_yields_both_sides_from_one_process(variants: Project) -> None:
    result = variants.run(TOGETHER)
    found = row(result, "sort", "time")
    old, new = (side.samples for side in both(found))
    # Each pair is from one process, so the ratio is exactly two although the processes differ.
    assert [a / b for a, b in zip(old, new, strict=True)] == [2.0] * 12
    assert len(set(old)) == 3
    assert found.decision == "improved"
    warnings = step(result, "suite").warnings
    assert any("both variants run in one process" in text for text in warnings)
    assert "hash/old has no counterpart like `*/new`, so it is not compared" in warnings
    assert names_of(result) == {"sort"}


def test_variants_that_are_not_there_are_named(variants: Project) -> None:
    result = variants.run(TOGETHER.replace("*/new", "*/newer").replace(TARGET, ""))
    assert result.verdict == "error"
    assert step(result, "suite").reason == "no benchmark of the suite exists as both `*/old` and `*/newer`"


def test_a_benchmark_that_lost_a_variant_is_missed_by_its_name(variants: Project) -> None:
    result = variants.run(TOGETHER + "      expect: [sort, hash]\n")
    assert result.verdict == "error"
    assert "expected benchmark did not appear: hash (step suite)" in result.reason_texts


@pytest.mark.skipif(not Path("/usr/include/benchmark").is_dir(), reason="needs the library Google Benchmark")
def test_google_benchmark_runs_each_variant_alone(project: Project) -> None:
    shutil.copy(PROGRAMS / "gbench.cpp", project.folder)
    build = ["g++", "-O1", "gbench.cpp", "-lbenchmark", "-lpthread", "-o", "gbench"]
    subprocess.run(build, cwd=project.folder, check=True)
    variants = 'variants: {baseline: "*/4096", candidate: "*/64"}'
    text = f"{{id: suite, uses: google-benchmark, with: {{command: ./gbench}}, runs: 6, {variants}}}"
    result = project.run(flow(baseline=text))
    assert change_of(row(result, "add", "time")) < 0
    assert names_of(result) == {"add"}


def test_each_process_of_a_suite_without_a_choice_is_a_sample_of_all_its_benchmarks(project: Project) -> None:
    project.write("table.txt", "| ns/op | t\n|----:|:-\n| 2.00 | `a`\n| 4.00 | `b`\n")
    uses = 'uses: nanobench, with: {command: cat table.txt}, benchmark: "*"'
    for rounds in ("suite", "benchmark"):
        result = project.run(flow(baseline=f"{{id: suite, {uses}, rounds: {rounds}, budget: 50ms}}"))
        assert names_of(result) == {"t > a", "t > b"}
        assert {event["together"] for event in project.events() if event["event"] == "sample"} == {2}
