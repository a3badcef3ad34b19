"""Runs that are watched, interrupted or killed before they end."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUN = Path(".perfflow/runs/latest")
DEADLINE = 60.0


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what must come to hold within a minute, however busy the machine is."""
    deadline = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_left(word: str) -> bool:
    """Return whether a process is left whose command has this text."""
    return subprocess.run(["pgrep", "-f", word], capture_output=True, check=False).returncode == 0


def events_of(run: Path) -> list[dict[str, Any]]:
    """Return the events that are completely written."""
    path = run / "events.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def has_event(run: Path, **values: Any) -> bool:
    return any(values.items() <= event.items() for event in events_of(run))


def samples_of(run: Path) -> list[dict[str, Any]]:
    return [event for event in events_of(run) if event["event"] == "sample"]


def wait_for_samples(run: Path, count: int = 1) -> None:
    wait_until(lambda: len(samples_of(run)) >= count, "nothing was sampled")


def result_of(run: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run / "result.json").read_text())
    return result
