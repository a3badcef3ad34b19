"""Parsers of benchmark suites on unusual output, and the command lines that adapters build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import CAPPED, Parsed, Usage, reading_of_process
from tests.tools.harness import PYTHON, USAGE, call_of, tool, values_of

SHELL: dict[str, Any] = {"shell": True}


def _parse(name: str, folder: Path, file: str, content: object) -> Parsed:
    (folder / file).write_text(json.dumps(content))
    return tool(name).parse(call_of(name, folder, "/bin/x"), USAGE)


def _rounds(**change: object) -> dict[str, object]:
    return {"benchmarks": [{"fullname": "a.py::b", "stats": {"data": [3.0, 1.0, 2.0]}, **change}]}


def test_pytest_benchmark_stands_for_the_process_by_its_capped_mean(tmp_path: Path) -> None:
    (reading,) = _parse("pytest-benchmark", tmp_path, "benchmark.json", _rounds()).readings
    assert (reading.value, reading.inner["p50"], reading.inner["n"]) == (2.0, 2.0, 3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"benchmarks": []}, "no benchmark result"),
        ({"benchmarks": {}}, r"benchmark\.json: benchmarks is not a list"),
        ({"benchmarks": [1]}, r"benchmarks\[0\] is not an object"),
        (_rounds(fullname=""), "has no fullname"),
        (_rounds(stats={}), "a.py::b has neither `data` nor all of `rounds`, `mean` and `stddev`"),
        (_rounds(stats={"data": []}), "a.py::b has neither `data`"),
        (_rounds(stats={"data": [1, -1]}), r"stats\.data\[1\] of a.py::b is -1, which is not valid"),
        (_rounds(stats={"data": [0, 0, 1]}), "time of a.py::b is 0"),
    ],
)
def test_pytest_benchmark_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("pytest-benchmark", tmp_path, "benchmark.json", content)


def test_pytest_benchmark_argv(tmp_path: Path) -> None:
    call = call_of(
        "pytest-benchmark", tmp_path, python=PYTHON, paths=["a", "b c"], args="-x --y='1 2'", select="p or q"
    )
    (step,) = tool("pytest-benchmark").invocations(call)
    assert step.argv[0] == PYTHON
    assert Path(step.argv[1]).name == "pytest_run.py"
    assert step.argv[-6:] == ("-x", "--y=1 2", "-k", "p or q", "a", "b c")
    assert "--benchmark-enable" in step.argv


def _runs(*runs: Mapping[str, object], **context: object) -> dict[str, object]:
    run = {"name": "b", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"}
    return {"context": context, "benchmarks": [{**run, **changed} for changed in runs]}


@pytest.mark.parametrize(("unit", "seconds"), [("ns", 2e-9), ("us", 2e-6), ("ms", 2e-3), ("s", 2.0)])
def test_google_benchmark_units(unit: str, seconds: float, tmp_path: Path) -> None:
    parsed = _parse("google-benchmark", tmp_path, "google-benchmark.json", _runs({"time_unit": unit}))
    assert values_of(parsed) == {"time": pytest.approx(seconds), "cpu": pytest.approx(seconds / 2)}
    assert not parsed.warnings


@pytest.mark.parametrize(
    ("usage", "name", "real", "uncontended"),
    [
        # 2 s of CPU time, 8 s of waiting for a core, 0.1 s of other waiting: 5% of the CPU time of the benchmark.
        (Usage(10.1, 2.0, 0.0, queued=8.0, main_cpu=2.0), "b", 5.0, 1.05e-6),
        # 3 s of other waiting, perhaps in the benchmark.
        (Usage(13.0, 2.0, 0.0, queued=8.0, main_cpu=2.0), "b", 5.0, 2.5e-6),
        # The benchmark waited 0.2 s in all, for whatever it was, as far as its times are not its own.
        (Usage(13.0, 2.0, 0.0, queued=8.0, main_cpu=2.0), "b", 1.1, 1.1e-6),
        (Usage(13.0, 2.0, 0.0, queued=8.0, main_cpu=2.0), "b/manual_time", 1.1, 2.5e-6),
        (Usage(10.1, 2.0, 0.0, queued=8.0, main_cpu=1.0), "b", 5.0, None),  # threads
        (Usage(10.1, 2.0, 0.0), "b", 5.0, None),
    ],
    ids=str,
)
def test_google_benchmark_tells_waiting_for_a_core_from_other_waiting(
    usage: Usage, name: str, real: float, uncontended: float | None, tmp_path: Path
) -> None:
    run = {"name": name, "iterations": 2_000_000, "real_time": real}
    (tmp_path / "google-benchmark.json").write_text(json.dumps(_runs(run)))
    values = values_of(tool("google-benchmark").parse(call_of("google-benchmark", tmp_path, "/bin/x"), usage))
    assert values.get("uncontended") == (uncontended and pytest.approx(uncontended))


@pytest.mark.parametrize(("name", "known"), [("b", True), ("b/real_time", False), ("b/manual_time/threads:1", False)])
def test_rates_of_google_benchmark_by_real_time_are_unknown_while_two_share_a_core(
    name: str, known: bool, tmp_path: Path
) -> None:
    (tmp_path / "google-benchmark.json").write_text(json.dumps(_runs({"name": name, "iterations": 2_000_000})))
    call = replace(call_of("google-benchmark", tmp_path, "/bin/x"), core=0)
    usage = Usage(10.1, 2.0, 0.0, queued=8.0, main_cpu=2.0)
    assert ("uncontended" in values_of(tool("google-benchmark").parse(call, usage))) == known


def test_google_benchmark_aggregates_of_a_library_that_tells_them_by_name_alone(tmp_path: Path) -> None:
    old = _runs({"name": "b"}, {"name": "b_mean", "real_time": 9.0}, {"name": "b_cv", "real_time": 0.1})
    for run in old["benchmarks"]:  # type: ignore[attr-defined]
        del run["run_type"]
    parsed = _parse("google-benchmark", tmp_path, "google-benchmark.json", old)
    assert {reading.benchmark for reading in parsed.readings} == {"b"}
    assert values_of(parsed)["time"] == pytest.approx(2e-6)


def test_google_benchmark_repetitions_and_rates(tmp_path: Path) -> None:
    runs = _runs(*({"real_time": float(value), "bytes_per_second": float(value)} for value in (5, 1, 2, 3, 4)))
    readings = {
        reading.metric: reading
        for reading in _parse("google-benchmark", tmp_path, "google-benchmark.json", runs).readings
    }
    assert readings["time"].value == pytest.approx(2.9e-6)
    assert readings["throughput"].value == pytest.approx(5 / (0.5 + 0.5 + 1 / 3 + 0.25 + 0.2))
    assert readings["throughput"].inner["n"] == 5


def test_google_benchmark_warns(tmp_path: Path) -> None:
    runs = _runs(
        {},
        {"name": "c", "skipped": True},
        {"name": "e", "real_time": 1e-6, "run_name": "e"},
        library_build_type="debug",
    )
    warnings = _parse("google-benchmark", tmp_path, "google-benchmark.json", runs).warnings
    assert [warning.split()[0] for warning in warnings] == ["the", "c", "the"]
    assert warnings[1] == "c was skipped: it gives no reason"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], r"google-benchmark\.json is not an object"),
        ({"context": {}, "benchmarks": 1}, "benchmarks is not a list"),
        ({"benchmarks": []}, "context is missing"),
        ({"context": {}, "benchmarks": [1]}, r"benchmarks\[0\] is not an object"),
        (_runs({}, {"name": ""}), r"benchmarks\[1\]\.name is empty"),
        (_runs({"time_unit": "h"}), "time_unit of b is 'h', which perfflow does not know"),
        (_runs({"time_unit": None}), "time_unit of b is null, which perfflow does not know"),
        (_runs({"real_time": 0.0}), "time of b is 0"),
        (_runs({"real_time": 1e-320, "time_unit": "ns"}), "time of b is 0"),
        (_runs({"cpu_time": "x"}), "cpu of b is 'x'"),
        (_runs({"bytes_per_second": -1}), "bytes_per_second of b is -1, which is not valid"),
        (_runs({"error_occurred": True, "error_message": "why"}), "b reports an error: why"),
        (_runs({"skipped": True}), "no benchmark result"),
    ],
)
def test_google_benchmark_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("google-benchmark", tmp_path, "google-benchmark.json", content)


def test_google_benchmark_of_a_shell(tmp_path: Path) -> None:
    call = call_of("google-benchmark", tmp_path, "./x | cat", **SHELL)
    for argv in (tool("google-benchmark").invocations, tool("google-benchmark").suite.listing):
        with pytest.raises(ToolOutputError, match="shell"):
            argv(call)


def test_what_stands_for_a_process() -> None:
    # A disturbed value counts as 1.5 medians; a slower half of the operations counts in full.
    reading = reading_of_process("time", [2.0, 2.0, 2.0, 2.0, 82.0], "b")
    assert reading.statistic == CAPPED
    assert reading.value == pytest.approx(2.2)
    assert (reading.inner["mean"], reading.inner["p50"], reading.inner["n"]) == (18.0, 2.0, 5.0)
    assert reading_of_process("time", [1.0, 2.0] * 50).value == pytest.approx(1.5)


def test_of_rates_the_times_stand_for_a_process() -> None:
    # Total work by total time: 8 in 4 s and 1 s.
    rate = reading_of_process("throughput", [1.0, 4.0])
    assert rate.value == pytest.approx(8 / (4 * 1.5 * 0.625 + 1))
    assert reading_of_process("rate", [0.0, 1.0]).value == 0.0


def test_pytest_benchmark_by_a_timer_of_cpu_time_and_of_batches(tmp_path: Path) -> None:
    stats = {"data": [3.0, 1.0, 2.0], "iterations": 100}
    content = _rounds(stats=stats, options={"timer": "time.process_time"})
    (reading,) = _parse("pytest-benchmark", tmp_path, "benchmark.json", content).readings
    assert (reading.metric, reading.inner["batch"]) == ("cpu", 100.0)


def _repeats(**change: object) -> dict[str, object]:
    return {"number": 10, "seconds": [3.0, 1.0, 2.0], "resolution": 1e-9, **change}


def test_timeit_stands_for_the_process_by_its_capped_mean(tmp_path: Path) -> None:
    (reading,) = _parse("timeit", tmp_path, "timeit.json", _repeats()).readings
    assert reading.value == pytest.approx(0.2)
    assert (reading.inner["n"], reading.inner["batch"]) == (3, 10.0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], r"timeit\.json is not an object"),
        (_repeats(seconds=[]), "seconds is empty"),
        (_repeats(seconds=[1, 0]), r"seconds\[1\] is 0, which is not valid"),
        (_repeats(number=0), "number is 0"),
        (_repeats(number=1.5), "not a whole number"),
        (_repeats(resolution="x"), "resolution is 'x'"),
    ],
)
def test_timeit_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("timeit", tmp_path, "timeit.json", content)


def _worker(*values: float, **known: object) -> dict[str, object]:
    return {"metadata": {"name": "a", **known}, "runs": [{"warmups": [[1, 9.0]]}, {"values": list(values)}]}


def test_pyperf_metadata_of_the_inner_win(tmp_path: Path) -> None:
    inner = {"metadata": {"name": "b", "unit": "byte"}, "runs": [{"values": [5], "metadata": {"loops": 8}}]}
    content = {"metadata": {"loops": 4, "inner_loops": 5}, "benchmarks": [_worker(3.0, 1.0, 2.0), inner]}
    first, second = _parse("pyperf", tmp_path, "pyperf.json", content).readings
    assert (first.value, first.inner["batch"]) == (2.0, 20.0)
    assert (second.benchmark, second.metric, "batch" in second.inner) == ("b", "rss", False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], r"pyperf\.json is not an object"),
        ({"benchmarks": []}, "no benchmark result"),
        ({"benchmarks": [1]}, r"benchmarks\[0\] is not an object"),
        ({"benchmarks": [{"runs": [1], "metadata": {"name": "a"}}]}, r"runs\[0\] of a is not an object"),
        ({"benchmarks": [{"runs": []}]}, "has no name"),
        ({"benchmarks": [_worker()]}, "a has no values"),
        ({"benchmarks": [_worker(0.0)]}, "time of a is 0"),
        ({"benchmarks": [_worker(1.0, unit="integer")]}, "neither seconds nor bytes: count"),
        ({"benchmarks": [_worker(1.0), _worker(2.0)]}, "two benchmarks are called 'a'"),
        ({"benchmarks": [_worker(1.0, loops=0)]}, "loops of a is 0, which is not valid"),
        ({"benchmarks": [_worker(1.0)], "metadata": 1}, "metadata is not an object"),
    ],
)
def test_pyperf_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("pyperf", tmp_path, "pyperf.json", content)


def test_pyperf_doubts_bear_the_name_of_their_benchmark(tmp_path: Path) -> None:
    text = (
        "a\n-\n\nWARNING: the benchmark result may be unstable\n* the maximum (2 us) is 61% greater than the mean\n\n"
    )
    (tmp_path / "check.txt").write_text(f"{text}b\n-\n\nThe benchmark seems to be stable\n")
    parsed = _parse("pyperf", tmp_path, "pyperf.json", {"benchmarks": [_worker(1.0)]})
    assert parsed.warnings == ("pyperf finds a unstable: the maximum (2 us) is 61% greater than the mean",)


def test_pyperf_is_given_a_script_or_a_statement(tmp_path: Path) -> None:
    for options in ({"script": "a.py", "stmt": "pass"}, {"script": ""}):
        with pytest.raises(ValidationError, match="either `script` or `stmt`"):
            call_of("pyperf", tmp_path, **options)
    call = call_of("pyperf", tmp_path, python=PYTHON, stmt="-x", setup=["a = 1", "b = 2"], args="--affinity 1")
    (step,) = tool("pyperf").invocations(call)
    assert step.argv[-6:] == ("--affinity", "1", "--setup=a = 1", "--setup=b = 2", "--", "-x")
    assert tool("pyperf").suite.listing(call) is None


def _asv(result: object, kind: str = "time", number: object = 4, samples: object = None) -> dict[str, object]:
    row = [result, [], [number], samples]
    columns = ["result", "params", "stats_number", "samples"]
    return {"result_columns": columns, "results": {"a": row}, "benchmarks.json": {"a": {"type": kind}}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"benchmarks": []}, r"asv\.json: result_columns is missing"),
        ({**_asv(None), "errors": {"a": "LookupError: x"}}, "a failed: LookupError: x"),
        (_asv(None), "a failed"),
        (_asv([1.0], "other"), "benchmarks.json: a: type is 'other', which perfflow does not know"),
        (_asv([1.0], samples=[[0.0]]), "time of a is 0"),
        (_asv([1.0], number=0.5), "stats_number.0. is 0.5, not a whole number"),
        (_asv([0], "peakmemory"), "no benchmark result"),
        (_asv([-1], "memory"), "object_size of a is -1"),
    ],
)
def test_asv_refuses(content: object, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        _parse("asv", tmp_path, "asv.json", content)
