"""A clone without the contents of older files: they are fetched if the remote is there, and named if it is not."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import perfflow
from tests.repositories import git

FLOW = """perfflow: 1
name: small
stages:
  baseline:
    - {id: one, uses: command, runs: 2, with: {command: sh program.sh}}
"""


def partial_clone(folder: Path) -> Path:
    """Return a clone that has the contents of the newest files only."""
    origin = folder / "origin"
    origin.mkdir()
    (origin / "flow.yaml").write_text(FLOW)
    git(origin, "init", "-q", "-b", "main")
    git(origin, "config", "uploadpack.allowFilter", "true")
    for number in (1, 2):
        (origin / "program.sh").write_text(f"echo {number}\n")
        git(origin, "add", ".")
        git(origin, "commit", "-qm", str(number))
    git(folder, "clone", "-q", "--filter=blob:none", f"file://{origin}", "clone")
    return folder / "clone"


def test_contents_are_fetched_where_git_can(tmp_path: Path) -> None:
    done = perfflow("gate", "flow.yaml", "--base", "HEAD~1", cwd=partial_clone(tmp_path))
    assert "2 pairs" in done.stdout, done.stdout + done.stderr


def test_contents_that_cannot_be_fetched_are_named(tmp_path: Path) -> None:
    clone = partial_clone(tmp_path)
    (tmp_path / "origin").rename(tmp_path / "away")
    done = perfflow("gate", "flow.yaml", "--base", "HEAD~1", cwd=clone)
    assert done.returncode == 3
    assert "this clone lacks contents of files (a partial clone): run git fetch --refetch REMOTE" in done.stdout
    # Without the remote, git does not even try.
    git(clone, "config", "--remove-section", "remote.origin")
    done = perfflow("gate", "flow.yaml", "--base", "HEAD~1", cwd=clone)
    assert done.returncode == 3
    assert "this clone lacks contents of files (a partial clone)" in done.stdout
    assert "program.sh" in done.stdout
