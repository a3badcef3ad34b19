"""^C and kill -9 during a candidate: the project is unchanged, and the run can be resumed."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, start
from tests.execute.test_child import wait_until
from tests.repositories import git

FLOW = """
perfflow: 1
name: work
targets:
  fast: {cost change: <1}
stages:
  build:
    - {id: make, run: 'sleep 0.05; cp costs built'}
  baseline:
    - {id: fast, run: 'cat built', parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}}
  profile:
    - {id: look, run: 'true'}
  optimize:
    - {id: first, technique: memory, run: 'sleep 0.05; sed -i s/100/80/ costs'}
    - {id: none, technique: memory, run: 'echo x > note'}
    - {id: second, technique: memory, run: 'sleep 0.05; sed -i s/80/60/ costs'}
  verify:
    - {id: tests, run: 'sleep 0.05'}
    - {id: after, compare: baseline}
"""


def fingerprint(root: Path) -> dict[str, str]:
    """Return the hash of every file of the project and .git, except runs."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and ".perfflow" not in path.parts)
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "costs").write_text("100\n")
    (root / ".gitignore").write_text("built\n")
    (root / "flow.yaml").write_text(FLOW)
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "costs").write_text("100\n\n")
    (root / "untracked").write_text("x")
    # Build first, so that later differences can only come from perfflow.
    (root / "built").write_text("100\n\n")
    return root


def optimizations(root: Path) -> dict[str, str]:
    result = json.loads((root / ".perfflow" / "runs" / "latest" / "result.json").read_text())
    return {item["id"]: item["decision"] for item in result["optimizations"]}


@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.long)])
def test_killed_in_the_middle_nothing_of_it_is_in_the_project_and_it_goes_on(project: Path, kills: int) -> None:
    chance, before = random.Random(20261120), fingerprint(project)
    events = project / ".perfflow" / "runs" / "latest" / "events.jsonl"
    for number in range(kills):
        begun = events.exists() and '"event":"run"' in events.read_text()
        process = start("run", "flow.yaml", "--progress", "off", *(["--resume"] if begun else []), cwd=project)
        if number:
            # The first may be killed before its run starts, but not all, even on a slow machine.
            wait_until(events.exists, "the run did not begin")
        time.sleep(chance.uniform(0.3, 2.5))
        finished = process.poll() is not None
        process.kill()
        process.communicate()
        # After the branch is created, only the report is left to write.
        if finished or (events.exists() and '"event":"branch"' in events.read_text()):
            break
        assert fingerprint(project) == before, f"after kill {number}"
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=project)
    assert done.returncode == 0, done.stderr
    assert optimizations(project) == {"first": "accepted", "none": "rejected", "second": "accepted"}
    after = fingerprint(project)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert all(
        name.startswith((".git/objects/", ".git/refs/heads/perfflow/", ".git/logs/refs/heads/perfflow/"))
        for name in changed
    )
    branch = git(project, "for-each-ref", "--format=%(refname:short)", "refs/heads/perfflow/").strip()
    assert git(project, "show", f"{branch}:costs") == "60\n\n"
    assert git(project, "stash", "list") == ""
    assert git(project, "worktree", "list").count("\n") == 1


def test_interrupted_in_a_candidate_it_ends_with_130_and_the_project_as_it_was(project: Path) -> None:
    (project / "flow.yaml").write_text(
        FLOW.replace("sleep 0.05; sed -i s/100", "touch ../trying; sleep 30; sed -i s/100")
    )
    before = fingerprint(project)
    process = start("run", "flow.yaml", "--progress", "off", cwd=project)
    cache = project.parent / "cache"
    deadline = time.monotonic() + 60
    while not list(cache.rglob("trying")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=900)
    assert process.returncode == 130, said
    assert fingerprint(project) == before


def interrupted_at(project: Path, sign: str, *more: str) -> None:
    """Run until the events contain a text, then kill it."""
    events = project / ".perfflow" / "runs" / "latest" / "events.jsonl"
    process = start("run", "flow.yaml", "--progress", "off", *more, cwd=project)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (events.exists() and sign in events.read_text()):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert sign in events.read_text()


def test_alternatives_accepted_before_an_interruption_still_count(project: Path) -> None:
    candidates = """
    - {id: c, technique: memory, matrix: {n: [20, 50, 70]}, run: 'sed -i s/100/${{ matrix.n }}/ costs'}
"""
    before, _, rest = FLOW.partition("    - {id: first")
    (project / "flow.yaml").write_text(before.rstrip() + candidates + "  verify:" + rest.partition("  verify:")[2])
    interrupted_at(project, '"trial":"c[n=50]"')
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=project)
    assert done.returncode == 0, done.stderr
    assert optimizations(project) == {"c[n=20]": "accepted", "c[n=50]": "rejected", "c[n=70]": "rejected"}


def test_what_failed_its_checks_after_an_interruption_is_not_on_the_branch(project: Path) -> None:
    text = FLOW.replace("{id: look, run: 'true'}", "{id: look, uses: cprofile, with: {command: python3 slow.py}}")
    (project / "slow.py").write_text("import time; time.sleep(0.5)\n")
    (project / "flow.yaml").write_text(text.replace("run: 'sleep 0.05'}", "run: 'test ! -e ../wrong'}"))
    interrupted_at(project, '"event":"kept"')
    (project / "flow.yaml").touch()
    wrong = next((project.parent / "cache").rglob("a")).parent / "wrong"
    wrong.write_text("x")
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=project)
    assert "first" not in [name for name, decision in optimizations(project).items() if decision == "accepted"], (
        done.stdout
    )
    assert git(project, "for-each-ref", "refs/heads/perfflow/") == ""


def test_an_accepted_change_whose_diff_is_gone_ends_the_stage_and_makes_no_branch(project: Path) -> None:
    interrupted_at(project, '"trial":"none"')
    (diff,) = (project / ".perfflow/runs/latest/steps/first").glob("*.diff")
    diff.unlink()
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=project)
    assert done.returncode == 3, done.stderr
    assert f"{diff.name}: No such file or directory" in done.stdout + done.stderr
    result = json.loads((project / ".perfflow/runs/latest/result.json").read_text())
    assert (result["verdict"], result["trees"]["candidate"]["branch"]) == ("error", None)
    assert git(project, "for-each-ref", "refs/heads/perfflow/") == ""
