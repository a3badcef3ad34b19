"""A running run is not a stored run: report and baseline refuse it until it ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from perfflow.store.run_folder import is_held, lock
from tests.cli.shell import perfflow, start, write

# Measures one benchmark, then waits for a file in its second step.
FLOW = """
stages:
  baseline:
    - id: t
      run: echo ms=1
      runs: 3
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
  verify:
    - {id: waits, run: 'touch waiting; until [ -e go ]; do sleep 0.05; done'}
"""


def test_a_running_run_is_neither_reported_nor_kept_nor_compared(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    running = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "waiting").exists():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < until, "the run did not get that far"
            time.sleep(0.02)
        for words in (["report"], ["baseline", "save", "now"], ["compare", "latest", "latest"]):
            done = perfflow(*words, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (3, ""), words
            assert "the run is still running" in done.stderr
            assert "hint: wait until it ends" in done.stderr
        assert not list(tmp_path.glob(".perfflow/runs/*/result.json"))
        assert not (tmp_path / ".perfflow/baselines").exists()
    finally:
        (tmp_path / "go").touch()
        out, err = running.communicate(timeout=900)
    assert running.returncode == 0, out + err
    assert perfflow("report", cwd=tmp_path).returncode == 0
    assert perfflow("baseline", "save", "now", cwd=tmp_path).returncode == 0


def test_a_killed_run_is_reported(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    running = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    until = time.monotonic() + 60
    while not (tmp_path / "waiting").exists():
        assert time.monotonic() < until, "the run did not get that far"
        time.sleep(0.02)
    running.kill()
    running.communicate(timeout=900)
    (tmp_path / "go").touch()
    done = perfflow("report", cwd=tmp_path)
    assert done.returncode == 3
    assert "the run did not finish" in done.stdout
    assert "still running" not in done.stderr


def test_asking_whether_a_file_is_written_leaves_it_free(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert not is_held(path)
    path.touch()
    assert not is_held(path)
    with path.open("a") as first, path.open("a") as second:
        lock(first.fileno())
        assert is_held(path)
        with pytest.raises(BlockingIOError):
            lock(second.fileno())
    assert not is_held(path)


@pytest.mark.parametrize(
    ("check", "force", "said"),
    [
        ("exit 3", [], "note: this run failed: correctness step failed: c: "),
        ("sleep 9", ["--force"], "note: this run ended in error: step c: "),
        ("true", [], ""),
    ],
)
def test_keeping_a_run_that_did_not_pass_says_so(check: str, force: list[str], said: str, tmp_path: Path) -> None:
    steps = FLOW.partition("  verify:")[0] + f"  verify:\n    - {{id: c, run: '{check}', timeout: 2s}}\n"
    write(tmp_path, steps)
    assert perfflow("run", "flow.yaml", cwd=tmp_path).returncode == (1 if "exit" in check else 3 if force else 0)
    done = perfflow("baseline", "save", "old", *force, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(said)
    assert bool(done.stderr) == bool(said)
