"""kill -9 at random moments: no finished sample is lost or taken twice, and nothing is left running."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, start

# Each process appends a line to a file and prints its number.
FLOW = """
perfflow: 1
name: killed
stages:
  setup:
    - {id: once, run: "echo set >> setups"}
  baseline:
    - id: bench
      run: |
        echo run >> counter
        sleep 0.0${RANDOM:0:1}
        echo ms=$(wc -l < counter)
      candidate: {env: {SIDE: candidate}}
      runs: ROUNDS
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
"""


def events_of(folder: Path) -> list[dict[str, Any]]:
    path = folder / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def samples_of(folder: Path) -> list[dict[str, Any]]:
    return [event for event in events_of(folder) if event["event"] == "sample"]


def is_left(mark: str) -> bool:
    return subprocess.run(["pgrep", "-f", mark], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(("kills", "rounds"), [(6, 30), pytest.param(50, 60, marks=pytest.mark.long)])
def test_killed_at_random_moments_a_run_loses_nothing_and_takes_nothing_twice(
    kills: int, rounds: int, tmp_path: Path
) -> None:
    chance = random.Random(20261120)
    mark = f"sleep-{tmp_path.name}-{chance.randrange(10**9)}"
    flow = FLOW.replace("run: |\n        echo run", f"run: |\n        : {mark}\n        echo run").replace(
        "ROUNDS", str(rounds)
    )
    (tmp_path / "flow.yaml").write_text(flow)
    run = tmp_path / ".perfflow" / "runs" / "latest"
    known: list[dict[str, Any]] = []
    for number in range(kills):
        begun = run.exists() and any(event["event"] == "run" for event in events_of(run.resolve()))
        arguments = ["run", "flow.yaml", "--progress", "off", *(["--resume"] if begun else [])]
        process = start(*arguments, cwd=tmp_path)
        # Some may be killed before the run starts, but not all, even on a slow machine.
        deadline = time.monotonic() + (10 if number > kills // 4 else 0)
        while not run.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(chance.uniform(0.05, 0.9))
        process.kill()
        process.communicate()
        if not run.exists():
            continue
        now = samples_of(run.resolve())
        assert now[: len(known)] == known, f"after kill {number}"
        known = now
        deadline = time.monotonic() + 2
        while is_left(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not is_left(mark), f"after kill {number}"
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1, 4), done.stderr
    whole = samples_of(run.resolve())
    assert whole[: len(known)] == known
    assert [event["pair"] for event in whole] == list(range(rounds))
    values = [event[side][0]["value"] for event in whole for side in ("baseline", "candidate")]
    assert len(set(values)) == len(values)
    assert (tmp_path / "setups").read_text().count("set") >= 1
    row = json.loads(done.stdout)["benchmarks"][0]
    assert (row["baseline"]["n"], row["candidate"]["n"]) == (rounds, rounds)
