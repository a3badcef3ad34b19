"""git as the tests use it: with an identity of its own, whatever the machine has configured."""

from __future__ import annotations

import subprocess
from pathlib import Path

WHO = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *words: str) -> str:
    """Run git in a folder and return what it prints."""
    return subprocess.run(["git", *WHO, *words], cwd=root, check=True, capture_output=True, text=True).stdout
