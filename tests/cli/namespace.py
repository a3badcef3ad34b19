"""Runs a shell script in a mount namespace, with a small disk or a read-only folder that is invisible outside."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.shell import ROOT


@cache
def _unshare() -> tuple[str, ...]:
    for flags in ("-m", "-rm"):
        words = ("unshare", flags, "sh", "-c", "mount -t tmpfs tmpfs /mnt")
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return "unshare", flags
        except OSError:
            break
    return ()


def script(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run bash in a mount namespace, with ``perfflow`` as the command under test. Skip if that is not allowed."""
    if not _unshare():
        pytest.skip("neither root nor a user namespace may mount here")
    start = f'perfflow() {{ {sys.executable} -m perfflow "$@"; }}\nstatus() {{ local s=0; "$@" || s=$?; echo "= $s"; }}'
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    return subprocess.run(
        [*_unshare(), "bash", "-ec", f"{start}\n{text}"],
        cwd=cwd,
        env={**env, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
