"""The project's own benchmarks run; what they measure is for people to read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
EXPERIMENT = [sys.executable, "-m", "benchmarks.verdicts"]


def test_judging_is_measured_from_events_and_from_a_result_alone() -> None:
    script = ROOT / "benchmarks" / "judging.py"
    done = subprocess.run([sys.executable, script, "3"], capture_output=True, text=True, check=True)
    lines = re.findall(r"^(\S+) \(\d+ MB, 3 rows\): .* exit (\d)$", done.stdout, re.MULTILINE)
    # The first benchmark is 15% slower, which fails.
    assert lines == [("events.jsonl", "1"), ("result.json", "1")]


def test_the_cost_of_perfflow_itself_is_measured(tmp_path: Path) -> None:
    counts = ["--rounds", "1", "--few", "2", "--many", "4", "--plan", "4", "--runs", "20", "--no-peers"]
    env = {**os.environ, "PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    script = [sys.executable, "-m", "benchmarks.runner", *counts]
    done = subprocess.run(script, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    titles = re.findall(r"^### (.*)$", done.stdout, re.MULTILINE)
    assert titles[:3] == ["Start-up", "A run of one step", "Each further step, chain (2 to 4)"]
    assert len(re.findall(r"^\| perfflow \| -?[\d.]+ ms ", done.stdout, re.MULTILINE)) >= 3
    assert re.search(r"^\| validate, 24 lines \| [\d.]+ ms \|", done.stdout, re.MULTILINE)
    assert re.search(r"^CPU used while a timed program sleeps: -?[\d.]+% of a core$", done.stdout, re.MULTILINE)


def test_the_experiment_on_verdicts_runs(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    counts = ["--identical", "2", "--changed", "1", "--peer", "1", "--trace", "60", "--suites", "1"]
    env = {**os.environ, "PERFFLOW_LOCK_FILE": str(tmp_path / "lock")}
    subprocess.run([*EXPERIMENT, "--log", log, *counts], cwd=ROOT, env=env, check=True)
    done = subprocess.run([*EXPERIMENT, "--summarize", log], cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.search(r"^\| identical, both \| 2 \|", done.stdout, re.MULTILINE)
    assert re.search(r"^\| mem \| none \| 1 \|", done.stdout, re.MULTILINE)
    again = subprocess.run([*EXPERIMENT, "--log", log, *counts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "File exists" in again.stderr


def test_the_published_tables_are_those_of_the_published_log() -> None:
    log, tables = (ROOT / "docs" / "experiments" / name for name in ("verdicts.jsonl", "verdicts.md"))
    done = subprocess.run([*EXPERIMENT, "--summarize", log], cwd=ROOT, capture_output=True, text=True, check=True)
    assert tables.read_text() == done.stdout


def test_the_figures_in_the_readme_are_those_of_the_log() -> None:
    log = [json.loads(line) for line in (ROOT / "docs" / "experiments" / "verdicts.jsonl").read_text().splitlines()]
    trials = [entry for entry in log if "kind" in entry]
    same = [entry for entry in trials if entry["kind"].startswith("identical")]
    slower = [entry for entry in trials if entry["kind"].startswith("2% slower")]
    peer = [entry for entry in trials if entry["kind"].startswith("hyperfine: identical")]
    alarms = sum(entry["decision"] in ("improved", "regressed") for entry in same)
    found = sum(entry["decision"] == "regressed" for entry in slower)
    welch = sum(entry["different"]["Welch p < .05"] for entry in peer)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{len(same):,} comparisons of identical programs raised {alarms} false alarms" in readme
    assert f"{found} of {len(slower)} true slowdowns by 2% were found" in readme
    assert f"within {median(entry['seconds'] for entry in slower):.2f} s at the median" in readme
    assert f"called {welch} of {len(peer)} identical pairs different" in readme
