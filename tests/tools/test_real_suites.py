"""Benchmark suites, end to end: all benchmarks, listings, one benchmark, brief runs, and failures."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH, Parsed, Reading
from perfflow.tools.adapter import Call, Effort, Pace
from tests.session.project import Project
from tests.tools.harness import PROGRAMS, PYTHON, call_of, failure_seen, listed, parsed_of, run, run_call, why

IDS = [
    "speed.py::test_fibonacci[small]",
    "speed.py::test_fibonacci[a b::[c]/\\xfc]",
    "speed.py::TestGroup::test_through_a_fixture",
    "speed.py::test_once",
]
NAMES = [
    "add/64",
    "add/4096",
    "make<std::string>",
    "a.b+c (d|e)/[f]^{g}$*\\",
    "repeated/min_time:0.001/repeats:3",
    "summed/min_time:0.001/repeats:3",
]
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


def _pytest(folder: Path, **options: Any) -> Call:
    return call_of("pytest-benchmark", folder / "out", **{"python": PYTHON, "paths": "speed.py", **options})


def _times(parsed: Parsed) -> dict[str, Reading]:
    return {reading.benchmark: reading for reading in parsed.readings if reading.metric == "time"}


def test_pytest_benchmark(suite: Path) -> None:
    call = replace(_pytest(suite), effort=Effort.BRIEF)
    times = _times(parsed_of(run_call("pytest-benchmark", call)))
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


@pytest.mark.parametrize("name", IDS[1:3])
def test_pytest_benchmark_runs_one_alone(name: str, suite: Path) -> None:
    call = replace(_pytest(suite, args=FAST, select="nothing"), chosen=(name,))
    assert list(_times(parsed_of(run_call("pytest-benchmark", call)))) == [name]


def test_other_clocks_of_pytest_benchmark_are_of_one_iteration_too(suite: Path) -> None:
    call = replace(_pytest(suite), chosen=(IDS[0],), effort=Effort.BRIEF)
    found = {reading.metric: reading for reading in parsed_of(run_call("pytest-benchmark", call)).readings}
    assert found["time"].inner[BATCH] > 100
    # It only computes. The least of many rounds had a core for at least a part of its time.
    assert found["cpu"].inner["min"] > found["time"].inner["min"] / 20


def test_pytest_benchmark_runs_several_in_the_given_order(suite: Path) -> None:
    chosen = (IDS[2], IDS[0], IDS[1])
    call = replace(_pytest(suite, select="nothing"), chosen=chosen, effort=Effort.BRIEF)
    assert tuple(_times(parsed_of(run_call("pytest-benchmark", call)))) == chosen


def test_pytest_benchmark_of_several_with_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = "def test_broken(benchmark): benchmark(lambda: 1 / 0)\n"
    (tmp_path / "speed.py").write_text(f"{broken}def test_good(benchmark): benchmark(sum, [1])\n")
    call = replace(_pytest(tmp_path), chosen=("speed.py::test_broken", "speed.py::test_good"), effort=Effort.BRIEF)
    parsed = parsed_of(run_call("pytest-benchmark", call))
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


def test_pytest_benchmark_by_three_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "speed.py").write_text(CLOCKS)
    call = replace(_pytest(tmp_path), effort=Effort.BRIEF)
    clocks: dict[str, dict[str, float]] = {}
    for reading in parsed_of(run_call("pytest-benchmark", call)).readings:
        clocks.setdefault(reading.benchmark.partition("::test_")[2], {})[reading.metric] = reading.value
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


def test_a_slow_test_has_few_rounds(tmp_path: Path) -> None:
    (tmp_path / "test_nap.py").write_text("import time\ndef test_nap(benchmark): benchmark(time.sleep, 0.2)\n")
    call = replace(_pytest(tmp_path, paths=str(tmp_path)), effort=Effort.BRIEF)
    rounds = []
    for pace in (None, Pace(0.2, 0.2), Pace(0.02, 0.02)):
        (reading,) = _times(parsed_of(run_call("pytest-benchmark", replace(call, pace=pace)))).values()
        rounds.append(reading.inner["n"])
    assert rounds == [1, 2, 5]


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


def test_pytest_benchmark_finds_modules_of_the_current_folder(suite: Path) -> None:
    (suite / "beside.py").write_text("def work():\n    return 1\n")
    text = "import beside\ndef test_work(benchmark):\n    print('noise')\n    assert benchmark(beside.work)\n"
    (suite / "test_beside.py").write_text(text)
    call = _pytest(suite, paths="test_beside.py", args=["-s", *FAST])
    assert listed("pytest-benchmark", call) == (0, ["test_beside.py::test_work"])
    assert parsed_of(run_call("pytest-benchmark", call)).readings


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"select": "nowhere"}, "none matches"),
        ({"select": "skipped"}, "all were skipped"),
        ({"select": "without_timing", "args": ["--benchmark-disable"]}, "none matches"),
        ({"select": "a b"}, "pytest did not start: Wrong expression"),
        ({"paths": "nowhere.py"}, "pytest did not start: file or directory not found"),
        ({"args": "--nonsense"}, "pytest did not start: unrecognized arguments: --nonsense"),
        ({"args": ["-p", "no:benchmark"]}, "pytest-benchmark is not installed"),
    ],
    ids=str,
)
def test_pytest_benchmark_without_benchmarks(options: dict[str, Any], reason: str, suite: Path) -> None:
    assert reason in why("pytest-benchmark", _pytest(suite, **options))


@pytest.mark.parametrize("body", ["assert not benchmark(len, [])  # wrong\n    assert 0", "benchmark(int, 'x')", "1 +"])
def test_pytest_benchmark_of_a_failing_test(body: str, suite: Path) -> None:
    (suite / "test_bad.py").write_text(f"def test_bad(benchmark):\n    {body}\n")
    assert "pytest reports: " in why("pytest-benchmark", _pytest(suite, paths=["speed.py", "test_bad.py"], args=FAST))


def test_pytest_benchmark_without_pytest(suite: Path) -> None:
    bare = suite / "python"
    bare.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')
    bare.chmod(0o755)
    call = _pytest(suite, python=str(bare))
    assert "pytest is not installed" in why("pytest-benchmark", call)
    assert listed("pytest-benchmark", call) == (1, [])
    assert "pip install pytest" in (call.folder / "stderr").read_text()


def test_pytest_benchmark_lists_nothing(suite: Path) -> None:
    assert listed("pytest-benchmark", _pytest(suite, select="without_timing")) == (5, [])
    assert listed("pytest-benchmark", _pytest(suite, select="skipped")) == (5, [])
    (suite / "test_bad.py").write_text("1 +\n")
    status, names = listed("pytest-benchmark", _pytest(suite, paths="test_bad.py"))
    assert status
    assert not names


def test_pytest_benchmark_outside_the_current_folder(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = suite / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    call = _pytest(suite, paths=str(suite / "speed.py"), args=FAST, select="small")
    assert "outside the step's folder" in why("pytest-benchmark", call)
    assert listed("pytest-benchmark", call) == (5, [])


def test_google_benchmark(gbench: str, tmp_path: Path) -> None:
    parsed = parsed_of(run("google-benchmark", tmp_path, gbench, "--benchmark_min_time=0.001", filter="-broken"))
    times = _times(parsed)
    assert list(times) == NAMES[:-1]
    assert not times[NAMES[0]].inner
    assert times[NAMES[4]].inner["n"] == 3
    rates = {reading.metric: reading.value for reading in parsed.readings if reading.benchmark == "add/4096"}
    assert rates["throughput"] == pytest.approx(4 * rates["rate"])
    assert rates["rate"] == pytest.approx(4096 / rates["cpu"], rel=1e-6)
    assert any("only aggregates of summed" in warning for warning in parsed.warnings)


def test_google_benchmark_lists_what_it_would_run(gbench: str, tmp_path: Path) -> None:
    status, names = listed("google-benchmark", call_of("google-benchmark", tmp_path, gbench, filter="-broken"))
    assert (status, names) == (0, NAMES)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_google_benchmark_runs_one_alone_and_briefly(name: str, gbench: str, tmp_path: Path) -> None:
    call = replace(call_of("google-benchmark", tmp_path, gbench), chosen=(name,), effort=Effort.BRIEF)
    times = _times(parsed_of(run_call("google-benchmark", call)))
    assert list(times) == [name]
    reading = times[name]
    # A first process, before the time of one is known.
    assert reading.inner["n"] == 3
    assert reading.inner["min"] <= reading.value <= 1.5 * reading.inner["p50"]


def test_google_benchmark_runs_several(gbench: str, tmp_path: Path) -> None:
    chosen = tuple(NAMES[2::-2])
    call = replace(call_of("google-benchmark", tmp_path, gbench), chosen=chosen, effort=Effort.BRIEF)
    assert set(_times(parsed_of(run_call("google-benchmark", call)))) == set(chosen)


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


def test_google_benchmark_takes_no_shell(gbench: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="shell"):
        run("google-benchmark", tmp_path, f"{gbench} | cat", **SHELL)


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


def test_pytest_benchmark_by_group(suite: Path) -> None:
    (suite / "grouped.py").write_text(GROUPED)
    call = _pytest(suite, paths="grouped.py", groups=["parse"], args=FAST)
    wanted = ["grouped.py::test_parse[1]", "grouped.py::test_parse[2]"]
    assert listed("pytest-benchmark", call) == (0, wanted)
    assert list(_times(parsed_of(run_call("pytest-benchmark", call)))) == wanted
    other = replace(_pytest(suite, paths="grouped.py", groups=["pasre"], args=FAST), folder=suite / "other")
    status, names = listed("pytest-benchmark", other)
    assert (status, names) == (5, [])
    assert "marked with a group that is asked for" in (other.folder / "stderr").read_text()
    assert why("pytest-benchmark", other) == "none of the benchmarks that ran is in the groups of `groups`: pasre"
