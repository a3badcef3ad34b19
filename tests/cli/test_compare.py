"""``perfflow compare`` that is interrupted or waits for the machine. See also ``cases/compare.txt``."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from perfflow.machine.lock import machine_alone
from tests.cli.shell import perfflow, start


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with its own cache and measuring lock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.delenv("PERFFLOW_LOCK_HELD", raising=False)
    return tmp_path


def test_an_interrupted_comparison_says_so(place: Path) -> None:
    process = start("compare", "--runs", "1000", "--out", "run", "--", "sleep 0.01", "sleep 0.01", cwd=place)
    events = place / "run" / "events.jsonl"
    while not events.exists() or events.read_text().count('"sample"') < 3:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=900)
    assert process.returncode == 130
    assert stdout.startswith("interrupted before the difference was settled; results so far:")


def test_waiting_for_the_machine_is_said(place: Path) -> None:
    with machine_alone("the other", 10, lambda _: None):
        process = start("compare", "--runs", "1", "--", "true", "true", cwd=place)
        assert process.stderr is not None
        said = process.stderr.readline()
    assert "held by the other" in said
    assert process.wait(timeout=900) == 4
    process.communicate()


def test_programs_are_looked_for_before_the_wait_which_lasts_as_long_as_it_is_told(place: Path) -> None:
    with machine_alone("the other", 10, lambda _: None):
        done = perfflow("compare", "--", "true", "./no-such-program", cwd=place)
        assert done.returncode == 3
        assert "./no-such-program: not found or not executable" in done.stdout
        assert "waiting" not in done.stderr
        done = perfflow("compare", "--lock-timeout", "1s", "--", "true", "true", cwd=place)
        assert done.returncode == 3
        assert "the machine is held by the other (" in done.stdout
        assert "waiting for the machine, next in line: held by the other (" in done.stderr
