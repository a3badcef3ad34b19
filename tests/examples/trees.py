"""Copies of the examples, and programs that are run in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.cli.shell import ROOT
from tests.repositories import git

_BUILT = shutil.ignore_patterns("build", "target", ".venv", "__pycache__", ".perfflow")


def run(
    argv: list[str | Path], cwd: Path | None = None, *, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=cwd, input=stdin, env={**os.environ, **env}, capture_output=True, text=True, timeout=900, check=False
    )


def copied(tree: Path, *paths: str | Path) -> Path:
    """Copy files and folders of this repository, without what was built in them, to the same places below a folder.

    They get new dates, which cargo goes by.
    """
    for path in paths:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, tree / path, ignore=_BUILT, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(ROOT / path, tree / path)
    return tree


def committed(root: Path, why: str = "The example") -> Path:
    """Commit all that is in a folder, to the branch main of its repository."""
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", why)
    return root


def apply(tree: Path, patches: Path, *names: str) -> None:
    for name in names:
        # GIT_CEILING_DIRECTORIES: a repository above the temporary folder is none of this.
        argv: list[str | Path] = ["git", "apply", "--whitespace=error-all", ROOT / patches / f"{name}.patch"]
        done = run(argv, tree, GIT_CEILING_DIRECTORIES=str(tree.parent))
        assert done.returncode == 0, done.stderr


def sources(tree: Path, example: Path, pattern: str) -> dict[str, str]:
    return {str(path.relative_to(tree)): path.read_text() for path in sorted((tree / example).rglob(pattern))}
