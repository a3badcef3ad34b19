"""Streams without a reader, and programs that print too much."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfflow.machine import lock
from tests.cli.shell import write
from tests.execute.test_child import DEADLINE, wait_until

FLOW = """
name: pipes
stages:
  baseline:
    - {id: bench, uses: command, with: {command: "true"}, candidate: /bin/true, runs: 3}
"""


@pytest.fixture
def full() -> Iterator[tuple[int, int]]:
    """Return both ends of a full pipe."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    try:
        while True:
            os.write(into, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(into, True)
    yield out, into
    os.close(out)
    os.close(into)


def started(cwd: Path, *arguments: str, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    return subprocess.Popen(
        [sys.executable, "-m", "perfflow", *arguments], cwd=cwd, stdout=stdout, stderr=stderr, env=env
    )


@pytest.mark.parametrize(
    ("arguments", "statuses"),
    [
        (["run", "flow.yaml", "--unproven=pass"], (0, 1)),
        (["compare", "--runs", "3", "--unproven=pass", "--", "true", "/bin/true"], (0, 1)),
        pytest.param(["calibrate", "flow.yaml", "--trials", "1", "--budget", "5s"], (0, 3), marks=pytest.mark.long),
        (["run", "none.yaml"], (2,)),
    ],
    ids=["run", "compare", "calibrate", "error"],
)
def test_a_stderr_that_nobody_reads_stops_nothing(
    tmp_path: Path, full: tuple[int, int], arguments: list[str], statuses: tuple[int, ...]
) -> None:
    write(tmp_path, FLOW)
    process = started(tmp_path, *arguments, stdout=subprocess.DEVNULL, stderr=full[1])
    try:
        assert process.wait(3 * DEADLINE) in statuses
    finally:
        process.kill()


def test_a_warning_that_has_no_reader_stops_nothing(tmp_path: Path) -> None:
    write(tmp_path, "name: checks\nstages: {verify: [{run: touch ran}]}\n")
    out, into = os.pipe()
    os.close(out)
    process = started(tmp_path, "run", "flow.yaml", stdout=subprocess.DEVNULL, stderr=into)
    os.close(into)
    assert process.wait(DEADLINE) == 3  # nothing was measured
    assert (tmp_path / "ran").exists()


def test_a_verdict_waits_for_its_reader_and_holds_nothing_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests may hold the machine at the same time.
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    write(tmp_path, FLOW)
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    process = started(tmp_path, "run", "flow.yaml", "--json", "--unproven=pass", stdout=into, stderr=subprocess.DEVNULL)
    os.close(into)
    wait_until((tmp_path / ".perfflow/runs/latest/receipt.json").exists, "the run did not end")
    time.sleep(0.5)
    assert process.poll() is None
    with lock.machine_alone("me", 0, print):
        pass
    with os.fdopen(out, "rb") as reader:
        assert reader.read().rstrip().endswith(b"}")
    assert process.wait(DEADLINE) in (0, 1)


def test_a_program_that_prints_100_mb_and_fails_shows_its_end_and_fills_no_memory(tmp_path: Path) -> None:
    text = "yes a line | head -c 100000000; echo the reason; exit 3"
    write(tmp_path, f'name: much\nstages: {{verify: [{{id: loud, run: "{text}"}}]}}\n')
    # A program inherits the high-water mark of its parent through exec, and that of these tests is arbitrary.
    small = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    argv = [sys.executable, "-I", "-c", small, sys.executable, "-m", "perfflow", "run", "flow.yaml"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    status, kibibytes = map(int, done.stdout.split())
    assert status in (1, 3)
    assert "the reason" in done.stderr
    assert len(done.stderr) < 10_000
    # perfflow alone takes about 115 MB, and the output would come on top.
    assert kibibytes * 1024 < 200_000_000
