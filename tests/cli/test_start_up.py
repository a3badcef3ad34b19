"""Start-up time: the imports of --help and --version are limited."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.cli.main import COMMANDS
from perfflow.model.version import VERSION
from tests.cli.shell import ROOT, perfflow
from tests.long import rest_long
from tests.repositories import git

HEAVY = {"networkx", "jinja2", "numpy", "scipy", "pydantic", "rich", "yaml", "psutil", "ruamel", "importlib.metadata"}
_PROBE = """
import json, sys
sys.argv = ["perfflow", *{words!r}]
from perfflow.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_little(option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.format(words=(option,))], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert not loaded & HEAVY
    assert "perfflow.cli.run_command" not in loaded


def test_the_version_names_the_commit_of_a_clone(tmp_path: Path) -> None:
    clone = copied(tmp_path)
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "one")
    assert shown_version(clone) == f"perfflow {VERSION} ({git(clone, 'rev-parse', 'HEAD')[:7]})"
    # Packed refs, a worktree, and a detached HEAD.
    git(clone, "pack-refs", "--all")
    git(clone, "worktree", "add", "-q", "--detach", "../other")
    git(clone, "commit", "-qm", "two", "--allow-empty")
    first, second = (git(clone, "rev-parse", rev)[:7] for rev in ("HEAD~1", "HEAD"))
    assert shown_version(clone) == f"perfflow {VERSION} ({second})"
    git(clone, "pack-refs", "--all")
    assert shown_version(clone) == f"perfflow {VERSION} ({second})"
    assert shown_version(tmp_path / "other") == f"perfflow {VERSION} ({first})"


@pytest.mark.parametrize("head", ["", "ref: refs/heads/gone", "ref: ../../../pyproject.toml", "nonsense", "ref: \0"])
def test_the_version_stands_alone_where_no_commit_is_known(head: str, tmp_path: Path) -> None:
    clone = copied(tmp_path)
    if head:
        (clone / ".git").mkdir()
        (clone / ".git" / "HEAD").write_text(head)
    assert shown_version(clone) == f"perfflow {VERSION}"


def test_the_version_is_not_that_of_somebody_elses_repository(tmp_path: Path) -> None:
    clone = copied(tmp_path)
    (clone / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    git(clone, "init", "-q", "-b", "main")
    git(clone, "commit", "-qm", "one", "--allow-empty")
    assert shown_version(clone) == f"perfflow {VERSION}"


def test_the_version_starts_no_program(tmp_path: Path) -> None:
    for name in ("git", "python3", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\ntouch started\n")
        (tmp_path / name).chmod(0o755)
    assert perfflow("--version", cwd=tmp_path, path=str(tmp_path), fresh=True).stdout.startswith(f"perfflow {VERSION}")
    assert not (tmp_path / "started").exists()


def copied(folder: Path) -> Path:
    """The package and its pyproject.toml in a separate folder."""
    clone = folder / "clone"
    shutil.copytree(ROOT / "perfflow", clone / "perfflow", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", clone)
    return clone


def shown_version(clone: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(clone)}
    done = subprocess.run(
        [sys.executable, "-m", "perfflow", "--version"], cwd=clone, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", rest_long(COMMANDS))
def test_every_command_has_help(name: str, tmp_path: Path) -> None:
    done = perfflow(name, "--help", cwd=tmp_path, fresh=True)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")
