"""Benchmarks of Catch2 and nanobench, by real programs: names, the choice of test cases, both clocks, profiles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Reading, Usage
from perfflow.tools.adapter import Effort
from perfflow.tools.cpp.drivers import nanobench_names
from tests.toolchains import needs_catch2
from tests.tools.harness import DATA, USAGE, call_of, listed, parsed_of, run, run_call, start, tool

OF_CATCH2 = [
    'one, [two] "three" > four > a & <b>',
    'one, [two] "three" > four > second',
    "sections > small > sum",
    "sections > large > very > sum",
]
OF_NANOBENCH = ["sum", "a title > odd `name` | (x)", "a title > by the byte", "slow > in ms"]
HEAD = "|  ns/op |  op/s |  err% | words\n|------:|------:|------:|:------\n"


def names(readings: Iterable[Reading]) -> list[str]:
    return list(dict.fromkeys(reading.benchmark for reading in readings))


@needs_catch2
def test_catch2_runs_the_test_cases_of_the_chosen_benchmarks(catch2_odd: str, tmp_path: Path) -> None:
    tmp_path.joinpath("out").mkdir()
    call = call_of("catch2", tmp_path / "out", catch2_odd)
    assert listed("catch2", call) == (0, OF_CATCH2)
    for chosen, ran in ((OF_CATCH2[:1], OF_CATCH2[:2]), (OF_CATCH2[3:], OF_CATCH2[2:])):
        brief = replace(call, chosen=tuple(chosen), effort=Effort.BRIEF)
        assert names(parsed_of(run_call("catch2", brief)).readings) == ran
    with pytest.raises(ToolOutputError, match="'none > sum' left no result"):
        tool("catch2").parse(replace(call, chosen=("none > sum",)), USAGE)


@needs_catch2
def test_a_test_case_of_catch2_that_fails_leaves_the_others(catch2_odd: str, tmp_path: Path) -> None:
    parsed = run("catch2", tmp_path / "out", catch2_odd, filter="[failing]").parse()
    assert "passes > sum" in names(parsed.readings)
    assert parsed.failed["asserts > sum"] == "failed: catch2_odd.cpp:43: sum(3) == 4"
    assert parsed.failed["throws > never"] == "failed: no data"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("all-fail", "asserts > sum failed: catch2_odd.cpp:43"),
        ("twice", "two benchmarks are called 'repeated > sum': rename one of them; what is outside the sections"),
        ("none", "no benchmark ran: hidden test cases need a `filter`"),
        ("other", "the program does not use Catch2 or was killed"),
    ],
)
def test_why_catch2_has_no_figures(case: str, reason: str) -> None:
    call = call_of("catch2", DATA / "catch2/2.13.10" / case, "/usr/bin/true")
    with pytest.raises(ToolOutputError, match=reason):
        tool("catch2").parse(call, USAGE)


def test_nanobench_has_the_names_of_its_tables_and_figures_of_all_digits(nanobench_odd: str, tmp_path: Path) -> None:
    ran = run("nanobench", tmp_path / "out", nanobench_odd)
    assert listed("nanobench", ran.call) == (0, OF_NANOBENCH)
    readings = parsed_of(ran).readings
    assert names(readings) == OF_NANOBENCH
    # 0.15 ms/op are 6,737.61 op/s.
    printed = call_of("nanobench", DATA / "nanobench/4.6.0/plain", "/usr/bin/true")
    times = {reading.benchmark: reading.value for reading in tool("nanobench").parse(printed, USAGE).readings}
    assert times["slow > in ms"] == 1 / 6737.61
    assert times["sum"] == 1 / 32_207_840.20


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("nothing\n", "prints no table of nanobench"),
        (HEAD, "prints no table of nanobench"),
        (f"{HEAD}| 50.00 | 20,000,000.00 | 1.0% | `sum\n", "a damaged row"),
        (f"{HEAD}| 60.00 | 20,000,000.00 | 1.0% | `sum`\n", "time of words > sum contradicts its rate: 60.00"),
        (f"{HEAD}|  -  |  -  |  -  | :boom: `sum` (iterations overflow)\n", "words > sum failed: iterations overflow"),
        (f"{HEAD}" + "| 50.00 | 20,000,000.00 | 1.0% | `sum`\n" * 2, "two benchmarks are called 'words > sum'"),
    ],
)
def test_why_nanobench_has_no_figures(printed: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "nanobench.txt").write_text(printed)
    with pytest.raises(ToolOutputError, match=reason):
        tool("nanobench").parse(call_of("nanobench", tmp_path, "/usr/bin/true"), USAGE)


def test_a_column_of_nanobench_may_be_hidden_and_other_tables_are_no_figures() -> None:
    text = "| ns/op |  IPC | words\n|------:|-----:|:------\n| 1,250.00 | 2.1 | `sum` (Unstable with `x`)\n\n"
    text += "| coefficient |   err% | complexity\n|-----:|-----:|------\n| 7.2e-10 | 0.1% | O(n)\n"
    assert [(row.name, row.time.strip(), row.rate) for row in nanobench_names.rows(text)] == [
        ("words > sum", "1,250.00", "")
    ]


@needs_catch2
@pytest.mark.parametrize("name", ["catch2", "nanobench"])
def test_it_times_by_cpu_time(
    name: str, request: pytest.FixtureRequest, cpu_clock_library: Path, tmp_path: Path
) -> None:
    tmp_path.joinpath("out").mkdir()
    program = request.getfixturevalue(f"{name}_odd")
    call = replace(call_of(name, tmp_path / "out", program), cpu_clock=cpu_clock_library, effort=Effort.BRIEF)
    assert run_call(name, call).status == 0
    parsed = tool(name).parse(call, Usage(2.0, 1.0, 0.0, queued=1.0, main_cpu=1.0))
    by_metric = {
        metric: names(item for item in parsed.readings if item.metric == metric) for metric in tool(name).metrics
    }
    assert by_metric["cpu"] == by_metric["time"] == by_metric["uncontended"]
    figures = {(item.benchmark, item.metric): item.value for item in parsed.readings}
    assert all(figures[one, "time"] >= figures[one, "cpu"] > 0 for one in by_metric["cpu"])


def test_a_process_of_nanobench_measures_all_and_a_profiler_runs_one_until_it_is_ended(
    nanobench_odd: str, tmp_path: Path
) -> None:
    assert math.isinf(tool("nanobench").suite.together)
    call = call_of("nanobench", tmp_path, nanobench_odd)
    (whole,), (one,) = (
        tool("nanobench").invocations(replace(call, chosen=(OF_NANOBENCH[1],), effort=effort))
        for effort in (Effort.BRIEF, Effort.SAMPLED)
    )
    assert whole.argv == (nanobench_odd,)
    assert start(one, tmp_path) == 0
    assert "running 'odd `name` | (x)' endlessly" in (tmp_path / "endless").read_text()
    failing = replace(one, argv=(*one.argv, "exits 3"), env={})
    assert start(failing, tmp_path) == 3
