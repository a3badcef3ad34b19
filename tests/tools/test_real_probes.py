"""Real programs under strace, beside iostat, and under the drivers for event loops and SQL."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from tests.cli.shell import perfflow
from tests.tools.harness import PROGRAMS, PYTHON, USAGE, call_of, parsed_of, run, tool, values_of


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


def test_iostat_names_the_disks_that_there_are(tmp_path: Path) -> None:
    ran = run("iostat", tmp_path, "/bin/sleep", "1.4", disks=["no-such"])
    with pytest.raises(ToolOutputError, match="there is no disk 'no-such'; available disks: "):
        ran.parse()


def test_slow_callbacks_are_found_where_they_block(tmp_path: Path) -> None:
    parsed = parsed_of(run("slow-callbacks", tmp_path, PYTHON, str(PROGRAMS / "blocking.py")))
    values = values_of(parsed)
    assert values["slow_callbacks"] >= 4
    assert values["slow_callback_max"] >= 0.12
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


@pytest.mark.parametrize("code", ["pass", "import os; os._exit(0)", "raise SystemExit(4)"])
def test_slow_callbacks_without_a_loop_or_an_end(tmp_path: Path, code: str) -> None:
    ran = run("slow-callbacks", tmp_path, PYTHON, "-c", code)
    with pytest.raises(ToolOutputError, match=r"no callback|os\._exit|status 4"):
        ran.parse()


def test_sql_log_finds_the_query_of_each_row(tmp_path: Path) -> None:
    seen = {
        rows: parsed_of(run("sql-log", tmp_path / rows, PYTHON, str(PROGRAMS / "rows.py"), rows))
        for rows in ("10", "30")
    }
    assert values_of(seen["30"])["sql_repeated"] == 30
    # A row is inserted once and selected once.
    assert values_of(seen["30"])["sql_statements"] - values_of(seen["10"])["sql_statements"] == 40
    shapes = {spot.location: spot.cause for spot in seen["30"].hotspots}
    assert shapes["SELECT title FROM book WHERE author = ?"] == "measured: run 30 times"


def test_sql_log_reads_what_a_program_writes(tmp_path: Path) -> None:
    code = 'for n in 1 2 3; do echo "SELECT * FROM book WHERE author = $n"; done > "$PERFFLOW_SQL_LOG"'
    parsed = parsed_of(run("sql-log", tmp_path, "/bin/sh", "-c", code, log="file"))
    assert values_of(parsed) == {"sql_statements": 3, "sql_repeated": 3}
    printed = run("sql-log", tmp_path / "printed", "/bin/sh", "-c", "echo ready", log="stdout")
    with pytest.raises(ToolOutputError, match="set `format`"):
        printed.parse()


def test_sql_log_of_a_program_that_leaves_without_a_word(tmp_path: Path) -> None:
    ran = run("sql-log", tmp_path, PYTHON, "-c", "import os, sqlite3; sqlite3.connect(':memory:'); os._exit(0)")
    with pytest.raises(ToolOutputError, match=r"os\._exit"):
        ran.parse()


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
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"profile": [step]}}))
    done = perfflow("run", "flow.yaml", "--out", "out", cwd=tmp_path, path=path, measured=True)
    assert done.returncode == 3, done.stdout + done.stderr
    wanted = "no NVIDIA GPU was found" if script else "nvidia-smi is not on PATH; install"
    assert wanted in done.stdout + done.stderr
    assert not (tmp_path / "began").exists()
