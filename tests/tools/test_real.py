"""Installed tools, end to end: real programs, real figures, and failures of programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.stacks import read_folded
from tests.tools.harness import PROGRAMS, PYTHON, Ran, failure_seen, parsed_of, run, values_of

HOT_PY = str(PROGRAMS / "hot.py")
OF_PROGRAMS = ("hyperfine", "massif", "perf", "perf-stat", "callgrind", "cachegrind", "dhat")
OF_PYTHON = ("py-spy", "cprofile", "line-profiler", "memory-profiler", "memray", "tracemalloc")
SHELL: dict[str, Any] = {"shell": True}


def _stacks(ran: Ran) -> set[str]:
    return {";".join(stack) for stack in read_folded((ran.call.folder / "stacks.folded").read_text())}


def test_hyperfine(built: Mapping[str, str], tmp_path: Path) -> None:
    values = values_of(parsed_of(run("hyperfine", tmp_path, built["hot"], "100000")))
    assert values.keys() >= {"time", "user", "system", "cpu"}
    assert values["cpu"] == values["user"] + values["system"] > 0


@pytest.mark.parametrize("word", ["a b", "'", '"', "$HOME", "`x`", ";", "\\", "ü", "{x}", "-N", "\t"])
def test_hyperfine_hands_words_on_as_they_are(word: str, tmp_path: Path) -> None:
    check = f"import sys; sys.exit(sys.argv[1:] != [{word!r}])"
    parsed_of(run("hyperfine", tmp_path, PYTHON, "-S", "-c", check, word))


def test_hyperfine_shell(built: Mapping[str, str], tmp_path: Path) -> None:
    text = f"{built['hot']} 2000000 2>&1 | cat > {tmp_path / 'made'}"
    assert values_of(parsed_of(run("hyperfine", tmp_path, text, **SHELL)))["time"] > 0
    assert (tmp_path / "made").read_text().strip().isdecimal()


def test_massif(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path, built["hot"], "1000"))
    # valgrind counts 16 B for malloc's own bookkeeping, 8 B per block.
    assert values_of(parsed) == {"heap_peak": 1_500_016}
    assert parsed.memory
    assert (parsed.memory.axis, max(parsed.memory.held)) == ("instructions", 1_500_016)
    spot = parsed.hotspots[0]
    assert (spot.location, spot.share, spot.unit) == ("grab", 1.0, "bytes")
    assert spot.file.endswith("/hot.c")
    assert spot.line == 18
    assert not parsed.warnings


def test_massif_of_a_forking_program(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path, built["forks"]))
    assert 5_000_000 <= values_of(parsed)["heap_peak"] < 5_010_000
    assert any("2 processes" in warning for warning in parsed.warnings)


def test_massif_of_a_program_that_frees_nothing(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path, built["leaks"]))
    assert values_of(parsed) == {"heap_peak": 1_000_008}
    assert parsed.hotspots[0].location == "main"


def test_massif_of_python_sees_small_objects(tmp_path: Path) -> None:
    small = parsed_of(run("massif", tmp_path / "small", PYTHON, "-S", "-c", "x = [str(i) for i in range(1)]"))
    large = parsed_of(run("massif", tmp_path / "large", PYTHON, "-S", "-c", "x = [str(i) for i in range(50_000)]"))
    assert values_of(large)["heap_peak"] - values_of(small)["heap_peak"] > 50_000 * 30


def test_massif_of_python_that_ignores_its_environment(tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path, PYTHON, "-S", "-Wd", "-uE", "-c", "pass"))
    assert any("-E or -I" in warning for warning in parsed.warnings)


def test_massif_with_stacks_and_a_folder_with_a_percent_sign(built: Mapping[str, str], tmp_path: Path) -> None:
    parsed = parsed_of(run("massif", tmp_path / "100%p", built["hot"], "10", stacks=True))
    assert values_of(parsed)["heap_peak"] > 1_500_016


def test_perf(built: Mapping[str, str], tmp_path: Path) -> None:
    ran = run("perf", tmp_path, built["hot"], "4000000")
    parsed = parsed_of(ran)
    assert parsed.hotspots[0].location == "mix"
    assert parsed.hotspots[0].file.endswith("/hot.c")
    assert parsed.hotspots[0].share > 0.5
    assert any("main;hot;mix" in stack for stack in _stacks(ran))


@pytest.mark.parametrize("graph", ["fp", "none"])
def test_perf_without_dwarf(graph: str, built: Mapping[str, str], tmp_path: Path) -> None:
    ran = run("perf", tmp_path, built["hot"], "4000000", call_graph=graph, event="cpu-clock", frequency=499)
    parsed = parsed_of(ran)
    assert (parsed.hotspots[0].location, Path(parsed.hotspots[0].file).name) == ("mix", "hot.c")
    assert not any("counter" in warning for warning in parsed.warnings)


def test_perf_of_a_program_too_short(built: Mapping[str, str], tmp_path: Path) -> None:
    # One sample per second: a program of a millisecond has none.
    ran = run("perf", tmp_path, built["idle"], frequency=1, event="cpu-clock")
    assert ran.status == 0
    with pytest.raises(ToolOutputError, match="more work or a higher `frequency`"):
        ran.parse()


def test_perf_stat(built: Mapping[str, str], tmp_path: Path) -> None:
    values = values_of(parsed_of(run("perf-stat", tmp_path, built["hot"], "2000000")))
    assert values.keys() >= {"time", "cpu", "user", "system", "page_faults"}
    assert 0 < values["cpu"] <= values["time"] * 1.5
    assert values["page_faults"] >= 1


@pytest.mark.parametrize("options", [{}, {"native": True}, {"gil": True}, {"subprocesses": True}], ids=str)
def test_py_spy(options: dict[str, Any], tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, PYTHON, HOT_PY, "200", **options)
    parsed = parsed_of(ran)
    assert parsed.hotspots[0].location == "inner"
    assert parsed.hotspots[0].file == HOT_PY
    assert not any("python_run" in stack or "perfflow" in stack for stack in _stacks(ran))
    assert any("<module> (hot.py);outer (hot.py);" in stack for stack in _stacks(ran))


def test_py_spy_of_a_module_and_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = "import threading\ndef work():\n    for number in range(20_000_000): number * number\n"
    threads = "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
    (tmp_path / "busy.py").write_text(work + threads)
    monkeypatch.chdir(tmp_path)
    ran = run("py-spy", tmp_path / "out", PYTHON, "-m", "busy")
    assert parsed_of(ran).hotspots[0].location == "work"
    assert any("Thread.run (threading.py);work (busy.py)" in stack for stack in _stacks(ran))


def test_py_spy_of_a_program_too_short(tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, PYTHON, "-S", "-E", "-c", "pass", rate=1)
    with pytest.raises(ToolOutputError):
        ran.parse()


def test_cprofile(tmp_path: Path) -> None:
    parsed = parsed_of(run("cprofile", tmp_path, PYTHON, "-B", HOT_PY, "5"))
    spot = parsed.hotspots[0]
    assert (spot.location, spot.file, spot.line, spot.unit) == ("inner", HOT_PY, 6, "time")
    assert spot.cause.startswith("measured: 5 calls, cumulative ")


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_failing_program(name: str, built: Mapping[str, str], tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, built["hot"], "10", "3"))


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_crashing_program(name: str, built: Mapping[str, str], tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, built["crash"]))


@pytest.mark.parametrize("name", OF_PROGRAMS)
def test_missing_program(name: str, tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, str(tmp_path / "missing")))


@pytest.mark.parametrize("name", OF_PYTHON)
@pytest.mark.parametrize(
    "words",
    [(HOT_PY, "60", "3"), ("missing.py",), ("-c", "import os; sum(range(9999999)); os._exit(0)"), ("-c", "1/0")],
    ids=str,
)
def test_failing_python(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, PYTHON, *words))


@pytest.mark.parametrize("name", OF_PYTHON)
@pytest.mark.parametrize("command", [("/bin/true",), ("/bin/sh", "x.py"), (sys.executable,)], ids=str)
def test_what_is_not_python_is_refused_before_it_runs(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="write the command as"):
        run(name, tmp_path, *command)
