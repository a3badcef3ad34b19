"""timeit, pyperf and asv end to end: all benchmarks, listings, one benchmark, brief runs, and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import BATCH, Parsed, Reading
from perfflow.tools.adapter import Call, Effort, Pace
from tests.tools.harness import PROGRAMS, PYTHON, asv_suite, call_of, listed, parsed_of, run_call, why

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


def _timed(parsed: Parsed) -> list[Reading]:
    """Return the elapsed times."""
    return [reading for reading in parsed.readings if reading.metric == "time"]


OTHER_CLOCKS = ("cpu", "uncontended")
NAP = 0.02


def _clocks(parsed: Parsed) -> dict[str, float]:
    return {reading.metric: reading.value for reading in parsed.readings}


@pytest.mark.parametrize(("statement", "computes"), [("time.sleep(0.02)", False), ("sum(range(500_000))", True)])
def test_timeit_by_three_clocks(statement: str, computes: bool, tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt=statement, setup="import time", number=1, repeat=5)
    found = _clocks(parsed_of(run_call("timeit", call)))
    assert list(found) == ["time", "cpu", "uncontended"]
    assert found["cpu"] <= found["uncontended"]
    if computes:
        assert found["cpu"] > 0.9 * found["uncontended"]
    else:
        assert found["cpu"] < NAP / 2
        assert found["uncontended"] > 0.9 * NAP


def test_asv_by_three_clocks(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    (suite / "benchmarks").mkdir(parents=True)
    (suite / "asv.conf.json").write_text('{"version": 1, "benchmark_dir": "benchmarks"}')
    own = "class Own:\n    from time import process_time as timer\n    timer = staticmethod(timer)\n"
    (suite / "benchmarks" / "naps.py").write_text(
        f"import time\ndef time_nap(): time.sleep({NAP})\ndef time_sum(): sum(range(500_000))\n"
        f"{own}    def time_sum(self): sum(range(500_000))\n"
    )
    call = replace(_call("asv", tmp_path, config=str(suite / "asv.conf.json")), effort=Effort.BRIEF)
    parsed = parsed_of(run_call("asv", call))
    nap, total, own_timer = (
        {reading.metric: reading.value for reading in parsed.readings if reading.benchmark == name}
        for name in ("naps.time_nap", "naps.time_sum", "naps.Own.time_sum")
    )
    assert nap["cpu"] < NAP / 2 < nap["uncontended"]
    assert total["cpu"] > 0.9 * total["uncontended"]
    # A suite that chooses its timer keeps it.
    assert list(own_timer) == ["time"]


def _bare(folder: Path) -> str:
    """Return an interpreter without any package."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec {PYTHON} -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_timeit_keeps_every_repeat(tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt="total += sum(values)", setup="total = 0\nvalues = range(50)", repeat=7)
    (reading,) = _timed(parsed_of(run_call("timeit", call)))
    assert reading.inner["n"] == 7
    assert reading.inner["min"] <= reading.value <= reading.inner["mean"]
    assert reading.inner[BATCH] > 1


def test_timeit_takes_what_is_slow_once_a_repeat(tmp_path: Path) -> None:
    call = _call("timeit", tmp_path, stmt="time.sleep(.05)", setup="import time")
    (reading,) = _timed(parsed_of(run_call("timeit", call)))
    assert reading.inner["n"] == 5
    assert BATCH not in reading.inner
    assert reading.inner["min"] >= 0.05


def test_timeit_finds_modules_where_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside.py").write_text("def work():\n    print('noise')\n")
    monkeypatch.chdir(tmp_path)
    call = _call("timeit", tmp_path, stmt="beside.work()", setup="import beside", number=10, repeat=2)
    assert parsed_of(run_call("timeit", call)).readings


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
    (warning,) = parsed_of(run_call("timeit", call)).warnings
    assert "too short for the clock" in warning


