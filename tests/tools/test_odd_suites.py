"""Result files of hyperfine and of benchmark suites: rarer shapes, what is refused, and the tools' command lines.

A step and a comparison of files read them in the same way; see tests/imports/test_both_ways.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError, UserError
from perfflow.model.readings import CAPPED, Parsed, Usage, reading_of_process
from perfflow.tools.read_file import ResultSet, read
from perfflow.tools.result_set import StoredSummary
from tests.tools.harness import PYTHON, call_of, tool, values_of
from tests.tools.tables import argv_of, parsed_from

FILES = {
    "hyperfine": "hyperfine.json",
    "google-benchmark": "google-benchmark.json",
    "pytest-benchmark": "benchmark.json",
    "pyperf": "pyperf.json",
    "asv": "asv.json",
    "timeit": "timeit.json",
}
"""The file that each tool leaves in the folder of its step."""
SHELL: dict[str, Any] = {"shell": True}
NAN = float("nan")


def _parse(name: str, folder: Path, content: object) -> Parsed:
    """Parse a file as a step does that ran the tool."""
    return parsed_from(name, folder, {FILES[name]: content})


def _compared(folder: Path, content: object) -> ResultSet:
    """Read a file as a comparison does that is given its path."""
    (folder / "file").write_text(json.dumps(content))
    return read(folder / "file")


def _hyperfine(**result: object) -> dict[str, Any]:
    return {"results": [{"command": "x", "times": [1.0, 2.0], **result}]}


def _measured(*runs: Mapping[str, object]) -> dict[str, Any]:
    return {"schema_version": 2, "results": [{"command": "x", "measurements": list(runs)}]}


def _wall(value: float, unit: str = "second") -> dict[str, object]:
    return {"time_wall_clock": {"value": value, "unit": unit}}


def _rounds(**change: object) -> dict[str, object]:
    return {"benchmarks": [{"fullname": "a.py::b", "stats": {"data": [3.0, 1.0, 2.0]}, **change}], "machine_info": {}}


def _google(*runs: Mapping[str, object], **context: object) -> dict[str, Any]:
    run = {"name": "b", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"}
    return {"context": context, "benchmarks": [{**run, **changed} for changed in runs]}


def _repeats(**change: object) -> dict[str, object]:
    return {"number": 10, "seconds": [3.0, 1.0, 2.0], "resolution": 1e-9, **change}


def _pyperf(*values: float, **known: object) -> dict[str, object]:
    return {"metadata": {"name": "a", **known}, "runs": [{"warmups": [[1, 9.0]]}, {"values": list(values)}]}


def _asv(*columns: str, **rows: object) -> dict[str, Any]:
    return {"result_columns": ["result", "params", *(columns or ["samples"])], "results": rows}


def _asv_of_kind(kind: str, value: float) -> dict[str, object]:
    return {**_asv(a=[[value], []]), "benchmarks.json": {"a": {"type": kind}}}


REFUSED: Mapping[str, list[tuple[object, str]]] = {
    "hyperfine": [
        (_hyperfine(times=None), "times of x is missing"),
        (_hyperfine(times=[]), "x has no run with a time"),
        (_hyperfine(times=[0.0]), "x has a run of 0 s"),
        (_hyperfine(times=[-1]), r"times\[0\] of x is -1, which is not valid"),
        (_hyperfine(exit_codes=[0, 0, 0]), "x has 2 times for 3 runs"),
        (_hyperfine(exit_codes=[0, None]), r"x failed in 1 of 2 runs \(ended by a signal\)"),
        (_hyperfine(exit_codes=[3, 0]), r"x failed in 1 of 2 runs \(ended by status 3\)"),
        (_hyperfine(user=1e300), "user of x is 1e"),
        (_measured(), "x has no run with a time"),
        (_measured(_wall(1), {"exit_code": 0}), "x has no run with a time"),
        (_measured(_wall(1) | {"exit_code": -9}), r"failed in 1 of 1 runs \(ended by status -9\)"),
        (_measured(_wall(0)), "time of x is 0"),
        (_measured(_wall(1, "fortnight")), "time_wall_clock.unit of x is 'fortnight', which perfflow does not know"),
    ],
    "pytest-benchmark": [
        ({"benchmarks": []}, "no benchmark result"),
        (_rounds(fullname=""), "has no fullname"),
        (_rounds(stats={}), "a.py::b has neither `data` nor all of `rounds`, `mean` and `stddev`"),
        (_rounds(stats={"data": []}), "a.py::b has neither `data`"),
        (_rounds(stats={"rounds": 9, "mean": 2.0, "stddev": 0.3}), "contains no rounds of a.py::b"),
        (_rounds(stats={"data": [1, -1]}), r"stats\.data\[1\] of a.py::b is -1, which is not valid"),
        (_rounds(stats={"data": [0, 0, 1]}), "time of a.py::b is 0"),
    ],
    "google-benchmark": [
        ({"benchmarks": []}, "context is missing"),
        (_google({}, {"name": ""}), r"benchmarks\[1\]\.name is empty"),
        (_google({"time_unit": "h"}), "time_unit of b is 'h', which perfflow does not know"),
        (_google({"time_unit": None}), "time_unit of b is null, which perfflow does not know"),
        (_google({"real_time": 0.0}), "time of b is 0"),
        (_google({"real_time": 1e-320, "time_unit": "ns"}), "time of b is 0"),
        (_google({"cpu_time": "x"}), "cpu of b is 'x'"),
        (_google({"bytes_per_second": -1}), "bytes_per_second of b is -1, which is not valid"),
        (_google({"error_occurred": True, "error_message": "why"}), "b reports an error: why"),
        (_google({"error_occurred": True}), "b reports an error: it gives no reason"),
        (_google({"skipped": True}), "no benchmark result"),
    ],
    "timeit": [
        (_repeats(seconds=[]), "seconds is empty"),
        (_repeats(seconds=[1, 0]), r"seconds\[1\] is 0, which is not valid"),
        (_repeats(number=0), "number is 0"),
        (_repeats(number=1.5), "not a whole number"),
        (_repeats(resolution="x"), "resolution is 'x'"),
    ],
    "pyperf": [
        ({"benchmarks": []}, "no benchmark result"),
        ({"benchmarks": [{"runs": []}]}, "has no name"),
        ({"benchmarks": [_pyperf()]}, "a has no values"),
        ({"benchmarks": [_pyperf(0.0)]}, "time of a is 0"),
        ({"benchmarks": [_pyperf(1.0, unit="integer")]}, "neither seconds nor bytes: count"),
        ({"benchmarks": [_pyperf(1.0, unit="parsec")]}, "unit of a is 'parsec', which perfflow does not know"),
        ({"benchmarks": [_pyperf(1.0), _pyperf(2.0)]}, "two benchmarks are called 'a'"),
        ({"benchmarks": [_pyperf(1.0, loops=0)]}, "loops of a is 0, which is not valid"),
    ],
    "asv": [
        ({"benchmarks": []}, r"asv\.json: result_columns is missing"),
        (_asv(time_a=3), r"results\.time_a is not a list"),
        (_asv(time_a=[[1.0], {}]), "time_a: params is not a list"),
        (_asv(time_a=[[1.0], [["1", "2"]]]), "not have one result for each of its 2"),
        (_asv(time_a=[[1.0], [], [["x"]]]), r"time_a: samples\[0\]\[0\] is 'x', not a number"),
        (_asv(time_a=[[0.0], []]), "time of time_a is 0"),
        (_asv(time_a=[[1.0], [], [[0.0]]]), "time of time_a is 0"),
        (_asv(time_a=[[1.0], [["1"] * 2000] * 2]), "4000000 combinations"),
        (_asv("stats_number", time_a=[[1.0], [], [0.5]]), r"stats_number\[0\] is 0.5, not a whole number"),
        (_asv(time_a=[None, []]), "time_a failed$"),
        ({**_asv(time_a=[None, []]), "errors": {"time_a": "LookupError: x"}}, "time_a failed: LookupError: x"),
        (_asv(time_a=[[NAN], []]), "no benchmark result; skipped by the suite: time_a"),
        (_asv_of_kind("other", 1.0), "benchmarks.json: a: type is 'other', which perfflow does not know"),
        (_asv_of_kind("peakmemory", 0), "no benchmark result"),
        (_asv_of_kind("memory", -1), "object_size of a is -1"),
        (_asv(speed=[[1.0], []]), "the type of speed is unknown: benchmarks.json, two folders above, is missing"),
    ],
}


@pytest.mark.parametrize(
    ("name", "content", "reason"), [(name, *row) for name, rows in REFUSED.items() for row in rows]
)
def test_a_file_without_figures_is_refused(name: str, content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse(name, tmp_path, content)


def test_a_comparison_is_refused_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="x failed in 1 of 2 runs") as caught:
        _compared(tmp_path, _hyperfine(exit_codes=[0, None]))
    assert "fix or exclude that benchmark" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        (
            {
                "results": [
                    {"command": "b", "times": [1.0]},
                    {"command": "y", "times": [1.0, 0.0]},
                    {"command": "z", "times": [1.0], "exit_codes": [3]},
                ]
            },
            ["y", "z"],
        ),
        (_google({}, {"name": "y", "error_occurred": True, "error_message": "no disk"}), ["y"]),
    ],
    ids=["hyperfine", "google-benchmark"],
)
def test_a_benchmark_that_failed_leaves_the_others(content: object, failed: list[str], tmp_path: Path) -> None:
    found = _compared(tmp_path, content)
    assert {name for name, _ in found.benchmarks} == {"b"}
    assert list(found.failed) == failed


@pytest.mark.parametrize(
    ("name", "content", "value", "inner"),
    [
        ("hyperfine", _hyperfine(times=[3, 1, 2]), 2.0, {"n": 3}),
        ("pytest-benchmark", _rounds(), 2.0, {"p50": 2.0, "n": 3}),
        ("timeit", _repeats(), pytest.approx(0.2), {"n": 3, "batch": 10.0}),
    ],
)
def test_runs_of_one_process_stand_for_it_by_their_capped_mean(
    name: str, content: object, value: float, inner: dict[str, float], tmp_path: Path
) -> None:
    (reading,) = _parse(name, tmp_path, content).readings
    assert reading.value == value
    assert reading.inner.items() >= inner.items()


def test_what_stands_for_a_process() -> None:
    # A disturbed value counts as 1.5 medians; a slower half of the operations counts in full.
    reading = reading_of_process("time", [2.0, 2.0, 2.0, 2.0, 82.0], "b")
    assert reading.statistic == CAPPED
    assert reading.value == pytest.approx(2.2)
    assert (reading.inner["mean"], reading.inner["p50"], reading.inner["n"]) == (18.0, 2.0, 5.0)
    assert reading_of_process("time", [1.0, 2.0] * 50).value == pytest.approx(1.5)
    # Of rates, total work by total time: 8 in 4 s and 1 s.
    assert reading_of_process("throughput", [1.0, 4.0]).value == pytest.approx(8 / (4 * 1.5 * 0.625 + 1))
    assert reading_of_process("rate", [0.0, 1.0]).value == 0.0


def test_long_and_odd_names_stay_apart(tmp_path: Path) -> None:
    names = ["a" * 500 + "1", "a" * 500 + "2", "b\x001", "b\x011", "line\nline"]
    found = _compared(tmp_path, {"results": [{"command": name, "times": [1.0]} for name in names]})
    shown = [name for name, _ in found.benchmarks]
    assert len(set(shown)) == 5
    assert all(name.isprintable() and len(name) <= 400 for name in shown)
    assert shown[-1] == "line line"


# hyperfine


def test_hyperfine_argv(tmp_path: Path) -> None:
    argv = argv_of("hyperfine", tmp_path, "/bin/x", "a b")
    assert argv[-2:] == ("--", "/bin/x 'a b'")
    assert "--shell=none" in argv
    assert not {"-i", "-N", "-S"} & set(argv)
    argv = argv_of("hyperfine", tmp_path, "a | b", **SHELL)
    assert argv[-1] == "a | b"
    assert "--shell=default" in argv
    named = replace(call_of("hyperfine", tmp_path, "/bin/x"), benchmark="-i" + "x" * 999)
    argv = tool("hyperfine").invocations(named)[0].argv
    assert any(word.startswith("--command-name=-ixxx") for word in argv)
    assert max(map(len, argv)) < 300


def test_hyperfine_units(tmp_path: Path) -> None:
    times = {"second": 2.0, "millisecond": 2e-3, "microsecond": 2e-6, "nanosecond": 2e-9}
    sizes = {"byte": 3, "kilobyte": 3e3, "megabyte": 3e6, "kibibyte": 3 << 10, "mebibyte": 3 << 20}
    runs = [_wall(2, unit) for unit in times]
    runs += [_wall(1) | {"memory_peak_resident": {"value": 3, "unit": unit}} for unit in sizes]
    found = _compared(tmp_path, _measured(*runs)).benchmarks
    assert found["x", "time"][:4] == pytest.approx(tuple(times.values()))
    assert found["x", "rss"] == tuple(sizes.values())


def test_hyperfine_cpu_time_of_0_is_left_out(tmp_path: Path) -> None:
    found = _compared(tmp_path, _hyperfine(user=0.0, system=0.0))
    assert set(found.benchmarks) == {("x", "time")}
    assert found.warnings == ("cpu is 0 in 1 benchmark, which is not valid, and was skipped",)


def test_hyperfine_same_command_twice_is_put_together(tmp_path: Path) -> None:
    found = _compared(tmp_path, {"results": _hyperfine()["results"] * 2})
    assert found.benchmarks["x", "time"] == (1.0, 2.0, 1.0, 2.0)
    assert found.warnings == ("x occurs more than once; its runs were combined",)


# pytest-benchmark


def test_pytest_benchmark_argv(tmp_path: Path) -> None:
    options = {"paths": ["a", "b c"], "args": "-x --y='1 2'", "select": "p or q"}
    argv = argv_of("pytest-benchmark", tmp_path, python=PYTHON, **options)
    assert (argv[0], Path(argv[1]).name) == (PYTHON, "pytest_run.py")
    assert argv[-6:] == ("-x", "--y=1 2", "-k", "p or q", "a", "b c")
    assert "--benchmark-enable" in argv


def test_pytest_benchmark_by_a_timer_of_cpu_time_and_of_batches(tmp_path: Path) -> None:
    stats = {"data": [3.0, 1.0, 2.0], "iterations": 100}
    content = _rounds(stats=stats, options={"timer": "time.process_time"})
    (reading,) = _parse("pytest-benchmark", tmp_path, content).readings
    assert (reading.metric, reading.inner["batch"]) == ("cpu", 100.0)


def test_pytest_benchmark_saved_without_its_rounds(tmp_path: Path) -> None:
    stats = {"mean": 2.0, "stddev": 0.3, "rounds": 9, "data": []}
    found = _compared(tmp_path, {**_rounds(stats=stats), "datetime": "2026-11-20T11:00:01+00:00"})
    assert found.benchmarks == {("a.py::b", "time"): (2.0,)}
    error: Any = pytest.approx(0.1)
    assert found.summaries == {("a.py::b", "time"): StoredSummary(9, error)}
    assert found.started == "2026-11-20T11:00:01Z"


# Google Benchmark


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 2e-9), ("us", 2e-6), ("ms", 2e-3), ("s", 2.0)])
def test_google_benchmark_units(unit: str, seconds: float, tmp_path: Path) -> None:
    parsed = _parse("google-benchmark", tmp_path, _google({"time_unit": unit}))
    assert values_of(parsed) == {"time": pytest.approx(seconds), "cpu": pytest.approx(seconds / 2)}
    assert not parsed.warnings


WAITING = Usage(13.0, 2.0, 0.0, queued=8.0, main_cpu=2.0)
"""2 s of CPU time, 8 s of waiting for a core and 3 s of other waiting, perhaps in the benchmark."""
QUEUED = replace(WAITING, wall=10.1)
"""Only 0.1 s of other waiting: 5% of the CPU time of the benchmark."""


@pytest.mark.parametrize(
    ("usage", "name", "real", "core", "uncontended"),
    [
        (QUEUED, "b", 5.0, None, 1.05e-6),
        (WAITING, "b", 5.0, None, 2.5e-6),
        # The benchmark waited 0.2 s in all, for whatever it was, as far as its times are not its own.
        (WAITING, "b", 1.1, None, 1.1e-6),
        (WAITING, "b/manual_time", 1.1, None, 2.5e-6),
        (replace(QUEUED, main_cpu=1.0), "b", 5.0, None, None),  # threads
        (Usage(10.1, 2.0, 0.0), "b", 5.0, None, None),
        # While another process shares the core, rates by real time are unknown.
        (QUEUED, "b", 2.0, 0, 1.05e-6),
        (QUEUED, "b/real_time", 2.0, 0, None),
        (QUEUED, "b/manual_time/threads:1", 2.0, 0, None),
    ],
    ids=str,
)
def test_google_benchmark_tells_waiting_for_a_core_from_other_waiting(
    usage: Usage, name: str, real: float, core: int | None, uncontended: float | None, tmp_path: Path
) -> None:
    run = {"name": name, "iterations": 2_000_000, "real_time": real}
    (tmp_path / "google-benchmark.json").write_text(json.dumps(_google(run)))
    call = replace(call_of("google-benchmark", tmp_path, "/bin/x"), core=core)
    values = values_of(tool("google-benchmark").parse(call, usage))
    assert values.get("uncontended") == (uncontended and pytest.approx(uncontended))


def test_google_benchmark_aggregates_of_a_library_that_tells_them_by_name_alone(tmp_path: Path) -> None:
    old = _google({"name": "b"}, {"name": "b_mean", "real_time": 9.0}, {"name": "b_cv", "real_time": 0.1})
    for run in old["benchmarks"]:
        del run["run_type"]
    parsed = _parse("google-benchmark", tmp_path, old)
    assert {reading.benchmark for reading in parsed.readings} == {"b"}
    assert values_of(parsed)["time"] == pytest.approx(2e-6)


def test_google_benchmark_repetitions_and_rates(tmp_path: Path) -> None:
    runs = _google(*({"real_time": float(value), "bytes_per_second": float(value)} for value in (5, 1, 2, 3, 4)))
    readings = {reading.metric: reading for reading in _parse("google-benchmark", tmp_path, runs).readings}
    assert readings["time"].value == pytest.approx(2.9e-6)
    assert readings["throughput"].value == pytest.approx(5 / (0.5 + 0.5 + 1 / 3 + 0.25 + 0.2))
    assert readings["throughput"].inner["n"] == 5


def test_google_benchmark_warns(tmp_path: Path) -> None:
    skipped = {"skipped": True, "real_time": 0.0, "cpu_time": 0.0}
    runs = [{}, {"name": "c", **skipped}, {"name": "d", **skipped, "skip_message": "no GPU"}]
    context = {"library_build_type": "debug", "cpu_scaling_enabled": True, "library_version": "v1.9.1"}
    content = _google(*runs, {"name": "e", "real_time": 1e-6, "run_name": "e"}, **context)
    found = _compared(tmp_path, content)
    assert {name for name, _ in found.benchmarks} == {"b", "e"}
    assert found.version == "v1.9.1"
    assert found.warnings[:2] == ("c was skipped: it gives no reason", "d was skipped: no GPU")
    assert found.warnings[2].startswith("the Google Benchmark library is a debug build")
    assert found.warnings[3:] == ("CPU frequency scaling was on; timings may be noisy",)
    optimized, *others = _parse("google-benchmark", tmp_path, content).warnings
    assert optimized == "the compiler optimized away e: use benchmark::DoNotOptimize"
    assert tuple(others) == found.warnings


def test_google_benchmark_counters(tmp_path: Path) -> None:
    counters = {"hits": 3, "time": 5, "allocs_per_iter": 2.0, "gap": NAN, "threads": 1}
    found = _compared(tmp_path, _google(counters))
    assert found.benchmarks == {
        ("b", "time"): pytest.approx((2e-6,)),
        ("b", "cpu"): pytest.approx((1e-6,)),
        ("b", "hits"): (3.0,),
        ("b", "allocs"): (2.0,),
    }
    assert found.warnings == (
        "time was skipped: it has the name of a metric of perfflow, but no unit",
        "gap is negative or not a number in 1 benchmark, and was skipped",
    )


def test_google_benchmark_of_a_shell(tmp_path: Path) -> None:
    call = call_of("google-benchmark", tmp_path, "./x | cat", **SHELL)
    for argv in (tool("google-benchmark").invocations, tool("google-benchmark").suite.listing):
        with pytest.raises(ToolOutputError, match="shell"):
            argv(call)


# pyperf


def test_pyperf_metadata_of_the_inner_win(tmp_path: Path) -> None:
    inner = {"metadata": {"name": "b", "unit": "byte"}, "runs": [{"values": [5], "metadata": {"loops": 8}}]}
    content = {"metadata": {"loops": 4, "inner_loops": 5}, "benchmarks": [_pyperf(3.0, 1.0, 2.0), inner]}
    first, second = _parse("pyperf", tmp_path, content).readings
    assert (first.value, first.inner["batch"]) == (2.0, 20.0)
    assert (second.benchmark, second.metric, "batch" in second.inner) == ("b", "rss", False)
    counted = _compared(tmp_path, {"benchmarks": [_pyperf(1, 2, unit="integer")], "version": "1.0"})
    assert counted.benchmarks == {("a", "count"): (1.0, 2.0)}


def test_pyperf_doubts_bear_the_name_of_their_benchmark(tmp_path: Path) -> None:
    doubt = "WARNING: the benchmark result may be unstable\n* the maximum (2 us) is 61% greater than the mean\n\n"
    (tmp_path / "check.txt").write_text(f"a\n-\n\n{doubt}b\n-\n\nThe benchmark seems to be stable\n")
    parsed = _parse("pyperf", tmp_path, {"benchmarks": [_pyperf(1.0)]})
    assert parsed.warnings == ("pyperf finds a unstable: the maximum (2 us) is 61% greater than the mean",)


def test_pyperf_is_given_a_script_or_a_statement(tmp_path: Path) -> None:
    for options in ({"script": "a.py", "stmt": "pass"}, {"script": ""}):
        with pytest.raises(ValidationError, match="either `script` or `stmt`"):
            call_of("pyperf", tmp_path, **options)
    call = call_of("pyperf", tmp_path, python=PYTHON, stmt="-x", setup=["a = 1", "b = 2"], args="--affinity 1")
    (step,) = tool("pyperf").invocations(call)
    assert step.argv[-6:] == ("--affinity", "1", "--setup=a = 1", "--setup=b = 2", "--", "-x")
    assert tool("pyperf").suite.listing(call) is None


# asv


def test_asv_takes_units_from_the_file_two_folders_up(tmp_path: Path) -> None:
    results = tmp_path / "results" / "a-machine"
    results.mkdir(parents=True)
    about = {"speed": {"type": "time", "unit": "seconds"}, "track_lines": {"type": "track", "unit": "lines"}}
    (results.parent / "benchmarks.json").write_text(json.dumps({**about, "version": 2}))
    content = _asv(speed=[[0.5], [], [[0.5, 0.25]]], track_lines=[[42], []])
    (results / "one.json").write_text(json.dumps(content))
    found = read(results / "one.json").benchmarks
    assert found == {("speed", "time"): (0.5, 0.25), ("track_lines", "lines"): (42,)}
    (results.parent / "benchmarks.json").write_text("[")
    with pytest.raises(UserError, match="the type of speed is unknown"):
        read(results / "one.json")


def test_asv_names_what_failed_and_what_was_skipped(tmp_path: Path) -> None:
    rows = {"time_a": [[1.5, None], [["1", "2"]], [None, None]], "mem_b": [None, []], "peakmem_c": [[7], []]}
    found = _compared(tmp_path, _asv(**rows))
    assert found.benchmarks == {("time_a(1)", "time"): (1.5,), ("peakmem_c", "rss"): (7.0,)}
    assert (found.failed, found.warnings) == ({"time_a(2)": "failed", "mem_b": "failed"}, ())
    many = _compared(tmp_path, _asv(time_a=[[1.5, *[NAN] * 8], [list("123456789")]]))
    assert many.warnings[0].endswith("time_a(6) and 3 more")


def test_asv_without_samples_has_the_interval_of_the_median(tmp_path: Path) -> None:
    columns = ("version", "started_at", "stats_ci_99_a", "stats_ci_99_b", "stats_repeat")
    rows = {
        "time_a": [[1.0], [], "v1", 1795208679737, [0.9], [1.1], [10]],
        "time_b": [[1.0], [], "v2", 1795208679999, [float("-inf")], [float("inf")], [1]],
    }
    found = _compared(tmp_path, {**_asv(*columns, **rows), "commit_hash": "abc"})
    # Student's t for 99% and nine degrees of freedom.
    error: Any = pytest.approx(0.1 / 3.2498, rel=1e-4)
    assert found.summaries == {("time_a", "time"): StoredSummary(10, error, "p50")}
    assert found.versions == {"time_a": "v1", "time_b": "v2"}
    assert (found.started, found.facts) == ("2026-11-20T21:04:39Z", {"commit": "abc"})
