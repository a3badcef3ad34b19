"""``perfflow bisect`` as a user's shell runs it, on real histories of a C program that takes 20 to 30 ms."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, start, write
from tests.histories import FLOW, Commit, base, header, linear, make
from tests.repositories import git
from tests.trees.projects import fingerprint

COSTS = """
name: costs
stages:
  build:
    - {id: make, run: 'echo built >> "$BUILDS"; test ! -s broken'}
  baseline:
    - {id: one, run: head -n 1 costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
    - {id: two, run: tail -n 1 costs, parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
"""
"""A workflow without timing: two benchmarks that print the content of a file."""
WILD = r"""
name: wild
stages:
  baseline:
    - id: work
      run: n=$((1 + RANDOM)); echo $((n ** 4))
      budget: 1h
      parse: {regex: '(?P<cost>\d+)', units: {cost: '1'}, better: {cost: lower}}
"""
"""A workflow whose figure is so random that no time decides about it."""
SUITE = (Path(__file__).parent / "programs" / "suite").read_text()
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


def bisected(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    done = perfflow("bisect", "flow.yaml", *words, "--progress", "off", "--json", cwd=root)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def decisions(found: dict[str, Any]) -> dict[str, str]:
    return {item["revision"]: item["decision"] for item in found["tried"]}


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


def test_what_does_not_build_is_passed_over(around: Path) -> None:
    changes = {1: costs(100), 16: {"broken": "x"}, 24: {"broken": ""}, 30: costs(126)}
    root, ids = project(around, linear(40, changes.get), COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["outcome"]) == (0, "found")
    assert found["first_bad"]["revision"] == ids[30]
    skipped = [item for item in found["tried"] if item["decision"] == "skipped"]
    assert {item["revision"] for item in skipped} <= set(ids[16:24])
    assert skipped
    assert all("step make: " in item["reason"] for item in skipped)
    assert found["builds"] <= 8


def costs(one: int, two: int = 100) -> Commit:
    return {"costs": f"{one}\n{two}\n"}


def test_where_only_what_does_not_build_is_left_all_of_it_is_named(around: Path) -> None:
    commits = [costs(100), *linear(3, lambda _: None), {"broken": "x"}, {"notes/x.txt": "x"}, costs(130)]
    root, ids = project(around, commits, COSTS)
    git(root, "rm", "-q", "broken")
    git(root, "commit", "-qm", "mended")
    mended = git(root, "rev-parse", "HEAD").strip()
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["outcome"], found["first_bad"]) == (4, "narrowed", None)
    assert {item["revision"] for item in found["left"]} == {*ids[5:8], mended}
    assert found["left"][0]["revision"] == mended
    assert {revision for revision, what in decisions(found).items() if what == "skipped"} == set(ids[5:8])


def test_exact_counts_tell_a_small_change_and_same_files_are_not_built_twice(around: Path) -> None:
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    flow = FLOW.replace("uses: command", "uses: callgrind").replace("scale: 200000", "scale: 1000")

    def change(number: int) -> Commit | None:
        # A change and its reversal: the files are the same as before both commits.
        text = {3: "one\n", 4: "two\n", 5: "one\n"}.get(number)
        return slower_at(number, 8, 107) or ({"notes/all.txt": text} if text else {"notes/all.txt": "one\n"})

    root, ids = project(around, linear(11, change), flow)
    status, found = bisected(root, "--good", ids[0], "--metric", "instructions")
    assert (status, found["outcome"]) == (0, "found")
    assert found["first_bad"]["revision"] == ids[8]
    change_of = found["first_bad"]["change"]
    assert change_of["low"] == change_of["high"] > 0
    built = len((around / "builds").read_text().splitlines())
    assert built == sum(item["built"] for item in found["tried"]) < len(found["tried"])


def test_no_change_is_the_same_and_not_unproven(around: Path) -> None:
    root, ids = project(around, [costs(100), *linear(4, lambda _: None)], COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["outcome"], found["left"]) == (4, "same", [])
    assert len(found["tried"]) == 2


def test_swapped_ends_are_asked_about(around: Path) -> None:
    root, ids = project(around, [costs(130, 130), costs(100, 100)], COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["outcome"]) == (4, "same")
    assert "were they swapped?" in found["why"]


def test_too_little_time_is_unproven(around: Path) -> None:
    root, ids = project(around, linear(4, lambda number: slower_at(number, 2)), WILD)
    status, found = bisected(root, "--good", ids[0], "--budget", "8s")
    assert (status, found["outcome"]) == (4, "unproven")
    assert "work cost" in found["why"]
    (bad,) = [item for item in found["tried"] if item["decision"] == "unproven"]
    assert bad["pairs"] > 0
    assert bad["change"]["value"] is not None
    (note,) = found["notes"]
    assert note.startswith("work cost: ")
    assert f"after {bad['pairs']} pair" in note
    assert note.endswith(": give a larger --budget")
    page = (root / ".perfflow/runs/latest/report.md").read_text()
    assert re.search(r"\| unproven \| \d+ \|", page)
    assert "give a larger --budget" in page


def test_a_merge_and_a_good_revision_beside_the_branch(around: Path) -> None:
    root, ids = project(around, [costs(100), *linear(3, lambda _: None)], COSTS)
    git(root, "checkout", "-qb", "side", ids[2])
    (root / "costs").write_text("130\n100\n")
    git(root, "commit", "-qam", "slower on the side")
    slow = git(root, "rev-parse", "HEAD").strip()
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", "take the side", "side")
    git(root, "checkout", "-qb", "other", ids[1])
    git(root, "commit", "-q", "--allow-empty", "-m", "beside")
    git(root, "checkout", "-q", "main")
    status, found = bisected(root, "--good", "other")
    assert (status, found["good"]["revision"]) == (0, ids[1])
    assert any("is used instead" in note for note in found["notes"])
    assert found["first_bad"]["revision"] == slow
    status, found = bisected(root, "--good", ids[1], "--first-parent")
    assert (status, found["first_bad"]["subject"]) == (0, "take the side")


def test_of_several_that_regressed_the_worst_is_taken_and_the_others_are_named(around: Path) -> None:
    changes = {1: costs(120), 3: costs(120, 150)}
    root, ids = project(around, [costs(100), *linear(4, changes.get)], COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["regression"]["benchmark"]) == (0, "two")
    assert found["first_bad"]["revision"] == ids[4]
    assert [item["benchmark"] for item in found["others"]] == ["one"]
    assert "--benchmark" in found["notes"][0]
    for words in (["--benchmark", "one"], ["--only", "one"]):
        status, found = bisected(root, "--good", ids[1], *words)
        assert (status, found["first_bad"]["revision"]) == (0, ids[2])
    refused = perfflow("bisect", "flow.yaml", "--good", ids[1], "--benchmark", "thwo", cwd=root)
    assert refused.returncode == 2
    assert "did you mean `two`? (benchmarks: one, two)" in refused.stderr


def test_a_benchmark_that_fails_on_one_side_is_named_and_the_others_are_compared(around: Path) -> None:
    flow = "stages: {baseline: [{id: s, uses: google-benchmark, with: {command: sh suite}, budget: 10s}]}"
    files = {"suite": SUITE, "one": "100", "two": "100"}
    root, ids = project(around, [files, {"two": "broken"}, {"one": "200"}, {"note": ""}], flow)
    status, found = bisected(root, "--good", ids[1], "--bad", ids[2])
    assert (status, found["outcome"]) == (3, "not measured")
    assert found["why"].startswith("the bad revision: two could not be measured: ")
    status, found = bisected(root, "--good", ids[1], "--bad", ids[2], "--benchmark", "two")
    assert (status, found["outcome"]) == (3, "not measured")
    status, found = bisected(root, "--good", ids[1], "--bad", ids[2], "--benchmark", "one")
    assert found["outcome"] == "same"
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["first_bad"]["revision"]) == (0, ids[3])
    assert any(note.startswith("two could not be measured: ") for note in found["notes"])


def test_a_regression_in_two_steps_is_told_as_such(around: Path) -> None:
    changes = {2: costs(110), 5: costs(130)}
    root, ids = project(around, [costs(100), *linear(7, changes.get)], COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["first_bad"]["revision"]) == (0, ids[6])
    assert any("an earlier commit causes a smaller part" in note for note in found["notes"])


def test_the_first_of_two_equal_steps_is_found_and_the_rest_is_said(around: Path) -> None:
    changes = {2: costs(120), 5: costs(140)}
    root, ids = project(around, [costs(100), *linear(7, changes.get)], COSTS)
    status, found = bisected(root, "--good", ids[1])
    assert (status, found["first_bad"]["revision"]) == (0, ids[3])
    assert "has part of it" in decisions(found).values()
    assert any(f"--good {ids[3][:12]}" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--good", "nowhere"], "'nowhere' is not a revision"),
        (["--good", "main"], "are the same commit"),
        (["--good", "main", "--bad", "main~1"], "--good main~1 --bad main"),
        (["--good", "main~1", "--metric", "speed"], "no such metric"),
        (["--good", "main~1", "--only", "make"], "steps that can: work"),
        (["--good", "main~1", "--budget", "soon"], "write 90s"),
    ],
)
def test_bad_usage_is_told_before_anything_runs(words: list[str], said: str, around: Path) -> None:
    root, _ = project(around, linear(2, lambda _: None))
    done = perfflow("bisect", "flow.yaml", *words, cwd=root)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (root / ".perfflow").exists()


def test_a_shallow_clone_is_told_how_to_get_the_rest(around: Path) -> None:
    root, ids = project(around, linear(4, lambda _: None))
    clone = around / "clone"
    git(around, "-c", "protocol.file.allow=always", "clone", "-q", "--depth", "2", f"file://{root}", str(clone))
    write(clone, FLOW)
    done = perfflow("bisect", "flow.yaml", "--good", ids[0], cwd=clone)
    assert done.returncode == 2
    assert "git fetch --unshallow" in done.stderr


def test_a_good_revision_that_does_not_build_is_named(around: Path) -> None:
    commits = linear(3, lambda number: {"work.c": "broken\n"} if number == 1 else None)
    root, ids = project(around, [*commits, {"work.c": base()["work.c"]}])
    status, found = bisected(root, "--good", ids[2])
    assert (status, found["outcome"]) == (3, "not measured")
    assert found["why"].startswith("the good revision: step make: ")


def test_a_stored_bisection_is_shown_again_and_has_no_verdict(around: Path) -> None:
    root, ids = project(around, [costs(100), costs(100), costs(130)], COSTS)
    done = perfflow("bisect", "flow.yaml", "--good", ids[1], "--progress", "off", cwd=root)
    assert done.returncode == 0, done.stderr
    folder = (root / ".perfflow/runs/latest").resolve()
    pages = [(folder / name).read_text() for name in ("report.md", "report.html")]
    files = sorted(path.name for path in folder.iterdir())
    assert ids[2][:12] in pages[1]
    again = perfflow("report", cwd=root)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert [(folder / name).read_text() for name in ("report.md", "report.html")] == pages
    assert sorted(path.name for path in folder.iterdir()) == files
    assert perfflow("report", "--json", cwd=root).stdout == (folder / "bisect.json").read_text()
    for words in (["receipt", "verify"], ["export"], ["compare", folder.name, folder.name]):
        refused = perfflow(*words, cwd=root)
        assert refused.returncode == 2, words
        assert "a bisection, which has no verdict" in refused.stderr
        assert "--out DIR" in refused.stderr
    judged = perfflow("report", "--out", "judged", cwd=root)
    assert judged.returncode == 1
    assert "## Performance Report" in (root / "judged/report.md").read_text()
    (folder / "bisect.json").write_text('{"schema": "perfflow.bisect/1"}')
    assert perfflow("report", cwd=root).returncode == 2
    (folder / "bisect.json").unlink()
    assert "it was killed" in perfflow("report", cwd=root).stderr


def test_report_and_resume_agree_on_what_was_killed_before_the_ends_were_compared(around: Path) -> None:
    root, ids = project(around, [costs(100), costs(130)], COSTS)
    words = ["bisect", "flow.yaml", "--good", ids[1], "--progress", "off"]
    assert perfflow(*words, cwd=root).returncode == 0
    folder = (root / ".perfflow/runs/latest").resolve()
    (folder / "bisect.json").unlink()
    lines = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if '"event":"tried"' in line)
    (folder / "events.jsonl").write_text("".join(lines[: first + 1]))
    resumed = perfflow(*words, "--resume", cwd=root)
    reported = perfflow("report", cwd=root)
    for done in (resumed, reported):
        assert done.returncode == 2
        assert "before good was compared with bad" in done.stderr
        assert "start a new one without --resume" in done.stderr


def test_a_baseline_is_the_latest_run_that_has_a_verdict(around: Path) -> None:
    root, ids = project(around, [costs(100), costs(130)], COSTS)
    words = ["bisect", "flow.yaml", "--good", ids[1], "--progress", "off"]
    assert perfflow(*words, cwd=root).returncode == 0
    refused = perfflow("baseline", "save", "main", cwd=root)
    assert (refused.returncode, "a bisection, which has no verdict" in refused.stderr) == (2, True)
    assert perfflow("run", "flow.yaml", "--progress", "off", cwd=root).returncode == 0
    run = (root / ".perfflow/runs/latest").resolve().name
    time.sleep(1.1)
    assert perfflow(*words, cwd=root).returncode == 0
    bisection = (root / ".perfflow/runs/latest").resolve().name
    saved = perfflow("baseline", "save", "main", cwd=root)
    assert saved.returncode == 0, saved.stderr
    assert f"the latest run, {bisection}, is a bisection" in saved.stderr
    assert f"the run before it is used: {run}" in saved.stderr
    compared = perfflow("compare", "main", "latest", cwd=root)
    assert compared.returncode == 0, compared.stderr


def test_secrets_of_the_environment_are_not_stored(around: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t-of-mine")
    flow = COSTS.replace("name: costs", "name: costs\nparams: {key: none}")
    root, ids = project(around, [costs(100), costs(130)], flow)
    words = ["bisect", "flow.yaml", "--good", ids[1], "--set", "key=s3cr3t-of-mine"]
    assert perfflow(*words, cwd=root).returncode == 0
    folder = (root / ".perfflow/runs/latest").resolve()
    stored = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "bisect.json" in stored
    assert not [path for path in stored if "s3cr3t-of-mine" in path.read_text()]


def test_what_was_interrupted_before_the_ends_were_compared_starts_anew(around: Path) -> None:
    slow = FLOW.replace("{command: ./work}", "{command: ./work; sleep 1, shell: true}")
    root, ids = project(around, linear(2, lambda _: None), slow)
    running = start("bisect", "flow.yaml", "--good", ids[0], cwd=root)
    events = root / ".perfflow/runs/latest/events.jsonl"
    wait_for(events, '"event":"tried"', 1)
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=900)
    assert (running.returncode, "--resume" in said) == (130, False), out + said
    done = perfflow("bisect", "flow.yaml", "--good", ids[0], "--resume", cwd=root)
    assert done.returncode == 2
    assert "before good was compared with bad" in done.stderr


def wait_for(events: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + 120
    while not events.exists() or events.read_text().count(text) < times:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_interruption_keeps_what_was_found(around: Path) -> None:
    root, ids = project(around, linear(40, lambda number: slower_at(number, AT)))
    running = start("bisect", "flow.yaml", "--good", ids[0], cwd=root)
    events = root / ".perfflow/runs/latest/events.jsonl"
    wait_for(events, '"event":"tried"', 3)
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=900)
    assert running.returncode == 130, out + said
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
