"""^C and kill -9 during a candidate: the project is unchanged, and the run can be resumed."""

from __future__ import annotations

import hashlib
import random
import signal
import time
from pathlib import Path

import pytest

from tests.cli.running import RUN, has_event, result_of, wait_until
from tests.cli.shell import perfflow, start
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


def resumed(root: Path, status: int = 0) -> dict[str, str]:
    """Go on with the newest run to its end, and return its decisions."""
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=root)
    assert done.returncode == status, done.stdout + done.stderr
    return {item["id"]: item["decision"] for item in result_of(root / RUN)["optimizations"]}


def branches(root: Path) -> str:
    return git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads/perfflow/").strip()


@pytest.mark.parametrize("kills", [4, pytest.param(12, marks=pytest.mark.long)])
def test_killed_in_the_middle_nothing_of_it_is_in_the_project_and_it_goes_on(project: Path, kills: int) -> None:
    chance, before = random.Random(20261120), fingerprint(project)
    run = project / RUN
    for number in range(kills):
        begun = has_event(run, event="run")
        process = start("run", "flow.yaml", "--progress", "off", *(["--resume"] if begun else []), cwd=project)
        if number:
            # The first may be killed before its run starts, but not all, even on a slow machine.
            wait_until((run / "events.jsonl").exists, "the run did not begin")
        time.sleep(chance.uniform(0.3, 2.5))
        finished = process.poll() is not None
        process.kill()
        process.communicate()
        # After the branch is created, only the report is left to write.
        if finished or has_event(run, event="branch"):
            break
        assert fingerprint(project) == before, f"after kill {number}"
    assert resumed(project) == {"first": "accepted", "none": "rejected", "second": "accepted"}
    after = fingerprint(project)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    allowed = (".git/objects/", ".git/refs/heads/perfflow/", ".git/logs/refs/heads/perfflow/")
    assert [name for name in changed if not name.startswith(allowed)] == []
    assert git(project, "show", f"{branches(project)}:costs") == "60\n\n"
    assert git(project, "stash", "list") == ""
    assert git(project, "worktree", "list").count("\n") == 1


def test_interrupted_in_a_candidate_it_ends_with_130_and_the_project_as_it_was(project: Path) -> None:
    slow = FLOW.replace("sleep 0.05; sed -i s/100", "touch ../trying; sleep 30; sed -i s/100")
    (project / "flow.yaml").write_text(slow)
    before = fingerprint(project)
    process = start("run", "flow.yaml", "--progress", "off", cwd=project)
    wait_until(lambda: any((project.parent / "cache").rglob("trying")), "the candidate was not tried")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=900)
    assert process.returncode == 130, said
    assert fingerprint(project) == before


def killed_at(project: Path, **event: str) -> None:
    """Run until there is an event with these values, then kill it."""
    process = start("run", "flow.yaml", "--progress", "off", cwd=project)
    wait_until(lambda: has_event(project / RUN, **event), "there was no such event")
    process.kill()
    process.communicate()


@pytest.mark.long  # as the one that is killed, with alternatives
def test_alternatives_accepted_before_an_interruption_still_count(project: Path) -> None:
    candidates = """
    - {id: c, technique: memory, matrix: {n: [20, 50, 70]}, run: 'sed -i s/100/${{ matrix.n }}/ costs'}
"""
    before, _, rest = FLOW.partition("    - {id: first")
    (project / "flow.yaml").write_text(before.rstrip() + candidates + "  verify:" + rest.partition("  verify:")[2])
    killed_at(project, trial="c[n=50]")
    assert resumed(project) == {"c[n=20]": "accepted", "c[n=50]": "rejected", "c[n=70]": "rejected"}


@pytest.mark.long  # as the one that is killed, with checks
def test_what_failed_its_checks_after_an_interruption_is_not_on_the_branch(project: Path) -> None:
    text = FLOW.replace("{id: look, run: 'true'}", "{id: look, uses: cprofile, with: {command: python3 slow.py}}")
    (project / "slow.py").write_text("import time; time.sleep(0.5)\n")
    (project / "flow.yaml").write_text(text.replace("run: 'sleep 0.05'}", f"run: 'test ! -e {project.parent}/wrong'}}"))
    killed_at(project, event="kept")
    (project / "flow.yaml").touch()
    (project.parent / "wrong").write_text("x")
    assert resumed(project, status=3)["first"] != "accepted"
    assert branches(project) == ""


def test_an_accepted_change_whose_diff_is_gone_ends_the_stage_and_makes_no_branch(project: Path) -> None:
    killed_at(project, trial="none")
    (diff,) = (project / ".perfflow/runs/latest/steps/first").glob("*.diff")
    diff.unlink()
    done = perfflow("run", "flow.yaml", "--resume", "--progress", "off", cwd=project)
    assert done.returncode == 3, done.stderr
    assert f"{diff.name}: No such file or directory" in done.stdout + done.stderr
    result = result_of(project / RUN)
    assert (result["verdict"], result["trees"]["candidate"]["branch"]) == ("error", None)
    assert branches(project) == ""