def test_pyperf_script(tmp_path: Path) -> None:
    ran = run_call("pyperf", _call("pyperf", tmp_path, script=SCRIPT, args=SHORT))
    parsed = parsed_of(ran)
    assert _metrics(parsed) == dict.fromkeys(IN_SCRIPT, "time")
    assert {reading.inner["n"] for reading in parsed.readings} == {3}
    # By its own clock, each loop takes exactly a millisecond.
    assert parsed.readings[2].value == pytest.approx(1e-3)
    assert (ran.call.folder / "check.txt").read_text()


def test_pyperf_lists_what_it_would_run(tmp_path: Path) -> None:
    assert listed("pyperf", _call("pyperf", tmp_path, script=SCRIPT)) == (0, IN_SCRIPT)


@pytest.mark.parametrize("name", IN_SCRIPT)
def test_pyperf_runs_one_alone_and_briefly(name: str, tmp_path: Path) -> None:
    call = replace(_call("pyperf", tmp_path, script=SCRIPT), chosen=(name,), effort=Effort.BRIEF)
    (reading,) = _timed(parsed_of(run_call("pyperf", call)))
    assert (reading.benchmark, reading.inner["n"]) == (name, 3)
    again = replace(call, folder=tmp_path / "again", pace=Pace(1e-5, 0.1))
    (reading,) = _timed(parsed_of(run_call("pyperf", again)))
    assert (reading.benchmark, reading.inner["n"]) == (name, 20)


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
    parsed = parsed_of(run_call("pyperf", call))
    found: dict[str, dict[str, float]] = {}
    for reading in parsed.readings:
        found.setdefault(reading.benchmark, {})[reading.metric] = reading.value
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
    parsed = parsed_of(run_call("pyperf", call))
    assert _metrics(parsed) == dict.fromkeys("abc", "time")
    assert (tmp_path / "started").read_text() == "x"


@pytest.mark.parametrize("brief", [True, False])
def test_pyperf_measures_the_first_of_two_benchmarks_of_one_name(brief: bool, tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text("import pyperf\nr = pyperf.Runner()\nfor n in 'aba': r.timeit(n, 'pass')\n")
    call = _call("pyperf", tmp_path, script=str(tmp_path / "bench.py"), args=SHORT)
    assert listed("pyperf", call) == (0, ["a", "b"])
    parsed = parsed_of(run_call("pyperf", replace(call, effort=Effort.BRIEF) if brief else call))
    assert _metrics(parsed) == {"a": "time", "b": "time"}
    assert "the script has two benchmarks called a; only the first is measured" in parsed.warnings


def test_pyperf_runs_several_in_the_order_of_the_script(tmp_path: Path) -> None:
    chosen = (IN_SCRIPT[2], IN_SCRIPT[0])
    call = replace(_call("pyperf", tmp_path, script=SCRIPT), chosen=chosen, effort=Effort.BRIEF)
    parsed = parsed_of(run_call("pyperf", call))
    assert tuple(reading.benchmark for reading in _timed(parsed)) == chosen[::-1]


def test_pyperf_hands_the_environment_on(tmp_path: Path) -> None:
    call = _call(
        "pyperf", tmp_path, stmt="len(HOME)", setup="import os; HOME = os.environ['OF_A_CANDIDATE']", args=SHORT
    )
    assert parsed_of(run_call("pyperf", call, {"OF_A_CANDIDATE": "yes"})).readings[0].benchmark == ""
    assert "KeyError: 'OF_A_CANDIDATE'" in why("pyperf", replace(call, folder=tmp_path / "other"))


def test_pyperf_memory(tmp_path: Path) -> None:
    call = _call("pyperf", tmp_path, stmt="bytearray(30_000_000)", memory=True, args=["--loops=3", *SHORT])
    (reading,) = parsed_of(run_call("pyperf", call)).readings
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
def suite(tmp_path: Path) -> dict[str, Any]:
    return {"config": str(asv_suite(tmp_path / "suite"))}


def test_asv(suite: dict[str, Any], tmp_path: Path) -> None:
    before = _files(tmp_path / "suite")
    call = replace(_call("asv", tmp_path, **suite), effort=Effort.BRIEF)
    parsed = parsed_of(run_call("asv", call))
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


def test_asv_lists_what_it_would_measure(suite: dict[str, Any], tmp_path: Path) -> None:
    assert listed("asv", _call("asv", tmp_path, **suite)) == (0, IN_SUITE)
    assert listed("asv", _call("asv", tmp_path, **suite, bench="sorted")) == (0, SORTED)


@pytest.mark.parametrize("name", [*SORTED[1:2], "demo.Cached.time_hash"])
def test_asv_runs_one_alone(name: str, suite: dict[str, Any], tmp_path: Path) -> None:
    call = replace(_call("asv", tmp_path, **suite), chosen=(name,), effort=Effort.BRIEF, pace=Pace(1e-6, 0.1))
    (reading,) = _timed(parsed_of(run_call("asv", call)))
    assert reading.benchmark == name
    assert 5 <= reading.inner["n"] <= 20


def test_asv_names_nothing_that_a_suite_prints_when_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "suite/benchmarks").mkdir(parents=True)
    (tmp_path / "suite/benchmarks/__init__.py").touch()
    (tmp_path / "suite/asv.conf.json").write_text('{"version": 1, "benchmark_dir": "benchmarks"}')
    text = "import os\nprint('printed')\nos.write(1, b'written')\ndef time_it(): pass\n"
    (tmp_path / "suite/benchmarks/loud.py").write_text(text)
    call = _call("asv", tmp_path, config=str(tmp_path / "suite/asv.conf.json"))
    assert listed("asv", call) == (0, ["loud.time_it"])


