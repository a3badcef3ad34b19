"""Benchmarks are listed before the first sample, and ``--benchmark`` measures and judges a part of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from tests.session.project import Project, row, step
from tests.session.test_resume import cut

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
SUITE = f"""
stages:
  baseline:
    - {{id: first, run: echo ms=1, parse: {{regex: "ms=(?P<time>.*)", units: {{time: ms}}}}, runs: 2}}
    - {{id: suite, runs: 2, {PYTEST}}}
"""
PRINTING = """
stages:
  baseline:
    - id: figures
      run: printf 'a*=1\\nab=2\\nc=3\\n'
      parse: {regex: "(?P<benchmark>.*)=(?P<time>.*)", units: {time: ms}}
      runs: 2
    - {id: alone, run: echo ms=4, parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}, runs: 2}
"""


def errors(project: Project, text: str, **asked: object) -> list[str]:
    with pytest.raises(UserError) as refused:
        project.run(text, **asked)
    assert refused.value.exit == 2
    return str(refused.value).splitlines()


def test_wrong_names_stop_a_run_before_its_first_sample(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    names = """
targets: {first: {time: <1s}, fib: {time: <1s}}
ignore: [test_othre]
thresholds: {for: {core: {action: 20%}}}"""
    profile = '  profile:\n    - {id: cpu, uses: auto, benchmark: "fib*"}\n'
    told = "\n".join(errors(project, names + SUITE + profile))
    assert project.told.taken == []
    assert [step.planned.id for step in project.told.ended_steps] == []
    for name in ("fib", "test_othre", "core", "fib*"):
        assert f"no benchmark matches `{name}`" in told
    assert "`first`" not in told
    assert "did you mean `bench_fib.py::test_fib`" in told
    assert "did you mean `bench_fib.py::test_other`" in told
    assert told.count("benchmarks: first, bench_fib.py::test_fib, bench_fib.py::test_other") == 1
    assert list((project.folder / ".perfflow/runs").iterdir()) == []


def test_a_glob_for_benchmarks_that_a_project_lacks_is_a_warning(project: Project) -> None:
    names = '\nignore: ["io/*"]\nthresholds: {for: {"core/**": {action: 20%}}}'
    result = project.run(names + PRINTING)
    told = [text for item in result.steps for text in item.warnings]
    for glob, key in (("io/*", "ignore"), ("core/**", "thresholds")):
        assert told.count(f"no benchmark matches `{glob}` under `{key}`") == 1
    assert result.verdict == "pass"


def test_a_run_without_samples_does_not_replace_the_latest(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    kept = project.finish(SUITE).folder
    errors(project, "\ntargets: {fib: {time: <1s}}" + SUITE)
    assert (project.folder / ".perfflow/runs/latest").resolve() == kept.resolve()


def test_a_suite_that_a_later_step_makes_is_listed_when_it_exists(project: Project) -> None:
    project.write("later.py", FIB)
    flow = SUITE.replace("  baseline:", "  baseline: &steps", 1).partition("    - {id: suite")[0].replace(" &steps", "")
    flow += f"""  make: {{role: work, steps: [{{id: make, run: mv later.py bench_fib.py}}]}}
  second: {{role: measure, steps: [{{id: suite, runs: 2, {PYTEST}}}]}}
