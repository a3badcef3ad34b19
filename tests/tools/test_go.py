"""Benchmarks of Go packages, by the real go: names, one benchmark alone, workspaces, layouts, profiles."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.adapter import Effort
from perfflow.tools.go import go_pprof
from tests.toolchains import has_layouts, needs_go
from tests.tools.harness import GO_MODULE, USAGE, call_of, listed, parsed_of, run, run_call, start, tool, values_by_name
from tests.tools.tables import parsed_from

pytestmark = needs_go
NAMES = ["table.BenchmarkBuild", "text.BenchmarkCount/n=1", "text.BenchmarkCount/n=10", "text.BenchmarkCountOther"]
NAMES += [f"text.BenchmarkOdd/{name}" for name in ("a+b", "two_words", "x/y", "ends-2")]


def _names(parsed: Parsed) -> list[str]:
    return list(dict.fromkeys(reading.benchmark for reading in parsed.readings))


def test_every_benchmark_has_its_name_and_exact_allocations(tmp_path: Path) -> None:
    ran = run("go-bench", tmp_path / "out", module=str(GO_MODULE))
    parsed = parsed_of(ran)
    assert _names(parsed) == NAMES
    assert listed("go-bench", ran.call) == (0, NAMES)
    figures = values_by_name(parsed.readings)
    assert figures["text.BenchmarkCount/n=10", "allocs"] == 0
    assert figures["table.BenchmarkBuild", "allocs"] > 1000
    assert figures["text.BenchmarkCount/n=1", "throughput"] == pytest.approx(
        7 / figures["text.BenchmarkCount/n=1", "time"], rel=0.2
    )
    assert ("text.BenchmarkCountOther", "chars/op") in figures


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_a_benchmark_runs_alone_whatever_its_name(tmp_path: Path) -> None:
    whole = run("go-bench", tmp_path / "out", module=str(GO_MODULE))
    for chosen in [(name,) for name in NAMES] + [(NAMES[0], NAMES[-1])]:
        call = replace(whole.call, chosen=chosen, effort=Effort.BRIEF, kept=whole.call.folder, folder=tmp_path / "one")
        shutil.rmtree(call.folder, ignore_errors=True)
        call.folder.mkdir()
        assert {start(step, call.folder) for step in tool("go-bench").invocations(call)} == {0}
        assert _names(tool("go-bench").parse(call, USAGE)) == list(chosen)
        # n=10 begins with n=1, and a+b is a regular expression.
        assert {path.name for path in tool("go-bench").build.executed(call) or ()} == {
            f"{name.partition('.')[0]}.test" for name in chosen
        }


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_the_number_of_processors_is_no_part_of_a_name(tmp_path: Path) -> None:
    for processors in ("1", "2", "3"):
        call = call_of("go-bench", tmp_path / processors, module=str(GO_MODULE), package="./text", filter="Odd/[e2]")
        ran = run_call("go-bench", call, {"GOMAXPROCS": processors})
        assert _names(parsed_of(ran)) == ["text.BenchmarkOdd/ends-2"]


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_a_workspace_has_the_benchmarks_of_all_its_modules(tmp_path: Path) -> None:
    for name in ("first", "second"):
        shutil.copytree(GO_MODULE, tmp_path / name)
    (tmp_path / "second/go.mod").write_text("module example.com/second\n\ngo 1.18\n")
    shutil.rmtree(tmp_path / "second/table")
    (tmp_path / "go.work").write_text("go 1.18\n\nuse ./first\nuse ./second\n")
    parsed = parsed_of(run("go-bench", tmp_path / "out", module=str(tmp_path), filter="Other|Build"))
    assert _names(parsed) == [
        "example.com/second/text.BenchmarkCountOther",
        "example.com/words/table.BenchmarkBuild",
        "example.com/words/text.BenchmarkCountOther",
    ]


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_the_package_of_a_module_with_a_major_version_has_its_own_name(tmp_path: Path) -> None:
    shutil.copytree(GO_MODULE / "text", tmp_path / "module")
    (tmp_path / "module/go.mod").write_text("module example.com/words/v2\n\ngo 1.18\n")
    parsed = parsed_of(run("go-bench", tmp_path / "out", module=str(tmp_path / "module"), filter="Other"))
    assert _names(parsed) == ["text.BenchmarkCountOther"]


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_equal_sources_in_two_folders_give_equal_programs_and_each_order_of_functions_another(tmp_path: Path) -> None:
    programs: list[Path] = []
    for side in ("base", "head"):
        shutil.copytree(GO_MODULE, tmp_path / side / "tree")
        ran = run("go-bench", tmp_path / side / "out", module=str(tmp_path / side / "tree"), package="./text")
        programs += tool("go-bench").build.executed(ran.call) or ()
    assert programs[0].read_bytes() == programs[1].read_bytes()
    if not has_layouts():
        pytest.skip("the linker of this Go has no -randlayout")
    for seed in (1, 2):
        relinked = tool("go-bench").build.relink(ran.call, programs[1], seed, tmp_path / f"layout-{seed}")
        assert relinked
        assert start(relinked, tmp_path) == 0
    contents = {path.read_bytes() for path in (programs[0], tmp_path / "layout-1", tmp_path / "layout-2")}
    assert len(contents) == 3


@pytest.mark.parametrize(
    ("calls", "alloc", "statistics"),
    [
        (1000, 0, {"time": "min", "throughput": "max", "alloc": "p50", "allocs": "p50"}),
        (1000, 1040, {"time": "min", "throughput": "max", "alloc": "p50", "allocs": "p50"}),
        # Some of its runs could have a collection, which the fastest has not.
        (1000, 1060, dict.fromkeys(("time", "throughput", "alloc", "allocs"), "p50")),
        (9, 0, dict.fromkeys(("time", "throughput", "alloc", "allocs"), "p50")),
    ],
)
def test_the_fastest_run_stands_for_runs_that_are_alike(
    calls: int, alloc: int, statistics: dict[str, str], tmp_path: Path
) -> None:
    bench = {"package": "example.com/p", "cwd": "/", "program": "/p.test", "ids": {"p.BenchmarkOne": "BenchmarkOne"}}
    lines = [f"BenchmarkOne {calls} {1000 * n} ns/op {12 / n} MB/s {alloc} B/op 0 allocs/op" for n in (4, 1, 3, 2, 6)]
    files = {
        "suite.json": {"benches": [bench], "processors": "1"},
        "go-0.txt": "\n".join(["pkg: example.com/p", *lines, "PASS", ""]),
    }
    found = {reading.metric: reading for reading in parsed_from("go-bench", tmp_path, files).readings}
    assert {metric: reading.statistic for metric, reading in found.items()} == statistics
    assert found["time"].value == pytest.approx(1e-6 if statistics["time"] == "min" else 3e-6)
    # Both are one measurement: 12 bytes are read in a call.
    assert found["throughput"].value * found["time"].value == pytest.approx(12)
    assert found["time"].inner["p50"] == pytest.approx(3e-6)


@pytest.mark.long  # compiles several modules; the first test of this file runs one
def test_a_failing_benchmark_leaves_the_others(tmp_path: Path) -> None:
    ran = run("go-bench", tmp_path, module=str(GO_MODULE), package="./broken", flags="-tags=broken")
    parsed = ran.parse()
    assert _names(parsed) == ["broken.BenchmarkParent/good", "broken.BenchmarkPrints"]
    assert parsed.failed == {
        "broken.BenchmarkFails": "failed: broken_test.go:10: no data",
        "broken.BenchmarkParent/bad": "failed: broken_test.go:18: wrong",
        "broken.BenchmarkFailsLate": "failed: broken_test.go:30: late",
    }


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"package": "./broken"}, "no package here has benchmarks"),
        ({"package": "./none"}, "no such file or directory|directory not found|cannot find"),
        ({"package": "./text", "filter": "Nothing"}, "no benchmark matches the filter"),
        ({"package": "./broken", "flags": "-tags=uncompiled"}, "uncompiled_test.go:9:3: undefined: missing"),
        ({"package": "./broken", "flags": "-tags=panics"}, "stopped: panic: not found"),
    ],
)
def test_why_there_are_no_figures(options: dict[str, str], reason: str, tmp_path: Path) -> None:
    ran = run_call("go-bench", call_of("go-bench", tmp_path, module=str(GO_MODULE), **options))
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


def test_the_profiles_name_what_a_benchmark_calls_with_file_and_line(tmp_path: Path) -> None:
    suite = run("go-bench", tmp_path / "suite", module=str(GO_MODULE), package="./table")
    (program,) = tool("go-bench").build.executed(suite.call) or ()
    call = replace(call_of("go-pprof", tmp_path / "out", str(program), "-test.bench=Build"), harness=r"testing\.")
    (step,) = tool("go-pprof").invocations(call)
    call.folder.mkdir()
    assert start(replace(step, cwd=str(GO_MODULE / "table")), call.folder) == 0
    parsed = tool("go-pprof").parse(call, USAGE)
    for unit in ("time", "bytes"):
        worst = next(spot for spot in parsed.hotspots if spot.unit == unit)
        assert (worst.location, worst.file) == ("table.Build", str(GO_MODULE / "table/table.go"))
        assert worst.share > 0.5
    assert {cost.metric for cost in parsed.costs} == {"time", "alloc"}
    assert not any("testing." in line for line in (call.folder / "cpu.folded").read_text().splitlines())


def test_a_damaged_profile_is_an_error(tmp_path: Path) -> None:
    data = Path(__file__).parent / "data/go-pprof/1.26.8/plain/cpu.pb.gz"
    good = go_pprof.read_profile(data)
    assert good.kinds == ("samples", "cpu")
    content = gzip.decompress(data.read_bytes())
    refused = 0
    for cut in range(1, len(content), 97):
        (tmp_path / "cpu.pb.gz").write_bytes(content[:cut])
        try:
            # The end of a field is the end of a shorter profile.
            assert len(go_pprof.read_profile(tmp_path / "cpu.pb.gz").samples) <= len(good.samples)
        except ToolOutputError:
            refused += 1
    assert refused > len(content) / 97 / 2
