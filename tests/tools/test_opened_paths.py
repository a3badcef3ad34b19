"""The files that a program opens, as strace itself records them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfflow.tools.linux.strace import opened_paths, watching_opens
from tests.repositories import git

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def opened(folder: Path, command: str) -> set[str]:
    """Return the names of the files in a folder that a shell command opens."""
    record = folder.parent / "record"
    subprocess.run([*watching_opens(record), "sh", "-c", command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return {
        str(Path(path).relative_to(folder))
        for path in opened_paths(record.read_bytes())
        if path.startswith(str(folder))
    }


@needs_strace
def test_children_and_odd_names_count_but_not_what_git_compares(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "tree"
    folder.mkdir()
    git(folder, "init", "-q")
    for name in ("a", "b", "é >", "unread"):
        (folder / name).write_text(name)
    git(folder, "add", "-A")
    for name in ("a", "b", "é >", "unread"):
        (folder / name).touch()
    found = opened(folder, "test -e unread; (cat a; git diff; cat 'é >' b) | cat; cat missing || true")
    assert {name for name in found if not name.startswith(".git")} == {"a", "b", "é >"}
