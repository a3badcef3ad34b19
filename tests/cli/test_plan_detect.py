"""``perfflow plan --detect``: which change can be shown in which time, from the last run or the history."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from perfflow.verdict import detect
from tests.cli.shell import perfflow, write

FLOW = """
stages:
  baseline:
    - id: bench
      run: echo time $((1000 + RANDOM % 100)) us
      candidate: {command: echo time $((1000 + RANDOM % 100)) us}
      parse: {regex: "time (?P<time>[0-9.]+)", units: {time: us}}
      runs: 12
    - {id: never, run: "true"}
"""


def detectable(folder: Path, *words: str) -> list[dict[str, Any]]:
    done = perfflow("plan", "flow.yaml", "--detect", "5%", "--format", "json", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["benchmarks"]
    return found


def test_the_last_run_tells_the_pairs_and_the_time(tmp_path: Path) -> None:
    write(tmp_path, FLOW)
    assert perfflow("run", "flow.yaml", "--only", "bench", cwd=tmp_path).returncode in (0, 4)
    bench, never = detectable(tmp_path)
    assert (bench["benchmark"], never["benchmark"], never["spread"]) == ("bench", "never", None)
    assert bench["pairs"] == detect.pairs_to_prove(0.05, bench["spread"], 0.02)
    assert bench["seconds"] > 0
    assert bench["source"].startswith("run ")
    wider = detectable(tmp_path, "--budget", "1000h")[0]
    assert wider["within_budget"] <= bench["within_budget"]


def test_each_benchmark_is_known_from_the_newest_run_that_compared_it(tmp_path: Path) -> None:
    write(tmp_path, FLOW.replace('run: "true"', "run: 'true', candidate: {command: ':'}, runs: 11"))
    runs = list[str]()
    for step in ("never", "bench", "bench"):
        assert perfflow("run", "flow.yaml", "--only", step, cwd=tmp_path).returncode in (0, 1, 4)
        folders = {path.name for path in (tmp_path / ".perfflow/runs").iterdir() if not path.is_symlink()}
        runs += folders - {*runs}
    sources = {item["benchmark"]: item["source"] for item in detectable(tmp_path)}
    assert sources == {"never": f"run {runs[0]}", "bench": f"run {runs[2]}"}
    # A clone with only the history knows the spread, and not how long a pair takes.
    shutil.rmtree(tmp_path / ".perfflow/runs")
    bench, _ = detectable(tmp_path)
    assert (bench["source"], bench["seconds"]) == ("the history", None)
    assert bench["pairs"] or bench["spread"] > 0
