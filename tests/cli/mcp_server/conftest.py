"""Small projects for a server to work on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repositories import git

COUNTED = """\
perfflow: 1
name: counted
description: The cost is a number in a file, so that it is known exactly.

# Not isolated, since the program notes its starts outside of the project.

params:
  line: {default: 1, help: line of the file}

targets:
  cost: {cost: <200}

stages:
  build:
    - {id: make, run: test ! -e broken && cp costs built}
  baseline:
    - id: cost
      run: echo run >> ../starts; sed -n ${{ params.line }}p built
      parse: {regex: '(?P<cost>\\d+)', units: {cost: '1'}, better: {cost: lower}}
  optimize:
    accept: 10%
    forbid: [workflows/**]
    isolate: off
  verify:
    - {id: right, run: test ! -e wrong}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git project with the workflow ``counted``. Each measured process appends a line to ``../starts``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "project"
    (folder / "workflows").mkdir(parents=True)
    (folder / "workflows" / "counted.yaml").write_text(COUNTED)
    (folder / "costs").write_text("100\n")
    (folder / ".gitignore").write_text("built\n.perfflow\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def commit(folder: Path, subject: str, **files: str) -> str:
    """Write files, commit them, and return the revision."""
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", subject)
    return git(folder, "rev-parse", "HEAD").strip()


def new_file(name: str, text: str) -> str:
    """Return a patch that adds a file of one line."""
    return f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}\n"


def new_cost(cost: int) -> str:
    """Return a patch that changes the number in ``costs``."""
    return f"--- a/costs\n+++ b/costs\n@@ -1 +1 @@\n-100\n+{cost}\n"
