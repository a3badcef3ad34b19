"""Installed tools, end to end: what they find in known programs, and failures of programs and of tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.stacks import read_folded
from tests.long import rest_long
from tests.tools.flows import run_flow
from tests.tools.harness import PROGRAMS, PYTHON, USAGE, Ran, call_of, failure_seen, parsed_of, run, tool, values_of

HOT_PY = str(PROGRAMS / "hot.py")
OF_PROGRAMS = ("hyperfine", "massif", "perf", "perf-stat", "callgrind", "cachegrind", "dhat")
OF_PYTHON = ("py-spy", "cprofile", "line-profiler", "memory-profiler", "memray", "tracemalloc")
Built = Mapping[str, str]
SHELL: dict[str, Any] = {"shell": True}
CLOCK = {"event": "cpu-clock", "frequency": 499}


def _stacks(ran: Ran) -> set[str]:
    return {";".join(stack) for stack in read_folded((ran.call.folder / "stacks.folded").read_text())}


def test_hyperfine(built: Built, tmp_path: Path) -> None:
    values = values_of(parsed_of(run("hyperfine", tmp_path, built["hot"], "100000")))
    assert values.keys() >= {"time", "user", "system", "cpu"}
    assert values["cpu"] == values["user"] + values["system"] > 0


@pytest.mark.parametrize("word", ["a b", "'", '"', "$HOME", "`x`", ";", "\\", "ü", "{x}", "-N", "\t"])
def test_hyperfine_hands_words_on_as_they_are(word: str, tmp_path: Path) -> None:
    check = f"import sys; sys.exit(sys.argv[1:] != [{word!r}])"
    parsed_of(run("hyperfine", tmp_path, PYTHON, "-S", "-c", check, word))


def test_hyperfine_shell(built: Built, tmp_path: Path) -> None:
    text = f"{built['hot']} 2000000 2>&1 | cat > {tmp_path / 'made'}"
    assert values_of(parsed_of(run("hyperfine", tmp_path, text, **SHELL)))["time"] > 0
    assert (tmp_path / "made").read_text().strip().isdecimal()


@pytest.mark.parametrize("options", [{}, {"call_graph": "fp", **CLOCK}, {"call_graph": "none", **CLOCK}], ids=str)
def test_perf(options: dict[str, Any], built: Built, tmp_path: Path) -> None:
    ran = run("perf", tmp_path, built["hot"], "4000000", **options)
    parsed = parsed_of(ran)
    first = parsed.hotspots[0]
    assert (first.location, Path(first.file).name) == ("mix", "hot.c")
    if options:
        assert not any("counter" in warning for warning in parsed.warnings)
    else:
        assert first.share > 0.5
        assert any("main;hot;mix" in stack for stack in _stacks(ran))


def test_perf_stat(built: Built, tmp_path: Path) -> None:
    values = values_of(parsed_of(run("perf-stat", tmp_path, built["hot"], "2000000")))
    assert values.keys() >= {"time", "cpu", "user", "system", "page_faults"}
    assert 0 < values["cpu"] <= values["time"] * 1.5
    assert values["page_faults"] >= 1


@pytest.mark.parametrize(
    "options", rest_long([{}, {"native": True}, {"gil": True}, {"subprocesses": True}], keep=2), ids=str
)
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


def test_cprofile(tmp_path: Path) -> None:
    parsed = parsed_of(run("cprofile", tmp_path, PYTHON, "-B", HOT_PY, "5"))
    spot = parsed.hotspots[0]
    assert (spot.location, spot.file, spot.line, spot.unit) == ("inner", HOT_PY, 6, "time")
    assert spot.cause.startswith("measured: 5 calls, cumulative ")


# The contract of each tool has a program that exits with 3, and one that is killed.
@pytest.mark.parametrize("name", OF_PROGRAMS)
@pytest.mark.parametrize("program", ["crash", "missing"])
def test_a_program_that_crashes_or_is_missing(name: str, program: str, built: Built, tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, built.get(program, str(tmp_path / program))))


@pytest.mark.parametrize("name", OF_PYTHON)
@pytest.mark.parametrize(
    "words", [("missing.py",), ("-c", "import os; sum(range(999999)); os._exit(0)"), ("-c", "1/0")], ids=str
)
def test_python_that_fails(name: str, words: tuple[str, ...], tmp_path: Path) -> None:
    assert failure_seen(run(name, tmp_path, PYTHON, *words))


@pytest.mark.parametrize("name", OF_PYTHON)
@pytest.mark.parametrize("command", [("/bin/true",), ("/bin/sh", "x.py"), (sys.executable,)], ids=str)
def test_what_is_not_python_is_refused_before_it_runs(name: str, command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="write the command as"):
        run(name, tmp_path, *command)


@pytest.mark.long  # as perf under its contract
def test_perf_finds_what_rust_inlined(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("perf", tmp_path, built["tasks"], "1000000", frequency=4999))
    first = parsed.hotspots[0]
    assert first.location.startswith("tasks::table::words")
    assert (Path(first.file).name, first.line) == ("tasks.rs", 29)
    below = {spot.location.partition("::{{")[0]: spot for spot in parsed.hotspots}
    assert below["tasks::queue::Queue::submit"].cause.startswith("measured: ")
    assert "allocating" in below["tasks::queue::Queue::submit"].cause
    for spot in parsed.hotspots:
        assert spot.self_share is not None
        assert spot.inclusive_share is not None
        assert spot.self_share <= spot.share + 1e-9 <= spot.inclusive_share + 2e-9


def test_perf_goes_on_without_inlined_callers(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("perf", tmp_path, built["tasks"], "300000", inline_limit=0))
    assert parsed.hotspots[0].location == "tasks::main"
    assert any("inline-limit" in warning for warning in parsed.warnings)


def test_heaptrack_counts_as_dhat_does(built: Built, tmp_path: Path) -> None:
    few, many = (
        values_of(parsed_of(run("heaptrack", tmp_path / rounds, built["tasks"], rounds))) for rounds in ("1000", "3000")
    )
    more = {"allocs": 2000, "temporary_allocs": 2000, "heap_peak": 0}
    assert {metric: many[metric] - few[metric] for metric in more} == more


def test_heaptrack_names_who_asks(built: Built, tmp_path: Path) -> None:
    first = parsed_of(run("heaptrack", tmp_path, built["tasks"], "1000")).hotspots[0]
    assert (first.location, first.line) == ("tasks::queue::Queue::submit", 18)
    assert first.cause == "measured: 1,000 allocations, 1,000 of them temporary"


@pytest.mark.skipif(not shutil.which("flamegraph"), reason="cargo install flamegraph")
def test_flamegraph(built: Built, tmp_path: Path) -> None:
    parsed = parsed_of(run("cargo-flamegraph", tmp_path, built["tasks"], "1000000"))
    assert parsed.hotspots[0].location.startswith("tasks::table::words")
    assert [profile.kind for profile in parsed.profiles] == ["svg", "folded"]


EXITS = "import os, sqlite3; sqlite3.connect(':memory:'); os._exit(0)"
REFUSED: list[tuple[str, tuple[str, ...], dict[str, Any], str]] = [
    # One sample per second: a program of a millisecond has none.
    ("perf", ("idle",), {"frequency": 1, "event": "cpu-clock"}, "more work or a higher `frequency`"),
    ("py-spy", (PYTHON, "-S", "-E", "-c", "pass"), {"rate": 1}, "."),
    ("heaptrack", ("tiny",), {}, "statically linked"),
    ("iostat", ("/bin/sleep", "1.4"), {"disks": ["no-such"]}, "there is no disk 'no-such'; available disks: "),
    ("slow-callbacks", (PYTHON, "-c", "pass"), {}, "no callback"),
    ("slow-callbacks", (PYTHON, "-c", "import os; os._exit(0)"), {}, r"os\._exit"),
    ("slow-callbacks", (PYTHON, "-c", "raise SystemExit(4)"), {}, "status 4"),
    ("sql-log", (PYTHON, "-c", EXITS), {}, r"os\._exit"),
    ("sql-log", ("/bin/sh", "-c", "echo ready"), {"log": "stdout"}, "set `format`"),
]


@pytest.mark.parametrize(("name", "words", "options", "reason"), REFUSED, ids=str)
def test_what_cannot_be_measured_is_refused(
    name: str, words: tuple[str, ...], options: dict[str, Any], reason: str, built: Built, tmp_path: Path
) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        run(name, tmp_path, built.get(words[0], words[0]), *words[1:], **options).parse()


# Probes


def test_strace_counts_what_a_program_asks_for(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(int(__import__('sys').argv[1])): os.getppid()"
    seen = [
        values_of(parsed_of(run("strace", tmp_path / rounds, PYTHON, "-I", "-S", "-c", code, rounds)))["syscalls"]
        for rounds in ("1000", "3000")
    ]
    assert abs(seen[1] - seen[0] - 2000) <= 50


def test_strace_names_the_call_and_its_errors(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(500):\n try: os.rmdir('/no/such')\n except OSError: pass"
    parsed = parsed_of(run("strace", tmp_path, PYTHON, "-I", "-S", "-c", code))
    (first, *_) = parsed.hotspots
    assert first.location == "rmdir"
    assert first.cause.startswith("measured: 500 calls, 500 of them failed")
    assert values_of(parsed)["syscall_errors"] >= 500


def test_strace_counts_how_often_a_file_is_opened(tmp_path: Path) -> None:
    parsed = parsed_of(run("strace", tmp_path, PYTHON, "-S", str(PROGRAMS / "reopens.py"), "40", files=True))
    first = parsed.hotspots[0]
    assert first.location.endswith("/table.txt")
    # Two threads, and the function that wrote it.
    assert first.cause == "measured: opened 81 times"
    opens = {spot.location.rpartition("/")[2]: spot.cause for spot in parsed.hotspots}
    assert values_of(parsed)["file_opens"] >= 82
    assert len(opens) > 1
    assert any("failed" in warning for warning in parsed.warnings)


def test_strace_follows_children_and_passes_their_status_on(tmp_path: Path) -> None:
    assert run("strace", tmp_path, "/bin/sh", "-c", "exit 3").status == 3
    parsed = parsed_of(run("strace", tmp_path / "children", "/bin/sh", "-c", "/bin/true; /bin/true; :"))
    # Each of three programs is loaded once.
    assert any(spot.location == "execve" and "3 calls" in spot.cause for spot in parsed.hotspots)


def test_strace_says_what_to_do_where_tracing_is_refused(tmp_path: Path) -> None:
    tracer = shutil.which("strace")
    assert tracer
    # A program can have only one tracer, so the second one is refused, as in a container without CAP_SYS_PTRACE.
    call = call_of("strace", tmp_path, "/bin/true")
    (step,) = tool("strace").invocations(call)
    with (tmp_path / "stderr").open("wb") as stderr:
        done = subprocess.run([tracer, "-f", "-o", "/dev/null", *step.argv], stderr=stderr, check=False)
    assert done.returncode
    with pytest.raises(ToolOutputError, match="--cap-add=SYS_PTRACE"):
        tool("strace").parse(call, USAGE)


@pytest.mark.long  # as iostat under its contract
def test_iostat_sees_the_machine_while_the_command_runs(tmp_path: Path) -> None:
    ran = run("iostat", tmp_path, "/bin/sleep", "2.4")
    parsed = parsed_of(ran)
    shares = [item for item in parsed.readings if item.metric.startswith("cpu_")]
    assert len(shares) == 5
    assert all(item.inner["n"] >= 1 for item in parsed.readings)
    assert 0.9 < sum(item.inner["mean"] for item in shares) < 1.01


def test_iostat_cut_by_sigterm_is_an_error(tmp_path: Path) -> None:
    call = call_of("iostat", tmp_path, "/bin/true")
    sampler = tool("iostat").invocations(call)[0]
    with (tmp_path / sampler.stdout).open("wb") as stdout:
        subprocess.run(["timeout", "1.5", *sampler.argv], stdout=stdout, check=False)
    with pytest.raises(ToolOutputError, match="cut short"):
        tool("iostat").parse(call, USAGE)


def test_slow_callbacks_are_found_where_they_block(tmp_path: Path) -> None:
    parsed = parsed_of(run("slow-callbacks", tmp_path, PYTHON, str(PROGRAMS / "blocking.py")))
    values = values_of(parsed)
    assert (values["slow_callbacks"] >= 4, values["slow_callback_max"] >= 0.12) == (True, True)
    lines = (PROGRAMS / "blocking.py").read_text().splitlines()
    places = {spot.location: lines[spot.line - 1] for spot in parsed.hotspots}
    assert "time.sleep" in places["handler"]
    assert "crunch" in places
    assert any("in steps of main" in spot.cause for spot in parsed.hotspots)


def test_slow_callbacks_of_a_loop_that_is_never_held_up(tmp_path: Path) -> None:
    code = "import asyncio\nasync def main():\n for _ in range(50): await asyncio.sleep(0)\nasyncio.run(main())"
    parsed = parsed_of(run("slow-callbacks", tmp_path, PYTHON, "-c", code, over="10s"))
    assert values_of(parsed)["slow_callbacks"] == 0
    assert 0 < values_of(parsed)["slow_callback_max"] < 10
    assert not parsed.hotspots


def test_slow_callbacks_sees_callbacks_and_other_threads(tmp_path: Path) -> None:
    code = (
        "import asyncio, threading, time\n"
        "def held(): time.sleep(0.1)\n"
        "async def main():\n asyncio.get_running_loop().call_soon(held)\n await asyncio.sleep(0.15)\n"
        "thread = threading.Thread(target=asyncio.run, args=(main(),)); thread.start(); thread.join()\n"
        "asyncio.run(asyncio.sleep(0))\n"
    )
    parsed = parsed_of(run("slow-callbacks", tmp_path, PYTHON, "-c", code))
    assert [spot.location for spot in parsed.hotspots] == ["held"]


def test_sql_log_finds_the_query_of_each_row(tmp_path: Path) -> None:
    few, many = (
        parsed_of(run("sql-log", tmp_path / rows, PYTHON, str(PROGRAMS / "rows.py"), rows)) for rows in ("10", "30")
    )
    assert values_of(many)["sql_repeated"] == 30
    # A row is inserted once and selected once.
    assert values_of(many)["sql_statements"] - values_of(few)["sql_statements"] == 40
    shapes = {spot.location: spot.cause for spot in many.hotspots}
    assert shapes["SELECT title FROM book WHERE author = ?"] == "measured: run 30 times"


def test_sql_log_reads_what_a_program_writes(tmp_path: Path) -> None:
    code = 'for n in 1 2 3; do echo "SELECT * FROM book WHERE author = $n"; done > "$PERFFLOW_SQL_LOG"'
    parsed = parsed_of(run("sql-log", tmp_path, "/bin/sh", "-c", code, log="file"))
    assert values_of(parsed) == {"sql_statements": 3, "sql_repeated": 3}


NO_DRIVER = "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."


@pytest.mark.parametrize("script", ["", f'echo "{NO_DRIVER}"; exit 12'], ids=["not installed", "without a driver"])
def test_nvidia_smi_without_a_gpu_is_no_measurement(tmp_path: Path, script: str) -> None:
    path = f"{Path(PYTHON).parent}:/usr/bin:/bin"
    if script:
        # The output of the real program without a driver.
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        path = f"{program.parent}:{path}"
    elif shutil.which("nvidia-smi", path=path):
        pytest.skip("there is a driver here")
    step = {"id": "gpu", "uses": "nvidia-smi", "with": {"command": "touch began"}}
    done = run_flow(tmp_path, {"profile": [step]}, path=path, measured=True)
    assert done.returncode == 3, done.stdout + done.stderr
    wanted = "no NVIDIA GPU was found" if script else "nvidia-smi is not on PATH; install"
    assert wanted in done.stdout + done.stderr
    assert not (tmp_path / "began").exists()
