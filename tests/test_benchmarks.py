"""The project's own benchmarks run; what they measure is for people to read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks import replay, replayed
from benchmarks.process_experiment import recording
from benchmarks.process_experiment.candidates import CANDIDATES, QUARTILE
from benchmarks.verdict_experiment import summary
from perfflow.model.readings import CAPPED, reading_of_process
from tests.modules import ROOT, run_module
from tests.repositories import git

EXPERIMENTS = ROOT / "dev" / "experiments"
EVIDENCE = "docs/explanation/evidence.md"


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def words_of(page: str) -> str:
    """Return the text of a page as one line."""
    return " ".join((ROOT / page).read_text().split())


@pytest.mark.long  # a benchmark of perfflow itself
def test_judging_is_measured_from_events_and_from_a_result_alone() -> None:
    done = run_module("benchmarks.judging", "3")
    lines = re.findall(r"^(\S+) \(\d+ MB, 3 rows\): .* exit (\d)$", done.stdout, re.MULTILINE)
    # The first benchmark is 15% slower, which fails.
    assert lines == [("events.jsonl", "1"), ("result.json", "1")]


def test_the_recording_of_processes_shows_what_a_quartile_hides() -> None:
    processes = list(recording.read(EXPERIMENTS / "process-statistic.jsonl.xz"))
    for harness in ("criterion", "pytest-benchmark", "Google Benchmark"):
        of_harness = [item for item in processes if (item.harness, item.size) == (harness, "long")]
        read = {name: _slowdown(of_harness, name) for name in (QUARTILE, CAPPED)}
        assert read[QUARTILE] < 1.2
        assert read[CAPPED] > 1.4


def _slowdown(processes: list[recording.Process], name: str) -> float:
    """How much more every second call twice as slow reads, by the medians of the processes."""
    sides = [[item for item in processes if item.change == change] for change in (recording.BASE, "every 2nd x2")]
    old, new = (median(CANDIDATES[name](item.seconds, item.iterations) for item in side) for side in sides)
    return new / old


def test_the_capped_mean_of_the_experiment_is_that_of_readings() -> None:
    processes = recording.read(EXPERIMENTS / "process-statistic.jsonl.xz")
    for item in (next(processes) for _ in range(20)):
        found = reading_of_process("time", item.seconds).value
        assert found == pytest.approx(CANDIDATES[CAPPED](item.seconds, item.iterations))


@pytest.mark.long  # replays thousands of runs
def test_a_replayed_change_is_found_in_both_directions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    clone = tmp_path / "clones/tool"
    clone.mkdir(parents=True)
    git(clone, "init", "-q", "-b", "main")
    for cost in (100, 150):
        (clone / "cost").write_text(f"{cost}\n")
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", f"cost {cost}")
    parse = "parse: {regex: '(?P<cost>[0-9]+)', units: {cost: '1'}, better: {cost: lower}}"
    flow = f"perfflow: 1\nname: x\nstages:\n  baseline:\n    - {{id: one, run: cat cost, {parse}}}\n"
    change = {"name": "dearer", "repository": "of/tool", "base": "main~1", "head": "main", "slower": ["one"]}
    table = tmp_path / "table.yaml"
    table.write_text(json.dumps([change | {"workflow": flow}]))
    monkeypatch.setattr(replay, "TABLE", table)
    found = []
    for words in ([], ["--alike", "1"]):
        monkeypatch.setattr(sys, "argv", ["replay", str(tmp_path / "clones"), *words])
        printed = StringIO()
        with redirect_stdout(printed):
            replay.main()
        found += [json.loads(line) for line in printed.getvalue().splitlines()]
    assert [(item["backwards"], item["verdict"], item["found"], item["others"]) for item in found] == [
        (False, "fail", 1, {}),
        (True, "pass", 1, {}),
        (False, "pass", 0, {}),
    ]


def test_the_page_of_replayed_gates_is_that_of_its_log() -> None:
    assert replayed.page(EXPERIMENTS / "gates.jsonl") == (EXPERIMENTS / "gates.md").read_text()
    one, four = (item for item in entries(EXPERIMENTS / "gates.jsonl") if item["kind"] == "pairs")
    told = words_of("dev/decisions.md")
    assert f"log ratio was {one['turn']:.1%} in turn and {one['side']:.1%} side by side" in told
    assert f"beside four loops {four['turn']:.1%} and {four['side']:.1%}" in told


@pytest.mark.long
def test_the_cost_of_perfflow_itself_is_measured(tmp_path: Path) -> None:
    counts = ["--rounds", "1", "--few", "1", "--many", "2", "--plan", "2", "--runs", "10", "--no-peers"]
    done = run_module("benchmarks.runner", *counts, PERFFLOW_LOCK_FILE=str(tmp_path / "lock"))
    titles = re.findall(r"^### (.*)$", done.stdout, re.MULTILINE)
    assert titles[:3] == ["Start-up", "A run of one step", "Each further step, chain (1 to 2)"]
    assert len(re.findall(r"^\| perfflow \| -?[\d.]+ ms ", done.stdout, re.MULTILINE)) >= 3
    assert re.search(r"^\| validate, 14 lines \| [\d.]+ ms \|", done.stdout, re.MULTILINE)
    assert re.search(r"^CPU used while a timed program sleeps: -?[\d.]+% of a core$", done.stdout, re.MULTILINE)


def experiment(folder: Path, *words: str) -> str:
    """Run the experiment with its log in a folder; returns what it says, on either stream."""
    lock = str(folder / "lock")
    done = run_module("benchmarks.verdicts", *words, "--out", folder, check=False, PERFFLOW_LOCK_FILE=lock)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_the_experiment_on_verdicts_goes_on_where_it_stopped(tmp_path: Path) -> None:
    log = tmp_path / "verdicts.jsonl"
    experiment(tmp_path, "same", "--count", "1")
    first = log.read_text()
    kinds = [entry["kind"] for entry in map(json.loads, first.splitlines()) if "kind" in entry]
    assert sorted(kinds) == ["identical, cpu", "identical, memory"]
    (start,) = (entry for entry in map(json.loads, first.splitlines()) if "start" in entry)
    assert bool(start["tree"]["revision"]) == (ROOT / ".git").exists()

    experiment(tmp_path, "same", "--count", "1")
    assert log.read_text() == first, "a part that is complete was run again"
    assert "has the seed 20261123" in experiment(tmp_path, "same", "--count", "1", "--seed", "2")

    # As if it had been killed while it wrote the second trial.
    trials = [line for line in first.splitlines(keepends=True) if '"trial"' in line]
    log.write_text(first[: first.index(trials[1]) + 40])
    experiment(tmp_path, "same", "--count", "1")
    again = entries(log)
    assert json.loads(trials[0]) in again
    done = [(entry["trial"], entry["amounts"], entry["seed"]) for entry in again if "kind" in entry]
    assert [number for number, _, _ in done] == [0, 1]
    assert done[1][2] == json.loads(trials[1])["seed"]


@pytest.mark.long
def test_recorded_processes_are_replayed_as_suites_and_become_tables(tmp_path: Path) -> None:
    experiment(tmp_path, "record", "--count", "1")
    experiment(tmp_path, "suites", "--count", "1")
    experiment(tmp_path, "blocks")
    experiment(tmp_path, "table")
    tables = (tmp_path / "verdicts.md").read_text()
    assert re.search(r"^\| mem \| none \| 1 \|", tables, re.MULTILINE)
    assert re.search(r"^\| cpu \| 5% \| median > 5% \| \d+% of 10 \|", tables, re.MULTILINE)


@pytest.mark.long
def test_programs_that_wait_longer_are_compared_and_counted(tmp_path: Path) -> None:
    experiment(tmp_path, "waits", "--count", "1")
    experiment(tmp_path, "table")
    rows = re.findall(r"^\| (lock|read|sleep) \| (\d+)% \| 1 \|", (tmp_path / "verdicts.md").read_text(), re.MULTILINE)
    assert rows == [(mode, size) for mode in ("lock", "read", "sleep") for size in ("0", "5", "10", "15")]


LOG = entries(EXPERIMENTS / "verdicts.jsonl")
TRIALS = [entry for entry in LOG if "kind" in entry]
SAME = [entry for entry in TRIALS if entry["part"] == "same"]


def slowdowns(kind: str) -> list[dict[str, Any]]:
    return [entry for entry in TRIALS if entry["kind"] == kind and entry["part"] == "slower"]


@pytest.mark.long  # reads a large log
def test_the_published_tables_are_those_of_the_published_log(tmp_path: Path) -> None:
    shutil.copy(EXPERIMENTS / "verdicts.jsonl", tmp_path)
    experiment(tmp_path, "table")
    assert (EXPERIMENTS / "verdicts.md").read_text() == (tmp_path / "verdicts.md").read_text()


def test_the_figures_on_identical_programs_are_those_of_the_log() -> None:
    readme, evidence = words_of("README.md"), words_of(EVIDENCE)
    alarms = sum(map(summary.is_changed, SAME))
    assert len(SAME) == 2000
    assert f"called {alarms} of {len(SAME):,} pairs of identical programs different" in readme
    seconds = median(entry["seconds"] for entry in SAME)
    assert f"| identical programs | {len(SAME):,} | {alarms} | {seconds:.2f} s |" in evidence
    peer = [entry for entry in TRIALS if entry["kind"].startswith("hyperfine: identical")]
    welch = sum(entry["different"]["Welch p < .05"] for entry in peer)
    assert f"called {welch} of {len(peer)} identical pairs different" in evidence


def test_the_figures_on_slowdowns_are_those_of_the_log() -> None:
    readme, found = words_of("README.md"), {}
    for more in ("1%", "2%"):
        slower = slowdowns(f"{more} slower, cpu")
        found[more] = f"{sum(entry['decision'] == 'regressed' for entry in slower)} of {len(slower)}"
        number, seconds = found[more].split()[0], median(entry["seconds"] for entry in slower)
        row = f"| {more} slower, bound by the processor | {len(slower)} | {number} | {seconds:.2f} s |"
        assert row in words_of(EVIDENCE)
    assert f"found {found['1%']} slowdowns by 1%, and {found['2%']} by 2%" in readme
    builds = slowdowns("two builds: 2% slower, cpu")
    assert (len(builds), sum(entry["decision"] == "regressed" for entry in builds)) == (60, 0)
    assert "of 60 slowdowns by 2% it called 0" in readme


@pytest.mark.parametrize("page", ["README.md", EVIDENCE])
def test_the_figures_on_layouts_are_those_of_the_log(page: str) -> None:
    trials = [entry for entry in LOG if "edit" in entry]
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]
    for way, name in (("auto", "as by default"), ("off", "`layouts: off`"), ("hyperfine", ""), ("criterion", "")):
        own = [entry["called"] for entry in trials if entry["way"] == way]
        (row,) = (line for line in rows if (name or f"| {way},") in line)
        assert row.endswith(f" | {sum(own)} of {len(own)} |")


def test_the_figures_on_suites_are_those_of_the_log() -> None:
    evidence = words_of(EVIDENCE)
    suites = [entry for entry in LOG if entry["part"] == "suites" and entry.get("suite") == "mem"]
    none, two = ([entry for entry in suites if entry["factor"] == factor] for factor in (1.0, 1.02))
    silent = sum(entry["alarms"] > 0 for entry in none)
    assert f"Of {len(none):,} replayed suites of 100 memory-bound" in evidence
    assert f"without a change, {silent} raised an alarm" in evidence
    found, changed = (sum(entry[key] for entry in two) for key in ("found", "changed"))
    assert f"{found} of {changed:,} changes by 2% in such suites were found" in evidence


def test_the_looks_at_pairs_with_layouts_are_simulated(tmp_path: Path) -> None:
    program = tmp_path / "looks"
    source = ROOT / "benchmarks" / "layouts" / "looks.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", source, "-lm", "-o", program], check=True)
    done = subprocess.run([program, "8", "1"], capture_output=True, text=True, check=True)
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 5 * 4 * 5
    # Twice the threshold and hardly any scatter: found by every schedule, every time, at the first look.
    assert {(row[3], row[-1]) for row in rows if row[:2] == ["none", "+20%"]} == {("100.0%", "11.0")}
