"""Benchmark suites, end to end: all benchmarks, listings, one benchmark, brief runs, and failures.

Under a counting profiler, a benchmark of pytest runs a fixed number of times instead of being timed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH, Parsed, Reading
from perfflow.tools.adapter import Call, Effort, Pace
from tests.long import rest_long
from tests.session.project import Project
from tests.tools.harness import (
    PROGRAMS,
    PYTHON,
    asv_suite,
    call_of,
    failure_seen,
    listed,
    parsed_of,
    run,
    run_call,
    tool,
    why,
)

IDS = [f"speed.py::test_fibonacci[{name}]" for name in ("small", "a b::[c]/\\xfc")]
IDS += ["speed.py::TestGroup::test_through_a_fixture", "speed.py::test_once"]
NAMES = ["add/64", "add/4096", "make<std::string>", "a.b+c (d|e)/[f]^{g}$*\\"]
NAMES += [f"{name}/min_time:0.001/repeats:3" for name in ("repeated", "summed")]
SHELL: dict[str, Any] = {"shell": True}
FAST = ["--benchmark-max-time=0.001"]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, which contains speed.py and is not part of this project."""
    folder = tmp_path / "suite"
    folder.mkdir()
    shutil.copy(PROGRAMS / "speed.py", folder)
    monkeypatch.chdir(folder)
    # pytest-xdist sets it in the environment of these tests.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return folder


UNEVEN = """
import os
from itertools import count

def test_calls(benchmark):
    calls, more = count(), int(os.environ.get("UNEVEN", "1"))
    benchmark(lambda: sum(range(50_000 * more if next(calls) % 2 else 50_000)))
"""


def _bare(folder: Path) -> str:
    """Return an interpreter without any package."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def _pytest(folder: Path, **options: Any) -> Call:
    return call_of("pytest-benchmark", folder / "out", **{"python": PYTHON, "paths": "speed.py", **options})


def _parsed(name: str, call: Call, **change: Any) -> Parsed:
    """Run the tool and parse what it left."""
    return parsed_of(run_call(name, replace(call, **change)))


def _times(parsed: Parsed) -> dict[str, Reading]:
    return {reading.benchmark: reading for reading in parsed.readings if reading.metric == "time"}


def test_pytest_benchmark(suite: Path) -> None:
    call = replace(_pytest(suite), effort=Effort.BRIEF)
    times = _times(_parsed("pytest-benchmark", call))
    assert list(times) == IDS
    fast = times[IDS[0]]
    assert fast.inner["n"] >= times[IDS[3]].inner["n"]
    assert fast.inner["min"] <= fast.value <= fast.inner["mean"] <= fast.inner["max"]
    assert times[IDS[3]].inner["n"] == 1
    assert {path.name for path in suite.iterdir()} <= {"speed.py", "out", "__pycache__"}


def test_pytest_benchmark_lists_what_it_would_run(suite: Path) -> None:
    assert listed("pytest-benchmark", _pytest(suite)) == (0, IDS)
    assert listed("pytest-benchmark", _pytest(suite, select="small or once")) == (0, [IDS[0], IDS[3]])
    assert {path.name for path in suite.iterdir()} <= {"speed.py", "out", "__pycache__"}


@pytest.mark.parametrize("chosen", rest_long([(IDS[2], IDS[0], IDS[1]), (IDS[1],), (IDS[2],)], one_name=True), ids=str)
def test_pytest_benchmark_runs_those_chosen_in_their_order(chosen: tuple[str, ...], suite: Path) -> None:
    call = replace(_pytest(suite, args=FAST, select="nothing"), chosen=chosen, effort=Effort.BRIEF)
    assert tuple(_times(_parsed("pytest-benchmark", call))) == chosen


def test_other_clocks_of_pytest_benchmark_are_of_one_iteration_too(suite: Path) -> None:
    call = replace(_pytest(suite), chosen=(IDS[0],), effort=Effort.BRIEF)
    found = {reading.metric: reading for reading in _parsed("pytest-benchmark", call).readings}
    assert found["time"].inner[BATCH] > 100
    # It only computes. The least of many rounds had a core for at least a part of its time.
    assert found["cpu"].inner["min"] > found["time"].inner["min"] / 20


def test_pytest_benchmark_of_several_with_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = "def test_broken(benchmark): benchmark(lambda: 1 / 0)\n"
    (tmp_path / "speed.py").write_text(f"{broken}def test_good(benchmark): benchmark(sum, [1])\n")
    call = replace(_pytest(tmp_path), chosen=("speed.py::test_broken", "speed.py::test_good"), effort=Effort.BRIEF)
    parsed = _parsed("pytest-benchmark", call)
    assert list(_times(parsed)) == ["speed.py::test_good"]
    assert list(parsed.failed) == ["speed.py::test_broken"]
    assert "ZeroDivisionError" in parsed.failed["speed.py::test_broken"]


CLOCKS = """
import threading
import time

