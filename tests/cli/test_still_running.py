"""A running run is not a stored run: report, baseline and compare refuse it until it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.store.run_folder import is_held, lock
from tests.cli.running import wait_until
from tests.cli.shell import perfflow, start, write

# Measures one benchmark, then waits for a file in its second step.
FLOW = """
stages:
  baseline:
    - {id: t, run: echo ms=1, runs: 3, parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}}
  verify:
    - {id: waits, run: 'touch waiting; until [ -e go ]; do sleep 0.05; done'}
"""


def test_a_running_run_is_neither_reported_nor_kept_nor_compared(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    running = start("run", "flow.yaml", "--progress", "off", cwd=tmp_path)
    try:
        wait_until((tmp_path / "waiting").exists, "the run did not get that far")
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
