"""What the captured files do not show: rarer shapes of each format, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import UserError
from perfflow.model.metrics import Better
from perfflow.model.units import Dimension
from perfflow.tools.read_file import ResultSet, read
from perfflow.tools.result_set import StoredSummary


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def _of(file: Path, content: object) -> ResultSet:
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(file)


def _refusal(file: Path, content: object) -> str:
    with pytest.raises(UserError) as caught:
        _of(file, content)
    return str(caught.value)


def _hyperfine(**result: object) -> dict[str, Any]:
    return {"results": [{"command": "x", "times": [1.0, 2.0], **result}]}


def test_hyperfine_exit_by_a_signal(file: Path) -> None:
    refusal = _refusal(file, _hyperfine(exit_codes=[0, None]))
    assert "x failed in 1 of 2 runs (ended by a signal)" in refusal
    assert "fix or exclude that benchmark" in refusal


def test_hyperfine_without_runs(file: Path) -> None:
    assert "times of x is missing" in _refusal(file, {"results": [{"command": "x", "mean": 1.0}]})
    assert "x has no run with a time" in _refusal(file, _hyperfine(times=[], memory_usage_byte=[4096]))
    assert "x has 2 times for 3 runs" in _refusal(file, _hyperfine(exit_codes=[0, 0, 0]))
    second = {"schema_version": 2, "results": [{"command": "x", "measurements": [{"exit_code": 0}]}]}
    assert "x has no run with a time" in _refusal(file, second)
    assert "x has a run of 0 s" in _refusal(file, _hyperfine(times=[0.0]))


def test_hyperfine_cpu_time_of_0_is_left_out(file: Path) -> None:
    got = _of(file, _hyperfine(user=0.0, system=0.0))
    assert set(got.benchmarks) == {("x", "time")}
    assert got.warnings == ("cpu is 0 in 1 benchmark, which is not valid, and was skipped",)


def test_hyperfine_same_command_twice_is_put_together(file: Path) -> None:
    twice = _hyperfine()["results"] * 2
    got = _of(file, {"results": twice})
    assert got.benchmarks[("x", "time")] == (1.0, 2.0, 1.0, 2.0)
    assert got.warnings == ("x occurs more than once; its runs were combined",)


def test_hyperfine_2_units(file: Path) -> None:
    run = {
        "time_wall_clock": {"value": 3, "unit": "millisecond"},
        "memory_peak_resident": {"value": 2, "unit": "kibibyte"},
    }
    content = {"schema_version": 2, "results": [{"command": "x", "measurements": [run]}]}
    assert dict(_of(file, content).benchmarks) == {("x", "time"): (0.003,), ("x", "rss"): (2048.0,)}
    run["time_wall_clock"]["unit"] = "fortnight"
    assert "time_wall_clock.unit of x is 'fortnight', which perfflow does not know" in _refusal(file, content)


def test_long_and_odd_names_stay_apart(file: Path) -> None:
    names = ["a" * 500 + "1", "a" * 500 + "2", "b\x001", "b\x011", "line\nline"]
    got = _of(file, {"results": [{"command": name, "times": [1.0]} for name in names]})
    shown = [name for name, _ in got.benchmarks]
    assert len(set(shown)) == 5
    assert all(name.isprintable() and len(name) <= 400 for name in shown)
    assert shown[-1] == "line line"


def _pyperf(metadata: dict[str, object], *runs: object) -> dict[str, Any]:
    return {"benchmarks": [{"metadata": {"name": "x", **metadata}, "runs": list(runs)}], "version": "1.0"}


def test_pyperf_metadata_of_the_benchmark_and_its_unit(file: Path) -> None:
    values = {"values": [1, 2], "warmups": [[1, 9.0]]}
    assert dict(_of(file, _pyperf({}, values)).benchmarks) == {("x", "time"): (1.0, 2.0)}
    assert dict(_of(file, _pyperf({"unit": "integer"}, values)).benchmarks) == {("x", "count"): (1.0, 2.0)}
    assert "unit of x is 'parsec', which perfflow does not know" in _refusal(file, _pyperf({"unit": "parsec"}, values))


def test_pyperf_calibration_alone_is_no_result(file: Path) -> None:
    assert "x has no values" in _refusal(file, _pyperf({}, {"warmups": [[1, 9.0]]}))


def _gbench(*entries: dict[str, object], **context: object) -> dict[str, Any]:
    return {"context": context, "benchmarks": [{"name": "x", "real_time": 2.0, "cpu_time": 1.0, **e} for e in entries]}


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 2e-9), ("us", 2e-6), ("ms", 2e-3), ("s", 2.0)])
def test_google_benchmark_time_units(file: Path, unit: str, seconds: float) -> None:
    got = _of(file, _gbench({"run_type": "iteration", "time_unit": unit}))
    assert got.benchmarks[("x", "time")] == pytest.approx((seconds,))


def test_google_benchmark_unknown_time_unit(file: Path) -> None:
    assert "time_unit of x is 'h', which perfflow does not know" in _refusal(file, _gbench({"time_unit": "h"}))


def test_google_benchmark_before_run_types(file: Path) -> None:
    got = _of(file, _gbench({"name": "x"}, {"name": "x_mean"}, {"name": "x_stddev"}))
    assert set(got.benchmarks) == {("x", "time"), ("x", "cpu")}


def test_google_benchmark_skipped(file: Path) -> None:
    skipped = {"name": "y", "skipped": True, "skip_message": "no GPU", "real_time": 0.0, "cpu_time": 0.0}
    got = _of(file, _gbench({}, skipped, cpu_scaling_enabled=True, library_version="v1.9.1"))
    assert {name for name, _ in got.benchmarks} == {"x"}
    assert got.version == "v1.9.1"
    assert got.warnings == ("y was skipped: no GPU", "CPU frequency scaling was on; timings may be noisy")
    assert "no benchmark result" in _refusal(file, _gbench(skipped))


def test_google_benchmark_counters(file: Path) -> None:
    got = _of(file, _gbench({"hits": 3, "time": 5, "allocs_per_iter": 2.0, "gap": float("nan"), "threads": 1}))
    kept = {metric: values for (_, metric), values in got.benchmarks.items()}
    assert set(kept) == {"time", "cpu", "hits", "allocs"}
    assert kept["time"] == pytest.approx((2e-9,))
    assert kept["hits"] == (3.0,)
    assert got.warnings == (
        "time was skipped: it has the name of a metric of perfflow, but no unit",
        "gap is negative or not a number in 1 benchmark, and was skipped",
    )


def test_google_benchmark_error_without_a_reason(file: Path) -> None:
    assert "x reports an error: it gives no reason" in _refusal(file, _gbench({"error_occurred": True}))


def test_go_prints_no_decimal_comma(file: Path) -> None:
    assert "ns/op of BenchmarkX is '1,6', not a number" in _refusal(file, "BenchmarkX 100 1,6 ns/op\n")


def test_go_without_headers(file: Path) -> None:
    got = _of(file, "BenchmarkA-8 \t 100\t 20.0 ns/op\n")
    assert list(got.benchmarks) == [("BenchmarkA", "time")]
    assert got.machine == {"gomaxprocs": "8"}
    assert got.warnings == ()


def test_go_suffix_is_kept_unless_all_have_it(file: Path) -> None:
    got = _of(file, "BenchmarkA/n-10 100 20.0 ns/op\nBenchmarkA/n-20 100 20.0 ns/op\n")
    assert {name for name, _ in got.benchmarks} == {"BenchmarkA/n-10", "BenchmarkA/n-20"}


@pytest.mark.parametrize("cut", ["BenchmarkA-8 100 20.0", "BenchmarkA-8 100 20.0 ns", "BenchmarkA-8 10"])
def test_go_cut_inside_its_last_line(file: Path, cut: str) -> None:
    assert "cut short" in _refusal(file, f"BenchmarkA-8 100 20.0 ns/op\n{cut}")


def test_go_cut_between_lines_is_said(file: Path) -> None:
    got = _of(file, "pkg: a\nBenchmarkA-8 100 20.0 ns/op\n")
    assert got.warnings == ("there is no final ok or FAIL, so the run may have been cut short",)


def test_go_stream_that_is_cut(file: Path) -> None:
    event = json.dumps({"Action": "output", "Package": "a", "Output": "BenchmarkA 1 2 ns/op\n"})
    assert "line 2 is cut short" in _refusal(file, f"{event}\n{event[:-9]}")
    half = json.dumps({"Action": "output", "Package": "a", "Output": "BenchmarkA-2 \t"})
    assert "cut short" in _refusal(file, f"{event}\n{half}\n")


def test_go_streams_of_packages_may_be_mixed(file: Path) -> None:
    pieces = [("a", "BenchmarkA \t"), ("b", "BenchmarkB \t"), ("a", "1 2 ns/op\n"), ("b", "1 4 ns/op\n")]
    events = [json.dumps({"Action": "output", "Package": package, "Output": text}) for package, text in pieces]
    got = _of(file, "\n".join(["# said by the compiler", *events][1:]))
    assert dict(got.benchmarks) == {("a.BenchmarkA", "time"): (2e-9,), ("b.BenchmarkB", "time"): (4e-9,)}


def test_go_prose_is_passed_over_and_lost_names_are_told(file: Path) -> None:
    got = _of(file, "Benchmarks 12 3 x\nBenchmarkA 4 of us\nBenchmarkA 1 2 ns/op\nBenchmarkB hello\n  100 3.0 ns/op\n")
    assert dict(got.benchmarks) == {("BenchmarkA", "time"): (2e-9,)}
    assert got.warnings == ("a result without a name was skipped: the benchmark's output broke its line",)


def test_go_package_that_failed_is_told(file: Path) -> None:
    got = _of(file, "BenchmarkA 1 2 ns/op\nFAIL\texample.com/b [build failed]\n")
    assert got.warnings == ("go test reports: FAIL example.com/b [build failed]",)


TWO_COMMITS = """\
commit: a
toolchain: go1.25
pkg: example.com/x
BenchmarkGet-2 10 1.0 ns/op 500 req/s 3.5 p99-ms 7 widgets
commit: b
BenchmarkGet-2 10 2.0 ns/op 250 req/s 7.0 p99-ms 7 widgets
PASS
"""


def test_go_configuration_holds_for_what_follows_it(file: Path) -> None:
    refusal = _refusal(file, TWO_COMMITS)
    assert "example.com/x.BenchmarkGet has results with commit=a, commit=b" in refusal
    assert "choose one: --where commit=a" in refusal
    got = read(file, {"commit": "b"})
    assert got.benchmarks["example.com/x.BenchmarkGet", "time"] == (2e-9,)
    assert got.facts == {"commit": "b", "toolchain": "go1.25", "package": "example.com/x"}
    with pytest.raises(UserError, match=r"no result has commit=c, but commit=a, commit=b"):
        read(file, {"commit": "c"})


def test_go_units_of_the_authors_have_dimension_and_direction(file: Path) -> None:
    got = _of(file, TWO_COMMITS.replace("commit: b", "Unit widgets better=higher"))
    assert {name: (metric.dimension, metric.better) for name, metric in got.metrics.items()} == {
        "req/s": (Dimension.RATE, Better.HIGHER),
        "p99-ms": (Dimension.TIME, Better.LOWER),
        "widgets": (Dimension.COUNT, Better.HIGHER),
    }
    assert got.benchmarks["example.com/x.BenchmarkGet", "p99-ms"] == (3.5e-3, 7e-3)


def test_go_names_do_not_depend_on_what_else_is_in_the_file(file: Path) -> None:
    one = "pkg: a\nBenchmarkX 1 2 ns/op\nok a 1s\n"
    two = f"{one}pkg: b\nBenchmarkX 1 3 ns/op\nok b 1s\n"
    assert set(_of(file, one).benchmarks) == {("a.BenchmarkX", "time")}
    assert set(_of(file, two).benchmarks) == {("a.BenchmarkX", "time"), ("b.BenchmarkX", "time")}


def test_a_benchmark_that_failed_leaves_the_others(file: Path) -> None:
    go = _of(file, "BenchmarkA 1 2 ns/op\n--- FAIL: BenchmarkB\nFAIL\n")
    assert (set(go.benchmarks), go.failed) == ({("BenchmarkA", "time")}, {"BenchmarkB": "failed"})
    results = [{"command": "x", "times": [1.0]}, {"command": "y", "times": [1.0, 0.0]}]
    results += [{"command": "z", "times": [1.0], "exit_codes": [3]}]
    hyperfine = _of(file, {"results": results})
    assert set(hyperfine.benchmarks) == {("x", "time")}
    assert list(hyperfine.failed) == ["y", "z"]
    google = _of(file, _gbench({}, {"name": "y", "error_occurred": True, "error_message": "no disk"}))
    assert google.failed == {"y": "reports an error: no disk"}


def test_go_zero_time_and_zero_throughput(file: Path) -> None:
    assert "time of BenchmarkA is 0" in _refusal(file, "BenchmarkA 1 0 ns/op\n")
    got = _of(file, "BenchmarkA 1 2 ns/op 0.00 MB/s 0 B/op x odd\n")
    assert set(got.benchmarks) == {("BenchmarkA", "time"), ("BenchmarkA", "alloc")}
    assert len(got.warnings) == 2


def test_pytest_benchmark_without_rounds(file: Path) -> None:
    content = {"machine_info": {}, "benchmarks": [{"fullname": "t.py::x", "stats": {"data": 3}}]}
    assert "stats.data of t.py::x is not a list" in _refusal(file, content)
    assert "benchmarks[0] is not an object" in _refusal(file, {**content, "benchmarks": [1]})
    assert "machine_info" not in _refusal(file, {**content, "benchmarks": [{"fullname": "x", "stats": 1}]})


def test_pytest_benchmark_saved_without_its_rounds(file: Path) -> None:
    stats = {"mean": 2.0, "stddev": 0.3, "rounds": 9, "data": []}
    content = {
        "machine_info": {},
        "benchmarks": [{"fullname": "t.py::x", "stats": stats}],
        "datetime": "2026-11-20T11:00:01+00:00",
    }
    got = _of(file, content)
    assert got.benchmarks == {("t.py::x", "time"): (2.0,)}
    ((key, summary),) = got.summaries.items()
    assert (key, summary) == (("t.py::x", "time"), StoredSummary(9, summary.error))
    assert summary.error == pytest.approx(0.1)
    assert got.started == "2026-11-20T11:00:01Z"


def _asv(**rows: object) -> dict[str, Any]:
    return {"result_columns": ["result", "params", "samples"], "results": rows}


def test_asv_takes_units_from_the_file_two_folders_up(tmp_path: Path) -> None:
    results = tmp_path / "results" / "a-machine"
    results.mkdir(parents=True)
    about = {"speed": {"type": "time", "unit": "seconds"}, "track_lines": {"type": "track", "unit": "lines"}}
    (results.parent / "benchmarks.json").write_text(json.dumps({**about, "version": 2}))
    content = _asv(speed=[[0.5], [], [[0.5, 0.25]]], track_lines=[[42], []])
    (results / "one.json").write_text(json.dumps(content))
    assert dict(read(results / "one.json").benchmarks) == {
        ("speed", "time"): (0.5, 0.25),
        ("track_lines", "lines"): (42,),
    }
    assert "the type of speed is unknown: benchmarks.json, two folders above, is missing" in _refusal(
        tmp_path / "file", content
    )
    (results.parent / "benchmarks.json").write_text("[")
    with pytest.raises(UserError, match="the type of speed"):
        read(results / "one.json")


def test_asv_names_what_failed_and_what_was_skipped(file: Path) -> None:
    got = _of(file, _asv(time_a=[[1.5, None], [["1", "2"]], [None, None]], mem_b=[None, []], peakmem_c=[[7], []]))
    assert dict(got.benchmarks) == {("time_a(1)", "time"): (1.5,), ("peakmem_c", "rss"): (7.0,)}
    assert (got.failed, got.warnings) == ({"time_a(2)": "failed", "mem_b": "failed"}, ())
    many = _of(file, _asv(time_a=[[1.5, *[float("nan")] * 8], [list("123456789")]]))
    assert many.warnings[0].endswith("time_a(6) and 3 more")
    assert "time_a failed" in _refusal(file, _asv(time_a=[None, []]))
    assert "no benchmark result" in _refusal(file, _asv(time_a=[[float("nan")], []]))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (3, "results.time_a is not a list"),
        ([[1.0], {}], "time_a: params is not a list"),
        ([[1.0], [3]], "time_a: params[0] is not a list"),
        ([[1.0], [["1", "2"]]], "not have one result for each of its 2"),
        ([[1.0], [], [3]], "time_a: samples[0] is not a list"),
        ([[1.0], [], [["x"]]], "time_a: samples[0][0] is 'x', not a number"),
        ([[0.0], []], "time of time_a is 0"),
        ([[1.0], [["1"] * 2000] * 2], "4000000 combinations"),
    ],
)
def test_asv_refuses(row: object, reason: str, file: Path) -> None:
    assert reason in _refusal(file, _asv(time_a=row))


def test_asv_without_samples_has_the_interval_of_the_median(file: Path) -> None:
    columns = ["result", "params", "version", "started_at", "stats_ci_99_a", "stats_ci_99_b", "stats_repeat"]
    rows = {
        "time_a": [[1.0], [], "v1", 1795208679737, [0.9], [1.1], [10]],
        "time_b": [[1.0], [], "v2", 1795208679999, [float("-inf")], [float("inf")], [1]],
    }
    got = _of(file, {"result_columns": columns, "results": rows, "commit_hash": "abc"})
    (summary,) = got.summaries.values()
    # Student's t for 99% and nine degrees of freedom.
    assert (summary.count, summary.statistic) == (10, "p50")
    assert summary.error == pytest.approx(0.1 / 3.2498, rel=1e-4)
    assert got.versions == {"time_a": "v1", "time_b": "v2"}
    assert (got.started, got.facts) == ("2026-11-20T21:04:39Z", {"commit": "abc"})