import pytest

def work(): return sum(range(300_000))

def side_by_side():
    threads = [threading.Thread(target=time.sleep, args=(0.001,)), threading.Thread(target=work)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

def test_work(benchmark): benchmark(work)
def test_nap(benchmark): benchmark(time.sleep, 0.02)
def test_pedantic(benchmark): benchmark.pedantic(work, rounds=3)
def test_threads(benchmark): benchmark(side_by_side)

@pytest.mark.benchmark(timer=time.process_time)
def test_own_timer(benchmark): benchmark(work)
"""


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_pytest_benchmark_by_three_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speed.py").write_text(CLOCKS)
    call = replace(_pytest(tmp_path), effort=Effort.BRIEF)
    found = _clocks(_parsed("pytest-benchmark", call))
    clocks = {name.partition("::test_")[2]: values for name, values in found.items()}
    for name in ("work", "pedantic"):
        assert list(clocks[name]) == ["time", "cpu", "uncontended"]
        assert clocks[name]["cpu"] > 0.9 * clocks[name]["uncontended"]
    assert clocks["nap"]["cpu"] < 0.01 < clocks["nap"]["uncontended"]
    # The waiting of other threads is not known.
    assert list(clocks["threads"]) == ["time", "cpu"]
    # A suite that chooses its timer keeps it.
    assert list(clocks["own_timer"]) == ["cpu"]


@pytest.mark.long  # test_real_cargo.py tests criterion, which takes a third of the time
def test_every_second_call_twice_as_slow_is_a_regression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_uneven.py").write_text(UNEVEN)
    # Long enough for a busy machine.
    step = f"{{id: bench, uses: pytest-benchmark, benchmark: '*', with: {{python: '{PYTHON}', paths: test_uneven.py}}, "
    text = f"stages:\n  baseline:\n    - {step}budget: 2m, candidate: {{env: {{UNEVEN: '2'}}}}}}\n"
    (row,) = (row for row in Project(tmp_path).run(text).benchmarks if row.metric == "cpu")
    assert (row.statistic, row.decision, row.level) == ("capped mean", "regressed", "action")


@pytest.mark.long  # waits for a slow test
def test_a_slow_test_has_few_rounds(tmp_path: Path) -> None:
    (tmp_path / "test_nap.py").write_text("import time\ndef test_nap(benchmark): benchmark(time.sleep, 0.2)\n")
    call = replace(_pytest(tmp_path, paths=str(tmp_path)), effort=Effort.BRIEF)
    rounds = []
    for pace in (None, Pace(0.2, 0.2), Pace(0.02, 0.02)):
        (reading,) = _times(_parsed("pytest-benchmark", call, pace=pace)).values()
        rounds.append(reading.inner["n"])
    assert rounds == [1, 2, 5]


@pytest.mark.long  # one more layout of a project of pytest-benchmark
def test_pytest_benchmark_below_the_folder_of_its_settings(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (suite / "pytest.ini").write_text("[pytest]\naddopts = --benchmark-disable -p no:randomly\n")
    below = suite / "deep" / "er"
    below.mkdir(parents=True)
    shutil.move(suite / "speed.py", below / "test_speed.py")
    monkeypatch.chdir(suite / "deep")
    call = _pytest(suite, paths=[], args=" ".join(FAST))
    status, names = listed("pytest-benchmark", call)
    assert status == 0
    assert names[0] == "er/test_speed.py::test_fibonacci[small]"
    alone = replace(call, chosen=(names[0],))
    assert list(_times(parsed_of(run_call("pytest-benchmark", alone)))) == names[:1]


@pytest.mark.long  # one more layout of a project of pytest-benchmark
def test_pytest_benchmark_finds_modules_of_the_current_folder(suite: Path) -> None:
    (suite / "beside.py").write_text("def work():\n    return 1\n")
    text = "import beside\ndef test_work(benchmark):\n    print('noise')\n    assert benchmark(beside.work)\n"
    (suite / "test_beside.py").write_text(text)
    call = _pytest(suite, paths="test_beside.py", args=["-s", *FAST])
    assert listed("pytest-benchmark", call) == (0, ["test_beside.py::test_work"])
    assert _parsed("pytest-benchmark", call).readings


@pytest.mark.parametrize(
    ("options", "reason"),
    rest_long(
        [
            ({"select": "nowhere"}, "none matches"),
            ({"select": "skipped"}, "all were skipped"),
            ({"select": "without_timing", "args": ["--benchmark-disable"]}, "none matches"),
            ({"select": "a b"}, "pytest did not start: Wrong expression"),
            ({"paths": "nowhere.py"}, "pytest did not start: file or directory not found"),
            ({"args": "--nonsense"}, "pytest did not start: unrecognized arguments: --nonsense"),
            ({"args": ["-p", "no:benchmark"]}, "pytest-benchmark is not installed"),
        ],
        keep=3,
    ),
    ids=str,
)
def test_pytest_benchmark_without_benchmarks(options: dict[str, Any], reason: str, suite: Path) -> None:
    assert reason in why("pytest-benchmark", _pytest(suite, **options))


@pytest.mark.parametrize(
    "body", rest_long(["assert not benchmark(len, [])  # wrong\n    assert 0", "benchmark(int, 'x')", "1 +"])
)
def test_pytest_benchmark_of_a_failing_test(body: str, suite: Path) -> None:
    (suite / "test_bad.py").write_text(f"def test_bad(benchmark):\n    {body}\n")
    assert "pytest reports: " in why("pytest-benchmark", _pytest(suite, paths=["speed.py", "test_bad.py"], args=FAST))


def test_pytest_benchmark_without_pytest(suite: Path) -> None:
    call = _pytest(suite, python=_bare(suite))
    assert "pytest is not installed" in why("pytest-benchmark", call)
    assert listed("pytest-benchmark", call) == (1, [])
    assert "pip install pytest" in (call.folder / "stderr").read_text()


@pytest.mark.long  # many runs of pytest
def test_pytest_benchmark_lists_nothing(suite: Path) -> None:
    assert listed("pytest-benchmark", _pytest(suite, select="without_timing")) == (5, [])
    assert listed("pytest-benchmark", _pytest(suite, select="skipped")) == (5, [])
    (suite / "test_bad.py").write_text("1 +\n")
    status, names = listed("pytest-benchmark", _pytest(suite, paths="test_bad.py"))
    assert status
    assert not names


@pytest.mark.long  # one more layout of a project of pytest-benchmark
def test_pytest_benchmark_outside_the_current_folder(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = suite / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    call = _pytest(suite, paths=str(suite / "speed.py"), args=FAST, select="small")
    assert "outside the step's folder" in why("pytest-benchmark", call)
    assert listed("pytest-benchmark", call) == (5, [])


def test_google_benchmark(gbench: str, tmp_path: Path) -> None:
    assert listed("google-benchmark", call_of("google-benchmark", tmp_path, gbench, filter="-broken")) == (0, NAMES)
    parsed = parsed_of(run("google-benchmark", tmp_path, gbench, "--benchmark_min_time=0.001", filter="-broken"))
    times = _times(parsed)
    assert list(times) == NAMES[:-1]
    assert not times[NAMES[0]].inner
    assert times[NAMES[4]].inner["n"] == 3
    rates = {reading.metric: reading.value for reading in parsed.readings if reading.benchmark == "add/4096"}
    assert rates["throughput"] == pytest.approx(4 * rates["rate"])
    assert rates["rate"] == pytest.approx(4096 / rates["cpu"], rel=1e-6)
    assert any("only aggregates of summed" in warning for warning in parsed.warnings)


@pytest.mark.parametrize("chosen", [*((name,) for name in NAMES[:-1]), (*NAMES[2::-2],)], ids=str)
def test_google_benchmark_runs_those_chosen_briefly(chosen: tuple[str, ...], gbench: str, tmp_path: Path) -> None:
    call = replace(call_of("google-benchmark", tmp_path, gbench), chosen=chosen, effort=Effort.BRIEF)
    times = _times(_parsed("google-benchmark", call))
    assert set(times) == set(chosen)
    for reading in times.values():
        # A first process, before the time of one is known.
        assert reading.inner["n"] == 3
        assert reading.inner["min"] <= reading.value <= 1.5 * reading.inner["p50"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("broken/1", 'broken/1 reports an error: the input "x" is missing'),
        ("nowhere", "no benchmark matches the filter"),
        ("summed", "it has only aggregates"),
    ],
)
def test_google_benchmark_without_figures(text: str, reason: str, gbench: str, tmp_path: Path) -> None:
    ran = run("google-benchmark", tmp_path, gbench, "--benchmark_min_time=0.001", filter=text)
    assert ran.status == 0
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()


def test_google_benchmark_that_failed_leaves_the_others(gbench: str, tmp_path: Path) -> None:
    parsed = parsed_of(run("google-benchmark", tmp_path, gbench, "--benchmark_min_time=0.001", filter="broken"))
    assert {reading.benchmark for reading in parsed.readings} == {"broken/0"}
    assert parsed.failed == {"broken/1": 'reports an error: the input "x" is missing'}


@pytest.mark.parametrize("words", [("hot", "10", "3"), ("crash",), ("idle",)], ids=str)
def test_google_benchmark_of_another_program(words: tuple[str, ...], built: dict[str, str], tmp_path: Path) -> None:
    ran = run("google-benchmark", tmp_path, built[words[0]], *words[1:])
    assert failure_seen(ran)
    with pytest.raises(ToolOutputError, match="does not use Google Benchmark"):
        ran.parse()


GROUPED = """\
import pytest

@pytest.mark.benchmark(group="parse")
@pytest.mark.parametrize("size", [1, 2])
def test_parse(benchmark, size):
    benchmark(sum, range(size))

@pytest.mark.benchmark(group="render")
def test_render(benchmark):
    benchmark(str, 1)

def test_alone(benchmark):
    benchmark(len, ())
"""


@pytest.mark.long  # many runs of pytest
def test_pytest_benchmark_by_group(suite: Path) -> None:
    (suite / "grouped.py").write_text(GROUPED)
    call = _pytest(suite, paths="grouped.py", groups=["parse"], args=FAST)
    wanted = ["grouped.py::test_parse[1]", "grouped.py::test_parse[2]"]
    assert listed("pytest-benchmark", call) == (0, wanted)
    assert list(_times(_parsed("pytest-benchmark", call))) == wanted
    other = replace(_pytest(suite, paths="grouped.py", groups=["pasre"], args=FAST), folder=suite / "other")
    status, names = listed("pytest-benchmark", other)
    assert (status, names) == (5, [])
    assert "marked with a group that is asked for" in (other.folder / "stderr").read_text()
    assert why("pytest-benchmark", other) == "none of the benchmarks that ran is in the groups of `groups`: pasre"


SUITE = """
calls = []

def work(number):
    calls.append(number)
    return number

def test_plain(benchmark):
    assert benchmark(work, 3) == 3
    assert calls == [3] * 7

def test_pedantic(benchmark):
    made = iter(range(100))
    benchmark.pedantic(work, setup=lambda: ((next(made),), {}), rounds=2)
    assert calls == [0, 1, 2, 3, 4, 5, 6]

def test_without(benchmark):
    pass
"""


@pytest.mark.parametrize("name", rest_long(["test_plain", "test_pedantic", "test_without"]))
def test_a_benchmark_runs_a_fixed_number_of_times(name: str, tmp_path: Path) -> None:
    (tmp_path / "bench_it.py").write_text(SUITE)
    (tmp_path / "none.ini").write_text("[pytest]\n")
    call = _pytest(tmp_path, paths=[], args=f"-c {tmp_path}/none.ini")
    call = replace(call, chosen=(str(tmp_path / f"bench_it.py::{name}"),), effort=Effort.BRIEF, iterations=7)
    ran = run_call("pytest-benchmark", call)
    if name == "test_without":
        with pytest.raises(ToolOutputError, match="0 calls of 7"):
            tool("pytest-benchmark").suite.iterated(call)
    else:
        assert ran.status == 0, (tmp_path / "out" / "pytest.out").read_text()
        assert tool("pytest-benchmark").suite.iterated(call) == "7"


# timeit, pyperf and asv

SCRIPT = str(PROGRAMS / "perf_script.py")
IN_SCRIPT = ["fibonacci", "join/50 a::b[c]", "own timer"]
SORTED = [f"demo.Sorting.time_sorted({cell})" for cell in ("100, 'up'", "100, 'down'", "2000, 'up'")]
IN_SUITE = [
    "demo.Cached.time_hash",
    *SORTED,
    "demo.mem_values",
    "demo.peakmem_block",
    "demo.timeraw_import",
    "demo.track_lines",
]
SHORT = ["--processes=1", "--values=3", "--min-time=0.001"]


def _call(name: str, folder: Path, **options: Any) -> Call:
    return call_of(name, folder / "out", **{"python": PYTHON, **options})


def _metrics(parsed: Parsed) -> Mapping[str, str]:
    return {reading.benchmark: reading.metric for reading in parsed.readings if reading.metric not in OTHER_CLOCKS}


OTHER_CLOCKS = ("cpu", "uncontended")
NAP = 0.02


def _clocks(parsed: Parsed) -> dict[str, dict[str, float]]:
    """Return the values of each benchmark by their metric."""
    found: dict[str, dict[str, float]] = {}
    for reading in parsed.readings:
        found.setdefault(reading.benchmark, {})[reading.metric] = reading.value
    return found


@pytest.mark.parametrize(("statement", "computes"), [("time.sleep(0.02)", False), ("sum(range(500_000))", True)])
def test_timeit_by_three_clocks(statement: str, computes: bool, tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt=statement, setup="import time", number=1, repeat=5)
    found = _clocks(_parsed("timeit", call))[""]
    assert list(found) == ["time", "cpu", "uncontended"]
    assert found["cpu"] <= found["uncontended"]
    if computes:
        assert found["cpu"] > 0.9 * found["uncontended"]
    else:
        assert found["cpu"] < NAP / 2
        assert found["uncontended"] > NAP / 2


def _asv_of(folder: Path, text: str) -> Call:
    """Return a call for a suite of one module."""
    benches = folder / "suite" / "benchmarks"
    benches.mkdir(parents=True)
    (benches / "__init__.py").touch()
    (benches / "it.py").write_text(text)
    config = folder / "suite" / "asv.conf.json"
    config.write_text('{"version": 1, "benchmark_dir": "benchmarks"}')
    return _call("asv", folder, config=str(config))


def test_asv_by_three_clocks(tmp_path: Path) -> None:
    own = "class Own:\n    from time import process_time as timer\n    timer = staticmethod(timer)\n"
    text = (
        f"import time\ndef time_nap(): time.sleep({NAP})\ndef time_sum(): sum(range(500_000))\n"
        f"{own}    def time_sum(self): sum(range(500_000))\n"
    )
    found = _clocks(_parsed("asv", replace(_asv_of(tmp_path, text), effort=Effort.BRIEF)))
    nap, total, own_timer = (found[f"it.{name}"] for name in ("time_nap", "time_sum", "Own.time_sum"))
    assert nap["cpu"] < NAP / 2 < nap["uncontended"]
    assert total["cpu"] > 0.9 * total["uncontended"]
    # A suite that chooses its timer keeps it.
    assert list(own_timer) == ["time"]


def test_timeit_keeps_every_repeat(tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt="total += sum(values)", setup="total = 0\nvalues = range(50)", repeat=7)
    (reading,) = _times(_parsed("timeit", call)).values()
    assert reading.inner["n"] == 7
    assert reading.inner["min"] <= reading.value <= reading.inner["mean"]
    assert reading.inner[BATCH] > 1


def test_timeit_takes_what_is_slow_once_a_repeat(tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt="time.sleep(.05)", setup="import time")
    (reading,) = _times(_parsed("timeit", call)).values()
    assert reading.inner["n"] == 5
    assert BATCH not in reading.inner
    assert reading.inner["min"] >= 0.05


def test_timeit_finds_modules_where_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside.py").write_text("def work():\n    print('noise')\n")
    monkeypatch.chdir(tmp_path)
    call = _call("timeit", tmp_path, stmt="beside.work()", setup="import beside", number=10, repeat=2)
    assert _parsed("timeit", call).readings


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stmt": "[][0]"}, "IndexError: list index out of range"),
        ({"stmt": "1 +"}, "SyntaxError: "),
        ({"stmt": "pass", "setup": "import no_such_module"}, "No module named 'no_such_module'"),
        ({"stmt": "raise SystemExit"}, "ended its process"),
        ({"stmt": "pass", "setup": "import os; os._exit(0)"}, "ended its process"),
    ],
    ids=str,
)
def test_timeit_of_a_statement_that_fails(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    assert reason in why("timeit", _call("timeit", tmp_path, **options))


def test_timeit_says_when_the_clock_shows(tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt="pass", number=1, repeat=3)
    (warning,) = _parsed("timeit", call).warnings
    assert "too short for the clock" in warning


def test_pyperf_script(tmp_path: Path) -> None:
    assert listed("pyperf", _call("pyperf", tmp_path, script=SCRIPT)) == (0, IN_SCRIPT)
    ran = run_call("pyperf", _call("pyperf", tmp_path, script=SCRIPT, args=SHORT))
    parsed = parsed_of(ran)
    assert _metrics(parsed) == dict.fromkeys(IN_SCRIPT, "time")
    assert {reading.inner["n"] for reading in parsed.readings} == {3}
    # By its own clock, each loop takes exactly a millisecond.
    assert parsed.readings[2].value == pytest.approx(1e-3)
    assert (ran.call.folder / "check.txt").read_text()


@pytest.mark.parametrize(
    "chosen",
    rest_long([(IN_SCRIPT[2], IN_SCRIPT[0]), *((name,) for name in IN_SCRIPT)], keep=2, one_name=True),
    ids=str,
)
def test_pyperf_runs_those_chosen_briefly_in_the_order_of_the_script(chosen: tuple[str, ...], tmp_path: Path) -> None:
    call = replace(_call("pyperf", tmp_path, script=SCRIPT), chosen=chosen, effort=Effort.BRIEF)
    again = replace(call, folder=tmp_path / "again", pace=Pace(1e-5, 0.1))
    for each, count in ((call, 3), (again, 20)):
        found = {name: reading.inner["n"] for name, reading in _times(_parsed("pyperf", each)).items()}
        assert list(found.items()) == [(name, count) for name in IN_SCRIPT if name in chosen]


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_pyperf_by_three_clocks(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "import asyncio, time, pyperf\n"
        "r = pyperf.Runner()\n"
        f"r.timeit('nap', 'time.sleep({NAP})', globals=globals())\n"
        "r.bench_func('sum', sum, range(500_000))\n"
        f"r.bench_async_func('rest', asyncio.sleep, {NAP})\n"
        "r.bench_time_func('own timer', lambda loops: loops * 1e-3)\n"
    )
    call = replace(_call("pyperf", tmp_path, script=str(tmp_path / "bench.py")), effort=Effort.BRIEF)
    found = _clocks(_parsed("pyperf", call))
    for name in ("nap", "rest"):
        assert found[name]["cpu"] < NAP / 2 < found[name]["uncontended"]
    assert found["sum"]["cpu"] > 0.9 * found["sum"]["uncontended"]
    # A function that returns its time has its own clock.
    assert found["own timer"] == {"time": pytest.approx(1e-3)}


def test_pyperf_runs_briefly_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(
        "import os, pyperf\n"
        f"open({str(tmp_path / 'started')!r}, 'a').write('x')\n"
        "r = pyperf.Runner()\n"
        "calls = []\n"
        "def once():\n"
        "    calls.append(1)\n"
        "    assert len(calls) < 10_000_000\n"
        "for name in 'abc':\n"
        "    assert not calls\n"
        "    r.bench_func(name, once)\n"
    )
    call = replace(_call("pyperf", tmp_path, script=str(tmp_path / "bench.py")), effort=Effort.BRIEF)
    parsed = _parsed("pyperf", call)
    assert _metrics(parsed) == dict.fromkeys("abc", "time")
    assert (tmp_path / "started").read_text() == "x"


@pytest.mark.long  # cheaper tests in this file run the same tool
@pytest.mark.parametrize("brief", rest_long([True, False]))
def test_pyperf_measures_the_first_of_two_benchmarks_of_one_name(brief: bool, tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("import pyperf\nr = pyperf.Runner()\nfor n in 'aba': r.timeit(n, 'pass')\n")
    call = _call("pyperf", tmp_path, script=str(tmp_path / "bench.py"), args=SHORT)
    assert listed("pyperf", call) == (0, ["a", "b"])
    parsed = parsed_of(run_call("pyperf", replace(call, effort=Effort.BRIEF) if brief else call))
    assert _metrics(parsed) == {"a": "time", "b": "time"}
    assert "the script has two benchmarks called a; only the first is measured" in parsed.warnings


@pytest.mark.long  # cheaper tests in this file run the same tool
def test_pyperf_hands_the_environment_on(tmp_path: Path) -> None:
    call = _call(
        "pyperf", tmp_path, stmt="len(HOME)", setup="import os; HOME = os.environ['OF_A_CANDIDATE']", args=SHORT
    )
    assert parsed_of(run_call("pyperf", call, {"OF_A_CANDIDATE": "yes"})).readings[0].benchmark == ""
    assert "KeyError: 'OF_A_CANDIDATE'" in why("pyperf", replace(call, folder=tmp_path / "other"))


def test_pyperf_memory(tmp_path: Path) -> None:
    call = _call("pyperf", tmp_path, stmt="bytearray(30_000_000)", memory=True, args=["--loops=3", *SHORT])
    (reading,) = _parsed("pyperf", call).readings
    assert reading.metric == "rss"
    assert reading.value > 1e6


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "has no benchmark of pyperf"),
        ("import pyperf\npyperf.Runner().timeit('a', '[][0]')\n", "IndexError: list index out of range"),
        ("import pyperf\nr = pyperf.Runner()\nr.timeit('a', 'pass')\nraise LookupError('late')\n", "LookupError: late"),
    ],
)
def test_pyperf_of_a_script_that_fails(script: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(script)
    for effort in (Effort.NORMAL, Effort.BRIEF):
        (tmp_path / effort.name).mkdir()
        call = _call("pyperf", tmp_path / effort.name, script=str(tmp_path / "bench.py"), args=SHORT)
        ran = run_call("pyperf", replace(call, effort=effort))
        assert ran.status
        with pytest.raises(ToolOutputError, match=reason):
            ran.parse()


def test_pyperf_without_pyperf(tmp_path: Path) -> None:
    for options in ({"script": SCRIPT}, {"stmt": "pass"}):
        assert "pip install pyperf" in why("pyperf", _call("pyperf", tmp_path, python=_bare(tmp_path), **options))


@pytest.fixture
def demo(tmp_path: Path) -> dict[str, Any]:
    """Return the option that names a suite with benchmarks of every kind."""
    return {"config": str(asv_suite(tmp_path / "suite"))}


def test_asv(demo: dict[str, Any], tmp_path: Path) -> None:
    before = _files(tmp_path / "suite")
    call = replace(_call("asv", tmp_path, **demo), effort=Effort.BRIEF)
    parsed = _parsed("asv", call)
    kinds = {"demo.mem_values": "object_size", "demo.peakmem_block": "rss", "demo.track_lines": "lines"}
    assert _metrics(parsed) == {name: kinds.get(name, "time") for name in IN_SUITE}
    readings = {reading.benchmark: reading for reading in parsed.readings}
    assert readings["demo.peakmem_block"].value > 20e6
    assert readings["demo.Cached.time_hash"].inner[BATCH] > 1
    assert parsed.warnings == ("skipped by the suite: demo.Sorting.time_sorted(2000, 'down')",)
    assert _files(tmp_path / "suite") == before


def _files(folder: Path) -> dict[Path, float]:
    """Return the time of each file, without bytecode files."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: path.stat().st_mtime for path in paths}


def test_asv_lists_what_it_would_measure(demo: dict[str, Any], tmp_path: Path) -> None:
    assert listed("asv", _call("asv", tmp_path, **demo)) == (0, IN_SUITE)
    assert listed("asv", _call("asv", tmp_path, **demo, bench="sorted")) == (0, SORTED)


@pytest.mark.parametrize(
    "chosen",
    rest_long([("demo.Cached.time_hash", SORTED[1]), (SORTED[1],), ("demo.Cached.time_hash",)], one_name=True),
    ids=str,
)
def test_asv_runs_those_chosen_in_their_order(chosen: tuple[str, ...], demo: dict[str, Any], tmp_path: Path) -> None:
    call = replace(_call("asv", tmp_path, **demo), chosen=chosen, effort=Effort.BRIEF, pace=Pace(1e-6, 0.1))
    times = _times(_parsed("asv", call))
    assert tuple(times) == chosen
    assert all(5 <= reading.inner["n"] <= 20 for reading in times.values())


def test_asv_names_nothing_that_a_suite_prints_when_it_is_imported(tmp_path: Path) -> None:
    text = "import os\nprint('printed')\nos.write(1, b'written')\ndef time_it(): pass\n"
    assert listed("asv", _asv_of(tmp_path, text)) == (0, ["it.time_it"])


def test_asv_ends_a_benchmark_that_takes_too_long(tmp_path: Path) -> None:
    text = "import time\nclass Endless:\n    timeout = 0.2\n    def time_it(self): time.sleep(600)\n"
    assert "it took more than 0.4 s" in why("asv", _asv_of(tmp_path, text))


def test_asv_runs_the_code_that_pythonpath_names(demo: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "subject.py").write_text("SIZE = 300\n")
    text = "import subject\ndef mem_subject():\n    return list(range(subject.SIZE))\n"
    (tmp_path / "suite" / "benchmarks" / "of_tree.py").write_text(text)
    call = _call("asv", tmp_path, **demo, bench="of_tree")
    (reading,) = parsed_of(run_call("asv", call, {"PYTHONPATH": str(tmp_path / "tree")})).readings
    assert reading.value >= 300 * 8


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bench": "nowhere"}, "matches nowhere"),
        ({"bench": r"2000, 'down'"}, "it has no benchmark result; skipped by the suite"),
        ({"config": "no.json"}, "No such file"),
    ],
    ids=str,
)
def test_asv_without_figures(options: dict[str, Any], reason: str, demo: dict[str, Any], tmp_path: Path) -> None:
    assert reason in why("asv", _call("asv", tmp_path, **{**demo, **options}))


def test_asv_of_a_benchmark_that_fails(demo: dict[str, Any], tmp_path: Path) -> None:
    failing = _call("asv", tmp_path, config=demo["config"].replace("asv.conf", "failing"))
    assert "failing.time_failing failed: LookupError: no such thing" in why("asv", failing)
    (tmp_path / "suite" / "broken" / "failing.py").write_text("1 +\n")
    assert "SyntaxError" in why("asv", replace(failing, folder=tmp_path / "other"))


def test_asv_without_asv(demo: dict[str, Any], tmp_path: Path) -> None:
    assert "pip install asv" in why("asv", _call("asv", tmp_path, python=_bare(tmp_path), **demo))
