"""Changes of the wall clock during a run do not affect figures, order or verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import ROOT, write
from tests.long import rest_long

# perfflow with a wrong clock, which a measured program of the workflow corrects.
CLOCK = """
import os, sys, time
real, off = time.time, float(sys.argv.pop(1))
time.time = lambda: real() + (0 if os.path.exists("set") else off)
from perfflow.cli.main import main
main()
"""
FLOW = """
name: clock
stages:
  baseline:
    - id: bench
      run: |
        echo run >> counter
        n=$(wc -l < counter)
        test $n -lt 14 || touch set
        echo "ms=1.000" > figures
      candidate: {env: {SIDE: candidate}}
      runs: 10
      parse: {file: figures, regex: "ms=(?P<time>.*)", units: {time: ms}}
    - {id: whole, uses: command, runs: 4, with: {command: sleep 0.05}, candidate: sleep 0.05}
"""


def run(folder: Path, off: float) -> dict[str, Any]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    words = ["run", "flow.yaml", "--json", "--unproven=pass", "--progress", "off", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, "-c", CLOCK, str(off), *words],
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("off", rest_long([7200.0, -7200.0, 1e8]), ids=["set-back", "set-forward", "years"])
def test_a_clock_that_is_set_in_the_middle_changes_nothing_that_is_measured(tmp_path: Path, off: float) -> None:
    write(tmp_path, FLOW)
    result = run(tmp_path, off)
    assert (tmp_path / "set").exists()
    assert [step["status"] for step in result["steps"]] == ["done", "done"]
    assert all(0 <= step["seconds"] < 600 for step in result["steps"])
    rows = {(row["name"], row["metric"]): row for row in result["benchmarks"]}
    values = [value for side in ("baseline", "candidate") for value in rows["whole", "time"][side]["samples"]]
    assert all(0.05 <= value < 60 for value in values)
    assert rows["bench", "time"]["decision"] == "same"
    events = [json.loads(line) for line in (tmp_path / ".perfflow/runs/latest/events.jsonl").read_text().splitlines()]
    times = [datetime.fromisoformat(event["time"]) for event in events if "time" in event]
    assert times == sorted(times)
    started, finished = (datetime.fromisoformat(result["run"][name]) for name in ("started", "finished"))
    assert 0 < (finished - started).total_seconds() < 600
    assert 0 < result["run"]["seconds"] < 600
