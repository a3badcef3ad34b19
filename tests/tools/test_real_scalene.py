"""scalene on real programs: its results, and failures that it does not report itself."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.tools.adapter import Call
from tests.tools.harness import PROGRAMS, PYTHON, USAGE, call_of, failure_seen, parsed_of, run, tool

HOT_PY, COPIES_PY = str(PROGRAMS / "hot.py"), str(PROGRAMS / "copies.py")
SHOWN = (
    "import json, sys\nfor n in range(2_000_000): n * n\nprint(json.dumps([sys.argv, sys.path, sys.flags.utf8_mode]))"
)


def test_time_by_function(tmp_path: Path) -> None:
    parsed = parsed_of(run("scalene", tmp_path, PYTHON, HOT_PY, "200", memory=False, rate=200))
    spot = parsed.hotspots[0]
    assert (spot.location, spot.file, spot.unit) == ("inner", HOT_PY, "time")
    assert spot.line in {8, 9}
    # scalene's own sum by function has only one of the two lines of the loop.
    whole = json.loads((tmp_path / "scalene.json").read_text())["files"][HOT_PY]
    (own,) = [row for row in whole["functions"] if row["line"] == "inner"]
    assert spot.share > sum(own[f"n_{kind}"] for kind in ("cpu_percent_python", "cpu_percent_c", "sys_percent")) / 100
    assert spot.cause.startswith("measured: ")
    assert parsed.costs[0].function == "inner"


def test_memory_by_function(tmp_path: Path) -> None:
    parsed = parsed_of(run("scalene", tmp_path, PYTHON, COPIES_PY, "150"))
    causes = {spot.location: spot.cause for spot in parsed.hotspots}
    assert causes.keys() >= {"looped", "kept"}
    assert "MB seen allocated" in causes["kept"]
    assert "MB copied a second" in causes["kept"]
    assert "the program's peak memory in line 16, " in causes["kept"]
    assert "allocated" not in causes["looped"]


def test_decorated_functions_and_modules_bear_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "work.py").write_text(
        "import functools\n\n\nclass Work:\n    @staticmethod\n    @functools.cache\n    def done(count):\n"
        "        total = 0\n        for number in range(count):\n            total += number\n        return total\n"
    )
    (tmp_path / "pkg" / "__main__.py").write_text("from pkg.work import Work\n\nWork.done(10_000_000)\n")
    monkeypatch.chdir(tmp_path)
    parsed = parsed_of(run("scalene", tmp_path / "out", PYTHON, "-m", "pkg", memory=False))
    assert parsed.hotspots[0].location == "Work.done"
    assert parsed.hotspots[0].file == str(tmp_path / "pkg" / "work.py")


@pytest.mark.parametrize("memory", [False, True])
def test_the_program_sees_what_it_sees_without_scalene(memory: bool, tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(SHOWN)
    words = [PYTHON, "-X", "utf8", "shown.py", "--memory", "a b"]
    direct = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    call = call_of("scalene", tmp_path, *words, memory=memory)
    (step,) = tool("scalene").invocations(call)
    done = subprocess.run(step.argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    argv, path, utf8 = json.loads(done.stdout.splitlines()[0])
    wanted = json.loads(direct)
    assert [argv, utf8] == [wanted[0], wanted[2]]
    # scalene puts a folder of its own behind the script's, in which `python` is scalene for the program's children.
    assert [place for place in path if "/scalene" not in place] == wanted[1]


@pytest.mark.parametrize("memory", [False, True])
def test_a_program_that_exits_with_nothing_has_not_failed(memory: bool, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys\nfor n in range(9_000_000): n * n\nsys.exit()\n")
    parsed_of(run("scalene", tmp_path, PYTHON, str(tmp_path / "main.py"), memory=memory))


@pytest.mark.parametrize("words", [(COPIES_PY, "20", how) for how in ("exits 3", "raises", "is killed")], ids=str)
def test_failing_program(words: tuple[str, ...], tmp_path: Path) -> None:
    assert failure_seen(run("scalene", tmp_path, PYTHON, *words, memory=False))


def test_missing_program(tmp_path: Path) -> None:
    assert failure_seen(run("scalene", tmp_path, PYTHON, "missing.py"))


def test_an_interrupted_program_is_not_believed(tmp_path: Path) -> None:
    call = call_of("scalene", tmp_path, PYTHON, str(PROGRAMS / "serve.py"), "60", memory=False)
    (step,) = tool("scalene").invocations(call)
    with subprocess.Popen(step.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    with pytest.raises(ToolOutputError, match="status 130"):
        _parse(call)


@pytest.mark.parametrize(
    ("words", "rate"),
    # A module of the standard library is not the program's own code, however long it runs.
    [((HOT_PY, "1"), 1), (("-m", "timeit", "-n", "20000000", "-r", "1", "pass"), 100)],
    ids=str,
)
def test_a_program_that_says_nothing(words: tuple[str, ...], rate: int, tmp_path: Path) -> None:
    ran = run("scalene", tmp_path, PYTHON, *words, memory=False, rate=rate)
    assert ran.status == 0
    with pytest.raises(ToolOutputError, match="took no sample of the program's own code"):
        ran.parse()


def test_an_interpreter_without_scalene(tmp_path: Path) -> None:
    ran = run("scalene", tmp_path, PYTHON, "-S", "-E", HOT_PY)
    assert ran.status == 1
    with pytest.raises(ToolOutputError, match=r"not installed for this interpreter: \S+ -m pip install scalene"):
        ran.parse()


def test_code_on_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="into a script"):
        run("scalene", tmp_path, PYTHON, "-c", "pass")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n_cpu_percent_python": 60.0}, "more than 100%"),
        ({"n_cpu_percent_python": -1.0}, "not valid"),
        ({"n_cpu_percent_c": "1"}, "not a number"),
        ({"lineno": 1.5}, "whole"),
        ({"n_malloc_mb": float("nan")}, "not valid"),
    ],
)
def test_figures_that_cannot_be(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    row = {"line": "x", "lineno": 1, "start_function_line": 0, "n_malloc_mb": 0.0, "n_copy_mb_s": 0.0}
    rows = [{**row, "n_cpu_percent_python": 50.0}, {**row, "lineno": 2, "n_cpu_percent_c": 50.0}]
    _write(tmp_path, rows)
    assert _parse(call_of("scalene", tmp_path, PYTHON, "x.py")).hotspots[0].share == 1
    _write(tmp_path, [rows[0] | change, rows[1]])
    with pytest.raises(ToolOutputError, match=reason):
        _parse(call_of("scalene", tmp_path, PYTHON, "x.py"))


def _write(folder: Path, rows: list[dict[str, Any]]) -> None:
    files = {"/a.py": {"lines": rows, "functions": []}}
    (folder / "status.json").write_text('{"status": 0}')
    (folder / "scalene.json").write_text(json.dumps({"elapsed_time_sec": 2.0, "max_footprint_mb": 0, "files": files}))


def _parse(call: Call) -> Any:
    return tool("scalene").parse(call, USAGE)
