"""kill -9 at random moments: no finished sample is lost or taken twice, and nothing is left running."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import RUN, has_event, is_left, samples_of, wait_until
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
        : MARK
        echo run >> counter
        sleep 0.0${RANDOM:0:1}
        echo ms=$(wc -l < counter)
      candidate: {env: {SIDE: candidate}}
      runs: ROUNDS
      parse: {regex: "ms=(?P<time>.*)", units: {time: ms}}
"""


@pytest.mark.parametrize(("kills", "rounds"), [(6, 30), pytest.param(50, 60, marks=pytest.mark.long)])
def test_killed_at_random_moments_a_run_loses_nothing_and_takes_nothing_twice(
    kills: int, rounds: int, tmp_path: Path
) -> None:
    chance = random.Random(20261120)
    mark = f"sleep-{tmp_path.name}-{chance.randrange(10**9)}"
    (tmp_path / "flow.yaml").write_text(FLOW.replace("MARK", mark).replace("ROUNDS", str(rounds)))
    run = tmp_path / RUN
    known: list[dict[str, Any]] = []
    for number in range(kills):
        begun = has_event(run, event="run")
        arguments = ["run", "flow.yaml", "--progress", "off", *(["--resume"] if begun else [])]
        process = start(*arguments, cwd=tmp_path)
        # Some may be killed before the run starts, but not all, even on a slow machine.
        if number > kills // 4:
            wait_until(run.exists, "the run never started")
        time.sleep(chance.uniform(0.05, 0.9))
        process.kill()
        process.communicate()
        if not run.exists():
            continue
        now = samples_of(run)
        assert now[: len(known)] == known, f"after kill {number}"
        known = now
        wait_until(lambda: not is_left(mark), f"a program runs on after kill {number}")
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1, 4), done.stderr
    whole = samples_of(run)
    assert whole[: len(known)] == known
    assert [event["pair"] for event in whole] == list(range(rounds))
    values = [event[side][0]["value"] for event in whole for side in ("baseline", "candidate")]
    assert len(set(values)) == len(values)
    assert (tmp_path / "setups").read_text().count("set") >= 1
    row = json.loads(done.stdout)["benchmarks"][0]
    assert (row["baseline"]["n"], row["candidate"]["n"]) == (rounds, rounds)
