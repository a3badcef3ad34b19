"""``mojo-bench`` on unusual output, the command lines it builds, and a real compiler.

The compiler (700 MB) is the one in PERFFLOW_MOJO, or the one on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.adapter import Call
from perfflow.tools.mojo import mojo_bench
from tests.long import rest_long
from tests.tools.flows import result_in, run_flow
from tests.tools.harness import PROGRAMS, call_of, parsed_of, run, tool, values_by_name
from tests.tools.mojo_sources import OLD
from tests.tools.tables import parsed_from, refusals

HEAD = "name,met (ms),iters"
RULE = "-" * 80
PROGRAM = "/opt/kernels"
SHELL: dict[str, Any] = {"shell": True}


def _report(unit: str = "ns", heading: str = "", **change: str) -> str:
    figures = {"Mean": "5.0", "Total": "50.0", "Iters": "10", "Warmup Total": "1.0"}
    figures |= {"Fastest Mean": "4.0", "Slowest Mean": "6.0", **change}
    lines = [heading] if heading else []
    lines += [RULE, f"Benchmark Report ({unit})", RULE, *(f"{key}: {value}" for key, value in figures.items() if value)]
    return "\n".join([*lines, "", ""])


def _parse(folder: Path, printed: str, file: str = "", **options: Any) -> Parsed:
    files = {"printed.txt": printed, **({"bench.csv": file} if file else {})}
    return parsed_from("mojo-bench", folder, files, PROGRAM, **options)


def _values(parsed: Parsed) -> dict[tuple[str, str], float]:
    return values_by_name(parsed.readings)


def test_units_are_decimal_and_the_time_is_of_one_iteration(tmp_path: Path) -> None:
    columns = "throughput (GElems/s),DataMovement (GB/s),Arithmetic (GFLOPS/s)"
    printed = f'Running a\n{HEAD},{columns}\n"a",0.25,100,0.5,2.0,N/A\n\n'
    wanted = {("a", "time"): 0.25e-3, ("a", "rate"): 0.5e9, ("a", "bandwidth"): 2e9}
    assert _values(_parse(tmp_path, printed)) == pytest.approx(wanted)


def test_a_bench_without_names_of_metrics_writes_units_alone(tmp_path: Path) -> None:
    found = _values(_parse(tmp_path, f'{HEAD},GB/s,GFLOPS/s,GElems/s\n"a",1,1,1,2,3\n\n'))
    assert [found["a", metric] for metric in ("bandwidth", "flops", "rate")] == [1e9, 2e9, 3e9]


def test_a_column_of_another_unit_is_left_out_and_said(tmp_path: Path) -> None:
    parsed = _parse(tmp_path, f'{HEAD},TheoreticalArithmetic (GFLOPS/s),fmas (GFMAs/s)\n"a",1,1,7,8\n\n')
    assert [reading.metric for reading in parsed.readings] == ["time"]
    assert [warning.removeprefix("column ").partition(" is left out")[0] for warning in parsed.warnings] == [
        "'TheoreticalArithmetic (GFLOPS/s)'",
        "'fmas (GFMAs/s)'",
    ]


@pytest.mark.parametrize("name", ["a/input_id:1,2", 'say "a", twice', "a | b", "ünter"])
@pytest.mark.parametrize(
    "table",
    [
        'name,met (ms),iters\n"{}",2.5,10\n\n',
        "name  , met (ms), iters\n{}, 2.5     , 10   \n\n",
        "| name | met (ms) | iters |\n| ---- | -------- | ----- |\n| {}  | 2.5      | 10    |\n\n",
        '...name,met (ms),iters\n"{}",2.5,10\n\nthanks\n',
    ],
)
def test_names_may_hold_what_stands_between_cells(table: str, name: str, tmp_path: Path) -> None:
    assert _values(_parse(tmp_path, table.format(name))) == {(name, "time"): pytest.approx(2.5e-3)}


def test_repetitions_stand_for_the_process_by_their_capped_mean(tmp_path: Path) -> None:
    rows = "".join(f'"a",{value},10,{1 / value}\n' for value in (3.0, 1.0, 2.0))
    parsed = _parse(tmp_path, f"{HEAD},GB/s\n{rows}\n", repetitions=3)
    time, bandwidth = parsed.readings
    assert (time.value, time.inner["p50"], time.inner["n"], time.inner["batch"]) == (2e-3, 2e-3, 3, 10)
    assert bandwidth.value == pytest.approx(0.5e9)


def test_each_bench_of_a_program_counts(tmp_path: Path) -> None:
    first, second = (f'{HEAD}\n"{name}",1,1\n' for name in "ab")
    assert {name for name, _ in _values(_parse(tmp_path, f"{first}\n{second}\n", second))} == {"a", "b"}


def test_reports_are_named_by_the_line_before(tmp_path: Path) -> None:
    printed = f"n = 3\n\n{_report(heading='saxpy:')}{_report('ms', 'add')}Batch: 1\n\n{_report('s', 'mul')}"
    wanted = {("saxpy", "time"): 5e-9, ("add", "time"): 5e-3, ("mul", "time"): 5.0}
    assert _values(_parse(tmp_path, printed)) == pytest.approx(wanted)
    assert _values(_parse(tmp_path, f"n = 3\n\n{_report('us')}")) == {("", "time"): pytest.approx(5e-6)}


ONE = f'{HEAD}\n"a",1,1\n\n'
TIMES = f"{HEAD},min (ms),mean (ms),max (ms),duration (ms)"
test_nonsense_has_its_reason = refusals(
    *("mojo-bench", "printed.txt"),
    ("hello\n", "no table of a Bench and no Benchmark Report"),
    (ONE[:-1], "no empty line"),
    (f"{HEAD}\n\n", "recorded no benchmark"),
    ("| name | met (ms) | itersNo benchmarks recorded...\n", "recorded no benchmark"),
    (f"{HEAD},x,x\n\n", "unexpected columns"),
    (f'{HEAD},my, own (GB/s)\n"a",1,1,2\n\n', "4 cells below 5 columns"),
    (f'{HEAD}\n"a",1\n\n', "2 cells below 3 columns"),
    (f'{HEAD},GB/s\n"a",1,1,1,1\n\n', "more cells than 4 columns"),
    (f'{HEAD}\n"",1,1\n\n', "no name"),
    (f'{HEAD}\n"a",nan,1\n\n', "nan"),
    (f'{HEAD}\n"a",inf,1\n\n', "inf"),
    (f'{HEAD}\n"a",-1,1\n\n', "not valid"),
    (f'{HEAD}\n"a",0.0,1\n\n', r"keep\(\)"),
    (f'{HEAD}\n"a",1,0\n\n', "iters of a is 0"),
    (f'{HEAD}\n"a",1,1.5\n\n', "not a whole number"),
    (f'{HEAD},GB/s\n"a",1,1,inf\n\n', "inf"),
    (f'{HEAD},GB/s\n"a",1,1,0\n\n', "is 0"),
    (f'{HEAD},GB/s,DataMovement (GB/s)\n"a",1,1,1,1\n\n', "two columns for bandwidth"),
    (f'{HEAD},DataMovement (GB/s)\n"sum",1.0,10,9000000000000\n\n', "which is not valid"),
    (f'{HEAD}\n"a",1,1\n"b",1,1\n"a",1,1\n\n', "two benchmarks are called 'a'"),
    (f'{TIMES}\n"a",5,10,4,5,6,51\n\n', "contradict"),
    (f'{TIMES}\n"a",5,10,5.5,5,6,50\n\n', "contradict"),
    ("| name | met (ms) | iters |\n| ---- | -------- | ----- |\n|a | 1        | 1     |\n\n", "between bars"),
    (_report() + _report(), "print one on the line before each"),
    (_report(**{"Slowest Mean": ""}), "cut short: Slowest Mean"),
    (_report()[:-30], "cut short"),
    (_report() + f"{RULE}\nBenchmark Report (n", "cut short"),
    (_report("min"), "the unknown unit 'min'"),
    (_report(Mean="nan"), "nan"),
    (_report(Total="51.0"), "contradict"),
    (_report(Mean="0.0", Total="0.0"), r"keep\(\)"),
)


@pytest.mark.parametrize("file", [f'{HEAD}\n"a",1,1', f"{HEAD}\n", f'{HEAD}\n"a",2,1\n', "\n", "x\n"])
def test_a_file_that_is_not_what_was_printed(file: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=r"cut short|is empty"):
        _parse(tmp_path, f'{HEAD}\n"a",1,1\n\n', file)


def test_fewer_repetitions_than_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="'a' has 2 results instead of 3 repetitions"):
        _parse(tmp_path, f'{HEAD}\n"a",1,1\n"a",1,1\n\n', repetitions=3)


def test_an_empty_loop_is_said(tmp_path: Path) -> None:
    (warning,) = _parse(tmp_path, f'{HEAD}\n"a",1e-8,1\n\n').warnings
    assert "the compiler removed all work of a: use keep()" in warning


def _of_file(folder: Path, **options: Any) -> Call:
    return replace(call_of("mojo-bench", folder, **{"file": "src/sums.mojo", **options}), kept=folder / "kept")


def test_a_source_is_built_once_a_side_and_its_program_run(tmp_path: Path) -> None:
    call = _of_file(tmp_path, include=["lib", "more"], flags="-O2 -D N=4", args=["--size", "9"], repetitions=5)
    version, build = tool("mojo-bench").build.preparations(call)
    program = str(tmp_path / "kept" / "sums.program")
    assert version.argv == (call.program, "--version")
    flags = ("-O2", "-D", "N=4", "-I", "lib", "-I", "more")
    assert build.argv == (call.program, "build", *flags, "-o", program, "src/sums.mojo")
    (run,) = tool("mojo-bench").invocations(call)
    file = ("-o", str(tmp_path / "bench.csv"), "--format", "csv")
    assert run.argv == (program, "--size", "9", *file, "-r", "5")
    assert tool("mojo-bench").suite.listing(call) is None


def test_a_program_with_words_of_its_own_is_listed_and_run_alone(tmp_path: Path) -> None:
    call = _of_file(tmp_path, list_with="--list", only_with=["--only"])
    listing = tool("mojo-bench").suite.listing(call)
    assert listing
    assert listing.argv[1:] == ("--list",)
    assert tool("mojo-bench").invocations(replace(call, chosen=("a b",)))[0].argv[-2:] == ("--only", "a b")


def test_a_program_that_is_there_is_not_built(tmp_path: Path) -> None:
    call = call_of("mojo-bench", tmp_path, PROGRAM, "9")
    assert tool("mojo-bench").build.preparations(call) == ()
    assert tool("mojo-bench").invocations(call)[0].argv[:2] == (PROGRAM, "9")
    assert not tool("mojo-bench").starts_program({"command": PROGRAM})
    assert tool("mojo-bench").starts_program({"file": "a.mojo"})


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="set `list-with` and `only-with` together"):
        call_of("mojo-bench", tmp_path, PROGRAM, list_with="--list")
    both = replace(_of_file(tmp_path), command=(PROGRAM,))
    for call in (both, call_of("mojo-bench", tmp_path)):
        with pytest.raises(ToolOutputError, match="set either `file`"):
            tool("mojo-bench").build.preparations(call)
    with pytest.raises(ToolOutputError, match="shell: true"):
        tool("mojo-bench").invocations(call_of("mojo-bench", tmp_path, "a | b", **SHELL))


@pytest.mark.parametrize("case", OLD)
def test_what_helps_against_an_error_is_said(case: str) -> None:
    folder = Path(__file__).parent / "data" / "mojo-bench" / "1.2.0" / f"old-{case}"
    reason = mojo_bench.why(folder)
    assert reason.startswith("Mojo 1.2.0: ")
    assert OLD[case][1] in reason
    assert len(reason) < 400


def test_an_error_of_no_older_dialect_gets_no_remedy(tmp_path: Path) -> None:
    error = "/src/new.mojo:7:3: error: no matching method in call to 'bench_function'\n  bench.bench_function(f, x)\n"
    (tmp_path / "stderr").write_text(f"warning: Crashpad\n{error}{'x' * 9000}\nmojo: error: failed to parse\n")
    wanted = "mojo: new.mojo:7:3: no matching method in call to 'bench_function': `bench.bench_function(f, x)`"
    assert mojo_bench.why(tmp_path) == wanted


def test_several_remedies_and_a_long_line_stay_short(tmp_path: Path) -> None:
    lines = ["alias N = 4" + "x" * 500, "    let a = 1", "fn f(inout x: Int):"]
    errors = [f"old.mojo:{at}:1: error: {'what ' * 90}\n{line}\n  ^\n" for at, line in enumerate(lines, 1)]
    (tmp_path / "stderr").write_text("".join(errors))
    reason = mojo_bench.why(tmp_path)
    assert "`comptime NAME = ...`" in reason
    assert "write `var` for `let`" in reason
    assert len(reason) < 400


def test_a_quote_that_is_not_closed_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="cannot be split into words: No closing quotation"):
        tool("mojo-bench").invocations(call_of("mojo-bench", tmp_path, "/bin/true", args="a 'b"))


# A real compiler

MOJO = os.environ.get("PERFFLOW_MOJO") or shutil.which("mojo") or ""
PATH = f"{Path(MOJO).parent}:{os.environ['PATH']}"
SUMS, REPORTS = PROGRAMS / "mojo_sums.mojo", PROGRAMS / "mojo_reports.mojo"
RATES = ("bandwidth", "flops", "rate")


@pytest.fixture(scope="module")
def mojo() -> str:
    """Return the compiler."""
    if not MOJO:
        pytest.skip("set PERFFLOW_MOJO to a mojo compiler (pip install mojo); captured output stands in")
    return MOJO


@pytest.fixture
def on_path(mojo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", PATH)


def _built(mojo: str, source: Path, folder: Path) -> str:
    """Return the path of the program of a source, which takes many seconds to build."""
    argv = [mojo, "build", "-O3", "-o", str(folder / source.stem), str(source)]
    subprocess.run(argv, check=True, timeout=900, env={**os.environ, "PATH": PATH})
    return str(folder / source.stem)


@pytest.mark.usefixtures("on_path")
def test_a_source_is_built_and_measured(tmp_path: Path) -> None:
    parsed = parsed_of(run("mojo-bench", tmp_path / "out", file=str(SUMS), repetitions=3))
    found = {(reading.benchmark, reading.metric): reading for reading in parsed.readings}
    assert found.keys() == {(name, metric) for name in ("sum/scalar", "sum/simd") for metric in ("time", *RATES)}
    assert not parsed.warnings
    for name in ("sum/scalar", "sum/simd"):
        # 4096 numbers of 4 B, which the program says: one figure tells the others, in decimal units.
        assert found[name, "rate"].value * found[name, "time"].value == pytest.approx(4096, rel=1e-3)
        assert found[name, "bandwidth"].value == pytest.approx(4 * found[name, "rate"].value, rel=1e-3)
        assert found[name, "flops"].value == pytest.approx(found[name, "rate"].value, rel=1e-3)
        assert found[name, "time"].inner["n"] == 3


@pytest.mark.long  # compiles twice
@pytest.mark.usefixtures("on_path")
def test_reports_and_a_single_one(tmp_path: Path, mojo: str) -> None:
    program = _built(mojo, REPORTS, tmp_path)
    both = parsed_of(run("mojo-bench", tmp_path / "both", program))
    assert [reading.benchmark for reading in both.readings] == ["scale", "scale, all batches"]
    alone = parsed_of(run("mojo-bench", tmp_path / "alone", program, args=["once"]))
    assert [reading.benchmark for reading in alone.readings] == [""]


@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize("case", rest_long(OLD, keep=6))
def test_an_older_dialect_is_refused_with_what_helps(case: str, tmp_path: Path) -> None:
    source = tmp_path / "old.mojo"
    source.write_text(OLD[case][0])
    ran = run("mojo-bench", tmp_path / "out", file=str(source))
    assert ran.status
    with pytest.raises(ToolOutputError) as caught:
        ran.parse()
    assert OLD[case][1] in str(caught.value)


@pytest.mark.usefixtures("on_path")
def test_variants_of_one_program_each_in_a_process_of_its_own(tmp_path: Path, mojo: str) -> None:
    step: dict[str, Any] = {"id": "sums", "uses": "mojo-bench"}
    step |= {"with": {"command": _built(mojo, SUMS, tmp_path), "list-with": "--list", "only-with": "--only"}}
    step |= {"variants": {"baseline": "*/scalar", "candidate": "*/simd"}, "benchmark": "*", "runs": 3}
    done, result = _run(tmp_path, [step])
    # Three pairs are too few for a result.
    assert done.returncode in {0, 4}, done.stderr
    rows = [row for row in result["benchmarks"] if row["metric"] == "time"]
    assert [(row["name"], row["pairs"]) for row in rows] == [("sum", 3)]
    assert not any("one process" in warning for row in result["steps"] for warning in row["warnings"])


@pytest.mark.long  # compiles twice
@pytest.mark.usefixtures("on_path")
def test_a_benchmark_of_a_source_is_profiled_as_it_was_built(tmp_path: Path) -> None:
    shutil.copy(SUMS, tmp_path)
    step = {"id": "sums", "uses": "mojo-bench", "with": {"file": SUMS.name, "repetitions": 100}, "runs": 1}
    done, result = _run(
        tmp_path, [step], [{"id": "cpu", "uses": "perf", "benchmark": "sum/sc*", "with": {"call-graph": "none"}}]
    )
    assert done.returncode == 0, done.stderr
    assert any("mojo_sums" in str(word) for item in result["steps"] for word in item["argv"] if item["id"] == "cpu")
    assert {spot["benchmark"] for spot in result["hotspots"]} == {"sum/scalar"}


@pytest.mark.long  # compiles a program that has nothing to read
@pytest.mark.usefixtures("on_path")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("fn main():\n    pass\n", "old.mojo:1:1: 'fn' has been removed"),
        ('def main() raises:\n    raise "no data"\n', "no data"),
        ("def main():\n    print(1)\n", "no table of a Bench"),
    ],
)
def test_a_program_that_cannot_be_measured(source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "old.mojo").write_text(source)
    done, result = _run(tmp_path, [{"id": "old", "uses": "mojo-bench", "with": {"file": "old.mojo"}, "runs": 1}])
    assert done.returncode == 3
    assert said in result["steps"][0]["reason"]


def _run(
    folder: Path, steps: list[dict[str, Any]], profiles: list[dict[str, Any]] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    stages = {"baseline": steps, **({"profile": profiles} if profiles else {})}
    return run_flow(folder, stages, path=PATH, measured=True), result_in(folder)
