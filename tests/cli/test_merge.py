"""``--shard`` and ``perfflow merge``: parts of a gate, and their one verdict."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow, write
from tests.repositories import git

STEP = """
    - id: {name}
      run: cat {name}
      runs: 10
      parse: {{regex: '(?P<cost>\\d+)', units: {{cost: '1'}}, better: {{cost: lower}}}}
"""
NAMES = ("one", "two", "three")
FLOW = "name: parts\nstages:\n  baseline:" + "".join(STEP.format(name=name) for name in NAMES)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of three benchmarks, of which one got slower on the branch ``topic``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    write(root, FLOW)
    (root / ".gitignore").write_text(".perfflow\npart*\nmerged\n")
    git(root, "init", "-q", "-b", "main")
    for name in NAMES:
        (root / name).write_text("100\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "topic")
    (root / "two").write_text("120\n")
    git(root, "commit", "-aqm", "two")
    return root


def part(project: Path, number: int, count: int = 2, *words: str) -> tuple[int, dict[str, Any]]:
    shard = f"--shard={number}/{count}"
    done = perfflow(
        "gate", "flow.yaml", "--base", "main", shard, "--out", f"part{number}", "--json", *words, cwd=project
    )
    return done.returncode, json.loads(done.stdout)


def merge(project: Path, *names: str) -> tuple[int, str]:
    done = perfflow("merge", *names, "--out", "merged", cwd=project)
    return done.returncode, done.stdout + done.stderr


def names(result: dict[str, Any]) -> set[str]:
    return {row["name"] for row in result["benchmarks"]}


def test_parts_measure_each_benchmark_once_and_get_one_verdict(project: Path) -> None:
    first, second = part(project, 1), part(project, 2)
    assert sorted(status for status, _ in (first, second)) == [0, 1]
    assert names(first[1]) | names(second[1]) == set(NAMES)
    assert not names(first[1]) & names(second[1])
    status, said = merge(project, "part2", "part1")
    assert status == 1
    assert "two" in said
    result = json.loads((project / "merged" / "result.json").read_text())
    assert {row["name"]: row["decision"] for row in result["benchmarks"]} == {
        "one": "same",
        "two": "regressed",
        "three": "same",
    }
    assert result["gate"]["status"] == "fail"
    assert result["run"]["shard"] == ""
    assert [node["name"] for node in result["nodes"]] == ["part 1/2", "part 2/2"]
    again = perfflow("report", "merged", "--json", cwd=project)
    assert (again.returncode, json.loads(again.stdout)["benchmarks"]) == (1, result["benchmarks"])
    assert perfflow("receipt", "verify", "merged", cwd=project).returncode == 0


def test_a_part_says_that_it_is_one(project: Path) -> None:
    done = perfflow("gate", "flow.yaml", "--base", "main", "--shard", "1/2", cwd=project)
    assert "this is part 1/2 of the benchmarks" in done.stdout
    assert "it can be merged" not in done.stdout
    assert "--shard=1/2" in (project / ".perfflow/runs/latest/report.md").read_text()


def test_a_part_without_a_benchmark_passes_and_belongs_to_the_whole(project: Path) -> None:
    found = [part(project, number, 4) for number in range(1, 5)]
    assert [names(result) for _, result in found].count(set()) == 1
    assert sorted(status for status, _ in found) == [0, 0, 0, 1]
    assert merge(project, *(f"part{number}" for number in range(1, 5)))[0] == 1


def test_expected_benchmarks_and_targets_may_be_of_another_part(project: Path) -> None:
    targets = "targets: {one: {cost: <200}, two: {cost: <110}, three: {cost: <200}}\n"
    write(project, targets + FLOW)
    statuses = [part(project, number)[0] for number in (1, 2)]
    assert sorted(statuses) == [0, 1]
    assert merge(project, "part1", "part2")[0] == 1
    result = json.loads((project / "merged" / "result.json").read_text())
    assert {item["benchmark"]: item["status"] for item in result["targets"]} == {
        "one": "met",
        "two": "not met",
        "three": "met",
    }


def _other_head(project: Path) -> None:
    (project / "one").write_text("90\n")


def _other_base(project: Path) -> None:
    git(project, "commit", "-qm", "again", "--allow-empty")
    git(project, "branch", "-qf", "main", "HEAD~1")


def _other_workflow(project: Path) -> None:
    write(project, FLOW.replace("runs: 10", "runs: 11"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_other_head, "measured another head"),
        (_other_base, "measured another base"),
        (_other_workflow, "another workflow"),
    ],
)
def test_parts_of_different_runs_are_refused(project: Path, change: Callable[[Path], None], said: str) -> None:
    part(project, 1)
    change(project)
    part(project, 2)
    status, text = merge(project, "part1", "part2")
    assert status == 2
    assert said in text
    assert not (project / "merged").exists()


def test_parts_that_are_missing_doubled_or_cut_are_refused(project: Path) -> None:
    part(project, 1)
    part(project, 2)
    part(project, 3, 3)
    shutil.copytree(project / "part1", project / "part1-again")
    whole = perfflow("gate", "flow.yaml", "--base", "main", "--out", "part-whole", cwd=project)
    assert whole.returncode == 1
    for words, said in (
        (["part1"], "missing: part 2/2"),
        (["part1", "part2", "part1-again"], "part 1/2 is there more than once: part1, part1-again"),
        (["part1", "part3"], "of different divisions"),
        (["part1", "part-whole"], "part-whole: this run is no part of another one"),
        (["part1", "nowhere"], "nowhere: no run found"),
        (["part1", "part2/result.json"], ""),
    ):
        status, text = merge(project, *words)
        assert said in text
        assert (status == 2) == bool(said), text
    events = project / "part2" / "events.jsonl"
    lines = events.read_bytes()
    for cut in (len(lines) - 20, len(lines) // 2):
        events.write_bytes(lines[:cut])
        status, text = merge(project, "part1", "part2")
        assert status == 2
        assert "part2: part 2/2 was not measured to its end" in text
    events.write_bytes(b"{}\n" + lines[10:])
    assert merge(project, "part1", "part2")[0] == 2
    events.unlink()
    assert "its samples are not there" in merge(project, "part1", "part2")[1]


def test_links_in_a_part_are_not_followed(project: Path) -> None:
    part(project, 1)
    part(project, 2)
    (project / "secret").write_text("not of the run")
    (project / "part1" / "steps" / "link").symlink_to(project / "secret")
    assert merge(project, "part1", "part2")[0] == 1
    assert not [path for path in (project / "merged").rglob("*") if path.name == "link"]


@pytest.mark.parametrize("text", ["5/4", "0/4", "1", "1/", "/2", "-1/2", "a/b", "1/0", "²/3", "1/10000000"])
def test_a_part_that_does_not_exist_is_refused(project: Path, text: str) -> None:
    done = perfflow("gate", "flow.yaml", "--base", "main", f"--shard={text}", cwd=project)
    assert done.returncode == 2
    assert f"--shard {text}" in done.stderr


def test_a_resumed_part_stays_the_same_part(project: Path) -> None:
    status, before = part(project, 1)
    words = ("gate", "flow.yaml", "--resume", "part1")
    again = perfflow(*words, "--json", cwd=project)
    assert (again.returncode, names(json.loads(again.stdout))) == (status, names(before))
    refused = perfflow(*words, "--shard", "2/2", cwd=project)
    assert refused.returncode == 2
    assert "this run measures part 1/2" in refused.stderr