def test_asv_ends_a_benchmark_that_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "suite/benchmarks").mkdir(parents=True)
    (tmp_path / "suite/benchmarks/__init__.py").touch()
    (tmp_path / "suite/asv.conf.json").write_text('{"version": 1, "benchmark_dir": "benchmarks"}')
    text = "import time\nclass Endless:\n    timeout = 0.2\n    def time_it(self): time.sleep(600)\n"
    (tmp_path / "suite/benchmarks/slow.py").write_text(text)
    assert "it took more than 0.4 s" in why("asv", _call("asv", tmp_path, config=str(tmp_path / "suite/asv.conf.json")))


def test_asv_runs_several_in_the_given_order(suite: dict[str, Any], tmp_path: Path) -> None:
    chosen = ("demo.Cached.time_hash", SORTED[1])
    call = replace(_call("asv", tmp_path, **suite), chosen=chosen, effort=Effort.BRIEF)
    parsed = parsed_of(run_call("asv", call))
    assert tuple(reading.benchmark for reading in _timed(parsed)) == chosen


def test_asv_runs_the_code_that_pythonpath_names(suite: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "subject.py").write_text("SIZE = 300\n")
    text = "import subject\ndef mem_subject():\n    return list(range(subject.SIZE))\n"
    (tmp_path / "suite" / "benchmarks" / "of_tree.py").write_text(text)
    call = _call("asv", tmp_path, **suite, bench="of_tree")
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
def test_asv_without_figures(options: dict[str, Any], reason: str, suite: dict[str, Any], tmp_path: Path) -> None:
    assert reason in why("asv", _call("asv", tmp_path, **{**suite, **options}))


def test_asv_of_a_benchmark_that_fails(suite: dict[str, Any], tmp_path: Path) -> None:
    failing = _call("asv", tmp_path, config=suite["config"].replace("asv.conf", "failing"))
    assert "failing.time_failing failed: LookupError: no such thing" in why("asv", failing)
    (tmp_path / "suite" / "broken" / "failing.py").write_text("1 +\n")
    assert "SyntaxError" in why("asv", replace(failing, folder=tmp_path / "other"))


def test_asv_without_asv(suite: dict[str, Any], tmp_path: Path) -> None:
    assert "pip install asv" in why("asv", _call("asv", tmp_path, python=_bare(tmp_path), **suite))