"""
    result = project.run('\ntargets: {"**test_fib": {time: <1s}}' + flow)
    assert [target.status for target in result.targets] != ["not measured"]
    assert step(result, "first").status == "done"


def test_only_the_chosen_benchmarks_are_measured_and_judged(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    names = """
targets: {first: {time: <1ns}, "**test_other": {time: <1ns}}"""
    flow = names + SUITE.replace("runs: 2, uses", "runs: 2, expect: ['**test_other'], uses")
    result = project.run(flow, benchmarks=["**test_fib"])
    assert {item.name for item in result.benchmarks} == {"bench_fib.py::test_fib"}
    assert [(item.benchmark, item.status) for item in result.targets] == [
        ("first", "not looked at"),
        ("**test_other", "not looked at"),
    ]
    assert (result.verdict, result.run.chosen) == ("pass", ["**test_fib"])
    assert not step(result, "first").selected
    page = (project.folder / ".perfflow/runs/latest/report.md").read_text()
    assert "--benchmark '**test_fib'" in page


def test_a_command_is_chosen_by_its_benchmark_and_a_suite_without_one_is_skipped(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    result = project.run(SUITE, benchmarks=["first"])
    assert {item.name for item in result.benchmarks} == {"first"}
    assert (result.verdict, step(result, "suite").status) == ("pass", "skipped")


def test_a_choice_that_matches_nothing_shows_the_names(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    told = errors(project, SUITE, benchmarks=["fib", "first"])
    assert told[0] == "error: --benchmark fib: no benchmark matches"
    assert told[1].endswith("(benchmarks: first, bench_fib.py::test_fib, bench_fib.py::test_other)")
    assert project.told.taken == []
    # The names of commands are known without running anything.
    flow = SUITE.partition("    - {id: suite")[0]
    assert errors(project, flow, benchmarks=["frist"])[1] == "  hint: did you mean `first`? (benchmarks: first)"


def test_names_that_cannot_be_listed_are_checked_after_the_first_run(project: Project) -> None:
    flow = PRINTING.replace("runs: 2", "runs: 4", 1)
    told = "\n".join(errors(project, "\ntargets: {d: {time: <1s}, c: {time: <1s}}" + flow))
    assert "no benchmark matches `d`" in told
    assert "`c`" not in told
    assert "benchmarks: a*, ab, c, alone" in told
    assert not (project.folder / ".perfflow/runs/latest").exists()
    assert "benchmarks: a*, ab, c, alone" in errors(project, PRINTING, benchmarks=["d"])[1]


@pytest.mark.parametrize(
    ("globs", "names"), [(["a*"], ["a*"]), (["?b"], ["ab"]), (["c", "alone"], ["alone", "c"]), (["alone"], ["alone"])]
)
def test_a_suite_that_runs_as_a_whole_shows_the_chosen_ones(
    project: Project, globs: list[str], names: list[str]
) -> None:
    result = project.run(PRINTING, benchmarks=globs)
    assert sorted(item.name for item in result.benchmarks) == names
    assert result.verdict == "pass"


def test_of_variants_the_chosen_are_compared(project: Project) -> None:
    flow = PRINTING.partition("    - {id: alone")[0].replace("a*=1\\nab=2\\nc=3", "x/a=1\\nx/b=2\\ny/a=2\\ny/b=1")
    flow += '      variants: {baseline: "*/a", candidate: "*/b"}\n'
    result = project.run(flow, benchmarks=["y"])
    assert [item.name for item in result.benchmarks] == ["y"]


def test_a_resumed_run_keeps_its_choice(project: Project) -> None:
    flow = PRINTING.replace("runs: 2", "runs: 6")
    first = project.finish(flow, benchmarks=["ab"])
    cut(first.folder, 3)
    assert "--benchmark ab" in errors(project, flow, resume=first.folder, benchmarks=["c"])[0]
    again = project.finish(flow, resume=first.folder).result
    assert {item.name for item in again.benchmarks} == {"ab"}
    assert row(again, "ab", "time").baseline is not None


def test_a_long_list_is_cut(project: Project, tmp_path: Path) -> None:
    many = "\n".join(f"def test_{number}(benchmark):\n    benchmark(int)\n" for number in range(60))
    project.write("bench_fib.py", many)
    told = "\n".join(errors(project, '\ntargets: {"**test_99": {time: <1s}}' + SUITE))
    assert "bench_fib.py::test_9" in told
    assert told.endswith(" and 31 more)")


def test_a_workflow_from_memory_is_told_how_to_run(project: Project) -> None:
    project.write("bench_fib.py", FIB)
    flow = f"targets: {{fib: {{time: <1ms}}}}\nstages:\n  baseline:\n    - {{id: fib, {PYTEST}}}\n"
    with pytest.raises(UserError, match="did you mean `paths`"):
        project.run(flow.replace("paths:", "path:"))
    assert "did you mean `bench_fib.py::test_fib`" in "\n".join(errors(project, flow))
    result = project.run(flow.replace("{fib: {time", '{"**test_fib": {time').replace("id: fib,", "id: fib, runs: 1,"))
    assert [item.benchmark for item in result.targets] == ["bench_fib.py::test_fib"]


def test_a_profile_may_name_a_suite_by_its_step(project: Project) -> None:
    flow = PRINTING + "  profile:\n    - {id: cpu, uses: auto, benchmark: %s}\n"
    errors(project, flow % "figure")
    assert step(project.run(flow % "figures"), "figures").status == "done"
