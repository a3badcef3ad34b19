"""Samplers on running processes: duration of the recording, and reasons why it fails."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.stacks import read_folded
from tests.tools.harness import PROGRAMS, PYTHON, Ran, parsed_of, run, values_of
from tests.tools.lies import ALLOWING

HOT_PY, SERVE_PY = str(PROGRAMS / "hot.py"), str(PROGRAMS / "serve.py")


@pytest.fixture
def served() -> Iterator[int]:
    """Yield the process id of a program that works until it is stopped."""
    argv = [sys.executable, "-c", ALLOWING, SERVE_PY]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def _recorded(ran: Ran) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ran.call.folder / "status.json").read_text())
    return found


def _samples(ran: Ran) -> int:
    return sum(read_folded((ran.call.folder / "stacks.folded").read_text()).values())


@pytest.mark.parametrize("options", [{}, {"format": "speedscope"}, {"native": True}, {"nonblocking": True}], ids=str)
def test_py_spy_records_a_running_process_for_a_while(options: dict[str, Any], served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, pid=served, duration="1s", **options)
    parsed = parsed_of(ran)
    assert "hot" in {spot.location for spot in parsed.hotspots[:2]}
    assert {spot.file for spot in parsed.hotspots if spot.location == "hot"} == {SERVE_PY}
    assert _recorded(ran)["recorded"] >= 1
    assert _recorded(ran)["ended"] is False
    assert _is_alive(served)


def test_py_spy_records_as_long_as_the_load_lasts(served: int, tmp_path: Path) -> None:
    load = "import time; print('done'); time.sleep(0.6)"
    ran = run("py-spy", tmp_path, PYTHON, "-S", "-c", load, pid=served, gil=True)
    parsed = parsed_of(ran)
    assert parsed.hotspots[0].location == "hot"
    assert values_of(parsed).keys() == {"gil_share"}
    assert values_of(parsed)["gil_share"] == min(1, _samples(ran) / (200 * _recorded(ran)["recorded"]))
    assert "Sampling process" in (tmp_path / "py-spy.out").read_text()


def test_the_share_of_the_lock_is_that_of_the_whole_run(tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, PYTHON, HOT_PY, "100", gil=True, rate=50)
    assert values_of(parsed_of(ran)) == {"gil_share": min(1, _samples(ran) / 50)}


def test_py_spy_sees_threads_that_wait_if_it_is_told_to(served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, pid=served, duration="500ms", idle=True)
    parsed_of(ran)
    stacks = read_folded((tmp_path / "stacks.folded").read_text())
    assert any("Event.wait (threading.py)" in stack for stack in stacks)


def test_py_spy_of_a_process_that_ends_meanwhile(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ALLOWING, SERVE_PY, "1.5"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ran = run("py-spy", tmp_path, pid=process.pid, duration="60s")
    assert any("ended before the recording" in warning for warning in parsed_of(ran).warnings)
    assert _recorded(ran)["recorded"] < 60


def test_py_spy_of_an_idle_process(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen([sys.executable, "-c", ALLOWING, sleeper], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while _state(process.pid) != "S":
            time.sleep(0.01)
        # On a busy machine py-spy sometimes shows a sleeping thread as active, but never as one that holds the lock.
        ran = run("py-spy", tmp_path, pid=process.pid, duration="300ms", gil=True)
        process.kill()
    assert ran.status == 0
    with pytest.raises(ToolOutputError, match="was idle while it was recorded"):
        ran.parse()


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (("sh", "-c", "sleep 0.2; exit 3"), "the command exited with status 3"),
        (("sh", "-c", "sleep 0.2; kill -9 $$"), "the command was killed by signal 9"),
        (("./no-such-program",), "./no-such-program could not be started"),
    ],
    ids=str,
)
def test_load_that_fails(load: tuple[str, ...], reason: str, served: int, tmp_path: Path) -> None:
    ran = run("py-spy", tmp_path, *load, pid=served)
    assert ran.status
    with pytest.raises(ToolOutputError, match=reason):
        ran.parse()
    assert _is_alive(served)


@pytest.mark.parametrize("name", ["py-spy", "py-spy-dump"])
def test_what_is_no_python_process(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"duration": "1s"} if name == "py-spy" else {}
    with subprocess.Popen(["sleep", "60"]) as process:
        ran = run(name, tmp_path / "other", pid=process.pid, **options)
        process.kill()
    gone = run(name, tmp_path / "gone", pid=2**22, **options)
    for refused, reason in ((ran, "is not a Python program"), (gone, "does not exist")):
        assert refused.status
        with pytest.raises(ToolOutputError, match=reason):
            refused.parse()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"pid": 1}, "set how long to record"),
        ({"duration": "5s"}, "needs the `pid`"),
        ({"pid": 1, "duration": "5s", "native": True, "nonblocking": True}, "without a pause"),
    ],
    ids=str,
)
def test_what_py_spy_cannot_record_is_refused(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        run("py-spy", tmp_path, **options)


def test_py_spy_dump(served: int, tmp_path: Path) -> None:
    parsed_of(run("py-spy-dump", tmp_path, pid=served))
    threads = {
        stack[0].partition(" [")[0]: stack[1:] for stack in read_folded((tmp_path / "stacks.folded").read_text())
    }
    assert threads.keys() == {"MainThread", "waiter"}
    assert any("serve (serve.py:" in frame for frame in threads["MainThread"])
    assert any("Event.wait (threading.py:" in frame for frame in threads["waiter"])
    assert '"locals": null' in (tmp_path / "threads.json").read_text()


def _is_alive(pid: int) -> bool:
    return _state(pid) != "Z"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
