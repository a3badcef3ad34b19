"""Modules of this repository that are run as programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_module(name: str, *words: str | Path, check: bool = True, **env: str) -> subprocess.CompletedProcess[str]:
    argv: list[str | Path] = [sys.executable, "-m", name, *words]
    return subprocess.run(argv, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=check)
