"""``perfflow bisect`` on histories of a C program that takes 20 to 30 ms, and interrupted.

See also ``cases/bisect.txt``.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, start, write
from tests.histories import FLOW, Commit, base, header, linear, make
from tests.repositories import git
from tests.trees.projects import fingerprint

AT = 27
"""Number of the commit, out of 40, that makes the program 25% slower."""

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a project with its own cache and measuring lock."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    return tmp_path


def project(around: Path, commits: list[Commit], flow: str = FLOW) -> tuple[Path, list[str]]:
    """Create a repository with these commits and an untracked workflow file."""
    root = around / "project"
    ids = make(root, [base(), *commits])
    write(root, flow)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("flow.yaml\n.perfflow\n")
    return root, ids


def all_but_runs(root: Path) -> dict[str, tuple[object, ...]]:
    """Return all files of a project and its .git, with times, except those of perfflow's runs."""
    (root / ".perfflow").mkdir(exist_ok=True)
    return {path: facts for path, facts in fingerprint(root).items() if ".perfflow" not in Path(path).parts}


def slower_at(number: int, commit: int, rounds: int = 126) -> Commit | None:
    return {"rounds.h": header(rounds)} if number == commit else None


@pytest.mark.long
def test_the_commit_among_forty_is_found_in_eight_builds(around: Path) -> None:
    root, ids = project(around, linear(40, lambda number: slower_at(number, AT)))
    before = all_but_runs(root)
    done = perfflow("bisect", "flow.yaml", "--good", ids[0], "--bad", "main", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all_but_runs(root) == before
    assert len((around / "builds").read_text().splitlines()) <= 8
    assert f"first bad commit: {ids[AT]} change {AT}" in done.stdout
    assert "A <a@example.org>" in done.stdout
    latest = root / ".perfflow/runs/latest"
    found = json.loads((latest / "bisect.json").read_text())
    assert found["outcome"] == "found"
    first = found["first_bad"]
    assert (first["revision"], first["files"]) == (ids[AT], ["rounds.h"])
    # The true change is 26%, minus the time to start the process.
    assert 0.1 < first["change"]["low"] <= first["change"]["value"] <= first["change"]["high"]
    (parent,) = first["parents"]
    assert parent["revision"] == ids[AT - 1]
    assert parent["change"]["high"] < first["change"]["low"]
    assert ids[AT][:12] in (latest / "report.md").read_text()
    assert [line for line in (latest / "events.jsonl").read_text().splitlines() if '"event":"tried"' in line]


@pytest.mark.long  # counts in many revisions
def test_exact_counts_tell_a_small_change_and_same_files_are_not_built_twice(around: Path) -> None:
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    flow = FLOW.replace("uses: command", "uses: callgrind").replace("scale: 200000", "scale: 1000")

    def change(number: int) -> Commit | None:
        # A change and its reversal: the files are the same as before both commits.
        text = {3: "one\n", 4: "two\n", 5: "one\n"}.get(number)
        return slower_at(number, 8, 107) or ({"notes/all.txt": text} if text else {"notes/all.txt": "one\n"})

    root, ids = project(around, linear(11, change), flow)
    words = ("--good", ids[0], "--metric", "instructions", "--progress", "off", "--json")
    done = perfflow("bisect", "flow.yaml", *words, cwd=root)
    found = json.loads(done.stdout)
    assert (done.returncode, found["outcome"]) == (0, "found")
    assert found["first_bad"]["revision"] == ids[8]
    change_of = found["first_bad"]["change"]
    assert change_of["low"] == change_of["high"] > 0
    built = len((around / "builds").read_text().splitlines())
    assert built == sum(item["built"] for item in found["tried"]) < len(found["tried"])


def interrupted(root: Path, good: str, tried: int) -> tuple[str, str]:
    """Interrupt a bisection when it has tried this many revisions. Return what it printed."""
    running = start("bisect", "flow.yaml", "--good", good, cwd=root)
    events = root / ".perfflow/runs/latest/events.jsonl"
    deadline = time.monotonic() + 120
    while not events.exists() or events.read_text().count('"event":"tried"') < tried:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=900)
    assert running.returncode == 130, out + said
    return out, said


def test_what_was_interrupted_before_the_ends_were_compared_starts_anew(around: Path) -> None:
    slow = FLOW.replace("{command: ./work}", "{command: ./work; sleep 1, shell: true}")
    root, ids = project(around, linear(2, lambda _: None), slow)
    assert "--resume" not in interrupted(root, ids[0], 1)[1]
    done = perfflow("bisect", "flow.yaml", "--good", ids[0], "--resume", cwd=root)
    assert done.returncode == 2
    assert "before good was compared with bad" in done.stderr


@pytest.mark.long  # interrupts a long bisection; another test interrupts one early
def test_an_interruption_keeps_what_was_found(around: Path) -> None:
    root, ids = project(around, linear(40, lambda number: slower_at(number, AT)))
    out, said = interrupted(root, ids[0], 3)
    found = json.loads((root / ".perfflow/runs/latest/bisect.json").read_text())
    assert found["outcome"] == "interrupted"
    assert len(found["tried"]) >= 3
    assert 1 < len(found["left"]) < 40
    assert "interrupted" in out
    assert "--resume=" in said
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "worktree", "list").count("\n") == 1
    words = ["bisect", "flow.yaml", "--good", ids[0], "--resume", "--progress", "off", "--json"]
    other = perfflow(*words, "--benchmark", "work", cwd=root)
    assert (other.returncode, "differ from those of this run" in other.stderr) == (2, True)
    done = perfflow(*words, cwd=root)
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["first_bad"]["revision"] == ids[AT]
    assert again["tried"][: len(found["tried"])] == found["tried"]
    assert again["builds"] <= 8
